// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// Instant is one moment on both clocks. The monotonic clock stops while a machine sleeps, and the wall clock can be set, so neither
// alone shows how much time has passed.
type Instant struct{ Mono, Wall time.Time }

// Since returns the time from b to a, by the clock that shows the longer time.
func (a Instant) Since(b Instant) time.Duration {
	return max(a.Mono.Sub(b.Mono), a.Wall.Sub(b.Wall))
}

// Before reports whether a is before b by both clocks. If so, Since is negative.
func (a Instant) Before(b Instant) bool { return a.Mono.Before(b.Mono) && a.Wall.Before(b.Wall) }

// Add returns the moment d after a, on both clocks.
func (a Instant) Add(d time.Duration) Instant { return Instant{a.Mono.Add(d), a.Wall.Add(d)} }

// Clock returns a source of instants. If wall is nil, it uses the machine's own wall clock.
func Clock(wall func() time.Time) func() Instant {
	return func() Instant {
		now := time.Now()
		if wall == nil {
			return Instant{Mono: now, Wall: now.Round(0)}
		}
		return Instant{Mono: now, Wall: wall().Round(0)}
	}
}
