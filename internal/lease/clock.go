package lease

import "time"

// Instant is one moment on both clocks. The monotonic clock stands still while a
// machine sleeps, and the wall clock can be set: neither alone tells how old something is.
type Instant struct{ Mono, Wall time.Time }

// Since returns how long before a the moment b was, by the clock that shows the longer time.
func (a Instant) Since(b Instant) time.Duration {
	return max(a.Mono.Sub(b.Mono), a.Wall.Sub(b.Wall))
}

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
