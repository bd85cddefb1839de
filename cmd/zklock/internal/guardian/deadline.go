// SPDX-License-Identifier: Apache-2.0

package guardian

import "time"

// deadline is a point in time, in nanoseconds, on the clocks that all processes of a machine share. A process's monotonic
// clock has no meaning in another process.
type deadline struct {
	Wall int64
	Boot int64 // a clock that keeps running while the machine is suspended; zero if there is none
}

// now returns the current time as a deadline.
func now() deadline { return deadline{Wall: time.Now().UnixNano(), Boot: int64(sinceBoot())} }

// plus returns d plus more.
func (d deadline) plus(more time.Duration) deadline {
	d.Wall += int64(more)
	if d.Boot > 0 {
		d.Boot += int64(more)
	}
	return d
}

// left returns the time until d. The wall clock counts only if there is no other: it can be set.
func (d deadline) left() time.Duration {
	n := now()
	if n.Boot > 0 && d.Boot > 0 {
		return time.Duration(d.Boot - n.Boot)
	}
	return time.Duration(d.Wall - n.Wall)
}
