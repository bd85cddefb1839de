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

// longer is the next time to wait, twice the last.
func (p *pace) longer() time.Duration {
	p.wait = min(max(2*p.wait, 10*time.Millisecond), cmp.Or(p.most, time.Second))
	return p.wait
}

// next waits a little, longer each time, or until ctx ends, which is the error.
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

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// yield lets a goroutine that was just started put its request in front of ours.
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
