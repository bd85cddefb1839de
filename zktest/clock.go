// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"sync/atomic"
	"time"
)

// never is a time that does not come. Times are counted from the start of the clock.
const never = time.Duration(1<<63 - 1)

// clock is the server's clock: the monotonic clock plus the time that FastForward has
// skipped, and the next time at which something is due.
type clock struct {
	base    time.Time     // times are counted from here
	skipped atomic.Int64  // nanoseconds
	wake    chan struct{} // has a token if there is an earlier alarm or a log line to write
	alarm   time.Duration // the next time at which something is due, or never; guarded by Server.mu
}

func newClock() *clock {
	return &clock{base: time.Now(), wake: make(chan struct{}, 1), alarm: never}
}

// now returns the time since the server was started, including skipped time.
func (k *clock) now() time.Duration { return time.Since(k.base) + time.Duration(k.skipped.Load()) }

// wall returns the server's wall time.
func (k *clock) wall() time.Time { return time.Now().Add(time.Duration(k.skipped.Load())) }

// date returns the wall time at which the clock reaches at, unless more time is skipped.
func (k *clock) date(at time.Duration) time.Time { return k.base.Add(at) }

func (k *clock) skip(d time.Duration) { k.skipped.Add(int64(d)) }

// arm sets the alarm to the given time, unless it is set to an earlier one.
func (k *clock) arm(at time.Duration) {
	if at < k.alarm {
		k.alarm = at
		poke(k.wake)
	}
}

// rings reports whether the alarm is due, and clears it if so.
func (k *clock) rings(now time.Duration) bool {
	if now < k.alarm {
		return false
	}
	k.alarm = never
	return true
}

// poke puts a token into a channel that holds at most one.
func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// bell wakes the goroutines that wait for a change.
type bell struct{ rung chan struct{} }

// next returns a channel that the next ring closes.
func (b *bell) next() <-chan struct{} {
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
