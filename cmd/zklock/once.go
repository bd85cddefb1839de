package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/plain"
	"github.com/zklock-go/zklock/slots"
)

// once has a command run one time for each slot, and keeps the lock for a while.
type once struct {
	name       string
	period     time.Duration // of slots that are cut out of time; else zero
	atMostOnce bool
	atLeast    time.Duration
	asked      time.Time // when zklock was started: waiting does not lead into the next slot
}

func (o *once) flags(f *flags) {
	f.StringVar(&o.name, "once", "", "do nothing, with success, if the command has succeeded for this `slot` before, on whatever host: a period (5m: time in pieces of 5 minutes, from midnight UTC on) or a name")
	f.BoolVar(&o.atMostOnce, "at-most-once", false, "with --once: the slot counts as done when the command begins, also if it fails or its host crashes")
	f.DurationVar(&o.atLeast, "at-least", 0, "keep the lock for this time, also when the command has ended sooner: longer than the clocks of the hosts differ")
}

func (o *once) check(f *flags) error {
	switch {
	case f.given("once") && o.name == "":
		return misuse("%s: --once wants a slot", f.Name())
	case o.atMostOnce && o.name == "":
		return misuse("%s: --at-most-once wants --once", f.Name())
	case o.atLeast < 0:
		return misuse("%s: --at-least %v is negative", f.Name(), o.atLeast)
	}
	o.asked = time.Now()
	if period, err := time.ParseDuration(o.name); err == nil {
		if period <= 0 {
			return misuse("%s: --once %v is not a period", f.Name(), period)
		}
		o.period = period
	} else if looksLikePeriod(o.name) {
		return misuse("%s: --once %s looks like a period and is none: the units are h, m and s (write 300s, 5m or 24h; a name begins with a letter, or is a date)", f.Name(), plain.Short(o.name, 20))
	}
	return nil
}

// mistaken is how people write periods that time.ParseDuration does not know.
var mistaken = regexp.MustCompile(`^(\d+)(\.\d+)?( *[a-zA-Z]+\d*)?$`)

// looksLikePeriod reports whether a name is one by mistake. A number of four digits that
// begins as a year does, and a longer one of six at least, is a date.
func looksLikePeriod(name string) bool {
	parts := mistaken.FindStringSubmatch(name)
	if parts == nil {
		return false
	}
	number := parts[1]
	isYear := len(number) == 4 && (number[:2] == "19" || number[:2] == "20")
	return !isYear && len(number) < 6
}

func (o *once) wanted() bool { return o.name != "" }

func (o *once) slot(client *zklock.Client, path string) *slots.Slot {
	if o.period > 0 {
		return slots.At(client, path, o.asked, o.period)
	}
	return slots.Named(client, path, o.name)
}

// take returns a hold if the slot is open, else slots.ErrDone.
func (o *once) take(ctx context.Context, client *zklock.Client, path string, lock func(context.Context) (*zklock.Hold, error)) (*zklock.Hold, error) {
	if !o.wanted() {
		return lock(ctx)
	}
	slot := o.slot(client, path)
	if err := open(ctx, slot); err != nil { // without waiting behind the one that does it
		return nil, err
	}
	hold, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	if err = open(ctx, slot); err == nil && o.atMostOnce {
		err = slot.Mark(ctx, hold)
	}
	if err != nil {
		// Close, which follows, waits for the release if ctx has ended.
		hold.Unlock(ctx)
		return nil, err
	}
	return hold, nil
}

// open returns slots.ErrDone for a slot that was marked.
func open(ctx context.Context, slot *slots.Slot) error {
	done, err := slot.Done(ctx)
	if err == nil && done {
		err = slots.ErrDone
	}
	return err
}

// finish marks the slot of a command that has succeeded, and keeps the lock for as long as
// was asked for, or until a signal comes.
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
	if err := o.slot(client, hold.Path()).Mark(ctx, hold); err != nil && !errors.Is(err, slots.ErrDone) {
		return exit{codeUnmarked, fmt.Errorf("the command has succeeded, but that is not written down, so it may run again: %w", err)}
	}
	return nil
}
