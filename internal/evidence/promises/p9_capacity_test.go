// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// demand is the number of requests of each kind per minute.
type demand struct{ transactions, syncs, reads float64 }

func (d demand) minus(o demand) demand {
	return demand{d.transactions - o.transactions, d.syncs - o.syncs, d.reads - o.reads}
}

func (d demand) total() float64 { return d.transactions + d.syncs + d.reads }

// standing returns the demand of n clients in one queue, including the holder, or of one idle client if n is 0. It checks that
// the queue has n + 1 watches.
func standing(t *testing.T, session time.Duration, n int) (asked demand) {
	const during = 20 * time.Minute
	virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		var contenders []*attempt
		for i := range n {
			c := connect(t, srv, fmt.Sprint("c", i), session)
			contenders = append(contenders, lockLater(t.Context(), c.Mutex(path).Lock))
			time.Sleep(100 * time.Millisecond)
		}
		if n == 0 {
			connect(t, srv, "idle", session)
		}
		time.Sleep(3 * session)
		srv.ResetCounts()
		time.Sleep(during)
		seen := srv.Requests()
		perMinute := func(op zktest.Op) float64 { return float64(seen[op]) / during.Minutes() }
		asked = demand{perMinute(zktest.OpMulti), perMinute(zktest.OpSync), perMinute(zktest.OpExists) + perMinute(zktest.OpSetWatches)}
		watches := 0
		for _, of := range srv.Watches() {
			watches += of
		}
		if n > 1 {
			require.Equal(t, n+1, watches)
		}
		for _, a := range contenders {
			<-a.done
			require.NoError(t, a.err)
			unlock(t, a.hold)
		}
	})
	return asked
}

// sayings returns the cells of the page's rows that begin with a session timeout and have the given number of columns.
func sayings(t *testing.T, page string, columns int) (rows [][]string) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == columns && strings.HasSuffix(cells[0], " s") {
			rows = append(rows, cells)
		}
	}
	require.NotEmpty(t, rows)
	return rows
}

// said returns the number in a cell.
func said(t *testing.T, cell string) float64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64)
	require.NoError(t, err)
	return n
}

// lasts returns the duration in a cell, in seconds.
func lasts(t *testing.T, cell string) float64 {
	n, unit, _ := strings.Cut(cell, " ")
	day := (24 * time.Hour).Seconds()
	return said(t, n) * map[string]float64{"days": day, "years": 365 * day}[unit]
}

// TestCapacityIsWhatItsPageSays counts the clients' requests and compares them with the tables of docs/capacity.md.
//
//zklock:promise P9.7
func TestCapacityIsWhatItsPageSays(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: hours of heartbeats")
	}
	page, err := os.ReadFile("../../../docs/capacity.md")
	require.NoError(t, err)
	type row struct{ timeout, what string }
	asked := map[row]demand{}
	for _, s := range []int{4, 10, 30} {
		session, name := time.Duration(s)*time.Second, fmt.Sprint(s, " s")
		one, two, three, four := standing(t, session, 1), standing(t, session, 2), standing(t, session, 3), standing(t, session, 4)
		asked[row{name, "is idle"}] = standing(t, session, 0)
		asked[row{name, "holds"}] = one
		asked[row{name, "waits, first or second"}] = two.minus(one)
		asked[row{name, "waits further back"}] = four.minus(three)
		second := three.minus(two)
		require.InDelta(t, two.minus(one).total(), second.total(), 1)
	}

	rows := sayings(t, string(page), 5)
	require.Len(t, rows, len(asked))
	for _, r := range rows {
		d, ok := asked[row{r[0], r[1]}]
		require.True(t, ok, r)
		for i, n := range []float64{d.transactions, d.syncs, d.reads} {
			require.InDelta(t, n, said(t, r[2+i]), 0.5+n/100, "%v", r)
		}
	}

	chosen := regexp.MustCompile(`(?m)^\| \**(\d+ s)\** \| .*? \| ([\d.]+)(?: quorum writes)?, ([\d.]+)(?: other requests)? \|`).FindAllStringSubmatch(string(page), -1)
	require.Len(t, chosen, 3, "the rows of the table of timeouts to choose from")
	for _, m := range chosen {
		holds := asked[row{m[1], "holds"}]
		require.InEpsilon(t, holds.transactions, said(t, m[2]), 0.02, m[0])
		require.InEpsilon(t, holds.syncs+holds.reads, said(t, m[3]), 0.02, m[0])
	}

	for _, r := range sayings(t, string(page), 6) {
		clients := said(t, r[1])
		idle, holding := asked[row{r[0], "is idle"}], asked[row{r[0], "holds"}]
		require.InEpsilon(t, clients*idle.total()/60, said(t, r[2]), 0.05, "%v", r)
		require.InEpsilon(t, clients*holding.total()/60, said(t, r[3]), 0.05, "%v", r)
		require.InEpsilon(t, clients*holding.transactions/60, said(t, r[4]), 0.05, "%v", r)
		require.InEpsilon(t, (1<<32)/(clients*holding.transactions/60), lasts(t, r[5]), 0.05, "%v", r)
	}
}
