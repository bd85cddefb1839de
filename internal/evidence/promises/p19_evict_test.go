// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// contendersAtPath returns the contenders at path.
func contendersAtPath(t *testing.T, operator *zklock.Client) []zklock.Contender {
	t.Helper()
	q, err := operate.Inspect(t.Context(), operator, path)
	require.NoError(t, err)
	return q.Contenders
}

// TestEvictingAllGrantsNoneAndLeavesNone evicts a holder and many waiters, for every recipe.
//
//zklock:promise P19.3
func TestEvictingAllGrantsNoneAndLeavesNone(t *testing.T) {
	for name, lock := range map[string]func(c *zklock.Client) lockFunc{
		"mutex":     func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"writer":    func(c *zklock.Client) lockFunc { return c.RWMutex(path).Lock },
		"election":  func(c *zklock.Client) lockFunc { return campaign(c.Election(path, nil)) },
		"semaphore": func(c *zklock.Client) lockFunc { return permitsOf(c, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				operator := connect(t, srv, "operator", term)
				var all []*attempt
				for i := range 10 {
					all = append(all, inTurn(t, lock(connect(t, srv, string(rune('a'+i)), term)))...)
					time.Sleep(time.Second)
				}
				require.Equal(t, "x.........", granted(all))
				require.NoError(t, operate.Evict(t.Context(), operator, "", contendersAtPath(t, operator)...))
				for i, a := range all {
					require.True(t, a.returned())
					if i > 0 {
						require.ErrorIs(t, a.err, zklock.ErrEvicted)
					}
				}
				require.ErrorIs(t, all[0].hold.Check(), zklock.ErrLost)
				noGhost(t, srv, path)
				unlockSoon(t, operator)
			})
		})
	}
}

// TestAnEvictedWaiterGetsErrEvictedHoweverLongItWaits makes others hold and release between the eviction and the time when the waiter
// reads its own node.
//
//zklock:promise P19.3
func TestAnEvictedWaiterGetsErrEvictedHoweverLongItWaits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator := connect(t, srv, "operator", term)
		var all []*attempt
		for i := range 6 {
			all = append(all, inTurn(t, connect(t, srv, string(rune('a'+i)), term).Mutex(path).Lock)...)
			time.Sleep(time.Second)
		}
		require.NoError(t, operate.Evict(t.Context(), operator, "", contendersAtPath(t, operator)[4]))
		for _, a := range all[:4] {
			<-a.done
			require.NoError(t, a.err)
			time.Sleep(time.Second)
			unlock(t, a.hold)
		}
		<-all[4].done
		require.ErrorIs(t, all[4].err, zklock.ErrEvicted)
		<-all[5].done
		require.NoError(t, all[5].err)
		unlock(t, all[5].hold)
		noGhost(t, srv, path)
	})
}

// TestAnEvictedWaiterQueuesAgainIfNoMarkCanBeWritten uses directories whose data zklock does not own.
//
//zklock:promise P19.3 A30
func TestAnEvictedWaiterQueuesAgainIfNoMarkCanBeWritten(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, srv *zktest.Server){
		"it may not be written to":  func(t *testing.T, srv *zktest.Server) { setMembers(t, aDirectory(t, srv), zk.PermAll&^zk.PermWrite) },
		"it has data of somebody's": func(t *testing.T, srv *zktest.Server) { require.NoError(t, srv.PutNode(path, []byte("precious"))) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				prepare(t, srv)
				a, b, operator := connect(t, srv, "a", term), connect(t, srv, "b", term), connect(t, srv, "operator", term)
				hold, err := a.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				next := lockLater(t.Context(), b.Mutex(path).Lock)
				require.False(t, next.returned())
				require.NoError(t, operate.Evict(t.Context(), operator, "", contenderAt(t, operator, 1)))
				require.NoError(t, hold.Check())
				unlock(t, hold)
				<-next.done
				require.NoError(t, next.err)
				unlock(t, next.hold)
				noGhost(t, srv, path)
			})
		})
	}
}

// TestAPersistentNodeCanBeEvicted evicts a persistent node, which remains when its session ends.
//
//zklock:promise P19.4
func TestAPersistentNodeCanBeEvicted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		require.NoError(t, srv.PutNode(path+"/lock-0000000000", nil))
		waiting := lockLater(t.Context(), c.Mutex(path).Lock)
		require.False(t, waiting.returned())
		who := contenderAt(t, operator, 0)
		require.Zero(t, who.Session)
		forgotten := contenderAt(t, operator, 1)
		forgotten.Session = 0
		require.ErrorIs(t, operate.Evict(t.Context(), operator, "", forgotten), zklock.ErrNotHeld, "that one is of a session")
		require.NoError(t, operate.Evict(t.Context(), operator, "", who))
		<-waiting.done
		require.NoError(t, waiting.err)
		unlock(t, waiting.hold)
	})
}

// TestAStoppedContenderThatIsEvictedGetsErrEvicted evicts a waiter that was suspended before it came to the front, so that
// it neither sends nor receives.
//
//zklock:promise P19.3
func TestAStoppedContenderThatIsEvictedGetsErrEvicted(t *testing.T) {
	for name, lock := range map[string]func(c *zklock.Client) lockFunc{
		"mutex":    func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"election": func(c *zklock.Client) lockFunc { return campaign(c.Election(path, nil)) },
		"cohort":   func(c *zklock.Client) lockFunc { return c.Cohort(path, nil).Lock },
		"permits":  func(c *zklock.Client) lockFunc { return permitsOf(c, 2) },
	} {
		for _, asleep := range []time.Duration{term * 6 / 10, 3 * term} { // its session lives, or not
			t.Run(fmt.Sprint(name, "/", asleep), func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					operator := connect(t, srv, "operator", term)
					first := inTurn(t, lock(connect(t, srv, "first", term)))[0]
					<-first.done
					waiting := inTurn(t, lock(connect(t, srv, "stopped", term)))[0]
					time.Sleep(time.Second)
					behind := inTurn(t, lock(connect(t, srv, "behind", term)))[0]
					time.Sleep(time.Second)
					all := contendersAtPath(t, operator)
					next := all[slices.IndexFunc(all, func(who zklock.Contender) bool { return who.Session != all[0].Session })].Session
					srv.Partition("stopped")
					unlock(t, first.hold)
					time.Sleep(100 * time.Millisecond) // a cohort's place is deleted in the background
					all = contendersAtPath(t, operator)
					require.Equal(t, next, all[0].Session)
					require.NoError(t, operate.Evict(t.Context(), operator, "", all[0]))
					<-behind.done
					require.NoError(t, behind.err)
					time.Sleep(asleep)
					srv.HealClient("stopped")
					<-waiting.done
					require.ErrorIs(t, waiting.err, zklock.ErrEvicted)
					unlock(t, behind.hold)
					noGhost(t, srv, path)
				})
			})
		}
	}
}

// TestAContenderEvictedBeforeItsGrantGetsErrEvicted evicts a contender after the creation of its node and before its grant.
//
//zklock:promise P19.3
func TestAContenderEvictedBeforeItsGrantGetsErrEvicted(t *testing.T) {
	for name, lock := range map[string]func(c *zklock.Client) lockFunc{
		"lock": func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"try":  func(c *zklock.Client) lockFunc { return c.Mutex(path).TryLock },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
				unlockSoon(t, operator) // so that b uses the directory as well
				looked := make(chan struct{})
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Client == "a" && r.Op == zktest.OpGetChildren2 && r.Path == path && len(srv.Children(path)) > 0 {
						return zktest.Hold(looked)
					}
					return zktest.Pass
				})
				asked := lockLater(t.Context(), lock(a))
				time.Sleep(time.Second)
				require.False(t, asked.returned())
				who := contenderAt(t, operator, 0)
				require.True(t, who.Holds)
				require.NoError(t, operate.Evict(t.Context(), operator, "", who))
				close(looked)
				<-asked.done
				require.ErrorIs(t, asked.err, zklock.ErrEvicted)
				noGhost(t, srv, path)
			})
		})
	}
}

// TestANodeWithChildrenCanBeEvicted evicts a node that is ahead of all others and has children. A client that may only create in
// the directory has created it.
//
//zklock:promise P19.4
func TestANodeWithChildrenCanBeEvicted(t *testing.T) {
	for name, acl := range map[string][]zk.ACL{
		"anybody may delete them": zk.WorldACL(zk.PermAll),
		"nobody but their maker":  append(zk.DigestACL(zk.PermAll, "mallory", "secret"), zk.WorldACL(zk.PermRead)...),
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c, operator, hostile := connect(t, srv, "a", term), connect(t, srv, "operator", term), rawClient(t, srv, term)
				require.NoError(t, hostile.AddAuth("digest", []byte("mallory:secret")))
				unlockSoon(t, c)
				const node = path + "/_c_00000000000000000000000000000000-lock-0000000000"
				for _, made := range []string{node, node + "/x", node + "/x/y", node + "/z"} {
					_, err := hostile.Create(made, nil, 0, acl)
					require.NoError(t, err)
				}
				waiting := lockLater(t.Context(), c.Mutex(path).Lock)
				time.Sleep(time.Second)
				require.False(t, waiting.returned())
				err := operate.Evict(t.Context(), operator, "", contenderAt(t, operator, 0))
				if acl[0].Scheme == "digest" {
					require.ErrorIs(t, err, zk.ErrNoAuth)
					require.ErrorContains(t, err, "[digest:mallory]")
					require.NoError(t, hostile.Delete(node+"/x/y", -1))
					for _, made := range []string{node + "/x", node + "/z"} {
						require.NoError(t, hostile.Delete(made, -1))
					}
					err = operate.Evict(t.Context(), operator, "", contenderAt(t, operator, 0))
				}
				require.NoError(t, err)
				<-waiting.done
				require.NoError(t, waiting.err)
				unlock(t, waiting.hold)
				noGhost(t, srv, path)
			})
		})
	}
}

// TestASlowOperatorEvictsAllPermits uses a holder that releases its other permits before the operator deletes them.
//
//zklock:promise P19.3
func TestASlowOperatorEvictsAllPermits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		hold, err := c.Semaphore(path, 5).Acquire(t.Context(), 3)
		require.NoError(t, err)
		all := contendersAtPath(t, operator)
		require.Len(t, all, 3)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "operator" {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		require.NoError(t, operate.Evict(t.Context(), operator, "", all...))
		require.ErrorIs(t, hold.Check(), zklock.ErrLost)
		require.ErrorIs(t, operate.Evict(t.Context(), operator, "", all...), zklock.ErrNotHeld, "these are gone by now")
		noGhost(t, srv, path)
	})
}

// The evicted contender has created its place in the queue, but not read the queue yet.
//
//zklock:promise P19.3
func TestAnAcquireOfPermitsEvictedBeforeItListsGetsErrEvicted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		first, a, operator := connect(t, srv, "first", term), connect(t, srv, "a", term), connect(t, srv, "operator", term)
		hold, err := permitsOf(first, 3)(t.Context())
		require.NoError(t, err)
		looked := make(chan struct{})
		var once sync.Once
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" && r.Op == zktest.OpGetChildren2 && r.Path == path+"/locks" && len(srv.Children(path+"/locks")) > 0 {
				v := zktest.Pass
				once.Do(func() { v = zktest.Hold(looked) })
				return v
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		asked := lockLater(ctx, permitsOf(a, 1))
		time.Sleep(time.Second)
		require.False(t, asked.returned())
		who := contendersAtPath(t, operator)
		require.NoError(t, operate.Evict(t.Context(), operator, "", who[len(who)-1]))
		close(looked)
		<-asked.done
		require.ErrorIs(t, asked.err, zklock.ErrEvicted)
		unlock(t, hold)
		noGhost(t, srv, path+"/locks")
	})
}

// The evicted contender has its turn, and creates its permits' nodes.
//
//zklock:promise P19.3
func TestAnAcquireEvictedWhileItCreatesItsPermitsGetsErrEvicted(t *testing.T) {
	for _, k := range []int{1, 2} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			a, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
			hold, err := permitsOf(operator, 1)(t.Context())
			require.NoError(t, err)
			unlock(t, hold)
			made := make(chan struct{})
			var once sync.Once
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				v := zktest.Pass
				if r.Client == "a" && slices.ContainsFunc(append(r.Paths, r.Path), func(p string) bool { return strings.HasPrefix(p, path+"/leases/") }) {
					once.Do(func() { v = zktest.Hold(made) })
				}
				return v
			})
			asked := lockLater(t.Context(), permitsOf(a, k))
			time.Sleep(time.Second)
			require.False(t, asked.returned())
			require.NoError(t, operate.Evict(t.Context(), operator, "", contendersAtPath(t, operator)...))
			close(made)
			<-asked.done
			require.ErrorIs(t, asked.err, zklock.ErrEvicted)
			noGhost(t, srv, path+"/locks")
			noGhost(t, srv, path+"/leases")
		})
	}
}

// An evicted contender does not hold, whenever the operator's request is executed.
//
//zklock:promise P19.3
func TestAnEvictedContenderHoldsNoPermits(t *testing.T) {
	evictions := 0
	for d := range 120 {
		virtual(t, zktest.Options{Latency: fixed(10 * time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
			first, a, operator := connect(t, srv, "first", term), connect(t, srv, "a", term), connect(t, srv, "operator", term)
			hold, err := permitsOf(first, 3)(t.Context())
			require.NoError(t, err)
			asked := lockLater(t.Context(), permitsOf(a, 1))
			time.Sleep(time.Second)
			all := contendersAtPath(t, operator)
			require.False(t, all[len(all)-1].Holds)
			go func() { _ = hold.Unlock(context.Background()) }()
			time.Sleep(time.Duration(d) * time.Millisecond)
			err = operate.Evict(t.Context(), operator, "", all[len(all)-1])
			time.Sleep(time.Second)
			require.True(t, asked.returned())
			if err != nil {
				require.ErrorIs(t, err, zklock.ErrNotHeld)
				require.NoError(t, asked.err)
				unlock(t, asked.hold)
				return
			}
			evictions++
			if asked.err == nil {
				require.ErrorIs(t, asked.hold.Check(), zklock.ErrLost, "evicted after %d ms", d)
			} else {
				require.ErrorIs(t, asked.err, zklock.ErrEvicted)
			}
		})
	}
	require.Positive(t, evictions)
}

// An attempt without waiting is evicted between the creation of its nodes and its grant.
//
//zklock:promise P19.3
func TestATryForPermitsThatIsEvictedGetsErrEvicted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		hold, err := permitsOf(operator, 1)(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
		looked := make(chan struct{})
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" && r.Op == zktest.OpGetChildren2 && r.Path == path+"/leases" && len(srv.Children(path+"/leases")) > 0 {
				return zktest.Hold(looked)
			}
			return zktest.Pass
		})
		asked := lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) { return a.Semaphore(path, 3).TryAcquire(ctx, 2) })
		time.Sleep(time.Second)
		require.False(t, asked.returned())
		require.NoError(t, operate.Evict(t.Context(), operator, "", contendersAtPath(t, operator)...))
		close(looked)
		<-asked.done
		require.ErrorIs(t, asked.err, zklock.ErrEvicted)
		noGhost(t, srv, path)
	})
}

// A suspended contender is evicted, and then as many others as the directory records.
//
//zklock:promise P19.3 A30
func TestAStoppedWaiterThatManyWereEvictedAfterQueuesAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, many, operator := connect(t, srv, "a", term), connect(t, srv, "many", term), connect(t, srv, "operator", term)
		hold, err := a.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		stopped := inTurn(t, connect(t, srv, "stopped", term).Mutex(path).Lock)[0]
		var others []*attempt
		for range 256 {
			others = append(others, inTurn(t, many.Mutex(path).Lock)...)
		}
		srv.Partition("stopped")
		all := contendersAtPath(t, operator)
		require.Len(t, all, 258)
		require.NoError(t, operate.Evict(t.Context(), operator, "", all[1]))
		require.NoError(t, operate.Evict(t.Context(), operator, "", all[2:]...))
		for _, o := range others {
			<-o.done
			require.ErrorIs(t, o.err, zklock.ErrEvicted)
		}
		srv.HealClient("stopped")
		unlock(t, hold)
		time.Sleep(time.Minute)
		<-stopped.done

		require.NoError(t, stopped.err, "documented: it queues again")
		unlock(t, stopped.hold)
	})
}

// The hold ends at once, with its node. Its Do and its Unlock say what has ended it: an operator, the end of the session, or
// somebody who deleted the node.
//
//zklock:promise P19.3 P8.1
func TestALossSaysWhyTheNodeIsGone(t *testing.T) {
	strikes := map[string]func(t *testing.T, srv *zktest.Server, h *zklock.Hold){
		"evicted by " + hostName(): func(t *testing.T, srv *zktest.Server, h *zklock.Hold) {
			operator := connect(t, srv, "b", term)
			q, err := operate.Inspect(t.Context(), operator, path)
			require.NoError(t, err)
			require.NoError(t, operate.Evict(t.Context(), operator, "", q.Contenders...))
		},
		"its session has expired": func(t *testing.T, srv *zktest.Server, h *zklock.Hold) {
			for _, s := range srv.Sessions() {
				srv.ExpireSession(s.ID)
			}
		},
		"": func(t *testing.T, srv *zktest.Server, h *zklock.Hold) { require.NoError(t, srv.DeleteNode(h.Node())) },
	}
	for name, lock := range map[string]way{"mutex": asMutex, "permits": forTwo, "cohort": asCohort, "all": asBoth, "reentrant": asReentrant} {
		for why, strike := range strikes {
			for _, do := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", why, " ", do), func(t *testing.T) {
					virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
						hold := grantedSoon(t, lock(connect(t, srv, "a", term)))
						work := func(context.Context) error {
							strike(t, srv, hold)
							<-hold.Context().Done()
							return nil
						}
						var err error
						if do {
							err = hold.Do(t.Context(), work)
						} else {
							_ = work(t.Context())
							err = hold.Unlock(t.Context())
						}
						require.ErrorIs(t, err, zklock.ErrLost)
						require.ErrorContains(t, err, why)
						require.Equal(t, strings.HasPrefix(why, "evicted"), errors.Is(err, zklock.ErrEvicted))
						require.Equal(t, why == "its session has expired", strings.Contains(err.Error(), "expired"), "%v", err)
					})
				})
			}
		}
	}
}

// Unlock does not ask why if its context is done or there is no connection.
//
//zklock:promise P16.3
func TestUnlockOfALostHoldDoesNotWaitForTheReason(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for _, ended := range []bool{true, false} {
			hold := grantedSoon(t, asMutex(c))
			require.NoError(t, srv.DeleteNode(hold.Node()))
			<-hold.Context().Done()
			srv.Partition("a")
			ctx, cancel := context.WithCancel(t.Context())
			if ended {
				cancel()
			}
			start := time.Now()
			require.ErrorIs(t, hold.Unlock(ctx), zklock.ErrLost)
			require.LessOrEqual(t, time.Since(start), term/4)
			if ended {
				require.Zero(t, time.Since(start))
			}
			cancel()
			srv.HealClient("a")
			time.Sleep(time.Minute)
		}
	})
}

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		panic(err)
	}
	return host
}

// TestAnEvictedContenderReadsWhoEvictedItAndWhy has every error that a contender gets after an eviction with a reason, whose
// text anybody could have written.
//
//zklock:promise P19.3
func TestAnEvictedContenderReadsWhoEvictedItAndWhy(t *testing.T) {
	const reason = "its disk\nis full"
	text := "evicted by " + hostName() + `: its disk\nis full`
	evict := func(t *testing.T, srv *zktest.Server) {
		operator := connect(t, srv, "operator", term)
		q, err := operate.Inspect(t.Context(), operator, path)
		require.NoError(t, err)
		require.NoError(t, operate.Evict(t.Context(), operator, reason, q.Contenders...))
	}
	for name, lock := range map[string]way{
		"mutex": asMutex, "permits": forTwo, "cohort": asCohort, "all": asBoth, "reentrant": asReentrant,
		"election": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return campaign(c.Election(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a := connect(t, srv, "a", term)
				hold := grantedSoon(t, lock(a))
				waits := lockLater(t.Context(), lock(connect(t, srv, "b", term)))
				require.False(t, waits.returned())
				var inside error
				err := hold.Do(t.Context(), func(ctx context.Context) error {
					evict(t, srv)
					<-ctx.Done()
					time.Sleep(term / 4)
					inside = context.Cause(ctx)
					return nil
				})
				<-waits.done
				for _, err := range []error{err, inside, hold.Check(), context.Cause(hold.Context()), waits.err} {
					require.ErrorIs(t, err, zklock.ErrEvicted)
					require.ErrorContains(t, err, text)
					require.NotContains(t, err.Error(), "deleted")
				}
				for _, err := range []error{err, inside, hold.Check(), context.Cause(hold.Context())} {
					require.ErrorIs(t, err, zklock.ErrLost)
				}
				require.Contains(t, hold.String(), text)
			})
		})
	}
}

// TestAnEvictionByAnAnonymousOperatorHasTheReasonAlone also evicts without a reason, and with one that is too long.
//
//zklock:promise P19.3
func TestAnEvictionByAnAnonymousOperatorHasTheReasonAlone(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator := connectWith(t, srv, &zklock.Options{SessionTimeout: term, Anonymous: true})
		c := connect(t, srv, "a", term)
		for reason, text := range map[string]string{"maintenance": "evicted: maintenance", "": "evicted from the queue"} {
			hold := grantedSoon(t, asMutex(c))
			require.ErrorIs(t, operate.Evict(t.Context(), operator, strings.Repeat("x", 201), contenderAt(t, operator, 0)), zklock.ErrInvalid)
			require.NoError(t, hold.Check())
			require.NoError(t, operate.Evict(t.Context(), operator, reason, contenderAt(t, operator, 0)))
			<-hold.Context().Done()
			require.ErrorContains(t, hold.Unlock(t.Context()), "lock was lost: "+text)
		}
	})
}

// TestUnlockWaitsForTheReasonOfALossFromTheLossOn stops the servers' answers: a program that takes a while to stop its work
// does not wait again when it unlocks.
//
//zklock:promise P16.3
func TestUnlockWaitsForTheReasonOfALossFromTheLossOn(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold := grantedSoon(t, asMutex(connect(t, srv, "a", term)))
		require.NoError(t, srv.DeleteNode(hold.Node()))
		<-hold.Context().Done()
		srv.Partition("a")
		time.Sleep(term / 4)
		start := time.Now()
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrLost)
		require.Zero(t, time.Since(start))
		srv.HealClient("a")
	})
}

// TestASlotThatIsEvictedSaysSo evicts the holder of a slot before it marks the slot.
//
//zklock:promise P19.3
func TestASlotThatIsEvictedSaysSo(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		err := slots.Named(c, path, "nightly").Do(t.Context(), func(context.Context) error {
			return operate.Evict(t.Context(), operator, "too early", contenderAt(t, operator, 0))
		})
		require.ErrorIs(t, err, zklock.ErrLost)
		require.ErrorIs(t, err, zklock.ErrEvicted)
		require.ErrorContains(t, err, "too early")
	})
}
