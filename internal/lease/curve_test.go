// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// paid returns what a holder pays for its heartbeats in transactions a minute, and the least that remains of the lease as a share of the
// timeout. Heartbeats begin every period, or as usual if that is zero. Replies take 2 ms.
func paid(t *testing.T, timeout, tick, period time.Duration) (transactions, least float64) {
	synctest.Test(t, func(*testing.T) {
		const reply, during = 2 * time.Millisecond, 60
		l := New(Clock(nil), timeout, TickOf(tick))
		r := l.Created(l.now(), 0)
		wake := make(chan struct{}, 100)
		low, begun := timeout, time.Now()
		for begin := begun; time.Since(begin) < during*timeout; {
			if period > 0 { // as if so much of the usual period had passed
				passed := time.Since(begun).Seconds() / period.Seconds()
				l.mu.Lock()
				r.sender.begun = time.Now().Add(-time.Duration(passed * float64(l.period(time.Now()))))
				l.mu.Unlock()
			}
			req, wait := l.Next(true)
			l.mu.Lock()
			if r.sender.begun.Equal(time.Now()) {
				begun = time.Now()
			}
			l.mu.Unlock()
			switch {
			case req.Step == Nothing:
				if period > 0 {
					wait = max(time.Millisecond, min(wait, time.Until(begun.Add(period))))
				}
				select {
				case <-time.After(wait):
				case <-wake:
				}
				continue
			case req.Step == Quorum:
				transactions += 1 / (during * timeout.Minutes())
			}
			sent := l.now()
			go func() {
				time.Sleep(reply)
				left := l.Remaining()
				l.mu.Lock()
				low = min(low, left)
				l.mu.Unlock()
				r.Witness(sent, brings[req.Step])
				l.Done(req)
				wake <- struct{}{}
			}()
			synctest.Wait()
		}
		time.Sleep(timeout)
		l.mu.Lock()
		defer l.mu.Unlock()
		least = low.Seconds() / timeout.Seconds()
	})
	return transactions, least
}

// The curve of docs/maintainers/measurements.md, which this test prints with -v: what remains of the lease at least if heartbeats are rarer or more frequent.
//
//zklock:promise P2.5
func TestTheCurveOfWhatAHoldCostsIsThatOfItsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/maintainers/measurements.md")
	require.NoError(t, err)
	for _, share := range []float64{0.1, 0.15, 0.2, 0, 0.4, 0.5, 0.6} {
		name := fmt.Sprintf("%.2f T", share)
		if share == 0 {
			name = "**the default**"
		}
		line := "| " + name + " |"
		for _, s := range []int{10, 30} {
			timeout := time.Duration(s) * time.Second
			for _, tick := range []time.Duration{0, 2 * time.Second} {
				transactions, least := paid(t, timeout, tick, time.Duration(share*float64(timeout)))
				if least <= 0.005 {
					line += fmt.Sprintf(" %.1f, none |", transactions)
					continue
				}
				line += fmt.Sprintf(" %.1f, %.2f |", transactions, least)
			}
		}
		t.Log(line)
		require.Contains(t, string(page), line+"\n")
	}
}
