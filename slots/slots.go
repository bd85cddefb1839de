// Package slots is for work that a fleet does once: the run of a job at a certain time, or anything else that has a name.
package slots

import (
	"context"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/door"
)

var (
	// ErrDone is returned if the slot was marked as done before.
	ErrDone = door.ErrDone
	// ErrForgotten is returned for a slot that is older than all that are remembered of its
	// period: nobody knows whether it was done, so it is not done again.
	ErrForgotten = door.ErrForgotten
	// ErrAhead is returned for a slot that begins more than one period after the servers' time:
	// the clock of this host is wrong, or theirs. Otherwise one host whose clock is ahead could
	// mark the slots of the others.
	ErrAhead = door.ErrAhead
)

// Slot is a piece of work that is done once. A mark beside the lock at its path stores that it
// was done, written in a transaction that commits only while that lock is held. So the work is
// done once, even by hosts whose clocks differ, after a change of leaders, and after a restart
// of clients or servers.
//
// The marks are bounded: the last 128 names, and the last 16 slots of each period (see At).
type Slot struct{ in door.Slot[*zklock.Hold] }

// engine is what package zklock lends to this one.
type engine interface {
	Slot(path, name string) door.Slot[*zklock.Hold]
	SlotAt(path string, at time.Time, period time.Duration) door.Slot[*zklock.Hold]
}

func of(c *zklock.Client) engine { return door.Operator(c).(engine) }

// Named returns the slot with a name of at most 128 bytes, under the lock at path.
func Named(c *zklock.Client, path, name string) *Slot { return &Slot{of(c).Slot(path, name)} }

// At returns the slot that the time at falls into. Slots of up to an hour are pieces of time, the
// same everywhere. Longer ones follow the calendar in at.Location(): days begin at midnight
// there, weeks on Monday, and a day is one slot also where it has 23 or 25 hours. All hosts must
// use one location.
//
// at is best the time for which the work was scheduled. With the present time, a run that is made
// up for after midnight counts for the new day, whose own run is then not made.
func At(c *zklock.Client, path string, at time.Time, period time.Duration) *Slot {
	return &Slot{of(c).SlotAt(path, at, period)}
}

// String returns the slot's name, or the time at which it begins.
func (s *Slot) String() string { return s.in.String() }

// Do runs fn while it holds the lock at the slot's path. If fn returns nil, Do marks the slot
// as done before it releases the lock, also if ctx has ended meanwhile. If the slot is not open,
// Do returns ErrDone, ErrForgotten or ErrAhead, and does not call fn.
//
// If fn fails, or the process crashes before the mark is written, the slot stays open and
// the next Do runs fn again. For work that must not begin twice, take the lock yourself and
// call Mark before the work.
func (s *Slot) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.in.Do(ctx, fn)
}

// Done reports whether the slot was marked as done. While you hold the lock, only you can
// change that; without the lock it may change at once. For a slot that cannot be done any more,
// or not yet, Done returns ErrForgotten or ErrAhead.
func (s *Slot) Done(ctx context.Context) (bool, error) { return s.in.Done(ctx) }

// Mark marks the slot as done, and returns nil if it is marked by h. h must be a hold of the
// lock at the slot's path. If h was lost, Mark returns zklock.ErrLost and has written nothing.
// If another hold has marked the slot before, it returns ErrDone; see also ErrForgotten and ErrAhead.
//
// If an answer is lost, Mark asks until it knows the outcome, even after the end of h. If ctx
// ends first, the error wraps zklock.ErrUncertain.
func (s *Slot) Mark(ctx context.Context, h *zklock.Hold) error { return s.in.Mark(ctx, h) }
