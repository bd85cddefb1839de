// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// onEvent observes one kind of event.
type onEvent struct {
	kind observe.Kind
	do   func(observe.Event)
}

func (o onEvent) Observe(e observe.Event) {
	if e.Kind == o.kind {
		o.do(e)
	}
}

//zklock:promise P17.5
func TestRunSkipsALeadershipThatHasEnded(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		acquired := 0
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: onEvent{observe.Acquired, func(e observe.Event) {
			if acquired++; acquired == 1 {
				srv.DeleteNode(path + "/" + e.Node)
				time.Sleep(time.Second) // the client is notified of the loss before Run has its hold
			}
		}}})
		ctx, cancel := context.WithCancel(t.Context())
		terms := 0
		err := c.Election(path, nil).Run(ctx, nil, func(ctx context.Context) error {
			terms++
			require.NoError(t, ctx.Err())
			require.NoError(t, zklock.HoldOf(ctx).Check())
			cancel()
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, terms)
		require.Equal(t, 2, acquired)
		noGhost(t, srv, path)
	})
}

//zklock:promise P17.5
func TestRunPausesAfterTermsThatEndAtOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var starts []time.Time
		c.Election(path, nil).Run(ctx, nil, func(context.Context) error { starts = append(starts, time.Now()); return nil })
		require.Less(t, len(starts), 20)
		require.Greater(t, len(starts), 10)
		require.Equal(t, 10*time.Millisecond, starts[1].Sub(starts[0]), "the first pause is short")
		require.Equal(t, time.Second, starts[len(starts)-1].Sub(starts[len(starts)-2]), "and none is long")
	})
}

//zklock:promise P17.5
func TestATermThatLastedEndsTheLongPauses(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var ended time.Time
		n := 0
		c.Election(path, nil).Run(ctx, nil, func(context.Context) error {
			switch n++; n {
			case 10:
				time.Sleep(5 * time.Second)
				ended = time.Now()
			case 11:
				require.Equal(t, 10*time.Millisecond, time.Since(ended))
				cancel()
			}
			return nil
		})
		require.Equal(t, 11, n)
	})
}

//zklock:promise P17.5
func TestAPauseEndsWithTheClient(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		done := make(chan error, 1)
		go func() {
			done <- c.Election(path, nil).Run(t.Context(), nil, func(context.Context) error { return nil })
		}()
		time.Sleep(5*time.Second + 500*time.Millisecond)
		closed := time.Now()
		c.Close()
		require.ErrorIs(t, <-done, zklock.ErrClosed)
		require.Equal(t, closed, time.Now())
	})
}
