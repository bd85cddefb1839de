package main

import "time"

// deadline is a point in time on the clocks that all processes of a machine share, in
// nanoseconds. A process's own monotonic clock means nothing to another one.
type deadline struct {
	Wall int64
	Boot int64 // a clock that counts on while the machine is suspended, zero where there is none
}

// now returns the present as a deadline.
func now() deadline { return deadline{Wall: time.Now().UnixNano(), Boot: int64(sinceBoot())} }

// plus returns the deadline that is later than d by more.
func (d deadline) plus(more time.Duration) deadline {
	d.Wall += int64(more)
	if d.Boot > 0 {
		d.Boot += int64(more)
	}
	return d
}

// left returns the time until d by the clock that says less: the wall clock may have been set back.
func (d deadline) left() time.Duration {
	n := now()
	left := time.Duration(d.Wall - n.Wall)
	if n.Boot > 0 && d.Boot > 0 {
		left = min(left, time.Duration(d.Boot-n.Boot))
	}
	return left
}
