// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/period"
	"github.com/zklock-go/zklock/cmd/zklock/internal/signals"
	"github.com/zklock-go/zklock/slots"
)

// Once implements --every, --once and --at-least: it runs a command once per slot and can hold the lock for a minimum time.
type Once struct {
	every, name string        // the values of --every and --once
	choice      period.Choice // as of zklock's start: waiting does not move on to the next slot
	atMostOnce  bool
	atLeast     time.Duration
	quiet       bool
}

// Flags adds the flags to f.
func (o *Once) Flags(f *cli.Flags) {
	f.StringVar(&o.every, "every", "", "exit 0 without running the command if it already succeeded in this `period` on any host: 5m, hourly, 6h, daily, weekly, monthly or yearly; above an hour in this host's time zone, or in another one (24h@Europe/Berlin)")
	f.StringVar(&o.name, "once", "", "exit 0 without running the command if it ever succeeded under this `name` on any host, for example \"$(date +%F)\". A path has room for 1000 names; then a new one is refused with 73 (see zklock help slots). Of names that differ only in a date, or in a number of at least eight digits, at their end, the last 128 are kept, and an older one is refused")
	f.BoolVar(&o.quiet, "quiet", false, "with --every or --once: print nothing if the slot is already done, or if the lock is held")
	f.BoolVar(&o.atMostOnce, "at-most-once", false, "with --every or --once: mark the slot done before the command starts, even if it then fails or its host crashes")
	f.DurationVar(&o.atLeast, "at-least", 0, "hold the lock at least this long, even if the command exits sooner; must exceed the clock skew between hosts")
}

func (o *Once) check(f *cli.Flags) error {
	switch {
	case o.atMostOnce && !o.Wanted():
		return outcome.Misuse("%s: --at-most-once requires --every or --once", f.Name())
	case o.quiet && !o.Wanted():
		return outcome.Misuse("%s: --quiet requires --every or --once", f.Name())
	case o.atLeast < 0:
		return outcome.Misuse("%s: --at-least %v is negative", f.Name(), o.atLeast)
	}
	var err error
	switch {
	case f.Given("every") && f.Given("once"):
		return outcome.Misuse("%s: --every and --once cannot be combined", f.Name())
	case f.Given("every"):
		o.choice, err = period.Every(o.every, time.Now())
		if err != nil {
			return outcome.Misuse("%s: --every %w", f.Name(), err)
		}
	case f.Given("once"):
		o.choice, err = period.Once(o.name)
		if err != nil {
			return outcome.Misuse("%s: --once %w", f.Name(), err)
		}
	}
	return nil
}

// Wanted reports whether the command is to run once per slot.
func (o *Once) Wanted() bool { return o.every != "" || o.name != "" }

// Take acquires the lock if the slot is open. If the slot is done, Take returns an error with verdict Done.
func (o *Once) Take(ctx context.Context, client *zklock.Client, path string, lock func(context.Context) (*zklock.Hold, error)) (*zklock.Hold, error) {
	if !o.Wanted() {
		return lock(ctx)
	}
	hold, err := o.takeOpen(ctx, client, path, lock)
	switch {
	case errors.Is(err, slots.ErrFull):
		return nil, outcome.NoRoom.Errorf("%w: nothing was run: make room with zklock slots prune, or use another path", err)
	case !errors.Is(err, slots.ErrDone):
		return hold, err
	case o.quiet:
		return nil, outcome.Done.Of(nil)
	}
	return nil, outcome.Done.Errorf("nothing to do: slot %s of %s: %w", o.choice.Slot(client, path), path, errors.Unwrap(err)) // the wrapped error says when and by whom
}

// takeOpen acquires the lock if the slot is open, and otherwise returns slots.ErrDone.
func (o *Once) takeOpen(ctx context.Context, client *zklock.Client, path string, lock func(context.Context) (*zklock.Hold, error)) (*zklock.Hold, error) {
	slot := o.choice.Slot(client, path)
	hold, err := o.inTime(ctx, func(ctx context.Context) (*zklock.Hold, error) {
		if err := slot.Open(ctx); err != nil { // do not queue behind a holder that is running the slot
			return nil, err
		}
		return lock(ctx)
	})
	if errors.Is(err, slots.ErrLate) {
		return nil, outcome.NotAcquired.Errorf("not acquired: slot %s of %s is over, and was not begun by this host", slot, path)
	}
	if err != nil {
		return nil, err
	}
	err = slot.Open(ctx)
	if err == nil && o.atMostOnce {
		err = slot.Mark(ctx, hold)
	}
	if err != nil {
		// If ctx is done, the Close that follows waits for the release.
		hold.Unlock(ctx)
		return nil, err
	}
	return hold, nil
}

// inTime calls take, whose wait ends when the period is over: the runs of later periods would otherwise wait behind it, and all run
// one after another when the lock is free.
func (o *Once) inTime(ctx context.Context, take func(context.Context) (*zklock.Hold, error)) (*zklock.Hold, error) {
	if end := o.choice.End(); !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, end, slots.ErrLate)
		defer cancel()
	}
	return take(ctx)
}

// finish marks the slot if the command succeeded, and then holds the lock until --at-least has passed. It returns early on
// a signal that ends zklock, if the hold ends, or if the holder is asked to release the lock.
func (o *Once) finish(client *zklock.Client, hold *zklock.Hold, granted time.Time, received <-chan os.Signal, result error) error {
	if result == nil && o.Wanted() && !o.atMostOnce {
		result = o.mark(client, hold)
	}
	if o.atLeast == 0 {
		return result
	}
	timer := time.NewTimer(time.Until(granted.Add(o.atLeast)))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return result
		case <-hold.Context().Done():
			return result
		case <-hold.Revoked():
			return result
		case sig := <-received:
			if _, ends := signals.EndsWaiting(sig); ends {
				return result
			}
		}
	}
}

// mark records that the slot is done. It takes at most two session timeouts, by when a lost hold has certainly ended.
func (o *Once) mark(client *zklock.Client, hold *zklock.Hold) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*client.SessionTimeout())
	defer cancel()
	if err := o.choice.Slot(client, hold.Path()).Mark(ctx, hold); err != nil && !errors.Is(err, slots.ErrDone) {
		return outcome.Unmarked.Errorf("the command succeeded, but its slot could not be marked; it may run again: %w", err)
	}
	return nil
}
