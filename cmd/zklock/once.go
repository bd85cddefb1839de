package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
)

// once has a command run one time for each slot, and keeps the lock for a while.
type once struct {
	text       string     // as it was given
	choice     slotChoice // when zklock was started: waiting does not lead into the next slot
	atMostOnce bool
	atLeast    time.Duration
	quiet      bool
}

func (o *once) flags(f *flags) {
	f.StringVar(&o.text, "once", "", "do nothing, with success, if the command has succeeded for this `slot` before, on whatever host: a period (5m, hourly, 24h or daily: a day of this host's time zone, 24h@Europe/Berlin) or a name")
	f.BoolVar(&o.quiet, "quiet", false, "with --once: do not say that the slot was done before")
	f.BoolVar(&o.atMostOnce, "at-most-once", false, "with --once: the slot counts as done when the command begins, also if it fails or its host crashes")
	f.DurationVar(&o.atLeast, "at-least", 0, "keep the lock for this time, also when the command has ended sooner: longer than the clocks of the hosts differ")
}

func (o *once) check(f *flags) error {
	switch {
	case o.atMostOnce && !o.wanted():
		return misuse("%s: --at-most-once wants --once", f.Name())
	case o.quiet && !o.wanted():
		return misuse("%s: --quiet wants --once", f.Name())
	case o.atLeast < 0:
		return misuse("%s: --at-least %v is negative", f.Name(), o.atLeast)
	}
	if !f.given("once") {
		return nil
	}
	var err error
	if o.choice, err = parseSlot(o.text, time.Now()); err != nil {
		return misuse("%s: --once %w", f.Name(), err)
	}
	return nil
}

func (o *once) wanted() bool { return o.text != "" }

// take returns a hold if the slot is open. If it is done, the error has the code of success.
func (o *once) take(ctx context.Context, client *zklock.Client, path string, lock func(context.Context) (*zklock.Hold, error)) (*zklock.Hold, error) {
	if !o.wanted() {
		return lock(ctx)
	}
	hold, err := o.takeOpen(ctx, client, path, lock)
	switch {
	case !errors.Is(err, slots.ErrDone):
		return hold, err
	case o.quiet:
		return nil, exit{}
	}
	return nil, exit{0, fmt.Errorf("nothing to do: slot %s of %s: %w", o.choice.slot(client, path), path, errors.Unwrap(err))} // with when and by whom
}

// takeOpen returns a hold if the slot is open, else slots.ErrDone.
func (o *once) takeOpen(ctx context.Context, client *zklock.Client, path string, lock func(context.Context) (*zklock.Hold, error)) (*zklock.Hold, error) {
	slot := o.choice.slot(client, path)
	if err := slot.Open(ctx); err != nil { // without waiting behind the one that does it
		return nil, err
	}
	hold, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	if err = slot.Open(ctx); err == nil && o.atMostOnce {
		err = slot.Mark(ctx, hold)
	}
	if err != nil {
		// Close, which follows, waits for the release if ctx has ended.
		hold.Unlock(ctx)
		return nil, err
	}
	return hold, nil
}

// finish marks the slot of a command that has succeeded, and keeps the lock for as long as was asked for. A signal or a
// request to let go ends that.
func (o *once) finish(client *zklock.Client, hold *zklock.Hold, granted time.Time, signals <-chan os.Signal, outcome error) error {
	if outcome == nil && o.wanted() && !o.atMostOnce {
		outcome = o.mark(client, hold)
	}
	if o.atLeast == 0 {
		return outcome
	}
	timer := time.NewTimer(time.Until(granted.Add(o.atLeast)))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return outcome
		case <-hold.Context().Done():
			return outcome
		case <-hold.Revoked():
			return outcome
		case sig := <-signals:
			if _, ends := endsWaiting(sig); ends {
				return outcome
			}
		}
	}
}

// mark writes down that the slot is done. The hold bounds that, and the session's end what is not certain then.
func (o *once) mark(client *zklock.Client, hold *zklock.Hold) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*client.SessionTimeout())
	defer cancel()
	if err := o.choice.slot(client, hold.Path()).Mark(ctx, hold); err != nil && !errors.Is(err, slots.ErrDone) {
		return exit{codeUnmarked, fmt.Errorf("the command has succeeded, but that is not written down, so it may run again: %w", err)}
	}
	return nil
}
