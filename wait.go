package zklock

import (
	"cmp"
	"context"
	"runtime"
	"time"
)

// pace spaces out repeated attempts.
type pace struct {
	wait time.Duration
	most time.Duration // zero for a second
}

// longer returns how long to wait next: twice as long as last time.
func (p *pace) longer() time.Duration {
	p.wait = min(max(2*p.wait, 10*time.Millisecond), cmp.Or(p.most, time.Second))
	return p.wait
}

// next waits, longer each time, and returns nil. If ctx ends first, it returns its cause.
func (p *pace) next(ctx context.Context) error {
	timer := time.NewTimer(p.longer())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isClosed reports whether ch is closed.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// yield lets a goroutine that was just started send its request before ours.
func yield() { runtime.Gosched() }

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// either returns a context that ends when ctx or other does, with its cause.
func either(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// over is a context that has ended: of a hold that did so before anybody looked at its own.
var over = func() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(ErrReleased)
	return ctx
}()
