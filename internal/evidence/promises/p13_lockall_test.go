// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

const (
	pathA = "/locks/a"
	pathB = "/locks/b"
	pathC = "/locks/c"
)

// mutexes returns the mutexes of one client at these paths.
func mutexes(c *zklock.Client, paths ...string) []zklock.Locker {
	var all []zklock.Locker
	for _, p := range paths {
		all = append(all, c.Mutex(p))
	}
	return all
}

// lockAllLater calls LockAll in the background.
func lockAllLater(ctx context.Context, c *zklock.Client, paths ...string) *attempt {
	return lockLater(ctx, func(ctx context.Context) (*zklock.Hold, error) { return c.LockAll(ctx, mutexes(c, paths...)...) })
}

// front returns the node of a queue that was created first.
func front(srv *zktest.Server, path string) string {
	byNumber := func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) }
	return path + "/" + slices.MinFunc(queue(srv, path), byNumber)
}

// changes records creations and deletions of nodes by their lock's path.
func changes(srv *zktest.Server) func() []string {
	var mu sync.Mutex
	var seen []string
	srv.OnTxn(func(txn zktest.Txn) {
		mu.Lock()
		defer mu.Unlock()
		if i := strings.LastIndex(txn.Path, "/_c_"); i > 0 && txn.Code == 0 {
			seen = append(seen, fmt.Sprint(txn.Op, " ", txn.Path[:i]))
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

//zklock:promise P13.1
func TestLockAllAcquiresInOneOrderForAllCallers(t *testing.T) {
	for _, paths := range [][]string{{pathA, pathB, pathC}, {pathC, pathB, pathA}, {pathB, pathC, pathA}} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			client := connect(t, srv, "a", term)
			seen := changes(srv)
			hold, err := client.LockAll(t.Context(), mutexes(client, paths...)...)
			require.NoError(t, err)
			for _, p := range paths {
				require.Len(t, queue(srv, p), 1)
			}
			require.NoError(t, hold.Check())
			require.NoError(t, hold.Confirm(t.Context()))
			unlock(t, hold)
			for _, p := range paths {
				require.Empty(t, queue(srv, p))
			}
			require.Equal(t, []string{"create " + pathA, "create " + pathB, "create " + pathC}, seen()[:3])
			require.ElementsMatch(t, []string{"delete " + pathA, "delete " + pathB, "delete " + pathC}, seen()[3:])
			require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrReleased)
			require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
		})
	}
}

//zklock:promise P13.1
func TestCallersThatNameTheSameLocksInAnyOrderDoNotBlockEachOther(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		inside := map[string]int{}
		var mu sync.Mutex
		enter := func(paths []string, by int) {
			mu.Lock()
			defer mu.Unlock()
			for _, p := range paths {
				inside[p] += by
				assert.LessOrEqual(t, inside[p], 1, "two inside %s", p)
			}
		}
		random := rand.New(rand.NewPCG(1, 2))
		var wg sync.WaitGroup
		for i := range 5 {
			client := connect(t, srv, fmt.Sprint("c", i), term)
			for range 8 {
				paths := []string{pathA, pathB, pathC, "/locks/d"}
				random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
				paths = paths[:1+random.IntN(4)]
				wg.Go(func() {
					for range 3 {
						hold, err := client.LockAll(t.Context(), mutexes(client, paths...)...)
						if !assert.NoError(t, err) {
							return
						}
						enter(paths, 1)
						time.Sleep(time.Millisecond)
						enter(paths, -1)
						assert.NoError(t, hold.Unlock(t.Context()))
					}
				})
			}
		}
		wg.Wait()
	})
}

//zklock:promise P13.2
func TestLockAllAcquiresAllOrNone(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		blocker, err := other.Mutex(pathB).Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err = client.LockAll(ctx, mutexes(client, pathC, pathB, pathA)...)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start), "one deadline for all")
		require.ErrorContains(t, err, pathA+","+pathB+","+pathC)
		noGhost(t, srv, pathA)
		require.Len(t, queue(srv, pathB), 1)
		noGhost(t, srv, pathC)
		unlock(t, blocker)
	})
}

//zklock:promise P13.8
func TestLocksThatCannotBeCombinedAreRefusedBeforeAnyRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		resetCounts(srv)
		for name, lockers := range map[string][]zklock.Locker{
			"none":           {},
			"twice":          mutexes(client, pathA, pathB, pathA),
			"two kinds":      {client.Mutex(pathA), client.Mutex(pathB), client.Reentrant(pathA)},
			"another client": {client.Mutex(pathA), other.Mutex(pathB)},
			"bad path":       mutexes(client, pathA, "relative"),
			"dots":           {client.Mutex(pathA), client.Reentrant("/a/../b")},
		} {
			_, err := client.LockAll(t.Context(), lockers...)
			require.ErrorIs(t, err, zklock.ErrInvalid, name)
		}
		require.Zero(t, srv.RequestCount())
		require.Empty(t, srv.Tree())
	})
}

// The function may still be running under the locks that were not lost.
//
//zklock:promise P13.3
func TestALostPartEndsTheWholeAndUnlockReleasesTheRest(t *testing.T) {
	for i, lost := range []string{pathA, pathB, pathC} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
			hold, err := client.LockAll(t.Context(), client.Mutex(pathA), client.RWMutex(pathB), client.Semaphore(pathC, 1).Permits(1))
			require.NoError(t, err)
			end := endOf(hold)
			time.Sleep(time.Second)
			require.NoError(t, srv.DeleteNode(nodeOf(t, hold, lost)))
			<-end.done
			require.ErrorIs(t, end.cause, zklock.ErrLost, "part %d", i)
			require.Error(t, hold.Check())
			require.Zero(t, hold.Remaining())
			require.ErrorIs(t, hold.Confirm(t.Context()), zklock.ErrLost)
			time.Sleep(time.Hour)
			for _, p := range []string{pathA, pathB} {
				_, err := other.RWMutex(p).TryRLock(t.Context())
				require.Equal(t, p == lost, err == nil, "%s while the caller may still work: %v", p, err)
			}
			_, err = other.Semaphore(pathC, 1).TryAcquire(t.Context(), 1)
			require.Equal(t, lost == pathC, err == nil)
			start := time.Now()
			err = hold.Unlock(t.Context())
			require.ErrorIs(t, err, zklock.ErrLost)
			require.NotErrorIs(t, err, zklock.ErrUncertain)
			require.Less(t, time.Since(start), time.Second)
			require.Error(t, hold.Unlock(t.Context()))
			require.NoError(t, other.Close())
			for _, p := range []string{pathA, pathB, pathC} {
				noGhost(t, srv, p)
			}
		})
	}
}

// nodeOf returns, of the nodes of a hold of several locks, the one below path.
func nodeOf(t *testing.T, hold *zklock.Hold, path string) string {
	for _, op := range hold.Guard() {
		if node := op.(*zk.CheckVersionRequest).Path; strings.HasPrefix(node, path+"/") {
			return node
		}
	}
	t.Fatalf("the hold has no node below %s", path)
	return ""
}

// keeping is a Locker that remembers its hold.
type keeping struct {
	zklock.Locker
	hold *zklock.Hold
}

func (k *keeping) Lock(ctx context.Context) (hold *zklock.Hold, err error) {
	k.hold, err = k.Locker.Lock(ctx)
	return k.hold, err
}

// leaving is a Locker that does not return from Lock.
type leaving struct {
	zklock.Locker
	leave func()
}

func (l leaving) Lock(context.Context) (*zklock.Hold, error) {
	l.leave()
	return nil, nil
}

//zklock:promise P13.2
func TestALockerThatDoesNotReturnLeavesNoLock(t *testing.T) {
	for name, leave := range map[string]func(){"it panics": func() { panic("x") }, "it ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", term)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { recover() }()
					c.LockAll(t.Context(), c.Mutex(pathA), c.Cohort(pathB, nil), leaving{c.Mutex(pathC), leave})
				}()
				<-ended
				noGhost(t, srv, pathA)
				noGhost(t, srv, pathB)
			})
		})
	}
}

// When the context of one lock's hold is done, the whole hold has ended as well.
//
//zklock:promise P13.3
func TestTheWholeHoldEndsWhenAPartIsKnownToBeLost(t *testing.T) {
	for name, look := range map[string]func(t *testing.T, whole *zklock.Hold){
		"check":     func(t *testing.T, whole *zklock.Hold) { assert.ErrorIs(t, whole.Check(), zklock.ErrLost) },
		"remaining": func(t *testing.T, whole *zklock.Hold) { assert.Zero(t, whole.Remaining()) },
		"unlock":    func(t *testing.T, whole *zklock.Hold) { assert.ErrorIs(t, whole.Unlock(t.Context()), zklock.ErrLost) },
		"multi": func(t *testing.T, whole *zklock.Hold) {
			_, err := whole.Multi()
			assert.ErrorIs(t, err, zklock.ErrLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", term)
				for _, kind := range []zklock.Locker{c.Mutex(pathB), c.Cohort(pathB, nil)} {
					part := &keeping{Locker: kind}
					whole, err := c.LockAll(t.Context(), c.Mutex(pathA), part)
					require.NoError(t, err)
					time.Sleep(time.Second)
					require.NoError(t, srv.DeleteNode(part.hold.Node()))
					<-part.hold.Context().Done()
					look(t, whole)
					<-whole.Context().Done()
					_ = whole.Unlock(t.Context())
				}
				noGhost(t, srv, pathA)
			})
		})
	}
}

// The session ends while LockAll waits for the last lock. LockAll must not return with a missing lock.
//
//zklock:promise P13.4
func TestLockAllStartsAgainWhenItsSessionEnds(t *testing.T) {
	for _, untrusted := range []bool{false, true} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			client := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Untrusted: untrusted})
			other := connect(t, srv, "b", term)
			blocker, err := other.Mutex(pathB).Lock(t.Context())
			require.NoError(t, err)
			all := lockAllLater(t.Context(), client, pathA, pathB, pathC)
			time.Sleep(time.Second)
			node, _ := srv.Node(front(srv, pathA))
			srv.ExpireSession(node.EphemeralOwner)
			time.Sleep(time.Second)
			require.False(t, all.returned())
			require.Len(t, queue(srv, pathA), 1, "not acquired again")
			require.Len(t, queue(srv, pathB), 2)
			unlock(t, blocker)
			<-all.done
			require.NoError(t, all.err)
			require.NoError(t, all.hold.Confirm(t.Context()))
			unlock(t, all.hold)
			for _, p := range []string{pathA, pathB, pathC} {
				noGhost(t, srv, p)
			}
		})
	}
}

// If a third party deletes a node while LockAll waits, LockAll does not acquire this lock again: that would undo an operator's
// action.
//
//zklock:promise P13.4
func TestLockAllEndsWhenALockIsTakenAwayWhileItWaits(t *testing.T) {
	for name, c := range map[string]struct {
		takeAway func(t *testing.T, srv *zktest.Server, other *zklock.Client)
		expected error
	}{
		"evicted": {func(t *testing.T, srv *zktest.Server, other *zklock.Client) {
			line, err := operate.Inspect(t.Context(), other, pathA)
			require.NoError(t, err)
			require.NoError(t, operate.Evict(t.Context(), other, "", line.Contenders...))
		}, zklock.ErrEvicted},
		"deleted": {func(t *testing.T, srv *zktest.Server, _ *zklock.Client) {
			require.NoError(t, srv.DeleteNode(front(srv, pathA)))
		}, zklock.ErrLost},
	} {
		for kind, first := range map[string]func(c *zklock.Client) zklock.Locker{
			"mutex":  func(c *zklock.Client) zklock.Locker { return c.Mutex(pathA) },
			"cohort": func(c *zklock.Client) zklock.Locker { return c.Cohort(pathA, nil) },
			"level":  func(c *zklock.Client) zklock.Locker { return c.Reentrant(pathA) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
					blocker, err := other.Mutex(pathB).Lock(t.Context())
					require.NoError(t, err)
					all := lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) {
						return client.LockAll(ctx, first(client), client.Mutex(pathB))
					})
					time.Sleep(time.Second)
					c.takeAway(t, srv, other)
					time.Sleep(time.Second)
					require.True(t, all.returned())
					require.ErrorIs(t, all.err, c.expected)
					require.ErrorContains(t, all.err, pathA)
					require.Len(t, queue(srv, pathB), 1)
					unlock(t, blocker)
					noGhost(t, srv, pathA)
				})
			})
		}
	}
}

// A lock is lost while LockAll waits, and the call ends before the servers say why.
//
//zklock:promise P8.2 P13.4
func TestLockAllEndsWithItsContextWhileItAsksWhyALockWasLost(t *testing.T) {
	for name, end := range map[string]func(cancel func(), c *zklock.Client){
		"canceled": func(cancel func(), _ *zklock.Client) { cancel() },
		"closed":   func(_ func(), c *zklock.Client) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
				blocker, err := other.Mutex(pathB).Lock(t.Context())
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				all := lockAllLater(ctx, client, pathA, pathB)
				time.Sleep(time.Second)
				remove := srv.Intercept(func(req *zktest.Request) zktest.Verdict {
					if req.Client == "a" && req.Op == zktest.OpMulti {
						return zktest.DropReply
					}
					return zktest.Pass
				})
				defer remove()
				require.NoError(t, srv.DeleteNode(front(srv, pathA)))
				time.Sleep(time.Second / 10)
				require.False(t, all.returned())
				end(cancel, client)
				<-all.done
				if name == "closed" {
					require.ErrorIs(t, all.err, zklock.ErrClosed)
				} else {
					require.ErrorIs(t, all.err, context.Canceled)
				}
				require.NotErrorIs(t, all.err, zklock.ErrLost)
				unlock(t, blocker)
			})
		})
	}
}

// used is a Locker that returns a hold that has already ended.
type used struct {
	zklock.Locker
	hold *zklock.Hold
}

func (u used) Lock(context.Context) (*zklock.Hold, error) { return u.hold, nil }

// A caller that acquires the locks one by one in another order waits for LockAll, which waits for the caller, until one of them gives up.
//
//zklock:promise A28
func TestACallerWithAnotherOrderAndLockAllBlockEachOther(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		one := connect(t, srv, "a", term)
		second, err := one.Mutex(pathB).Lock(t.Context())
		require.NoError(t, err)
		all := lockAllLater(t.Context(), connect(t, srv, "b", term), pathA, pathB)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = one.Mutex(pathA).Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, all.returned())
		unlock(t, second)
		<-all.done
		require.NoError(t, all.err)
		unlock(t, all.hold)
	})
}

//zklock:promise P13.2
func TestALockerThatReturnsAHoldThatHasEndedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		end      func(t *testing.T, srv *zktest.Server, hold *zklock.Hold)
		expected error
	}{
		"unlocked": {func(t *testing.T, _ *zktest.Server, hold *zklock.Hold) { unlock(t, hold) }, zklock.ErrInvalid},
		"deleted":  {func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) { _ = srv.DeleteNode(hold.Node()) }, zklock.ErrLost},
		"expired": {func(t *testing.T, srv *zktest.Server, hold *zklock.Hold) {
			node, _ := srv.Node(hold.Node())
			srv.ExpireSession(node.EphemeralOwner)
		}, zklock.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				client := connect(t, srv, "a", term)
				hold, err := client.Mutex(pathB).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second)
				c.end(t, srv, hold)
				<-hold.Context().Done()
				resetCounts(srv)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = client.LockAll(ctx, client.Mutex(pathA), used{client.Mutex(pathB), hold})
				require.ErrorIs(t, err, c.expected)
				require.Less(t, srv.RequestCount(), 100)
				noGhost(t, srv, pathA)
			})
		})
	}
}

//zklock:promise P13.5
func TestTheGuardCoversEveryPart(t *testing.T) {
	for _, lost := range []string{"", pathA, pathB} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			client, raw := connect(t, srv, "a", term), rawClient(t, srv, term)
			hold, err := client.LockAll(t.Context(), mutexes(client, pathA, pathB)...)
			require.NoError(t, err)
			create := func(path string) any { return &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)} }
			_, err = hold.Multi(create("/before"))
			require.NoError(t, err)
			guard := hold.Guard()
			require.Len(t, guard, 2)
			if lost != "" {
				require.NoError(t, srv.DeleteNode(front(srv, lost)))
			}
			_, err = raw.Multi(append(guard, create("/guarded"))...)
			_, there := srv.Node("/guarded")
			require.Equal(t, lost == "", err == nil && there)
			hold.Unlock(t.Context())
		})
	}
}

//zklock:promise P13.6
func TestTheTokenOfSeveralIsTheLargestAndGrows(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		last := int64(0)
		for i := range 6 {
			client := connect(t, srv, fmt.Sprint(i), term)
			hold, err := client.LockAll(t.Context(), mutexes(client, pathB, pathA)...)
			require.NoError(t, err)
			require.Equal(t, max(hold.TokenOf(pathA), hold.TokenOf(pathB)), hold.Token())
			require.Positive(t, hold.TokenOf(pathA))
			require.Greater(t, hold.Token(), last)
			require.EqualValues(t, -1, hold.TokenOf(pathC))
			require.EqualValues(t, -1, hold.TokenOf(hold.Path()), "which is of several")
			last = hold.Token()
			unlock(t, hold)
			single, err := client.Mutex(pathA).Lock(t.Context())
			require.NoError(t, err)
			require.Greater(t, single.TokenOf(pathA), hold.TokenOf(pathA))
			require.Equal(t, single.Token(), single.TokenOf(pathA))
			unlock(t, single)
		}
	})
}

//zklock:promise P13.8
func TestLockingAPartUnderTheWholeIsADeadlock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.LockAll(t.Context(), client.Mutex(pathA), client.Reentrant(pathB))
		require.NoError(t, err)
		_, err = client.Mutex(pathA).Lock(hold.Context())
		require.ErrorIs(t, err, zklock.ErrDeadlock)
		_, err = client.LockAll(hold.Context(), mutexes(client, pathC, pathA)...)
		require.ErrorIs(t, err, zklock.ErrDeadlock)
		noGhost(t, srv, pathC)

		again, err := client.Reentrant(pathB).Lock(hold.Context())
		require.NoError(t, err)
		require.Equal(t, 2, levelsOf(again))
		unlock(t, hold)
		require.Empty(t, queue(srv, pathA))
		require.Len(t, queue(srv, pathB), 1, "the owner still holds it")
		unlock(t, again)
		require.Empty(t, queue(srv, pathB))
	})
}

//zklock:promise P13.7
func TestAReentrantPartIsEnteredAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		outer, err := client.Reentrant(pathB).Lock(t.Context())
		require.NoError(t, err)
		all, err := client.LockAll(outer.Context(), client.Reentrant(pathB), client.Mutex(pathA))
		require.NoError(t, err)
		require.Equal(t, 2, levelsOf(outer))
		require.Equal(t, outer.Token(), all.TokenOf(pathB))
		unlock(t, all)
		require.Equal(t, 1, levelsOf(outer))
		require.NoError(t, outer.Confirm(t.Context()))
		require.Empty(t, queue(srv, pathA))

		all, err = client.LockAll(outer.Context(), client.Reentrant(pathB), client.Mutex(pathA))
		require.NoError(t, err)
		time.Sleep(time.Second) // wait for the watch on the own node
		require.NoError(t, srv.DeleteNode(outer.Node()))
		synctest.Wait()
		require.ErrorIs(t, all.Check(), zklock.ErrLost)
		require.ErrorIs(t, outer.Check(), zklock.ErrLost)
		require.ErrorIs(t, all.Unlock(t.Context()), zklock.ErrLost)
		_, err = client.LockAll(context.WithoutCancel(outer.Context()), client.Reentrant(pathB), client.Mutex(pathA))
		require.ErrorIs(t, err, zklock.ErrLost, "entering a lost lock, not losing one meanwhile")
		noGhost(t, srv, pathA)
	})
}

//zklock:promise P13.3
func TestCloseReleasesAllParts(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := client.LockAll(t.Context(), mutexes(client, pathA, pathB)...)
		require.NoError(t, err)
		waiting := lockAllLater(t.Context(), client, pathA, pathC)
		next := lockAllLater(t.Context(), other, pathB, pathA)
		time.Sleep(time.Second)
		require.NoError(t, client.Close())
		synctest.Wait()
		require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrClosed)
		<-waiting.done
		require.ErrorIs(t, waiting.err, zklock.ErrClosed)
		<-next.done
		require.NoError(t, next.err)
		unlock(t, next.hold)
	})
}

// TestLockAllThroughAnyFault runs LockAll of three locks, the second of which is held, with every fault at every request.
//
//zklock:promise P13.2
func TestLockAllThroughAnyFault(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 10, lockAllThrough)
}

func lockAllThrough(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
	other := connect(t, srv, "other", term)
	held, err := other.Mutex(pathB).Lock(t.Context())
	require.NoError(t, err)
	victim := connect(t, srv, "victim", term)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
	a := lockAllLater(ctx, victim, pathC, pathA, pathB)
	time.Sleep(2 * time.Second)
	require.False(t, a.returned() && a.err == nil, "two holders")
	unlock(t, held)
	<-a.done
	if a.err != nil {
		require.ErrorIs(t, a.err, context.Canceled)
	} else {
		time.Sleep(time.Second) // wait for the watches on the own nodes
		unlockThroughFault(t, a.hold)
	}
	for _, p := range []string{pathA, pathB, pathC} {
		noGhost(t, srv, p)
	}
	require.Zero(t, srv.WatchCount(), "watches left: %v", srv.Watches())
	return struck()
}

//zklock:promise P13.7
func TestEachLockNamesItsPath(t *testing.T) {
	c := connect(t, zktest.Start(t), "client", 10*time.Second)
	rw := c.RWMutex("/l")
	cohort := c.Cohort("/l", nil)
	for _, lock := range []zklock.Locker{c.Mutex("/l"), c.Reentrant("/l"), rw.Reader(), rw, c.Semaphore("/l", 2).Permits(1), cohort} {
		require.Equal(t, "/l", lock.Path(), "%T", lock)
	}
}

// counted is a Locker of a program that wraps a lock.
type counted struct {
	zklock.Locker
	locks *int
}

func (c counted) Lock(ctx context.Context) (*zklock.Hold, error) {
	*c.locks++
	return c.Locker.Lock(ctx)
}

//zklock:promise P13.7
func TestLockAllTakesLocksThatAProgramHasWrapped(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other, n := connect(t, srv, "a", term), connect(t, srv, "b", term), 0
		wrap := func(l zklock.Locker) zklock.Locker { return counted{l, &n} }
		hold, err := client.LockAll(t.Context(), wrap(client.Mutex(pathB)), client.Mutex(pathA), wrap(client.Semaphore(pathC, 2).Permits(1)))
		require.NoError(t, err)
		require.Equal(t, 2, n)
		_, err = other.Mutex(pathB).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		_, err = client.LockAll(hold.Context(), wrap(client.Mutex(pathB)))
		require.ErrorIs(t, err, zklock.ErrDeadlock)
		unlock(t, hold)

		_, err = client.LockAll(t.Context(), client.Mutex(pathA), wrap(client.Mutex(pathA)))
		require.ErrorIs(t, err, zklock.ErrInvalid, "one path")
		_, err = client.LockAll(t.Context(), client.Mutex(pathA), wrap(other.Mutex(pathB)))
		require.ErrorIs(t, err, zklock.ErrInvalid, "another client's")
		_, err = client.LockAll(t.Context(), wrap(client.Mutex("no path")))
		require.ErrorIs(t, err, zklock.ErrInvalid)
		for _, p := range []string{pathA, pathB, pathC} {
			noGhost(t, srv, p)
		}
	})
}

//zklock:promise P13.7
func TestLockAllTakesCohorts(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		require.NoError(t, srv.PutNode("/x", nil))
		cohort := client.Cohort(pathB, nil)
		for range 3 {
			hold, err := client.LockAll(t.Context(), client.Mutex(pathC), client.Cohort(pathA, nil), cohort)
			require.NoError(t, err)
			require.Positive(t, hold.TokenOf(pathA))
			_, err = hold.Multi(&zk.SetDataRequest{Path: "/x", Version: -1})
			require.NoError(t, err)
			for _, p := range []string{pathA, pathB, pathC} {
				_, err = other.RWMutex(p).TryRLock(t.Context())
				require.ErrorIs(t, err, zklock.ErrLocked)
			}
			inside := hold.Context()
			unlock(t, hold)
			again, err := cohort.Lock(context.WithoutCancel(inside))
			require.NoError(t, err, "the first hold has ended, although its place is kept")
			unlock(t, again)
		}
		both, err := client.LockAll(t.Context(), client.Cohort(pathA, nil), cohort)
		require.NoError(t, err)
		require.NoError(t, srv.DeleteNode(both.Node()))
		<-both.Context().Done()
		require.ErrorIs(t, both.Check(), zklock.ErrLost)
		require.ErrorIs(t, both.Unlock(t.Context()), zklock.ErrLost)
		for _, p := range []string{pathA, pathB, pathC} {
			noGhost(t, srv, p)
		}
	})
}

// objects returns how many objects the heap has.
func objects() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapObjects
}

//zklock:promise P6.1
func TestLockAllUnderALongHoldLeavesNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		const other = "/locks/a"
		outer, err := c.Reentrant(other).Lock(t.Context())
		require.NoError(t, err)
		cycles := func(n int) {
			for range n {
				both, err := c.LockAll(outer.Context(), c.Reentrant(other), c.Mutex(path))
				require.NoError(t, err)
				unlock(t, both)
			}
		}
		cycles(200)
		before := objects()
		cycles(2000)
		t.Log(int64(objects()) - int64(before))
		require.Less(t, objects(), before+1000)
		unlock(t, outer)
	})
}

type noLock struct{}

func (noLock) Lock(context.Context) (*zklock.Hold, error) { return nil, nil }
func (noLock) Path() string                               { return path }

// A Locker of another package may return neither a hold nor an error.
//
//zklock:promise P13.8
func TestALockerWithoutAHoldIsRefused(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		_, err := c.LockAll(t.Context(), c.Mutex("/locks/a"), noLock{})
		require.ErrorIs(t, err, zklock.ErrInvalid)
		noGhost(t, srv, "/locks/a")
	})
}

// One of the locks is lost between LockAll and Do. Do does not call the function, and the caller has nothing left to do: the other
// lock does not stay held.
//
//zklock:promise P13.3 P15.3
func TestDoOfAHoldThatHasLostALockReleasesTheOthers(t *testing.T) {
	for _, ended := range []bool{false, true} {
		for name, again := range map[string]bool{"mutex": false, "reentrant that is entered again": true} {
			t.Run(fmt.Sprint(name, " ", ended), func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					c, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					outer := (*zklock.Hold)(nil)
					var err error
					if again {
						outer, err = c.Reentrant(pathB).Lock(ctx)
						require.NoError(t, err)
						ctx = outer.Context()
					}
					hold, err := c.LockAll(ctx, c.Mutex(pathA), c.Reentrant(pathB))
					require.NoError(t, err)
					require.NoError(t, srv.DeleteNode(hold.Node()))
					<-hold.Context().Done()
					if ended {
						cancel()
					}
					require.ErrorIs(t, hold.Do(ctx, func(context.Context) error { t.Error("called"); return nil }), zklock.ErrLost)
					if again {
						require.Len(t, queue(srv, pathB), 1, "the outer hold has it")
						unlock(t, outer)
					}
					unlock(t, grantedSoon(t, other.Mutex(pathB).Lock))
				})
			})
		}
	}
}
