package session

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/outcome"
)

// Pace spaces out repeated attempts.
type Pace struct {
	Wait time.Duration
	most time.Duration // zero for a second
}

// Longer returns how long to wait next: twice as long as last time.
func (p *Pace) Longer() time.Duration {
	p.Wait = min(max(2*p.Wait, 10*time.Millisecond), cmp.Or(p.most, time.Second))
	return p.Wait
}

// Next waits, longer each time, and returns nil. If ctx ends first, it returns its cause.
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

// Yield lets a goroutine that was just started send its request before ours.
func Yield() { runtime.Gosched() }

// Sleep waits for d or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Either returns a context that ends when ctx or other does, with its cause.
func Either(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Inside is the context of a call: it ends with the caller's and, with ErrClosed, when Close begins. A call that waits
// long asks ends, and nothing joins the two contexts: that would take half a kilobyte of each waiter. Leave does not end such a
// wait: a goroutine that can outlive the call needs a context made of this one.
type Inside struct {
	context.Context // the caller's
	life            context.Context

	mu     sync.Mutex
	joined context.Context // guarded by mu: the two in one; nil until somebody asks for that
	stop   func()          // guarded by mu: ends joined; nil without it
}

// Leave ends what the call has begun.
func (c *Inside) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.joined == nil {
		c.joined = Over
	}
	if c.stop != nil {
		c.stop()
	}
}

func (c *Inside) join() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.joined == nil {
		c.joined, c.stop = Either(c.Context, c.life)
	}
	return c.joined
}

// Done returns a channel that is closed when the context ends.
func (c *Inside) Done() <-chan struct{} { return c.join().Done() }

// Err returns nil as long as the context lasts.
func (c *Inside) Err() error {
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

// AfterFunc has f called when the context ends: package context asks for it, and would need a goroutine otherwise.
func (c *Inside) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.join(), f) }

// ends returns what ends a wait under ctx: the first channel is the caller's, and the second, nil for none, the client's.
func ends(ctx context.Context) (caller, client <-chan struct{}) {
	if c, ok := ctx.(*Inside); ok {
		return c.Context.Done(), c.life.Done()
	}
	return ctx.Done(), nil
}

// Await waits until it has happened. If ctx ends first, it returns its cause.
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

// endOf returns why ctx has ended. It is an error also where a caller's own kind of context says nothing.
func endOf(ctx context.Context) error { return cmp.Or(context.Cause(ctx), context.Canceled) }

// over is a context that has ended: of a hold that did so before anybody looked at its own.
var Over = func() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(outcome.ErrReleased)
	return ctx
}()
