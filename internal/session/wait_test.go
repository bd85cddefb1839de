// SPDX-License-Identifier: Apache-2.0

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

// A call's context ends with its caller's, with the client, and when the call returns, regardless of the methods called before.
func TestACallEndsWithItsCallerAndWithTheClient(t *testing.T) {
	t.Parallel()
	type leave = context.CancelFunc
	for name, asked := range map[string]func(*CallContext) (context.Context, leave){
		"nothing before":      func(c *CallContext) (context.Context, leave) { return c, c.Cancel },
		"its channel before":  func(c *CallContext) (context.Context, leave) { c.Done(); return c, c.Cancel },
		"one made of it":      func(c *CallContext) (context.Context, leave) { return context.WithCancel(c) },
		"one with a deadline": func(c *CallContext) (context.Context, leave) { return context.WithTimeout(c, time.Hour) },
	} {
		for _, end := range []struct {
			name  string
			by    func(caller, life context.CancelCauseFunc, c *CallContext)
			cause error
		}{
			{"the caller ends it", func(caller, _ context.CancelCauseFunc, _ *CallContext) { caller(errCaller) }, errCaller},
			{"the client ends", func(_, life context.CancelCauseFunc, _ *CallContext) { life(outcome.ErrClosed) }, outcome.ErrClosed},
			{"the call returns", func(_, _ context.CancelCauseFunc, c *CallContext) { c.Cancel() }, context.Canceled},
		} {
			t.Run(end.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					outer, caller := context.WithCancelCause(t.Context())
					life, close := context.WithCancelCause(context.Background())
					c := (&Requests{Life: life}).CallContext(outer)
					defer c.Cancel()
					ctx, leave := asked(c)
					defer leave()
					require.NoError(t, ctx.Err())
					require.NoError(t, context.Cause(ctx))
					end.by(caller, close, c)
					synctest.Wait() // no goroutine is left, or this test would not end
					require.Error(t, ctx.Err())
					require.ErrorIs(t, context.Cause(ctx), end.cause)
					<-ctx.Done()
				})
			})
		}
	}
}

// A call does not allocate a channel unless its context's Done is called; ten thousand calls wait like this.
func TestACallThatWaitsJoinsNoContexts(t *testing.T) {
	t.Parallel()
	outer, cancel := context.WithCancel(t.Context())
	c := (&Requests{Life: context.Background()}).CallContext(outer)
	var l Latch
	go cancel()
	require.ErrorIs(t, l.Await(c), context.Canceled)
	require.ErrorIs(t, c.Err(), context.Canceled)
	assert.Nil(t, c.joined)
	c.Cancel()
}

// mute is a custom context whose Err never returns an error.
type mute struct{ context.Context }

func (mute) Done() <-chan struct{} { return happened }
func (mute) Err() error            { return nil }

// A wait that has ended returns an error even if the context violates its contract: nil would mean success.
func TestAWaitWithAContextThatIsNeverDoneIsAnError(t *testing.T) {
	t.Parallel()
	w, _ := aWatch(t, Set)
	_, err := w.latest().Await(mute{t.Context()}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, new(Latch).Await(mute{t.Context()}), context.Canceled)
}

// counting is a context that counts the functions registered for its end.
type counting struct {
	context.Context
	registered int
}

// Value hides the wrapped context, to which package context would otherwise add the function.
func (c *counting) Value(any) any { return nil }

func (c *counting) AfterFunc(func()) (stop func() bool) {
	c.registered++
	return func() bool {
		c.registered--
		return true
	}
}

// A call that has returned leaves no function registered on the client's context, which lasts as long as the client.
func TestAReleasedContextIsNotKeptByItsOtherParent(t *testing.T) {
	life, end := context.WithCancel(context.Background())
	defer end()
	other := &counting{Context: life}
	_, leave := Either(t.Context(), other)
	require.Equal(t, 1, other.registered)
	leave()
	require.Zero(t, other.registered)
}
