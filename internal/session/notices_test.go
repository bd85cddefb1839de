// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// noted has Notices and records the delivered ones.
type noted struct {
	*Notices
	reports []Slowness
	told    []int
}

func newNoted() *noted {
	n := &noted{Notices: NewNotices()}
	n.Report = func(s Slowness) { n.reports = append(n.reports, s) }
	return n
}

// put adds a notice whose delivery takes the given time.
func (n *noted) put(i int, took time.Duration) bool {
	return n.Put(func() {
		time.Sleep(took)
		n.told = append(n.told, i)
	})
}

func TestNoticesAreDeliveredInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoted()
		for i := range 100 {
			start := time.Now()
			require.True(t, n.put(i, time.Millisecond))
			require.Zero(t, time.Since(start))
			if i%10 == 9 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		n.Close(nil)
		require.Len(t, n.told, 100)
		require.True(t, slices.IsSorted(n.told))
		require.Empty(t, n.reports)
		require.Empty(t, n.Slowness().String())
		require.False(t, n.put(100, 0), "after Close")
	})
}

func TestTheNumberOfWaitingNoticesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoted()
		n.put(-1, time.Second/2)
		synctest.Wait()
		for i := range maxNotices {
			require.True(t, n.put(i, 0))
		}
		require.False(t, n.put(maxNotices, 0))
		require.False(t, n.put(maxNotices, 0))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, n.told, maxNotices+1)
		require.Equal(t, []Slowness{{time.Second / 2, maxNotices, 2}}, n.reports, "what was dropped is reported")
		require.Equal(t, "observer or log handler is slow: took up to 500ms, 0 notices wait, 2 dropped", n.Slowness().String())
		time.Sleep(reportEvery)
		n.put(1, 0)
		n.Close(nil)
		require.Len(t, n.reports, 1, "once")
	})
}

func TestSlowNoticesAreReportedFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoted()
		for i := range 100 {
			n.put(i, 2*time.Second)
		}
		n.Close(nil)
		require.Len(t, n.reports, 4, "in 200 s")
		require.Equal(t, Slowness{2 * time.Second, 99, 0}, n.reports[0])
	})
}

func TestCloseOfNoticesEndsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNoted()
		for i := range 5 {
			n.put(i, time.Hour)
		}
		limit := make(chan struct{})
		time.AfterFunc(90*time.Minute, func() { close(limit) })
		start := time.Now()
		n.Close(limit)
		require.Equal(t, 90*time.Minute, time.Since(start))
		require.Equal(t, Slowness{time.Hour, 0, 3}, n.Slowness())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, "[0 1]", fmt.Sprint(n.told))
	})
}
