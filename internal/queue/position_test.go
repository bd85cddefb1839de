// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

// inQueue runs fn with a waiter whose node is in the queue.
func inQueue(t *testing.T, fn func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter)) {
	t.Helper()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		fn(t, srv, e, enterQueue(t, e, testLock))
	})
}

func enterQueue(t *testing.T, e *Engine, r *Recipe) *waiter {
	t.Helper()
	s, err := e.session(t.Context())
	require.NoError(t, err)
	p := e.newWaiter(r, testDir, node.OwnerData("test", true), new(progress))
	require.NoError(t, p.enter(t.Context(), s))
	return p
}

// at calls do once, at the first request of the type with this path; an empty path stands for any.
func at(srv *zktest.Server, op zktest.Op, path string, do func() zktest.Verdict) {
	done := false
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if done || r.Op != op || path != "" && r.Path != path {
			return zktest.Pass
		}
		done = true
		return do()
	})
}

func TestAPlaceWithoutItsNodeIsGone(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		require.NoError(t, p.findPosition(t.Context(), nil))
		require.NoError(t, srv.DeleteNode(p.Path()))
		require.Equal(t, outcome.ErrGone, p.findPosition(t.Context(), nil))
		require.ErrorIs(t, p.confirm(t.Context(), p.nodes()), outcome.ErrGone)
		require.NoError(t, srv.DeleteNode(testDir))
		require.Equal(t, outcome.ErrGone, p.findPosition(t.Context(), nil))
		srv.Next(1, refused, zktest.OpGetChildren2)
		require.ErrorIs(t, p.findPosition(t.Context(), nil), zk.ErrNoAuth)
	})
}

// A hold of the same client whose node is missing where ours was seen has ended, however that is seen.
func TestAHoldWhoseNodeIsMissingEnds(t *testing.T) {
	old := func(e *Engine, p *waiter, name string) *fakeHolder {
		h := &fakeHolder{dir: testDir, sess: p.Sess, name: name, czxid: 1}
		for range h.nodesHeld { // sets the node
		}
		e.Hub.holders.add(h)
		return h
	}
	t.Run("in a listing", func(t *testing.T) {
		inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
			missing := old(e, p, "x-lock-0000000000")
			require.NoError(t, p.findPosition(t.Context(), nil))
			require.True(t, missing.node.IsGone())
		})
	})
	t.Run("ours is the only node", func(t *testing.T) {
		inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
			missing := old(e, p, "x-lock-0000000000")
			require.False(t, p.isAlone(&creation{}))
			require.False(t, p.isAlone(&creation{dir: &zk.Stat{NumChildren: 2}}))
			require.False(t, missing.node.IsGone())
			require.True(t, p.isAlone(&creation{dir: &zk.Stat{NumChildren: 1, Version: 5, Mzxid: 8}, looked: time.Now(), expected: &lastAlone{data: "x"}}))
			require.True(t, missing.node.IsGone())
			require.Equal(t, int64(8), p.listed)
			require.Equal(t, time.Now(), p.looked)
			again, known := e.alone.take(testDir)
			require.True(t, known)
			require.Equal(t, lastAlone{version: 5, data: "x"}, again)
		})
	})
	t.Run("numbers do not show the order", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			e := startEngine(t, srv, "a", nil)
			const lost, there = "x-lock-2147483647", "y-lock-2147483647"
			require.NoError(t, srv.PutNode(testDir+"/"+lost, nil))
			require.NoError(t, srv.PutNode(testDir+"/"+there, nil))
			lab.SetChildCounter(srv, testDir, math.MaxInt32)
			p := enterQueue(t, e, testLock)
			require.Len(t, p.nearest.ahead, 2)
			missing, kept := old(e, p, lost), old(e, p, there)
			at(srv, zktest.OpExists, testDir+"/"+lost, func() zktest.Verdict {
				_ = srv.DeleteNode(testDir + "/" + lost)
				return zktest.Pass
			})
			require.NoError(t, p.findPosition(t.Context(), nil))
			require.True(t, missing.node.IsGone())
			require.False(t, kept.node.IsGone())
			require.Len(t, p.nearest.ahead, 1)
			for _, path := range []string{p.Path(), testDir + "/" + there} {
				at(srv, zktest.OpExists, path, func() zktest.Verdict { return refused })
				require.ErrorIs(t, p.findPosition(t.Context(), nil), zk.ErrNoAuth)
			}
			at(srv, zktest.OpExists, p.Path(), func() zktest.Verdict { return zktest.Answer(zktest.CodeNoNode) })
			require.Equal(t, outcome.ErrGone, p.findPosition(t.Context(), nil))
		})
	})
}

// Only the czxids of contenders with our number are read.
func TestOnlyTheCzxidsOfEqualNumbersAreRead(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		require.NoError(t, srv.PutNode(testDir+"/x-lock-0000000001", nil))
		require.NoError(t, srv.PutNode(testDir+"/x-lock-2147483647", nil))
		lab.SetChildCounter(srv, testDir, math.MaxInt32)
		var read []string
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpExists && r.Path != "/" {
				read = append(read, r.Path)
			}
			return zktest.Pass
		})
		p := enterQueue(t, e, testLock)
		require.Len(t, p.nearest.ahead, 2)
		require.Equal(t, []string{testDir + "/x-lock-2147483647", p.Path()}, read, "ours is read last")
	})
}

// A reader that does not wait goes past writers that have become readers. It watches its node before it holds, because it has read others' since.
func TestATryOfAReaderGoesPastDowngradedWriters(t *testing.T) {
	const n = nearestKept + 2
	for name, c := range map[string]struct {
		read   int // of a writer, which is answered in another way
		answer zktest.Verdict
		last   bool // whether the first writer has become a reader, too
		want   error
	}{
		"all are downgraded": {0, zktest.Pass, true, nil}, "the first is not": {0, zktest.Pass, false, outcome.ErrLocked},
		"a read is refused": {1, refused, true, zk.ErrNoAuth}, "a read in the queue is refused": {n + 2, refused, true, zk.ErrNoAuth},
		"one has left": {n + 1, zktest.Answer(zktest.CodeNoNode), true, nil}, "one leaves before we queue": {1, zktest.Answer(zktest.CodeNoNode), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e := startEngine(t, srv, "a", nil)
				release(t, obtain(t, e)) // nodes are readable from now on
				time.Sleep(recentLife)
				for i := range n {
					data := node.Owner{PID: 1, Shared: i > 0 || c.last}.Encode()
					require.NoError(t, srv.PutNode(testDir+"/"+node.NamePrefix+node.NewGUID(node.GUIDMark)+node.WriterInfix+strings.Repeat("0", 9)+string(rune('1'+i)), data))
				}
				reads := 0
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == zktest.OpGetData && strings.Contains(r.Path, node.WriterInfix) {
						if reads++; reads == c.read {
							return c.answer
						}
					}
					return zktest.Pass
				})
				w := wantLock(testDir)
				w.Recipe = testReader
				g, err := e.TryObtain(t.Context(), w)
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
					time.Sleep(testTerm)
					require.Len(t, srv.Children(testDir), n)
					return
				}
				require.NoError(t, err)
				require.Equal(t, 2*n, reads)
				require.True(t, g.lead.isWatched())
				require.Equal(t, 1, srv.WatchCount())
				release(t, g)
			})
		})
	}
}

// What a try reads before it queues may be refused, and so may what it does then.
func TestATryEndsWithTheErrorOfEachRequest(t *testing.T) {
	for name, c := range map[string]struct {
		op   zktest.Op
		path string
		skip int
	}{
		"the first listing": {zktest.OpGetChildren2, testDir, 0}, "the listing after the create": {zktest.OpGetChildren2, testDir, 2},
		"the create": {zktest.OpCreate, "", 0}, "the record": {zktest.OpGetData, testRecord, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e := startDelayed(t, srv, "a")
				require.NoError(t, srv.PutNode(testDir, nil))
				seen := 0
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == c.op && (c.path == "" || r.Path == c.path) {
						if seen++; seen > c.skip && c.skip == 0 || c.skip > 0 && seen >= c.skip {
							return refused
						}
					}
					return zktest.Pass
				})
				g, err := e.TryObtain(t.Context(), wantLock(testDir))
				require.ErrorIs(t, err, zk.ErrNoAuth)
				require.Nil(t, g)
				time.Sleep(testTerm)
				require.Empty(t, srv.Children(testDir))
			})
		})
	}
}

// A lock of this client excludes ours, and whether it still holds cannot be asked.
func TestAHoldThatCannotBeCheckedKeepsOthersOut(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		other := &fakeHolder{dir: testDir, sess: p.Sess, name: p.Name}
		e.Hub.holders.add(other)
		require.NoError(t, p.endGoneHolds(t.Context()))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errMine)
		require.ErrorIs(t, p.endGoneHolds(ctx), errMine)
		missing := &fakeHolder{dir: testDir, sess: p.Sess, name: "missing"}
		e.Hub.holders.add(missing)
		require.NoError(t, p.endGoneHolds(t.Context()))
		require.True(t, missing.node.IsGone())
		require.False(t, other.node.IsGone())
	})
}

func TestAMemberIsIntactWhileNothingShowsTheOpposite(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		require.True(t, p.isIntact(), "nothing watches it")
		require.False(t, p.isWatched())
		self := newSelfWatch(e, &p.OwnNode)
		p.self.Store(self)
		require.False(t, p.isIntact(), "the watch is not set")
		require.NotNil(t, p.goneIfSeen())
		self.start()
		time.Sleep(time.Second)
		require.True(t, p.isIntact() && p.isWatched())
		left := srv.Next(1, zktest.Delay(3*time.Second), zktest.OpSetWatches)
		srv.DropConnections()
		time.Sleep(2 * time.Second)
		require.Zero(t, left())
		require.False(t, p.isIntact() || p.isWatched(), "the watch is not set again yet")
		time.Sleep(2 * time.Second)
		require.True(t, p.isIntact() && p.isWatched())
		p.MarkGone(nil)
		require.False(t, p.isIntact())
		p.self.Store(nil)
		require.False(t, p.isIntact(), "it is gone, and nothing watches it")
	})
}

// The replies are slower than a look at our node counts. It is confirmed once.
func TestAnOldLookIsConfirmedOnce(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		p.looked = time.Now().Add(-2 * aloneGrace)
		e.readable.Store(true)
		checks := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti {
				checks++
				return zktest.Delay(2 * aloneGrace)
			}
			return zktest.Pass
		})
		require.NoError(t, p.grant(t.Context(), nil))
		require.LessOrEqual(t, checks, 2, "one for the look, and a heartbeat")
	})
}

// The proof of the session takes a while, and the grant says how long.
func TestAGrantSaysHowLongTheProofTook(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		quick := obtain(t, e)
		require.Less(t, quick.Proving, time.Second)
		release(t, quick)
		deny := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSync || r.Op == zktest.OpMulti {
				return throttled
			}
			return zktest.Pass
		})
		time.Sleep(2 * testTerm)
		time.AfterFunc(2*time.Second, deny)
		slow := obtain(t, e)
		require.GreaterOrEqual(t, slow.Proving, time.Second)
		require.True(t, slow.lead.isWatched(), "it was not seen for a while")
		release(t, slow)
	})
}

// A reply that cannot come from our create is not taken.
func TestAPathThatIsNotOursIsNotTaken(t *testing.T) {
	p := engineFor(false).newContender(testLock, testDir, nil)
	p.Sess, p.Name, p.guid = nil, "", node.NewGUID(node.GUIDMark)
	ours := p.nameless(&p.member)
	for _, path := range []string{"", ours, ours + "1", ours + "x000000001", testDir + "/x-lock-0000000001", "0000000001"} {
		require.Error(t, p.takePath(path, 7), path)
		require.Zero(t, p.czxid)
		require.Empty(t, p.Name)
	}
	require.NoError(t, p.takePath(ours+"0000000001", 7))
	require.Equal(t, int64(7), p.czxid)
	require.Equal(t, ours+"0000000001", p.Path())
}

// A session's nodes are counted once, whatever they replace, and the last one that fits is created.
func TestPathsAreCountedWhileTheyExist(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		s, err := e.session(t.Context())
		require.NoError(t, err)
		counted := func() int { n, _ := s.Own(0, MaxOwned); return n }
		size := func(dir, infix string) int { return len(dir) + 1 + len(node.NamePrefix) + 32 + len(infix) + pathExtra }
		lock, permit, queued := size(testDir, node.LockInfix), size(leases, node.LeaseInfix), size(testDir+node.PermitQueueDir, node.LockInfix)

		g := obtain(t, e)
		require.Equal(t, lock, counted())
		g.Retire()
		w := wantLock(testDir)
		w.Replaces = g
		g, err = e.Obtain(t.Context(), w)
		require.NoError(t, err)
		require.Equal(t, lock, counted())
		release(t, g)
		require.Zero(t, counted())
		g.lead.uncount()
		require.Zero(t, counted())

		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, testDir+node.PermitQueueDir) {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		g, err = permitsOf(e, 3).Obtain(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, 2*permit+queued, counted())
		time.Sleep(2 * time.Second)
		require.Equal(t, 2*permit, counted())
		release(t, g)
		require.Zero(t, counted())

		_, ok := s.Own(MaxOwned-lock, MaxOwned)
		require.True(t, ok)
		g = obtain(t, e)
		_, err = e.TryObtain(t.Context(), wantLock(testDir+"/other"))
		require.ErrorIs(t, err, outcome.ErrLimit)
		require.NotContains(t, srv.Tree(), testDir+"/other")
		release(t, g)
		_, ok = s.Own(1, MaxOwned)
		require.True(t, ok)
		_, err = e.Obtain(t.Context(), wantLock(testDir))
		require.ErrorIs(t, err, outcome.ErrLimit)
		require.Equal(t, MaxOwned-lock+1, counted())
	})
}

// The attempt to create the node ends for each reason that ends it, although the reply to the create was lost.
func TestTheLookForANodeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(srv *zktest.Server, e *Engine, cancel context.CancelCauseFunc)
		want      error
	}{
		"the caller gives up": {func(srv *zktest.Server, _ *Engine, cancel context.CancelCauseFunc) {
			srv.Partition("a")
			time.AfterFunc(time.Second, func() { cancel(errMine) })
		}, errMine},
		"it pauses": {func(srv *zktest.Server, _ *Engine, cancel context.CancelCauseFunc) {
			srv.Next(1000, zktest.Answer(zktest.CodeRuntimeInconsistency), zktest.OpGetChildren2)
			time.AfterFunc(5*time.Second, func() { cancel(errMine) })
		}, errMine},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e := startEngine(t, srv, "a", nil)
				require.NoError(t, srv.PutNode(testDir, nil))
				ctx, cancel := context.WithCancelCause(t.Context())
				at(srv, zktest.OpCreate, "", func() zktest.Verdict {
					c.meanwhile(srv, e, cancel)
					return zktest.LoseReply
				})
				s, err := e.session(t.Context())
				require.NoError(t, err)
				p := e.newWaiter(testLock, testDir, nil, new(progress))
				err = p.enter(ctx, s)
				require.True(t, errors.Is(err, c.want) || errors.Is(err, context.Canceled), "%v", err)
				require.Empty(t, p.Name)
			})
		})
	}
}

// A node whose create was not answered is found by its name, and no other is created.
func TestANodeWhoseReplyIsLostIsFound(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		release(t, obtain(t, e))
		srv.Next(1, zktest.LoseReply, zktest.OpCreate, zktest.OpMulti)
		release(t, obtain(t, e))
		dir, _ := srv.Node(testDir)
		require.EqualValues(t, 2, dir.Creates)

		// Somebody else copies the names of the batch. Its nodes are not taken for ours.
		var forged []string
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti && r.Ops[0] == zktest.OpCreate && len(r.Ops) > 1 && forged == nil {
				for i := range 6 {
					path := fmt.Sprintf("%s%010d", r.Paths[i%2], 90+i)
					forged = append(forged, node.BaseName(path))
					_ = srv.PutNode(path, nil)
				}
				return zktest.LoseReply
			}
			return zktest.Pass
		})
		require.NoError(t, srv.PutNode(leases, node.LimitData(9)))
		g, err := permitsOf(e, 9).TryObtain(t.Context(), 2)
		require.NoError(t, err)
		require.NotEmpty(t, forged)
		for _, n := range g.Nodes() {
			require.NotContains(t, forged, n.Name)
			at, there := srv.Node(n.Path())
			require.True(t, there)
			require.Equal(t, n.Sess.ID, at.EphemeralOwner)
		}
		release(t, g)
		require.ElementsMatch(t, forged, srv.Children(leases))
	})
}

// The listing of a batch is not complete before all its nodes are in it.
func TestAListingOfABatchIsComplete(t *testing.T) {
	ours, p := threeNodes()
	names := []string{p[0] + "-lease-0000000001", p[1] + "-lease-0000000002", p[2] + "-lease-0000000003"}
	ours.findNames(names)
	require.True(t, ours.complete(node.NewQueue(names)))
	for i := range names {
		require.False(t, ours.complete(node.NewQueue(append(append([]string{}, names[:i]...), names[i+1:]...))))
	}
	var seen []*session.OwnNode
	ours.nodesHeld(func(n *session.OwnNode, watched bool) bool {
		require.False(t, watched)
		seen = append(seen, n)
		return true
	})
	require.Equal(t, ours.nodes(), seen)
	for range ours.nodesHeld {
		break
	}
	for range ours.each {
		break
	}
}

// An attempt that cannot begin has no waiter.
func TestAPlaceThatCannotBeEnteredIsAnError(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		s, err := e.session(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errMine)
		p := e.newWaiter(testLock, testDir, nil, new(progress))
		require.ErrorIs(t, p.enter(ctx, s), errMine)
		require.ErrorIs(t, p.awaitLeave(ctx), errMine)
		p.nearest.ahead = []node.Entry{{Name: "x-lock-0000000000"}}
		require.ErrorIs(t, p.catchUp(ctx, 0), errMine)
		srv.ExpireSession(s.ID)
		time.Sleep(testTerm)
		require.ErrorIs(t, p.enter(t.Context(), s), outcome.ErrSessionOver)
		require.NotContains(t, srv.Tree(), testDir)
	})
}

// A create that counts and finds others is the last one that expects to be alone.
func TestACreateThatMeetsOthersIsRemembered(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		release(t, obtain(t, e))
		require.True(t, e.mayBeAlone(testDir))
		require.NoError(t, srv.PutNode(testDir+"/x-lock-2000000000", nil))
		p := enterQueue(t, e, testLock)
		require.False(t, e.mayBeAlone(testDir))
		met, known := e.alone.take(testDir)
		require.True(t, known)
		require.Equal(t, lastAlone{shared: true}, met)
		<-e.remove(p.contender)
	})
}

func TestAPlaceThatIsFirstSaysSo(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		p.becomeFirst()
		require.Empty(t, p.progress.text(), "it has not waited")
		p.setReason(blockingContender{name: "x"})
		require.Equal(t, "x", p.progress.text())
		require.Len(t, e.Status(), 1)
		p.becomeFirst()
		const first = "a reply from the servers, first in the queue"
		require.Equal(t, first, p.progress.text())
		p.setReason(blockingContender{name: "x"})
		require.NoError(t, p.wait(t.Context()))
		require.Equal(t, first, p.progress.text())
		p.setReason(blockingContender{name: "x"})
		require.NoError(t, p.makeCertain(t.Context()))
		require.Equal(t, first, p.progress.text())
		e.acquires.remove(p.progress)
	})
}

// A node that is evicted while its position is looked for ends the attempt with that reason.
func TestATryThatIsEvictedSaysSo(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e, evicted := startEngine(t, srv, "a", nil), false
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if names := srv.Children(testDir); r.Op == zktest.OpGetChildren2 && len(names) == 1 && !evicted {
				evicted = true
				_ = srv.PutNode(testDir, node.DirData{}.WithEvicted(node.Eviction{GUID: node.GUIDOf(names[0])}).Encode())
				_ = srv.DeleteNode(testDir + "/" + names[0])
			}
			return zktest.Pass
		})
		_, err := e.TryObtain(t.Context(), wantLock(testDir))
		require.True(t, evicted)
		require.ErrorIs(t, err, outcome.ErrEvicted)
	})
}

// Another library's writer whose position is not shown by its number makes a waiter unsure only once it has left.
func TestAWriterOfAnotherLibraryThatIsThereIsSure(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		writer := foreignGUID + node.WriterInfix + "2147483647"
		require.NoError(t, srv.PutNode(testDir+"/"+writer, nil))
		lab.SetChildCounter(srv, testDir, math.MaxInt32)
		p := enterQueue(t, e, testReader)
		require.False(t, p.nearest.unsure)
		require.Len(t, p.nearest.ahead, 1)
		at(srv, zktest.OpExists, testDir+"/"+writer, func() zktest.Verdict { return zktest.Answer(zktest.CodeNoNode) })
		require.NoError(t, p.findPosition(t.Context(), nil))
		require.True(t, p.nearest.unsure)
		require.Empty(t, p.nearest.ahead)

		at(srv, zktest.OpExists, testDir+"/"+writer, func() zktest.Verdict {
			srv.Next(1, refused, zktest.OpGetChildren2)
			return zktest.Answer(zktest.CodeNoNode)
		})
		next := e.newWaiter(testReader, testDir, nil, new(progress))
		require.ErrorIs(t, next.try(t.Context(), p.Sess), zk.ErrNoAuth, "it lists again")
	})
}

// A request for a node that is deleted together with a note is read first.
func TestARequestIsReadBeforeANodeIsDeletedWithANote(t *testing.T) {
	inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
		p.removal.unread = 0
		p.removal.held = true
		p.removal.planNote(true, 0, nil)
		require.NoError(t, srv.PutNode(p.Path(), node.CuratorRevocation))
		require.NoError(t, p.deleteUnder(t.Context(), p.Sess))
		require.True(t, p.Revocation.Requested.IsSet())
		require.Empty(t, srv.Children(testDir))
		require.Nil(t, p.removal.note)
	})
}

// A node that the grant needs is deleted while another hold is checked: it is not granted.
func TestANodeThatIsDeletedDuringTheGrantIsNoticed(t *testing.T) {
	for name, ofQueue := range map[string]bool{"our own": false, "in the queue for permits": true} {
		t.Run(name, func(t *testing.T) {
			inQueue(t, func(t *testing.T, srv *zktest.Server, e *Engine, p *waiter) {
				queued, other := enterQueue(t, e, testLock), enterQueue(t, e, testLock)
				for _, x := range []*waiter{p, queued} {
					x.watchSelf()
					require.NoError(t, x.isThere(t.Context()))
				}
				e.Hub.holders.add(&fakeHolder{dir: testDir, sess: p.Sess, name: other.Name})
				lost := p.Path()
				if ofQueue {
					lost = queued.Path()
				}
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if slices.Contains(r.Paths, other.Path()) {
						_ = srv.DeleteNode(lost)
					}
					return zktest.Pass
				})
				require.Equal(t, outcome.ErrGone, p.grant(t.Context(), queued))
			})
		})
	}
}

// A writer of another library has become a reader, whose number does not show that it is ahead of us.
func TestAReaderThatWasAWriterStaysAhead(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		writer := foreignGUID + node.WriterInfix + "2147483647"
		require.NoError(t, srv.PutNode(testDir+"/"+writer, nil))
		lab.SetChildCounter(srv, testDir, math.MaxInt32)
		p := enterQueue(t, e, testLock)
		require.Len(t, p.nearest.ahead, 1)
		require.NoError(t, srv.PutNode(testDir+"/"+foreignRead, nil))
		require.NoError(t, srv.DeleteNode(testDir+"/"+writer))
		p.nearest.remove(p.nearest.ahead[0])
		require.NoError(t, p.findPosition(t.Context(), nil))
		require.Len(t, p.nearest.ahead, 1)
		require.Equal(t, foreignRead, p.nearest.ahead[0].Name)
	})
}

// A try that replaces a node of its own does not wait for it.
func TestATryReplacesItsNode(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		g := obtain(t, e)
		time.Sleep(2 * recentLife)
		g.Retire()
		w := wantLock(testDir)
		w.Replaces = g
		next, err := e.TryObtain(t.Context(), w)
		require.NoError(t, err)
		require.Equal(t, []string{next.Nodes()[0].Name}, srv.Children(testDir))
		release(t, next)
	})
}

// The create was not carried out, and somebody else has made a node with our name. It is not taken for ours, and not if it cannot be looked at.
func TestANodeWithOurNameIsNotOurs(t *testing.T) {
	for name, answer := range map[string]zktest.Verdict{"it is looked at": zktest.Pass, "it may not be looked at": refused} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				e, forged := startEngine(t, srv, "a", nil), ""
				require.NoError(t, srv.PutNode(testDir, nil))
				at(srv, zktest.OpCreate, "", func() zktest.Verdict { return zktest.DropBefore })
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					switch {
					case r.Op == zktest.OpCreate && forged == "":
						forged = r.Path + "0000000000"
						_ = srv.PutNode(forged, nil)
					case r.Op == zktest.OpExists && r.Path == forged:
						return answer
					}
					return zktest.Pass
				})
				o := e.wants(t, testLock)
				time.Sleep(testTerm)
				synctest.Wait()
				require.NotEmpty(t, forged)
				if answer == refused {
					<-o.done
					require.ErrorIs(t, o.err, zk.ErrNoAuth)
					return
				}
				require.Len(t, srv.Children(testDir), 2)
				require.NoError(t, srv.DeleteNode(forged))
				<-o.done
				require.NoError(t, o.err)
				require.NotEqual(t, forged, o.grant.Nodes()[0].Path())
				o.release(t)
			})
		})
	}
}

// The data of the directory may not be read: no create writes it again.
func TestDataThatMayNotBeReadIsNotRemembered(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		require.NoError(t, srv.PutNode(testDir, []byte("value")))
		left := srv.Next(1, refused, zktest.OpGetData)
		p := enterQueue(t, e, testLock)
		time.Sleep(time.Second)
		require.Zero(t, left())
		require.False(t, e.alone.has(testDir, recentLife))
		require.NoError(t, p.findPosition(t.Context(), nil))
		time.Sleep(time.Second)
		again, known := e.alone.take(testDir)
		require.True(t, known)
		require.Equal(t, lastAlone{data: "value"}, again)
	})
}
