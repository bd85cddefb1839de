// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/outcome"
)

// Pace implements back-off between attempts.
type Pace struct {
	Wait time.Duration
	most time.Duration // the maximum wait; zero means one second
}

// Longer returns how long to wait next: twice as long as last time.
func (p *Pace) Longer() time.Duration {
	p.Wait = min(max(2*p.Wait, 10*time.Millisecond), cmp.Or(p.most, time.Second))
	return p.Wait
}

// Next waits, longer each time, and returns nil. If ctx is done first, it returns its cause.
func (p *Pace) Next(ctx context.Context) error {
	timer := time.NewTimer(p.Longer())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// IsClosed reports whether ch is closed.
func IsClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Sleep waits for d or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Either returns a context that is done when ctx or other is, with its cause.
func Either(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// CallContext is the context of a call: it is done when the caller's context is done or, with
// ErrClosed, when Close begins. A call that waits for a long time uses ends instead of Done, so that
// the two contexts need not be joined: that would take half a kilobyte per waiter. Cancel does not end
// such a wait; a goroutine that can outlive the call needs a context derived from this one.
//
// This is not ideal: nothing but that rule keeps a long wait from calling Done, and only a measurement
// of the memory of waiters shows it.
type CallContext struct {
	context.Context // the caller's
	life            context.Context

	mu     sync.Mutex
	joined context.Context // guarded by mu: both contexts in one; nil until it is needed
	stop   func()          // guarded by mu: cancels joined; nil without it
}

// Cancel ends the context when the call returns, and with it the contexts derived from it.
func (c *CallContext) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.joined == nil {
		c.joined = returned
	}
	if c.stop != nil {
		c.stop()
	}
}

func (c *CallContext) join() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.joined == nil {
		c.joined, c.stop = Either(c.Context, c.life)
	}
	return c.joined
}

// Done returns a channel that is closed when the context is done.
func (c *CallContext) Done() <-chan struct{} { return c.join().Done() }

// Err returns nil until the context is done.
func (c *CallContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.life.Err() != nil {
		return context.Cause(c.life)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.joined == nil {
		return nil
	}
	return c.joined.Err()
}

// AfterFunc arranges for f to be called when the context is done. Package context uses this method;
// otherwise it would start a goroutine.
func (c *CallContext) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.join(), f) }

// ends returns the channels that end a wait under ctx: the caller's, and the client's, which may be
// nil.
func ends(ctx context.Context) (caller, client <-chan struct{}) {
	if c, ok := ctx.(*CallContext); ok {
		return c.Context.Done(), c.life.Done()
	}
	return ctx.Done(), nil
}

// Await waits until the latch is set. If ctx is done first, it returns its cause.
func (l *Latch) Await(ctx context.Context) error {
	caller, client := ends(ctx)
	select {
	case <-l.Done():
		return nil
	case <-caller:
	case <-client:
	}
	return endOf(ctx)
}

// endOf returns the cause of ctx. It returns an error even if a caller's own context type has none.
func endOf(ctx context.Context) error { return cmp.Or(context.Cause(ctx), context.Canceled) }

// returned is the context of a call that has returned before anybody needed a joined context.
var returned = func() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(outcome.ErrReleased)
	return ctx
}()
