// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// A link has the figures of one client that locks all the time, with a given duration of round trips.
type link struct {
	least    float64 // lowest Remaining during a hold, as a fraction of the session timeout
	held     float64 // share of the time during which it held
	requests float64 // per minute
}

// String returns the link as a cell of the table.
func (l link) String() string {
	if l.held < 0.005 {
		return "none"
	}
	return fmt.Sprintf("%.2f, %.0f %%, %.0f", l.least, 100*l.held, l.requests)
}

// slowLink measures a link for 60 session timeouts.
func slowLink(t *testing.T, session, tick time.Duration, latency func(*rand.Rand) time.Duration) (l link) {
	opts := zktest.Options{Servers: 3, TickTime: 2 * time.Second, Latency: latency}
	virtual(t, opts, func(t *testing.T, srv *zktest.Server) {
		c := connectWith(t, srv, &zklock.Options{SessionTimeout: session, TickTime: tick, Label: "a"})
		time.Sleep(session) // until the client knows the servers: the order of replies at one moment would decide what it asks
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var hold *zklock.Hold
		get := lockLater(ctx, c.Mutex(path).Lock)
		time.Sleep(5 * session)
		const steps, during = 400, 60
		srv.ResetCounts()
		held, least := 0, session
		for range steps * during {
			time.Sleep(session / steps)
			if get.returned() && hold == nil {
				require.NoError(t, get.err)
				hold = get.hold
			}
			switch {
			case hold == nil:
			case hold.Context().Err() != nil:
				hold, get = nil, lockLater(ctx, c.Mutex(path).Lock)
				least = 0
			default:
				held, least = held+1, min(least, hold.Remaining())
			}
		}
		seen := 0
		for op, n := range srv.Requests() {
			if op != zktest.OpPing {
				seen += n
			}
		}
		l = link{least.Seconds() / session.Seconds(), float64(held) / (steps * during), float64(seen) / (during * session).Minutes()}
		cancel()
		<-get.done
	})
	return l
}

// The table of docs/maintainers/measurements.md, which this test prints with -v: the minimum of Remaining, the share of time during which a lock
// is held, and the requests per minute, by the duration of round trips.
//
//zklock:promise P7.2 P2.5
func TestSlowLinksMatchTheirTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/maintainers/measurements.md")
	require.NoError(t, err)
	const ms = time.Millisecond
	for _, s := range []int{4, 10, 30}[:3/oneIn(3)] {
		session := time.Duration(s) * time.Second
		trips := []time.Duration{2 * ms, 20 * ms, session / 100, session * 3 / 100, session / 16, session / 10, session / 8, session * 13 / 100, session * 15 / 100, session / 6}
		for _, trip := range trips {
			trip = trip.Round(ms)
			line := fmt.Sprintf("| %d s | %v | %v | %v |", s, trip, slowLink(t, session, 0, fixed(trip/2)), slowLink(t, session, 2*time.Second, fixed(trip/2)))
			t.Log(line)
			row := fmt.Sprintf("| %d s | %v |", s, trip)
			is := strings.TrimPrefix(line, row)
			_, said, ok := strings.Cut(string(page), row)
			require.True(t, ok, "docs/maintainers/measurements.md has no such row")
			said, _, _ = strings.Cut(said, "\n")
			require.Equal(t, strings.Count(is, "none"), strings.Count(said, "none"), said)
			assert.InDeltaSlice(t, parts(is, 0), parts(said, 0), 0.015, "what remains: %s", said)
			require.InDeltaSlice(t, parts(is, 1), parts(said, 1), 1, "the share of the time: %s", said)
			assert.InEpsilonSlice(t, parts(is, 2), parts(said, 2), 0.05, "requests: %s", said)
		}
	}
}

// The table of jitter in docs/maintainers/measurements.md, which this test prints with -v. Each way takes a millisecond, and longer by a random part of
// half the jitter.
//
//zklock:promise P7.2 P2.5
func TestJitterMatchesItsTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/maintainers/measurements.md")
	require.NoError(t, err)
	for _, s := range []int{4, 10, 30}[:3/oneIn(3)] {
		session := time.Duration(s) * time.Second
		for _, percent := range []int{0, 1, 2, 4, 6, 8, 10} {
			most := session*time.Duration(percent)/200 + 1
			// From the time alone, so that the order of what happens at one moment changes no delay.
			latency := func(*rand.Rand) time.Duration {
				r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
				return time.Millisecond + time.Duration(r.Int64N(int64(most)))
			}
			row := fmt.Sprintf("| %d s | 0 to %.2f T |", s, float64(percent)/100)
			line := fmt.Sprintf("%s %v | %v |", row, slowLink(t, session, 0, latency), slowLink(t, session, 2*time.Second, latency))
			t.Log(line)
			_, said, ok := strings.Cut(string(page), row)
			require.True(t, ok, "docs/maintainers/measurements.md has no such row")
			said, _, _ = strings.Cut(said, "\n")
			is := strings.TrimPrefix(line, row)
			assert.InDeltaSlice(t, parts(is, 0), parts(said, 0), 0.03, "what remains: %s", said)
			require.InDeltaSlice(t, parts(is, 1), parts(said, 1), 1, "the share of the time: %s", said)
			assert.InEpsilonSlice(t, parts(is, 2), parts(said, 2), 0.1, "requests: %s", said)
		}
	}
}

// parts returns the n-th number of each cell that has numbers.
func parts(line string, n int) (all []float64) {
	for cell := range strings.SplitSeq(line, "|") {
		if numbers := strings.Split(cell, ","); len(numbers) == 3 {
			f, _ := strconv.ParseFloat(strings.Trim(numbers[n], " %"), 64)
			all = append(all, f)
		}
	}
	return all
}

// If replies take too long for any proof, the error of a wait says so.
//
//zklock:promise P8.2
func TestTheErrorOfAWaitOnASlowLinkNamesTheReplyTime(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3, Latency: fixed(750 * time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Dialer: srv.DialFrom("a")}) // the default gives a dial 1 s
		time.Sleep(2 * term)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Mutex(path).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "proof that its session is alive, first in the queue; replies take 1.5")
		require.ErrorContains(t, err, "and must take less than 1.371s")
	})
}

// A network becomes so slow that no lock can be granted as long as the client takes its replies for replies of busy servers.
//
//zklock:promise P7.2
func TestANetworkThatBecomesSlowDelaysAGrantUntilFastRepliesAreForgotten(t *testing.T) {
	var slow atomic.Bool
	latency := func(*rand.Rand) time.Duration {
		if slow.Load() {
			return term / 16
		}
		return time.Millisecond
	}
	virtual(t, zktest.Options{Servers: 3, Latency: latency}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		grant := func() {
			hold, err := c.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(2 * term)
			_ = hold.Unlock(t.Context()) // it may be lost
		}
		grant()
		slow.Store(true)
		time.Sleep(2 * term)
		began := time.Now()
		grant()
		require.Less(t, time.Since(began), 26*term)
	})
}
