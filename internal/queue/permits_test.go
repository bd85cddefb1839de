// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

// The first acquire has returned, but the delete of its node in the queue is delayed.
//
//zklock:promise P4.3
func TestAnAcquireThatHasReturnedCountsOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, testDir+"/locks/") {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		first, err := permitsOf(a, 3).Obtain(t.Context(), 2)
		require.NoError(t, err)
		require.Len(t, srv.Children(testDir+"/locks"), 1)
		_, err = permitsOf(b, 3).TryObtain(t.Context(), 2)
		require.ErrorIs(t, err, outcome.ErrLocked)
		second, err := permitsOf(b, 3).TryObtain(t.Context(), 1)
		require.NoError(t, err)
		release(t, first)
		release(t, second)
	})
}

// A caller that waits with its permit nodes counts with these nodes, and one that has none yet
// counts with its node in the queue.
//
//zklock:promise P4.3
func TestATryForPermitsCountsEveryWaitingCaller(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held, err := permitsOf(a, 3).Obtain(t.Context(), 2)
		require.NoError(t, err)
		waits := obtainLater(t, permitsOf(a, 3), 2)
		time.Sleep(time.Second)
		require.Len(t, srv.Children(testDir+"/leases"), 4)
		_, err = permitsOf(b, 3).TryObtain(t.Context(), 1)
		require.ErrorIs(t, err, outcome.ErrLocked, "one permit is free, but a caller waits for two")
		release(t, held)
		waits.release(t)
	})
}

// The caller that is first in the queue has seen a new number, and stores it again if somebody
// deletes the directory.
func TestANumberOfPermitsDoesNotReturnToAnEarlierOne(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held, err := permitsOf(a, 2).Obtain(t.Context(), 2)
		require.NoError(t, err)
		waits := obtainLater(t, permitsOf(b, 2), 2)
		time.Sleep(time.Second)
		require.NoError(t, permitsOf(a, 3).Resize(t.Context()))
		time.Sleep(time.Second)
		var paths []string
		for _, name := range srv.Children(testDir + "/leases") {
			paths = append(paths, testDir+"/leases/"+name)
		}
		require.NoError(t, srv.DeleteNodes(append(paths, testDir+"/leases")...), "at once: the caller reacts to the first event")
		<-waits.done
		n, there := srv.Node(testDir + "/leases")
		require.True(t, there)
		require.Equal(t, "zklock: permits 3", string(n.Data))
		waits.release(t)
		require.NoError(t, outcomeOf(held, true))
	})
}

// A lock at the name of the node that Resize uses does not disturb it.
func TestResizeNeedsNoNameThatALockCanHave(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		require.NoError(t, permitsOf(e, 2).Resize(t.Context()))
		held, err := e.Obtain(t.Context(), wantLock(testDir+"/leases/resized"))
		require.NoError(t, err)
		require.NoError(t, permitsOf(e, 3).Resize(t.Context()))
		require.Error(t, node.CheckPath(testDir+"/leases/"+node.ResizedName))
		release(t, held)
	})
}

func TestANumberOfPermitsIsChecked(t *testing.T) {
	for _, c := range []struct {
		path     string
		total, k int
		data     int // its length
		text     string
	}{
		{testDir, 3, 1, 0, ""}, {testDir, 3, 3, 0, ""}, {testDir, 0, 3, 0, ""}, {testDir, node.MaxPermits, 1, 0, ""},
		{testDir, -1, 1, 0, "semaphore with -1 permits"}, {testDir, node.MaxPermits + 1, 1, 0, "semaphore with 100001 permits"},
		{testDir, 3, 0, 0, "cannot acquire 0 permits"}, {testDir, 3, -2, 0, "cannot acquire -2 permits"},
		{testDir, 3, 4, 0, "4 permits requested, semaphore has 3"}, {"orders", 3, 1, 0, "does not start with /"},
		{testDir, 0, 5000, 0, ""}, {testDir, 0, 9000, 0, "needs a request of"}, {testDir, 0, 10, 200_000, "needs a request of"},
	} {
		e := engineFor(false)
		e.Directories = &session.Directories{ACL: zk.WorldACL(zk.PermAll)}
		err := (&Permits{Engine: e, Path: c.path, Dir: c.path, Total: c.total, Data: make([]byte, c.data)}).Check(c.k)
		if c.text == "" {
			require.NoError(t, err, "%+v", c)
			continue
		}
		require.ErrorIs(t, err, outcome.ErrInvalid)
		require.ErrorContains(t, err, c.text)
		require.Equal(t, c.total > 0 && c.k > c.total || c.text == "needs a request of", errors.Is(err, outcome.ErrLimit), "%+v", c)
	}
}

// TestTheNumberOfPermitsIsAgreedOn has each number that may be stored, and each that a caller may have.
func TestTheNumberOfPermitsIsAgreedOn(t *testing.T) {
	for name, c := range map[string]struct {
		stored   string // "" for no directory, "none" for one without data
		lock     bool   // another lock uses the path
		total, k int
		want     error
		text     string
		number   int // that is stored afterwards; zero if none is
	}{
		"nothing":                     {total: 3, k: 2, number: 3},
		"nothing, any number":         {total: 0, k: 2, want: outcome.ErrMismatch, text: "no stored number"},
		"no number":                   {stored: "none", total: 3, k: 2, number: 3},
		"no number, any number":       {stored: "none", total: 0, k: 2, want: outcome.ErrMismatch, text: "no stored number"},
		"the same":                    {stored: "zklock: permits 3", total: 3, k: 3, number: 3},
		"another":                     {stored: "zklock: permits 4", total: 3, k: 2, want: outcome.ErrMismatch, text: "semaphore has 4 permits, not 3", number: 4},
		"any number":                  {stored: "zklock: permits 4", total: 0, k: 4, number: 4},
		"any number, too small":       {stored: "zklock: permits 4", total: 0, k: 5, want: outcome.ErrLimit, text: "5 permits requested, semaphore has 4", number: 4},
		"other data":                  {stored: "value", total: 3, k: 2, want: outcome.ErrMismatch, text: "cannot parse number of permits"},
		"a lock":                      {lock: true, total: 3, k: 2, want: outcome.ErrMismatch, text: "path is used by a mutex or election"},
		"a lock and a directory":      {lock: true, stored: "none", total: 3, k: 2, want: outcome.ErrMismatch, text: "path is used by a mutex or election"},
		"a lock, and a stored number": {lock: true, stored: "zklock: permits 3", total: 3, k: 2, number: 3},
	} {
		for verb, obtain := range map[string]func(*Permits, context.Context, int) (*Grant, error){"waits": (*Permits).Obtain, "tries": (*Permits).TryObtain} {
			t.Run(name+", "+verb, func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					e := startEngine(t, srv, "a", nil)
					switch c.stored {
					case "":
					case "none":
						require.NoError(t, srv.PutNode(leases, nil))
					default:
						require.NoError(t, srv.PutNode(leases, []byte(c.stored)))
					}
					if c.lock {
						require.NoError(t, srv.PutNode(testDir+"/x-lock-0000000000", nil))
					}
					g, err := obtain(permitsOf(e, c.total), t.Context(), c.k)
					if c.want != nil {
						require.ErrorIs(t, err, c.want)
						require.ErrorContains(t, err, c.text)
					} else {
						require.NoError(t, err)
						require.Len(t, g.Nodes(), c.k)
						release(t, g)
					}
					n, _ := srv.Node(leases)
					number, _ := node.ParseLimit(n.Data)
					require.Equal(t, c.number, number)
					_, there := srv.Node(leases)
					require.Equal(t, c.stored != "" || c.total > 0, there, "only a caller with a number creates the directory")
					time.Sleep(testTerm)
					require.Empty(t, srv.Children(leases))
				})
			})
		}
	}
}

// A number that is stored, or a directory that is removed, between a look and a write is seen.
func TestANumberThatIsWrittenMeanwhileCounts(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(srv *zktest.Server)
	}{
		"the same number": {func(srv *zktest.Server) { _ = srv.PutNode(leases, node.LimitData(3)) }},
		"the directory is removed": {func(srv *zktest.Server) {
			for _, name := range srv.Children(leases) {
				_ = srv.DeleteNode(leases + "/" + name)
			}
			_ = srv.DeleteNode(leases)
		}},
		"the version moved": {func(srv *zktest.Server) { _ = srv.PutNode(leases, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e, done := startEngine(t, srv, "a", nil), false
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == zktest.OpMulti && r.Ops[0] == zktest.OpSetData && r.Paths[0] == leases && !done {
						done = true
						c.meanwhile(srv)
					}
					return zktest.Pass
				})
				g, err := permitsOf(e, 3).Obtain(t.Context(), 2)
				require.NoError(t, err)
				require.True(t, done)
				release(t, g)
				done = false
				require.NoError(t, permitsOf(e, 5).Resize(t.Context()))
				require.True(t, done)
				n, _ := srv.Node(leases)
				require.Equal(t, "zklock: permits 5", string(n.Data))
			})
		})
	}
	require.False(t, isRewritten(nil))
	require.False(t, isRewritten(zk.ErrNoAuth))
}

// Somebody deletes the node that keeps the directory while a number is stored in it, before or after the caller has found it.
//
//zklock:promise P8.7
func TestANumberIsStoredThoughTheNodeThatKeepsTheDirectoryIsDeleted(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpGetChildren2, zktest.OpMulti} {
		for name, store := range map[string]func(t *testing.T, e *Engine) error{
			"resize": func(t *testing.T, e *Engine) error { return permitsOf(e, 5).Resize(t.Context()) },
			"try": func(t *testing.T, e *Engine) error {
				g, err := permitsOf(e, 5).TryObtain(t.Context(), 2)
				if err == nil {
					release(t, g)
				}
				return err
			},
		} {
			t.Run(fmt.Sprint(name, " ", op), func(t *testing.T) {
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					e, deleted := startEngine(t, srv, "a", nil), false
					srv.Intercept(func(r *zktest.Request) zktest.Verdict {
						if names := srv.Children(leases); r.Op == op && len(names) == 1 && !deleted {
							deleted = srv.DeleteNode(leases+"/"+names[0]) == nil
						}
						return zktest.Pass
					})
					require.NoError(t, store(t, e))
					require.True(t, deleted)
					n, _ := srv.Node(leases)
					require.Equal(t, "zklock: permits 5", string(n.Data))
				})
			})
		}
	}
}

// A caller that the number no longer fits, or that is evicted, leaves the queue with the reason.
func TestAWaiterForPermitsEndsWithTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(t *testing.T, srv *zktest.Server, e *Engine, queued string)
		want    error
	}{
		"fewer permits than it wants": {func(t *testing.T, srv *zktest.Server, e *Engine, _ string) {
			require.NoError(t, permitsOf(e, 1).Resize(t.Context()))
		}, outcome.ErrLimit},
		"evicted from the queue": {func(t *testing.T, srv *zktest.Server, e *Engine, queued string) {
			evict(t, srv, testDir+node.PermitQueueDir, queued)
		}, outcome.ErrEvicted},
		"a node of its permits is evicted": {func(t *testing.T, srv *zktest.Server, e *Engine, queued string) {
			for _, name := range srv.Children(leases) {
				if node.GroupOf(name) == node.GroupOf(queued) {
					dir := testDir + node.PermitQueueDir
					require.NoError(t, srv.PutNode(dir, node.DirData{}.WithEvicted(node.Eviction{GUID: node.GUIDOf(name)}).Encode()))
					require.NoError(t, srv.DeleteNode(leases+"/"+name))
					return
				}
			}
		}, outcome.ErrEvicted},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
				held, err := permitsOf(a, 3).Obtain(t.Context(), 2)
				require.NoError(t, err)
				waits := obtainLater(t, permitsOf(b, 3), 2)
				time.Sleep(time.Second)
				require.Len(t, srv.Children(leases), 4)
				c.happens(t, srv, a, srv.Children(testDir + "/locks")[0])
				<-waits.done
				require.ErrorIs(t, waits.err, c.want)
				require.Nil(t, waits.grant)
				time.Sleep(testTerm)
				require.Len(t, srv.Children(leases), 2)
				require.Empty(t, srv.Children(testDir+"/locks"))
				release(t, held)
			})
		})
	}
}

// evict deletes a node and records that in its directory, as an operator does.
func evict(t *testing.T, srv *zktest.Server, dir, name string) {
	t.Helper()
	n, _ := srv.Node(dir)
	data, _ := node.ParseDirData(n.Data)
	require.NoError(t, srv.PutNode(dir, data.WithEvicted(node.Eviction{GUID: node.GUIDOf(name)}).Encode()))
	require.NoError(t, srv.DeleteNode(dir+"/"+name))
}

// TestEachCallerCountsOnce has callers of this library, which count with their permits, and of another one, whose names do not tell.
func TestEachCallerCountsOnce(t *testing.T) {
	group := func(n int) string { return fmt.Sprintf("%s%s%014x%012x-", node.NamePrefix, node.GUIDMark, n, 0) }
	permit := func(prefix string, seq int) string { return fmt.Sprintf("%slease-%010d", prefix, seq) }
	waiter := func(prefix string, seq int) string { return fmt.Sprintf("%slock-%010d", prefix, seq) }
	const foreign = "_c_f3b0c442-98fc-1c14-9afb-f4c8996fb924-"
	for name, c := range map[string]struct {
		permits, queue []string
		want           int
	}{
		"none":                               {nil, nil, 0},
		"permits":                            {[]string{permit(group(1), 1), permit(group(1), 2)}, nil, 2},
		"waiters":                            {nil, []string{waiter(group(1), 1), waiter(group(2), 2)}, 2},
		"a waiter that has its permits":      {[]string{permit(group(1), 1)}, []string{waiter(group(1), 1), waiter(group(2), 2)}, 2},
		"permits and waiters of another one": {[]string{permit(foreign, 1)}, []string{waiter(foreign, 1), waiter(foreign, 2)}, 3},
		"both libraries":                     {[]string{permit(foreign, 1), permit(group(1), 2)}, []string{waiter(foreign, 1), waiter(group(1), 2), waiter(group(2), 3)}, 4},
	} {
		permits, queue := node.ParseEntries(c.permits), node.ParseEntries(c.queue)
		require.Len(t, append(permits, queue...), len(c.permits)+len(c.queue))
		require.Equal(t, c.want, used(permits, queue), name)
	}
}

// Another caller takes the permits after a try has seen that they are free.
func TestATryForPermitsThatWereTakenMeanwhileLeavesNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		require.NoError(t, permitsOf(e, 3).Resize(t.Context()))
		other := leases + "/x-lease-0000000000"
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti && r.Ops[0] == zktest.OpCreate {
				_ = srv.PutNode(other, nil)
			}
			return zktest.Pass
		})
		g, err := permitsOf(e, 3).TryObtain(t.Context(), 3)
		require.ErrorIs(t, err, outcome.ErrLocked)
		require.Nil(t, g)
		require.Equal(t, []string{node.BaseName(other)}, srv.Children(leases), "its nodes are gone when it returns")
		g, err = permitsOf(e, 3).TryObtain(t.Context(), 2)
		require.NoError(t, err)
		srv.ResetCounts()
		_, err = permitsOf(e, 3).TryObtain(t.Context(), 1)
		require.ErrorIs(t, err, outcome.ErrLocked)
		require.Zero(t, srv.Requests()[zktest.OpCreate], "it does not look free")
		for _, op := range []zktest.Op{zktest.OpGetChildren2, zktest.OpGetData} {
			srv.Next(1, refused, op)
			_, err = permitsOf(e, 0).TryObtain(t.Context(), 1)
			require.ErrorIs(t, err, zk.ErrNoAuth)
		}
		release(t, g)
	})
}

// Two callers store different numbers at the same time: one of them gets an error.
func TestANumberThatAnotherCallerHasStoredIsNotOverwritten(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		meanwhile := func(data []byte) {
			done := false
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Op == zktest.OpMulti && r.Ops[0] == zktest.OpSetData && !done {
					done = true
					_ = srv.PutNode(leases, data)
				}
				return zktest.Pass
			})
		}
		meanwhile(node.LimitData(4))
		_, err := permitsOf(e, 3).Obtain(t.Context(), 2)
		require.ErrorIs(t, err, outcome.ErrMismatch)
		require.ErrorContains(t, err, "semaphore has 4 permits, not 3")
		n, _ := srv.Node(leases)
		require.Equal(t, node.LimitData(4), n.Data)

		require.NoError(t, srv.PutNode(leases, nil))
		meanwhile(nil)
		require.NoError(t, permitsOf(e, 5).Resize(t.Context()))
		n, _ = srv.Node(leases)
		require.Equal(t, node.LimitData(5), n.Data)

		s, err := e.session(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.PutNode(leases, nil))
		limit, err := permitsOf(e, 6).limit(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, 6, limit)
		for range 2 {
			srv.Next(1, refused, zktest.OpMulti, zktest.OpSetData)
			require.ErrorIs(t, permitsOf(e, 7).Resize(t.Context()), zk.ErrNoAuth)
			require.NoError(t, srv.PutNode(leases, nil))
		}
	})
}

// A request for a waiter's node in the queue is a request for its permits, even if it has to queue again.
func TestARequestForAWaiterForPermitsIsKept(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held, err := permitsOf(a, 2).Obtain(t.Context(), 2)
		require.NoError(t, err)
		waits := obtainLater(t, permitsOf(b, 2), 1)
		time.Sleep(time.Second)
		queue := testDir + node.PermitQueueDir
		first := queue + "/" + srv.Children(queue)[0]
		require.NoError(t, srv.PutNode(first, node.CuratorRevocation))
		time.Sleep(time.Second)
		require.NoError(t, srv.DeleteNode(first))
		time.Sleep(testTerm)
		require.Len(t, srv.Children(queue), 1)
		release(t, held)
		<-waits.done
		require.NoError(t, waits.err)
		require.True(t, waits.grant.Nodes()[0].Revocation.Requested.IsSet())
		waits.release(t)
	})
}

// The number changes after a try has queued: the try ends with that reason, and not because the permits are held.
func TestATryForPermitsSaysThatThereAreTooFew(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		require.NoError(t, permitsOf(e, 3).Resize(t.Context()))
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti && r.Ops[0] == zktest.OpCreate {
				_ = srv.PutNode(leases, node.LimitData(1))
			}
			return zktest.Pass
		})
		_, err := permitsOf(e, 3).TryObtain(t.Context(), 2)
		require.ErrorIs(t, err, outcome.ErrLimit)
		time.Sleep(time.Second)
		require.Empty(t, srv.Children(leases))
	})
}

// A waiter that may not read its permits' nodes ends with that reason, and does not queue again and again.
func TestAWaiterThatMayNotReadItsPermitsEnds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held, err := permitsOf(a, 2).Obtain(t.Context(), 2)
		require.NoError(t, err)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "b" && r.Op == zktest.OpGetData && strings.HasPrefix(r.Path, leases+"/") {
				return refused
			}
			return zktest.Pass
		})
		_, err = permitsOf(b, 2).Obtain(t.Context(), 1)
		require.Equal(t, session.ErrUnreadable, err)
		release(t, held)
	})
}

// The number changes when the waiter has found no room, and before its watch on the holders is set: the watch does not fire for it.
//
//zklock:promise P4.3
func TestAResizeBeforeTheWaitersWatchIsSetWakesIt(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held, err := permitsOf(a, 2).Obtain(t.Context(), 2)
		require.NoError(t, err)
		watches := make(chan struct{}, 1)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client != "b" || !r.Watch || r.Path != testDir+"/leases" {
				return zktest.Pass
			}
			select {
			case watches <- struct{}{}:
			default:
			}
			return zktest.Delay(time.Second)
		})
		waits := obtainLater(t, permitsOf(b, 2), 2)
		<-watches
		require.NoError(t, permitsOf(a, 4).Resize(t.Context()))
		time.Sleep(2 * time.Second)
		require.True(t, session.IsClosed(waits.done), "the waiter has read the number before the watch was set")
		waits.release(t)
		release(t, held)
	})
}

// Nobody was ahead of the waiter in the queue, so it has not watched its node there before. An operator evicts it by that node.
//
//zklock:promise P4.3
func TestAWaiterForPermitsNoticesThatItsNodeInTheQueueIsDeleted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		held, err := permitsOf(a, 2).Obtain(t.Context(), 2)
		require.NoError(t, err)
		time.Sleep(time.Second) // a's node has left the queue
		waits := obtainLater(t, permitsOf(b, 2), 1)
		time.Sleep(time.Second)
		before := srv.Children(testDir + "/locks")
		require.Len(t, before, 1)
		require.NoError(t, srv.DeleteNode(testDir+"/locks/"+before[0]))
		time.Sleep(time.Second)
		after := srv.Children(testDir + "/locks")
		require.Len(t, after, 1, "it queues again")
		require.NotEqual(t, before, after)
		release(t, held)
		waits.release(t)
	})
}

// A caller that leaves the queue of a semaphore writes a note. Otherwise each hand-off would list the queue, which may be long.
//
//zklock:promise P9.3
func TestAQueueForPermitsIsNotListedAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var waits []*obtaining
		for i := range 10 {
			waits = append(waits, obtainLater(t, permitsOf(startEngine(t, srv, string(rune('a'+i)), nil), 1), 1))
			time.Sleep(time.Second)
		}
		lists := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpGetChildren2 && r.Path == testDir+"/locks" {
				lists++
			}
			return zktest.Pass
		})
		for _, w := range waits {
			w.release(t)
			time.Sleep(time.Second)
		}
		require.Zero(t, lists)
	})
}
