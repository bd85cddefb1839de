// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// In these tests, a context ends with a hold other than the one that a call is about.

// ends are the ways in which a hold, and with it the contexts derived from it, can end.
var ends = map[string]struct {
	cause error
	end   func(t *testing.T, srv *zktest.Server, h *zklock.Hold)
}{
	"released": {zklock.ErrReleased, func(t *testing.T, _ *zktest.Server, h *zklock.Hold) { unlock(t, h) }},
	"lost":     {zklock.ErrLost, func(t *testing.T, srv *zktest.Server, h *zklock.Hold) { require.NoError(t, srv.DeleteNode(h.Node())) }},
}

// If a wait uses the context of another hold and that hold ends, the error says that the context has ended, and why.
//
//zklock:promise P8.2
func TestAWaitThatEndsWithAnotherHoldWrapsBothErrors(t *testing.T) {
	for name, how := range ends {
		for kind, lock := range map[string]func(c *zklock.Client) lockFunc{
			"mutex":     func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
			"reentrant": func(c *zklock.Client) lockFunc { return c.Reentrant(path).Lock },
			"cohort":    func(c *zklock.Client) lockFunc { return c.Cohort(path, nil).Lock },
			"several":   all,
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
					outer, err := a.Mutex("/outer").Lock(t.Context())
					require.NoError(t, err)
					held, err := b.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					waiting := lockLater(outer.Context(), lock(a))
					time.Sleep(time.Second)
					require.False(t, waiting.returned())
					how.end(t, srv, outer)
					<-waiting.done
					_, late := lock(a)(outer.Context())
					for _, err := range []error{waiting.err, late} {
						require.ErrorIs(t, err, how.cause)
						require.ErrorIs(t, err, context.Canceled)
					}
					unlock(t, held)
					noGhost(t, srv, path)
				})
			})
		}
	}
}

// A call under the context of another hold does not report its own hold as lost or released because the other one was.
//
//zklock:promise P8.1
func TestACallThatEndsWithAnotherHoldDoesNotReportItsOwnAsLost(t *testing.T) {
	type call = func(ctx context.Context, c *zklock.Client, h *zklock.Hold) error
	for name, call := range map[string]call{
		"confirm":   func(ctx context.Context, _ *zklock.Client, h *zklock.Hold) error { return h.Confirm(ctx) },
		"downgrade": func(ctx context.Context, _ *zklock.Client, h *zklock.Hold) error { return h.Downgrade(ctx) },
		"unlock":    func(ctx context.Context, _ *zklock.Client, h *zklock.Hold) error { return h.Unlock(ctx) },
		"do":        func(ctx context.Context, _ *zklock.Client, h *zklock.Hold) error { return h.Do(ctx, nothing) },
		"mark": func(ctx context.Context, c *zklock.Client, h *zklock.Hold) error {
			return slots.Named(c, path, "nightly").Mark(ctx, h)
		},
	} {
		for how, end := range ends {
			for when, late := range map[string]bool{"before": false, "meanwhile": true} {
				if name == "do" && late {
					continue // its function's error is its own
				}
				t.Run(name+" "+how+" "+when, func(t *testing.T) {
					virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
						a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
						outer, err := b.Mutex("/outer").Lock(t.Context())
						require.NoError(t, err)
						hold, err := a.RWMutex(path).Lock(t.Context())
						require.NoError(t, err)
						time.Sleep(time.Second)
						if late {
							srv.Intercept(func(r *zktest.Request) zktest.Verdict {
								if r.Client == "a" {
									return zktest.Delay(time.Second)
								}
								return zktest.Pass
							})
							time.AfterFunc(500*time.Millisecond, func() { end.end(t, srv, outer) })
						} else {
							end.end(t, srv, outer)
							<-outer.Context().Done()
						}
						err = call(outer.Context(), a, hold)
						require.ErrorIs(t, err, context.Canceled)
						require.NotErrorIs(t, err, end.cause)
						if name != "unlock" && name != "do" {
							require.NoError(t, hold.Check())
							unlock(t, hold)
						}
						noGhost(t, srv, path)
					})
				})
			}
		}
	}
}

// Run returns the error of a leader whose caller has lost another lock: its own leadership was not lost.
//
//zklock:promise P17.4
func TestRunReturnsTheErrorOfItsFunctionThoughItsCallerHasLostALock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		outer, err := c.Mutex("/outer").Lock(t.Context())
		require.NoError(t, err)
		err = c.Election(path, nil).Run(outer.Context(), nil, func(ctx context.Context) error {
			require.NoError(t, srv.DeleteNode(outer.Node()))
			<-ctx.Done()
			require.NoError(t, zklock.HoldOf(ctx).Check())
			return errWork
		})
		require.ErrorIs(t, err, errWork)
		noGhost(t, srv, path)
	})
}

// A call that ends with its client does not say that its context has ended.
//
//zklock:promise P8.1
func TestTheEndOfTheClientIsNotReportedAsAContexts(t *testing.T) {
	none := func(_ *zklock.Hold, err error) error { return err }
	for name, call := range map[string]func(ctx context.Context, c *zklock.Client) error{
		"lock":    func(ctx context.Context, c *zklock.Client) error { return none(c.Mutex(path).Lock(ctx)) },
		"cohort":  func(ctx context.Context, c *zklock.Client) error { return none(c.Cohort(path, nil).Lock(ctx)) },
		"reader":  func(ctx context.Context, c *zklock.Client) error { return none(c.RWMutex(path).RLock(ctx)) },
		"several": func(ctx context.Context, c *zklock.Client) error { return none(all(c)(ctx)) },
		"run":     func(ctx context.Context, c *zklock.Client) error { return c.Election(path, nil).Run(ctx, nil, nothing) },
		"observe": func(ctx context.Context, c *zklock.Client) (last error) {
			for _, last = range c.Election(path, nil).Observe(ctx) {
			}
			return last
		},
		"watch": func(ctx context.Context, c *zklock.Client) (last error) {
			for _, last = range operate.Watch(ctx, c, "/") {
			}
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
				held, err := b.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				waiting := make(chan error, 1)
				go func() { waiting <- call(t.Context(), a) }()
				time.Sleep(time.Second)
				require.NoError(t, a.Close())
				err = <-waiting
				require.ErrorIs(t, err, zklock.ErrClosed)
				require.NotErrorIs(t, err, context.Canceled)
				unlock(t, held)
			})
		})
	}
}

//zklock:promise P8.1
func TestErrorsNameTheOperationAndTheCause(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		srv.Member(0).Stop()
		time.Sleep(time.Second)
		because := errors.New("shop is closing")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, because)
		defer cancel()
		_, err := client.Mutex(path).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, because)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "last error")
		_, err = client.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrNotConnected)
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "last error")
	})
}

// The end of a connection alone does not show that a server has no quorum, or too many connections.
//
//zklock:promise P18.4
func TestAServerThatCreatesNoSessionIsNamed(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		srv.Member(1).CutOff()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := zklock.Connect(ctx, srv.Addrs()[1:2], &zklock.Options{Dialer: srv.Dial})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.EOF)
		require.ErrorContains(t, err, "maxClientCnxns")
	})
}
