// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// refused is the answer of a server that does not permit a request.
var refused = zktest.Answer(zktest.CodeNoAuth)

// A node whose deletion is refused blocks the lock: the log and the engine's status say so, once,
// until it is gone.
//
//zklock:promise P5.5
func TestANodeThatCannotBeDeletedIsReported(t *testing.T) {
	for name, obtain := range map[string]func(t *testing.T, e *Engine) (*Grant, error){
		"of a mutex":               func(t *testing.T, e *Engine) (*Grant, error) { return e.Obtain(t.Context(), wantLock(testDir)) },
		"in the queue for permits": func(t *testing.T, e *Engine) (*Grant, error) { return permitsOf(e, 3).Obtain(t.Context(), 2) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				var log strings.Builder
				e := startEngine(t, srv, "a", func(e *Engine) { e.Requests.Log = slog.New(slog.NewTextHandler(&log, nil)) })
				allow := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == zktest.OpDelete && strings.Contains(r.Path, "-lock-") {
						return refused
					}
					return zktest.Pass
				})
				g, err := obtain(t, e)
				require.NoError(t, err)
				released := outcomeOf(g, false)
				time.Sleep(time.Minute)
				synctest.Wait()
				if strings.Contains(g.Nodes()[0].Name, "-lock-") {
					require.ErrorIs(t, released, zk.ErrNoAuth)
				} else {
					require.NoError(t, released)
				}
				require.Equal(t, 1, strings.Count(log.String(), "deletion of own node refused"), log.String())
				require.Len(t, e.Status(), 1)
				require.Regexp(t, `^`+testDir+`(/locks)?/_c_\S+-lock-0000000000 cannot be deleted since 1m0s: zk: not authenticated`, e.Status()[0])
				allow()
				time.Sleep(testTerm)
				require.Empty(t, e.Status())
			})
		})
	}
}

// After Close the hub deletes the nodes, as long as the connection lasts.
func TestAReleaseAfterCloseIsTheHubs(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		g := obtain(t, e)
		<-e.Removals.Close()
		srv.Next(2, throttled, zktest.OpDelete)
		srv.ResetCounts()
		require.ErrorIs(t, outcomeOf(g, false), outcome.ErrClosed)
		time.Sleep(time.Second)
		require.Equal(t, 3, srv.Requests()[zktest.OpDelete])
		require.Empty(t, srv.Children(testDir))
	})
}

// A third party has deleted the node, with and without a note to write.
func TestANodeThatIsGoneIsReleasedWithOneRequest(t *testing.T) {
	play(t, 3, nil, func(t *testing.T, s *story, e []*Engine) {
		var all []*obtaining
		for _, x := range e {
			s.step("queue", func() { all = append(all, x.wants(t, testLock)) })
		}
		for _, o := range all {
			<-o.done
			s.step("the node is deleted", func() { require.NoError(t, s.srv.DeleteNode(o.grant.Nodes()[0].Path())) })
			s.step("release", func() { o.release(t) })
		}
	})
}

// A hold with a lock-delay was lost: its record stays, so its node is deleted like any other, here together with a note.
func TestALostHoldWithADelayIsReleasedWithOneRequest(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var all []*obtaining
		for _, label := range []string{"a", "b", "c"} {
			all = append(all, startDelayed(t, srv, label).wants(t, testLock))
			time.Sleep(time.Second)
		}
		for _, o := range all[:2] {
			o.release(t)
			time.Sleep(time.Second)
		}
		held := all[2].grant
		require.True(t, held.lead.record.sent && held.lead.isToNote())
		require.NoError(t, srv.DeleteNode(held.Nodes()[0].Path()))
		deletes := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpDelete || r.Op == zktest.OpMulti && r.Ops[0] == zktest.OpDelete {
				deletes++
			}
			return zktest.Pass
		})
		require.NoError(t, outcomeOf(held, true))
		require.Equal(t, 1, deletes)
	})
}

// The directory's ACL lets clients create and delete nodes, but not write its data.
func TestANoteThatIsRefusedIsNotTriedAgain(t *testing.T) {
	play(t, 3, nil, func(t *testing.T, s *story, e []*Engine) {
		sess, err := e[0].session(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.srv.DeleteNode(testDir))
		_, err = e[0].Requests.Create(t.Context(), sess, testDir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermCreate|zk.PermRead|zk.PermDelete))
		require.NoError(t, err)
		for range 2 {
			var all []*obtaining
			for _, x := range e {
				s.step("queue", func() { all = append(all, x.wants(t, testLock)) })
			}
			for _, o := range all {
				s.step("release", func() { o.release(t) })
			}
		}
	})
}

// A revocation request arrives in the queue for permits just before the acquire that holds deletes its node there. The connection is
// lost when it reads the request.
func TestARequestThatArrivesBeforeTheDeletionIsForTheHold(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		queued, lost := "", false
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			switch {
			case r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, testDir+node.PermitQueueDir) && queued == "":
				queued = r.Path
				_ = srv.PutNode(queued, node.CuratorRevocation) // the test fails below if it was not written
			case r.Op == zktest.OpGetData && r.Path == queued && !lost:
				lost = true
				return zktest.DropBefore
			}
			return zktest.Pass
		})
		g, err := permitsOf(e, 3).Obtain(t.Context(), 2)
		require.NoError(t, err)
		time.Sleep(testTerm / 2)
		synctest.Wait()
		require.True(t, lost)
		require.True(t, g.Nodes()[0].Revocation.Requested.IsSet())
		_, there := srv.Node(queued)
		require.False(t, there)
		release(t, g)
	})
}

// An attempt that may be followed by another one, or that says that the lock is held, leaves nothing in the queue when it returns.
func TestSomeErrorsWaitUntilTheNodesAreDeleted(t *testing.T) {
	for _, c := range []struct {
		ended bool // the context
		err   error
		waits bool
	}{{false, outcome.ErrLocked, true}, {false, outcome.ErrGone, true}, {false, outcome.ErrSessionOver, false}, {false, zk.ErrNoAuth, false}, {true, outcome.ErrLocked, false}} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ended {
				cancel()
			}
			e := startEngine(t, srv, "a", nil)
			s, err := e.session(t.Context())
			require.NoError(t, err)
			entered, replacing := e.newWaiterFor(wantLock(testDir)), e.newWaiterFor(wantLock(testDir+"/other"))
			require.NoError(t, entered.enter(t.Context(), s))
			require.NoError(t, replacing.enter(t.Context(), s))
			next := e.newWaiterFor(wantLock(testDir + "/other"))
			next.creation.replaces = replacing.contender
			srv.Next(2, zktest.Delay(time.Second), zktest.OpDelete)
			for _, p := range []*waiter{entered, next} {
				began := time.Now()
				e.discard(ctx, c.err, p)
				require.Equal(t, c.waits, time.Since(began) >= time.Second, "%v", c.err)
			}
			e.discard(ctx, c.err, nil)
			time.Sleep(3 * time.Second)
			require.Equal(t, []string{"other"}, srv.Children(testDir))
			require.Empty(t, srv.Children(testDir+"/other"))
		})
	}
}

// The caller gives up before the server has replied to the create.
func TestANodeThatIsBeingCreatedIsDeleted(t *testing.T) {
	for name, obtain := range map[string]func(ctx context.Context, e *Engine) (*Grant, error){
		"a lock":  func(ctx context.Context, e *Engine) (*Grant, error) { return e.Obtain(ctx, wantLock(testDir)) },
		"permits": func(ctx context.Context, e *Engine) (*Grant, error) { return permitsOf(e, 3).TryObtain(ctx, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e := startEngine(t, srv, "a", nil)
				g, err := obtain(t.Context(), e) // the directories are there from now on
				require.NoError(t, err)
				release(t, g)
				time.Sleep(recentLife)
				left := srv.Next(1, zktest.Delay(time.Second), zktest.OpCreate, zktest.OpMulti)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
				defer cancel()
				_, err = obtain(ctx, e)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Zero(t, left())
				time.Sleep(testTerm)
				for path := range srv.Tree() {
					require.NotContains(t, path, node.NamePrefix)
				}
				requireIdle(t, srv, e)
			})
		})
	}
}

// The reply to the create was lost, and the directory may not be listed for a while: the node is deleted once it is found.
func TestANodeThatCannotBeFoundIsDeletedLater(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		require.NoError(t, srv.PutNode(testDir, nil))
		srv.Next(1, zktest.LoseReply, zktest.OpCreate)
		allow := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpGetChildren2 {
				return refused
			}
			return zktest.Pass
		})
		_, err := e.Obtain(t.Context(), wantLock(testDir))
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Len(t, srv.Children(testDir), 1)
		time.Sleep(testTerm)
		require.Len(t, e.Status(), 1)
		require.Regexp(t, `^`+testDir+`/_c_[0-9a-f]{32}-lock- cannot be deleted since`, e.Status()[0])
		allow()
		time.Sleep(testTerm)
		require.Empty(t, srv.Children(testDir))
		requireIdle(t, srv, e)
	})
}

// The client is closed while the server refuses to delete a node: the hub deletes it later.
func TestARefusedNodeIsDeletedAfterClose(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		g := obtain(t, e)
		srv.Next(3, refused, zktest.OpDelete)
		e.Requests.Calls.Close()
		require.ErrorIs(t, outcomeOf(g, false), zk.ErrNoAuth)
		require.Len(t, e.Status(), 1)
		time.Sleep(testTerm)
		require.Empty(t, e.Status())
		require.Empty(t, srv.Children(testDir))
	})
}

// The reply to the delete never comes. The heartbeats find no node, which is not the loss of the hold.
func TestANodeThatIsBeingDeletedIsNotFoundGone(t *testing.T) {
	virtual(t, zktest.Options{TickTime: time.Second}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		g := obtain(t, e)
		time.Sleep(testTerm)
		srv.Next(1, zktest.DropReply, zktest.OpDelete)
		released := make(chan error, 1)
		g.Release(false, func(err error) { released <- err })
		time.Sleep(testTerm / 2)
		require.Empty(t, srv.Children(testDir))
		require.False(t, g.Nodes()[0].IsGone())
		require.NoError(t, <-released)
		require.False(t, g.Nodes()[0].IsGone())
	})
}

// A directory may not be written, and the release needs a transaction for its record: the note is tried once.
func TestANoteThatIsRefusedWithARecordIsNotTriedAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startDelayed(t, srv, "a")
		sess, err := e.session(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.PutNode("/locks", nil))
		_, err = e.Requests.Create(t.Context(), sess, testDir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermCreate|zk.PermRead|zk.PermDelete))
		require.NoError(t, err)
		require.NoError(t, srv.PutNode(testDir+"/other", nil)) // so that no create expects to be alone, and writes the data
		notes := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if slices.Contains(r.Paths, testDir) && r.Ops[slices.Index(r.Paths, testDir)] == zktest.OpSetData {
				notes++
			}
			return zktest.Pass
		})
		for range 3 {
			var all []*obtaining
			for range 3 {
				all = append(all, later(func() (*Grant, error) { return e.Obtain(t.Context(), wantLock(testDir)) }))
				time.Sleep(time.Second)
			}
			for _, o := range all {
				o.release(t)
				time.Sleep(time.Second)
			}
		}
		require.Equal(t, 1, notes)
		require.NotContains(t, srv.Tree(), testRecord)
	})
}

// The directory's ACL permits no deletion, and the release has a note to write: the node is not gone.
func TestADeletionThatIsRefusedWithANoteIsReported(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		sess, err := e.session(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.PutNode("/locks", nil))
		_, err = e.Requests.Create(t.Context(), sess, testDir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermCreate|zk.PermRead|zk.PermWrite))
		require.NoError(t, err)
		p := enterQueue(t, e, testLock)
		p.removal.held = true
		p.removal.planNote(true, 0, nil)
		removed := make(chan error, 1)
		e.removeThen(p.contender, func(err error) { removed <- err })
		require.ErrorIs(t, <-removed, zk.ErrNoAuth)
		require.Len(t, e.Status(), 1)
		require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: testDir, ACL: []zktest.ACL{{Perms: zktest.PermAll, Scheme: "world", ID: "anyone"}}}))
		time.Sleep(testTerm)
		require.Empty(t, e.Status())
		require.Empty(t, srv.Children(testDir))
	})
}

// One of the permits' nodes is gone, and the directory may not be listed for a while: the others are deleted later.
func TestPermitsThatCannotBeListedAreDeletedLater(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		g, err := permitsOf(e, 3).TryObtain(t.Context(), 3)
		require.NoError(t, err)
		require.NoError(t, srv.DeleteNode(g.Nodes()[1].Path()))
		srv.Next(1, refused, zktest.OpGetChildren2)
		require.ErrorIs(t, outcomeOf(g, false), zk.ErrNoAuth)
		require.Len(t, srv.Children(leases), 2)
		time.Sleep(testTerm)
		require.Empty(t, srv.Children(leases))
		requireIdle(t, srv, e)
	})
}
