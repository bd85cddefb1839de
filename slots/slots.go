// Package slots is for work that a fleet does once: the run of a job at a certain time, or anything else that has a name.
package slots

import (
	"context"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/door"
)

// ErrDone is returned by Slot.Do and Slot.Mark if the slot was marked as done before.
var ErrDone = door.ErrDone

// Slot is a piece of work that is done once. A mark beside the lock at its path stores that it
// was done, written in a transaction that commits only while that lock is held. So the work is
// done once, even by hosts whose clocks differ, after a change of leaders, and after a restart
// of clients or servers.
//
// The marks are bounded: the last 128 names, and the last 16 slots of each period (see At). A
// slot that is older than those of its period counts as done.
type Slot struct{ in door.Slot[*zklock.Hold] }

// engine is what package zklock lends to this one.
type engine interface {
	Slot(path, name string) door.Slot[*zklock.Hold]
	SlotAt(path string, at time.Time, period time.Duration) door.Slot[*zklock.Hold]
}

func of(c *zklock.Client) engine { return door.Operator(c).(engine) }

// Named returns the slot with a name of at most 128 bytes, under the lock at path.
func Named(c *zklock.Client, path, name string) *Slot { return &Slot{of(c).Slot(path, name)} }

// At returns the slot that the time at falls into. Slots begin where time.Time.Truncate puts
// them for the period: hours and days as in UTC, weeks on Monday.
func At(c *zklock.Client, path string, at time.Time, period time.Duration) *Slot {
	return &Slot{of(c).SlotAt(path, at, period)}
}

// String returns the slot's name, or the time at which it begins.
func (s *Slot) String() string { return s.in.String() }

// Do runs fn while it holds the lock at the slot's path. If fn returns nil, Do marks the slot
// as done before it releases the lock. If the slot was done before, Do returns ErrDone and
// does not call fn.
//
// If fn fails, or the process crashes before the mark is written, the slot stays open and
// the next Do runs fn again. For work that must not begin twice, take the lock yourself and
// call Mark before the work.
func (s *Slot) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.in.Do(ctx, fn)
}

// Done reports whether the slot was marked as done. While you hold the lock, only you can
// change that; without the lock it may change at once.
func (s *Slot) Done(ctx context.Context) (bool, error) { return s.in.Done(ctx) }

// Mark marks the slot as done, and returns nil if it is marked by h. h must be a hold of the
// lock at the slot's path. If h was lost, Mark returns zklock.ErrLost and has written nothing.
// If another hold has marked the slot before, it returns ErrDone.
//
// If an answer is lost, Mark asks until it knows the outcome, even after the end of h. If ctx
// ends first, the error wraps zklock.ErrUncertain.
func (s *Slot) Mark(ctx context.Context, h *zklock.Hold) error { return s.in.Mark(ctx, h) }
