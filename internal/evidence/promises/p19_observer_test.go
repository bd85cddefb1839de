// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// of returns the events of a kind.
func (r *recorder) of(kind observe.Kind) (found []observe.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

func observed(t *testing.T, srv *zktest.Server) (*zklock.Client, *recorder) {
	seen := &recorder{}
	return connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: seen}), seen
}

//zklock:promise P19.7
func TestATryThatSucceedsReportsHowLongItTook(t *testing.T) {
	slow := zktest.Options{Latency: fixed(10 * time.Millisecond)}
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			virtual(t, slow, func(t *testing.T, srv *zktest.Server) {
				c, seen := observed(t, srv)
				hold, err := try(c)(t.Context())
				require.NoError(t, err)
				require.Len(t, seen.of(observe.Acquired), 1)
				require.GreaterOrEqual(t, seen.of(observe.Acquired)[0].Elapsed, 20*time.Millisecond)
				unlock(t, hold)
			})
		})
	}
}

//zklock:promise P19.7
func TestAFailedAttemptIsObserved(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder := connect(t, srv, "holder", term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		permit, err := holder.Semaphore(pathC, 1).Acquire(t.Context(), 1)
		require.NoError(t, err)
		for _, x := range []struct {
			recipe, path string
			lock, try    func(*zklock.Client) func(context.Context) (*zklock.Hold, error)
		}{
			{"mutex", path, func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).Lock }, func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).TryLock }},
			{"semaphore", pathC, func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
				return c.Semaphore(pathC, 1).Permits(1).Lock
			}, func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
				return func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(pathC, 1).TryAcquire(ctx, 1) }
			}},
		} {
			c, seen := observed(t, srv)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err := x.lock(c)(ctx)
			cancel()
			require.Error(t, err, x.recipe)
			given := seen.of(observe.GivenUp)
			require.Len(t, given, 1)
			require.Equal(t, 3*time.Second, given[0].Elapsed)
			require.ErrorIs(t, given[0].Err, context.DeadlineExceeded)
			require.Equal(t, x.recipe, given[0].Recipe)
			require.Equal(t, x.path, given[0].Path)

			_, err = x.try(c)(t.Context())
			require.ErrorIs(t, err, zklock.ErrLocked)
			refused := seen.of(observe.Refused)
			require.Len(t, refused, 1)
			require.ErrorIs(t, refused[0].Err, zklock.ErrLocked)
			require.Empty(t, seen.of(observe.Acquired))

			waiting := lockLater(t.Context(), x.lock(c))
			time.Sleep(time.Second)
			c.Close()
			<-waiting.done
			require.Len(t, seen.of(observe.GivenUp), 2)
			require.ErrorIs(t, seen.of(observe.GivenUp)[1].Err, zklock.ErrClosed)
		}
		unlock(t, hold)
		unlock(t, permit)
	})
}

//zklock:promise P19.7
func TestEveryHoldEndsWithOneEvent(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, seen := observed(t, srv)
		_, err := c.Mutex(pathA).Lock(t.Context())
		require.NoError(t, err)
		_, err = c.LockAll(t.Context(), mutexes(c, pathB, pathC)...)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		c.Close()
		ended := seen.of(observe.Ended)
		require.Len(t, ended, 3, "of several locks each")
		for _, e := range ended {
			require.ErrorIs(t, e.Err, zklock.ErrClosed)
			require.Equal(t, 2*time.Second, e.Elapsed)
		}
		require.Empty(t, seen.of(observe.Released))
		require.Empty(t, seen.of(observe.Lost))
		require.Equal(t, "ended", ended[0].Kind.String())
	})
}

// Goroutines of a cohort share a place, and the observer gets events for each of them.
//
//zklock:promise P19.7
func TestEveryGoroutineOfACohortIsObserved(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, seen := observed(t, srv)
		cohort, tokens := cohortOf(c), map[int64]bool{}
		for range 3 {
			hold, err := cohort.Lock(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
			unlock(t, hold)
		}
		for _, kind := range []observe.Kind{observe.Acquired, observe.Released} {
			require.Len(t, seen.of(kind), 3, "%v", kind)
			for _, e := range seen.of(kind) {
				require.Equal(t, path, e.Path)
				require.Equal(t, "cohort", e.Recipe)
				require.NoError(t, e.Err)
				tokens[e.Token] = true
			}
		}
		for _, e := range seen.of(observe.Released) {
			require.Equal(t, time.Second, e.Elapsed)
		}
		require.Len(t, tokens, 3, "each hold has a token of its own")

		hold, err := cohort.Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = cohort.Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, seen.of(observe.GivenUp), 1)
		require.Equal(t, 3*time.Second, seen.of(observe.GivenUp)[0].Elapsed)
		_, err = cohort.TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.Len(t, seen.of(observe.Refused), 1)

		for _, s := range srv.Sessions() {
			srv.ExpireSession(s.ID)
		}
		<-hold.Context().Done()
		time.Sleep(time.Second)
		require.Len(t, seen.of(observe.Lost), 1)
		require.ErrorIs(t, seen.of(observe.Lost)[0].Err, zklock.ErrLost)
	})
}

// Control characters in a path are escaped in errors.
//
//zklock:promise P8.3
func TestErrorsArePrintable(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		bad := "/x\x1b[31m\u202e\n"
		_, lock := c.Mutex(bad).Lock(t.Context())
		_, try := c.Semaphore(bad, 1).TryAcquire(t.Context(), 1)
		_, inspect := operate.Inspect(t.Context(), c, bad)
		_, leader := c.Election(bad, nil).Leader(t.Context())
		for _, err := range []error{lock, try, inspect, leader, operate.Revoke(t.Context(), c, zklock.Contender{Node: bad}), operate.Evict(t.Context(), c, "", zklock.Contender{Node: bad})} {
			require.ErrorIs(t, err, zklock.ErrInvalid)
			require.NotContains(t, err.Error(), "\x1b")
			require.NotContains(t, err.Error(), "\u202e")
			require.NotContains(t, err.Error(), "\n")
		}
	})
}

// TestErrorsOfConnectionsArePrintable uses errors with control characters, for example from a name in a server's certificate.
//
//zklock:promise P8.3
func TestErrorsOfConnectionsArePrintable(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		why := errors.New("certificate is valid for \x1b[2J\u202e\u009b\nroot")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{
			Dialer: func(string, string, time.Duration) (net.Conn, error) { return nil, why },
		})
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, `certificate is valid for \x1b[2J\u202e\u009b\nroot`)
	})
}

// TestErrorsEscapeTextOfOthers uses another user's directory that no one else may read.
//
//zklock:promise P8.3
func TestErrorsEscapeTextOfOthers(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/a", nil))
		_, err := rawClient(t, srv, term).Create("/a/gnp\u202e\u2028", nil, 0, zk.WorldACL(zk.PermWrite))
		require.NoError(t, err)
		_, err = operate.Queues(t.Context(), connect(t, srv, "a", term), "/")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, `/a/gnp\u202e\u2028`)
		slot := slots.Named(connect(t, srv, "b", term), "/x\x1b[2J", "y\x1b[2J").Open(t.Context())
		require.ErrorIs(t, slot, zklock.ErrInvalid)
		require.NotContains(t, slot.Error(), "\x1b")
	})
}

// An observer panics in an event of a call, and the program recovers. No caller has received the place: it does not stay in the
// queue, and Close does not wait for the call.
//
//zklock:promise P19.7
func TestAnObserverThatPanicsLeavesNothing(t *testing.T) {
	ways := map[string]struct{ lock, other way }{
		"mutex": {asMutex, asMutex}, "writer": {asWriter, asWriter}, "reader": {asReader, asWriter}, "permits": {forTwo, forTwo},
		"cohort": {asCohort, asCohort}, "reentrant": {asReentrant, asReentrant}, "leader": {asLeader, asLeader}, "all": {asBoth, asBoth},
	}
	for _, kind := range []observe.Kind{observe.Queued, observe.Acquired, observe.GivenUp} {
		for name, w := range ways {
			if kind == observe.Queued && name == "cohort" {
				continue // called later: see TestASlowObserverOfACohortsPlaceDelaysNoGoroutine
			}
			for _, waits := range []bool{false, true} {
				if kind == observe.GivenUp && !waits {
					continue
				}
				t.Run(fmt.Sprint(kind, " ", name, " ", waits), func(t *testing.T) {
					virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
						c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: onEvent{kind, func(observe.Event) { panic("an observer") }}})
						other := connect(t, srv, "b", term)
						if waits {
							held := grantedSoon(t, w.other(other))
							time.AfterFunc(5*time.Second, func() { _ = held.Unlock(context.Background()) })
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						if kind == observe.GivenUp {
							ctx, cancel = context.WithTimeout(t.Context(), time.Second)
						}
						defer cancel()
						require.PanicsWithValue(t, "an observer", func() { _, _ = w.lock(c)(ctx) })
						time.Sleep(10 * time.Second)
						require.Empty(t, queue(srv, path))
						unlock(t, grantedSoon(t, w.other(other)))
						start := time.Now()
						require.NoError(t, c.Close())
						require.Less(t, time.Since(start), time.Second)
					})
				})
			}
		}
	}
}

// The place of a cohort is acquired for all of its goroutines. An observer that does not return from Queued delays none of them.
//
//zklock:promise P19.7
func TestASlowObserverOfACohortsPlaceDelaysNoGoroutine(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		outlast(t)
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: slowly(time.Hour, observe.Queued)})
		start := time.Now()
		first := grantedSoon(t, asCohort(c))
		second := lockLater(t.Context(), asCohort(c))
		unlock(t, first)
		<-second.done
		require.NoError(t, second.err)
		unlock(t, second.hold)
		require.Less(t, time.Since(start), time.Second)
	})
}

// An observer that takes long at Released delays the Unlock that it belongs to, and no hand-off: neither to a goroutine of the process nor to
// another process.
//
//zklock:promise P19.7
func TestASlowObserverAtAReleaseDelaysNoHandOff(t *testing.T) {
	for name, own := range map[string]bool{"to a goroutine of the process": true, "to another process": false} {
		for recipe, lock := range map[string]func(c *zklock.Client) lockFunc{"mutex": asMutex, "cohort": asCohort} {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: slowly(5*time.Second, observe.Released)})
				next := c
				if !own {
					next = connect(t, srv, "b", term)
				}
				hold := grantedSoon(t, lock(c))
				waiting := lockLater(t.Context(), lock(next))
				time.Sleep(time.Second)
				began, unlocked := time.Now(), make(chan struct{})
				go func() { // ends when the observer has returned
					defer close(unlocked)
					_ = hold.Unlock(context.Background())
				}()
				<-waiting.done
				require.NoError(t, waiting.err)
				require.Less(t, time.Since(began), time.Second, "%s, %s", recipe, name)
				<-unlocked
				unlock(t, waiting.hold)
			})
		}
	}
}

// net/http recovers from a handler's panic, which can be an observer's panic in Unlock.
//
//zklock:promise P19.7
func TestAnObserverThatPanicsAtAReleaseLeavesThePlaceOfACohortFree(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: onEvent{observe.Released, func(observe.Event) { panic("an observer") }}})
		hold := grantedSoon(t, lasting(c).Lock)
		waiting := lockLater(t.Context(), lasting(c).Lock)
		time.Sleep(time.Second)
		require.PanicsWithValue(t, "an observer", func() { hold.Unlock(t.Context()) })
		<-waiting.done
		require.NoError(t, waiting.err)
		stranger := lockLater(t.Context(), connect(t, srv, "b", term).Mutex(path).Lock)
		require.PanicsWithValue(t, "an observer", func() { waiting.hold.Unlock(t.Context()) })
		time.Sleep(time.Second)
		require.True(t, stranger.returned())
		require.NoError(t, stranger.err)
		unlock(t, stranger.hold)
	})
}

// A slow observer does not delay the end of the other holds of a lost session: all have ended before it is notified of the first.
//
//zklock:promise P2.1
func TestAllHoldsOfASessionEndBeforeAnObserverIsCalledForTheFirst(t *testing.T) {
	for range 10 {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			var holds []*zklock.Hold
			var early atomic.Int32
			c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: onEvent{observe.Lost, func(observe.Event) {
				for _, h := range holds {
					if h.Context().Err() == nil {
						early.Add(1)
					}
				}
				time.Sleep(30 * time.Second)
			}}})
			for i := range 50 {
				hold, err := c.Mutex(fmt.Sprint(path, i)).Lock(t.Context())
				require.NoError(t, err)
				holds = append(holds, hold)
			}
			var ends []*ending
			for _, h := range holds {
				ends = append(ends, endOf(h))
			}
			time.Sleep(time.Second)
			srv.Partition("a")
			for _, end := range ends {
				<-end.done
				require.Equal(t, ends[0].at, end.at)
			}
			time.Sleep(time.Hour)
			require.Zero(t, early.Load(), "holds that were valid while the observer handled the loss of another")
		})
	}
}
