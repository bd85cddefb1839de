// SPDX-License-Identifier: Apache-2.0

// Package health repeats a health check, and ends what may only run while the last check has succeeded.
package health

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/outcome"
)

// Checks are the checks of one member of an election, or of one command. Run makes them.
type Checks struct {
	check  func(ctx context.Context) error
	every  time.Duration
	failed error // wrapped by the error with which a failed check ends something

	mu      sync.Mutex
	last    error                   // guarded by mu: why the last check failed, or nil; errUnchecked before the first
	end     context.CancelCauseFunc // guarded by mu: called when a check fails; nil if there is nothing to end
	changed chan struct{}           // guarded by mu: closed after the next check
}

var errUnchecked = errors.New("not checked yet")

// New returns checks that begin every so often. A check may take as long.
func New(check func(ctx context.Context) error, every time.Duration, failed error) *Checks {
	return &Checks{check: check, every: every, failed: failed, last: errUnchecked, changed: make(chan struct{})}
}

// Run makes the checks until ctx ends.
func (c *Checks) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next := time.Now().Add(c.every)
		c.once(ctx)
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// once makes one check. If the check does not return in time, that counts as a failure, and once waits for
// it or for the end of ctx: there are never two checks at the same time.
func (c *Checks) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, c.every)
	defer cancel()
	returned := make(chan error, 1)
	// Owned by Run; ends when the check returns. Nobody waits for a check that ignores its context.
	go func() {
		defer func() {
			if p := recover(); p != nil {
				returned <- fmt.Errorf("check panicked: %v", p)
			}
		}()
		returned <- c.check(limited)
	}()
	select {
	case err := <-returned:
		c.set(err)
		return
	case <-limited.Done():
	}
	if ctx.Err() != nil {
		return
	}
	c.set(fmt.Errorf("check has not returned within %v", c.every))
	select {
	case <-returned:
	case <-ctx.Done():
	}
}

// set records the outcome of a check, and ends what Await has registered if it failed.
func (c *Checks) set(err error) {
	c.mu.Lock()
	c.last = err
	end := c.end
	if err != nil {
		c.end = nil
	}
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if err != nil && end != nil {
		end(fmt.Errorf("%w: %w", c.failed, err))
	}
}

// Await waits until the last check has succeeded, and arranges for end to be called when one fails. If
// ctx ends first, it returns the cause with the error of the last check.
func (c *Checks) Await(ctx context.Context, end context.CancelCauseFunc) error {
	return c.await(ctx, end, true)
}

// Now is Await for a caller that does not wait for a check to succeed, but for the first one to end. If the last check
// has failed, it returns that error.
func (c *Checks) Now(ctx context.Context, end context.CancelCauseFunc) error {
	return c.await(ctx, end, false)
}

func (c *Checks) await(ctx context.Context, end context.CancelCauseFunc, patient bool) error {
	for {
		c.mu.Lock()
		last, changed := c.last, c.changed
		if last == nil {
			c.end = end
		}
		c.mu.Unlock()
		switch {
		case last == nil:
			return nil
		case !patient && last != errUnchecked:
			return fmt.Errorf("%w: %w", c.failed, last)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return outcome.WaitedFor(outcome.CauseOf(ctx, ctx.Err()), fmt.Sprintf("a health check to succeed (last: %v)", last))
		}
	}
}
