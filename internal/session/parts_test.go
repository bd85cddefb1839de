// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

func TestAnOwnNodeKnowsItsDataAndItsRequest(t *testing.T) {
	n := new(OwnNode)
	n.Init("/a", []byte("data"), false)
	require.Equal(t, "data", string(n.OwnData()))
	require.Equal(t, "data", string(n.SetOwnData([]byte("new"))))
	require.Equal(t, "new", string(n.SetOwnData([]byte("new"))))
	require.Equal(t, "new", string(n.OwnData()))
	require.False(t, n.Hear(Node{Data: []byte("other")}))
	require.False(t, n.Revocation.Requested.IsSet())
	require.Equal(t, "new", string(n.KeepRevocation(n.OwnData())))
	require.True(t, n.Hear(Node{Data: node.CuratorRevocation}))
	require.True(t, n.Revocation.Requested.IsSet())
	require.Equal(t, node.WithRevocation([]byte("new")), n.KeepRevocation(n.OwnData()))
	n.Name = "name"
	require.Equal(t, len("/a/name")+32, n.checkSize())
	n.Fixed = true
	require.Equal(t, "new", string(n.KeepRevocation(n.OwnData())))
}

func TestTasksThatAreEnteredAreCounted(t *testing.T) {
	tasks := NewTasks()
	require.True(t, tasks.Enter())
	tasks.Done()
	require.True(t, tasks.Enter())
	require.True(t, tasks.Enter())
	idle := tasks.Close()
	require.False(t, tasks.Enter())
	tasks.Done()
	require.False(t, IsClosed(idle))
	tasks.Done()
	require.True(t, IsClosed(idle))
}

// Only the children of a directory whose counter has ended need a read of their own.
func TestWatchesThatNeedAReadOfTheirOwn(t *testing.T) {
	var r rearming
	of := func(children bool, cversion int32, sure int64) *watch {
		w, _ := aWatch(t, Set)
		w.key.children, w.sure, w.checked, w.waiters = children, sure, true, 1
		w.latest().Stat.Cversion = cversion
		return w
	}
	listed, ended, data := of(true, 7, 5), of(true, -1, 5), of(false, -1, 5)
	require.Equal(t, []bool{true, false, true}, []bool{listed.isListed(), ended.isListed(), data.isListed()})
	all := []*watch{listed, ended, data, of(true, 7, 0)}
	alone, together := r.due(all)
	require.Len(t, alone, 4, "nobody knows whether the servers know SetWatches")
	require.Empty(t, together)
	r.sets.judge(nil, listed.latest().on)
	alone, _ = r.due(all)
	require.Empty(t, alone, "they are checked every second time")
	alone, together = r.due(all)
	require.Equal(t, []*watch{ended, all[3]}, alone)
	require.Equal(t, map[int64][]*watch{5: {listed, data}}, together)
}

// One watch needs a read of its own, and another one does not.
func TestWatchesOfBothKindsAreChecked(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/a", nil))
		c := startClient(t, srv, "a")
		s := c.session(t)
		watches := NewWatches(c.Requests, c.shared)
		require.False(t, watches.table.rearming.sets.isKnown())
		for _, path := range []string{"/a", "/"} {
			_, err := watches.Watch(t.Context(), s, path)
			require.NoError(t, err)
		}
		require.Len(t, watches.table.keepers, 1)
		require.Len(t, watches.table.live, 2)
		watches.Probe(s)
		require.True(t, watches.table.rearming.sets.isKnown())
		stat, err := c.Stat(t.Context(), s, "/a")
		require.NoError(t, err)
		var both []*watch
		for _, sure := range []int64{0, stat.Mzxid} {
			w := newWatch(watchKey{sess: s, path: "/a", children: true})
			w.answered(View{Stat: stat}, nil)
			w.sure, w.checked = sure, true
			both = append(both, w)
		}
		done := make(chan struct{})
		require.False(t, watches.table.rearming.check(s, nil, done))
		now := s.Seen()
		require.True(t, watches.table.rearming.check(s, both, done))
		<-done
		for _, w := range both {
			require.GreaterOrEqual(t, w.sure, now)
			require.Equal(t, Set, w.latest().State)
		}
	})
}

// A caller leaves before the reply to the listing has arrived, and a client that is closed sets no watch.
func TestAListingAndAWatchEndWithTheirCaller(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/a", nil))
		c := startClient(t, srv, "a")
		s := c.session(t)
		srv.Next(1, zktest.Delay(time.Second), zktest.OpGetChildren2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := c.List(ctx, s, "/a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		l, err := c.List(t.Context(), s, "/a")
		require.NoError(t, err)
		require.Empty(t, l.Names)

		watches := NewWatches(c.Requests, c.shared)
		c.shared.requests.Calls.Close()
		for range 2 {
			_, err = watches.Watch(t.Context(), s, "/a")
			require.ErrorIs(t, err, outcome.ErrClosed)
		}
		require.Zero(t, srv.WatchCount())
	})
}

// A node that is kept after a long time is checked at once, and a heartbeat that is refused an answer is reported with the reason.
func TestAKeptNodeIsCheckedAtOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		a := c.own(t, srv, "a")
		time.Sleep(10 * testTerm)
		take := checked(srv)
		time.Sleep(time.Second / 10)
		take()
		c.Keep(a)
		time.Sleep(time.Second / 10)
		require.Equal(t, 1, take()[a.Path()])
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpMulti {
				return zktest.Answer(frames.CodeThrottled)
			}
			return zktest.Pass
		})
		time.Sleep(testTerm)
		missed, _ := c.reported()
		require.NotEmpty(t, missed)
		for _, err := range missed {
			require.ErrorIs(t, err, frames.ErrThrottled)
		}
	})
}

// A create that is given up after all earlier ones were settled is looked for, too.
func TestALaterCreateIsSearchedFor(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		s := c.session(t)
		for range 2 {
			prefix := node.NamePrefix + node.NewGUID(node.GUIDMark)
			s.Own(100, 1000)
			c.Add(&PendingCreate{By: c.Requests, Dir: testDir, Prefix: prefix, Sess: s, Owns: 100, Epoch: s.Epoch(), Moved: s.Reattached()})
			srv.DropConnections()
			require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpCreate, Path: testDir + "/" + prefix + "-lock-0000000007", Owner: s.ID}))
			time.Sleep(testTerm)
			require.Empty(t, srv.Children(testDir))
			_, err := c.Create(t.Context(), s, "/written", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
			time.Sleep(10 * testTerm)
			c.PendingCreates.mu.Lock()
			left := len(c.PendingCreates.all)
			c.PendingCreates.mu.Unlock()
			require.Zero(t, left)
		}
	})
}

// A directory that cannot be listed is asked for once per search, however many creates are pending in it.
func TestASearchListsADirectoryOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		s := c.session(t)
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpGetChildren2 {
				return zktest.Answer(frames.CodeNoAuth)
			}
			return zktest.Pass
		})
		for range 100 {
			prefix := node.NamePrefix + node.NewGUID(node.GUIDMark)
			c.Add(&PendingCreate{By: c.Requests, Dir: testDir, Prefix: prefix, Sess: s, Epoch: s.Epoch(), Moved: s.Reattached()})
		}
		time.Sleep(time.Second)
		srv.ResetCounts()
		time.Sleep(testTerm)
		require.LessOrEqual(t, srv.Requests()[zktest.OpGetChildren2], 5)
	})
}

func TestALatchIsSetOnce(t *testing.T) {
	var l Latch
	before := l.Done()
	require.False(t, l.IsSet() || IsClosed(before))
	require.True(t, l.Set())
	require.False(t, l.Set())
	require.True(t, l.IsSet() && IsClosed(before) && IsClosed(l.Done()))
}

// A server that reads requests and does not reply is left, and that is reported while a node is kept.
func TestTheClientLeavesASilentServer(t *testing.T) {
	for name, kept := range map[string]bool{"a node is kept": true, "none is": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode(testDir, nil))
				c := startClient(t, srv, "a")
				a := c.own(t, srv, "a")
				if kept {
					c.Keep(a)
				}
				time.Sleep(testTerm)
				again := a.Sess.Reattached()
				stop := srv.Intercept(func(*zktest.Request) zktest.Verdict { return zktest.DropReply })
				began := time.Now()
				time.AfterFunc(testTerm*6/10, stop)
				<-again
				require.Less(t, time.Since(began), testTerm)
				missed, _ := c.reported()
				silent := slices.ContainsFunc(missed, func(err error) bool { return errors.Is(err, errSilent) })
				require.Equal(t, kept, silent, "%v", missed)
			})
		})
	}
}
