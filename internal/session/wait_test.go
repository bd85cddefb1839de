package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/outcome"
)

var errCaller = errors.New("the caller has had enough")

// A call's context ends with its caller's, with the client and when the call returns, whatever of it was asked before.
func TestACallEndsWithItsCallerAndWithTheClient(t *testing.T) {
	t.Parallel()
	type leave = context.CancelFunc
	for name, asked := range map[string]func(*Inside) (context.Context, leave){
		"nothing before":      func(c *Inside) (context.Context, leave) { return c, c.Leave },
		"its channel before":  func(c *Inside) (context.Context, leave) { c.Done(); return c, c.Leave },
		"one made of it":      func(c *Inside) (context.Context, leave) { return context.WithCancel(c) },
		"one with a deadline": func(c *Inside) (context.Context, leave) { return context.WithTimeout(c, time.Hour) },
	} {
		for _, end := range []struct {
			name  string
			by    func(caller, life context.CancelCauseFunc, c *Inside)
			cause error
		}{
			{"the caller ends it", func(caller, _ context.CancelCauseFunc, _ *Inside) { caller(errCaller) }, errCaller},
			{"the client ends", func(_, life context.CancelCauseFunc, _ *Inside) { life(outcome.ErrClosed) }, outcome.ErrClosed},
			{"the call returns", func(_, _ context.CancelCauseFunc, c *Inside) { c.Leave() }, context.Canceled},
		} {
			t.Run(end.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					outer, caller := context.WithCancelCause(t.Context())
					life, close := context.WithCancelCause(context.Background())
					c := (&Requests{Life: life}).Inside(outer)
					defer c.Leave()
					ctx, leave := asked(c)
					defer leave()
					require.NoError(t, ctx.Err())
					require.NoError(t, context.Cause(ctx))
					end.by(caller, close, c)
					synctest.Wait() // nothing was left that nobody waits for, or this test would not end
					require.Error(t, ctx.Err())
					require.ErrorIs(t, context.Cause(ctx), end.cause)
					<-ctx.Done()
				})
			})
		}
	}
}

// Nothing is made for a call whose context nobody asks for its channel: ten thousand wait so.
func TestACallThatWaitsJoinsNothing(t *testing.T) {
	t.Parallel()
	outer, cancel := context.WithCancel(t.Context())
	c := (&Requests{Life: context.Background()}).Inside(outer)
	var l Latch
	go cancel()
	require.ErrorIs(t, l.Await(c), context.Canceled)
	require.ErrorIs(t, c.Err(), context.Canceled)
	assert.Nil(t, c.joined)
	c.Leave()
}

// mute is a context of a caller's own kind that says nothing of its end.
type mute struct{ context.Context }

func (mute) Done() <-chan struct{} { return happened }
func (mute) Err() error            { return nil }

// A wait that has ended says so, also where a context does not keep its contract: nil would mean that what was waited for is there.
func TestAWaitUnderAMuteContextIsAnError(t *testing.T) {
	t.Parallel()
	w, _ := aWatch(t, standing)
	_, err := w.Await(mute{t.Context()}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, new(Latch).Await(mute{t.Context()}), context.Canceled)
}
