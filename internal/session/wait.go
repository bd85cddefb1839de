package session

import (
	"cmp"
	"context"
	"runtime"
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

// over is a context that has ended: of a hold that did so before anybody looked at its own.
var Over = func() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(outcome.ErrReleased)
	return ctx
}()
