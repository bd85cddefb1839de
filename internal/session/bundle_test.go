// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// A bundle's requests are carried out in their order, and each gets its own reply, or the reason why it was not sent.
func TestEachRequestOfABundleGetsItsReply(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/a", []byte("data")))
		require.NoError(t, srv.PutNode("/b", nil))
		c := startClient(t, srv, "a")
		s := c.session(t)
		var sent []zktest.Op
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Path != "/" && r.Op != zktest.OpPing {
				sent = append(sent, r.Op)
			}
			return zktest.Pass
		})
		type replies struct {
			wrongVersion, deleted, added error
			multi                        []zk.MultiResponse
			multiErr                     error
			n                            int
		}
		ask := func(send func(*Bundle)) (r replies) {
			b := c.BundleNow(s)
			b.Delete("/a", 7, func(err error) { r.wrongVersion, r.n = err, r.n+1 })
			b.Add(frames.SetData("/a", []byte("new"), 0), readNothing, func(err error) { r.added, r.n = err, r.n+1 })
			b.Multi([]any{&zk.CheckVersionRequest{Path: "/a", Version: 1}, &zk.DeleteRequest{Path: "/b", Version: -1}}, func(all []zk.MultiResponse, err error) {
				r.multi, r.multiErr, r.n = all, err, r.n+1
			})
			b.Delete("/a", 1, func(err error) { r.deleted, r.n = err, r.n+1 })
			send(b)
			time.Sleep(time.Second)
			synctest.Wait()
			return r
		}
		r := ask((*Bundle).SendNow)
		require.Equal(t, 4, r.n)
		require.ErrorIs(t, r.wrongVersion, zk.ErrBadVersion)
		require.NoError(t, errors.Join(r.added, r.deleted, r.multiErr))
		require.Len(t, r.multi, 2)
		require.Equal(t, []zktest.Op{zktest.OpDelete, zktest.OpSetData, zktest.OpMulti, zktest.OpDelete}, sent)
		require.NotContains(t, srv.Tree(), "/a")
		require.NotContains(t, srv.Tree(), "/b")

		ended, cancel := context.WithCancelCause(t.Context())
		cancel(outcome.ErrLocked)
		for _, send := range []func(*Bundle){
			func(b *Bundle) { require.ErrorIs(t, b.Send(ended), outcome.ErrLocked) },
			func(b *Bundle) {
				srv.Member(0).Stop()
				synctest.Wait()
				b.SendNow()
			},
		} {
			sent = nil
			r = ask(send)
			require.Equal(t, 4, r.n)
			for _, err := range []error{r.wrongVersion, r.added, r.deleted, r.multiErr} {
				require.ErrorIs(t, err, conn.ErrNotSent)
				require.NotErrorIs(t, err, outcome.ErrLocked, "the cause is of one caller")
			}
			require.Empty(t, sent)
		}
		require.NoError(t, c.BundleNow(s).Send(ended), "there is nothing to send")
		_, err := c.Bundle(ended, s)
		require.ErrorIs(t, err, outcome.ErrLocked)
		_, err = c.List(ended, s, "/")
		require.ErrorIs(t, err, outcome.ErrLocked)
		srv.Member(0).Start()
		srv.ExpireSession(s.ID)
		time.Sleep(testTerm)
		r = ask((*Bundle).SendNow)
		for _, err := range []error{r.wrongVersion, r.added, r.deleted, r.multiErr} {
			require.ErrorIs(t, err, outcome.ErrSessionOver)
		}
	})
}

// A request that is answered throttled is sent again, whichever of a bundle it is.
func TestAThrottledRequestOfABundleIsSentAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/a", []byte("data")))
		c := startClient(t, srv, "a")
		s := c.session(t)
		left := srv.Next(1, zktest.Answer(frames.CodeThrottled), zktest.OpGetData)
		b, err := c.Bundle(t.Context(), s)
		require.NoError(t, err)
		get := b.Get("/a")
		require.NoError(t, b.Send(t.Context()))
		n, err := get(t.Context())
		require.NoError(t, err)
		require.Equal(t, "data", string(n.Data))
		require.Zero(t, left())
		b, err = c.Bundle(t.Context(), s)
		require.NoError(t, err)
		missing, stat := b.Get("/b"), b.Stat("/a")
		require.NoError(t, b.Send(t.Context()))
		_, err = missing(t.Context())
		require.ErrorIs(t, err, zk.ErrNoNode)
		at, err := stat(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 4, at.DataLength)
	})
}

// A reply that arrives while the client is closed is handled by the goroutine that has read it.
func TestAReplyDuringCloseIsHandled(t *testing.T) {
	tasks := NewTasks()
	<-tasks.Close()
	<-tasks.Close()
	names := make([]string, manyChildren)
	for _, got := range []Listing{NewListing(nil, nil, time.Time{}), NewListing(names, nil, time.Time{})} {
		var f listings
		var answer func(Listing, error)
		l := f.share(&Requests{Calls: tasks}, listed{dir: "/a"}, func(then func(Listing, error)) { answer = then })
		answer(got, nil)
		require.True(t, l.done.IsSet())
		require.Len(t, l.Names, len(got.Names))
		require.NoError(t, l.err)
		require.Empty(t, f.running)
	}
	var f listings
	l := f.share(&Requests{Calls: tasks}, listed{dir: "/a"}, func(then func(Listing, error)) { go then(Listing{}, conn.ErrNotSent) })
	<-l.done.Done()
	require.ErrorIs(t, l.err, outcome.ErrClosed)

	w, _ := aWatch(t, Set)
	watches := &watchTable{requests: &Requests{Calls: tasks}, live: map[watchKey]*watch{w.key: w}, keepers: map[*Session]struct{}{}}
	seen := State(0)
	w.latest().Notify(ownerOf(func(saw State) { seen = saw }))
	watches.fire(w, Gone)
	require.Equal(t, Gone, seen)
	require.Equal(t, Gone, w.latest().State)
	for range 2 {
		_, known, err := watches.liveOrNew(watchKey{sess: w.key.sess, path: "/closed"}, t.Context())
		require.ErrorIs(t, err, outcome.ErrClosed)
		require.False(t, known)
	}
	require.Empty(t, watches.live)
	require.Empty(t, watches.keepers)
}

// Only the end of a node is explained by its reason.
func TestOnlyTheEndOfANodeIsReplacedByItsReason(t *testing.T) {
	gone, useless := new(OwnNode), new(OwnNode)
	gone.MarkGone(nil)
	useless.MarkGone(ErrForged)
	for _, c := range []struct {
		node      *OwnNode
		err, want error
	}{
		{new(OwnNode), outcome.ErrGone, outcome.ErrGone}, {gone, outcome.ErrGone, outcome.ErrGone}, {useless, outcome.ErrGone, ErrForged},
		{useless, outcome.ErrLocked, outcome.ErrLocked}, {useless, nil, nil}, {gone, nil, nil},
	} {
		require.Equal(t, c.want, c.node.Because(c.err))
	}
}

// The pause of Persist ends with its context, and so does its wait for a session.
func TestPersistEndsWithItsContext(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := startClient(t, srv, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		calls := 0
		_, err := Persist(ctx, c.Requests, func(*Session) (int, error) {
			calls++
			return 0, zk.ErrConnectionClosed
		})
		require.Error(t, err)
		require.Error(t, ctx.Err())
		require.Greater(t, calls, 10)
		require.Less(t, calls, 200, "it pauses")
		v, err := Persist(t.Context(), c.Requests, func(*Session) (int, error) { return 5, zk.ErrNoAuth })
		require.Equal(t, 5, v)
		require.ErrorIs(t, err, zk.ErrNoAuth)
	})
}

func TestTheNumberOfWaitingNoticesIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNotices()
		gate := make(chan struct{})
		require.True(t, n.Put(func() { <-gate }))
		synctest.Wait()
		require.Zero(t, n.Slowness().Waiting)
		for i := range 3 {
			require.True(t, n.Put(func() {}))
			require.Equal(t, i+1, n.Slowness().Waiting)
		}
		close(gate)
		for range 3 { // each is put once the one before was delivered
			synctest.Wait()
			delivered := make(chan struct{})
			require.True(t, n.Put(func() { close(delivered) }))
			<-delivered
		}
		n.Close(nil)
		require.Zero(t, n.Slowness().Waiting)
	})
}

// A server withholds an event from a client that may not read the node at that moment. The client finds the change by itself.
func TestAWithheldEventIsFound(t *testing.T) {
	acl := func(srv *zktest.Server, path string, perms int32) {
		_ = srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: path, ACL: []zktest.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}})
	}
	for name, c := range map[string]struct {
		children bool
		change   func(srv *zktest.Server) error
		saw      State
		after    time.Duration // the watch was set
	}{
		"data":                         {false, func(srv *zktest.Server) error { return srv.PutNode("/a", []byte("new")) }, Changed, 0},
		"children":                     {true, func(srv *zktest.Server) error { return srv.PutNode("/a/b", nil) }, Changed, 0},
		"children, after some checks":  {true, func(srv *zktest.Server) error { return srv.PutNode("/a/b", nil) }, Changed, 10 * testTerm},
		"data, after some checks":      {false, func(srv *zktest.Server) error { return srv.PutNode("/a", []byte("new")) }, Changed, 10 * testTerm},
		"deleted":                      {false, func(srv *zktest.Server) error { return srv.DeleteNode("/a") }, Gone, 0},
		"replaced":                     {true, func(srv *zktest.Server) error { return errors.Join(srv.DeleteNode("/a"), srv.PutNode("/a", nil)) }, Changed, 0},
		"replaced, with the same data": {false, func(srv *zktest.Server) error { return errors.Join(srv.DeleteNode("/a"), srv.PutNode("/a", nil)) }, Changed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				require.NoError(t, srv.PutNode("/a", nil))
				cl := startClient(t, srv, "a")
				watches := NewWatches(cl.Requests, cl.shared)
				watches.Probe(cl.session(t))
				watch := watches.Watch
				if c.children {
					watch = watches.WatchChildren
				}
				v, err := watch(t.Context(), cl.session(t), "/a")
				require.NoError(t, err)
				saw := make(chan State, 1)
				go func() { // ends with the watch
					state, _ := v.Await(t.Context(), nil)
					saw <- state
				}()
				time.Sleep(c.after)
				synctest.Wait()
				require.Empty(t, saw)
				acl(srv, "/a", 0)
				require.NoError(t, c.change(srv))
				acl(srv, "/a", zktest.PermAll)
				time.Sleep(3 * testTerm)
				synctest.Wait()
				require.Len(t, saw, 1)
				require.Equal(t, c.saw, <-saw)
			})
		})
	}
}

// A watch is compared by what a server says about its node, and fires unless that is as it was.
func TestAWatchIsComparedWithItsNode(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/a/b", nil))
		c := startClient(t, srv, "a")
		s := c.session(t)
		stat, err := c.Stat(t.Context(), s, "/a")
		require.NoError(t, err)
		for name, x := range map[string]struct {
			children bool
			path     string
			was      func(*zk.Stat)
			answer   zktest.Verdict
			want     State
		}{
			"data":                    {false, "/a", func(*zk.Stat) {}, zktest.Pass, Set},
			"data, written":           {false, "/a", func(s *zk.Stat) { s.Mzxid-- }, zktest.Pass, Changed},
			"data, created again":     {false, "/a", func(s *zk.Stat) { s.Czxid-- }, zktest.Pass, Changed},
			"data, a child":           {false, "/a", func(s *zk.Stat) { s.Pzxid--; s.NumChildren++ }, zktest.Pass, Set},
			"children":                {true, "/a", func(*zk.Stat) {}, zktest.Pass, Set},
			"children, created again": {true, "/a", func(s *zk.Stat) { s.Czxid-- }, zktest.Pass, Changed},
			"children, a child":       {true, "/a", func(s *zk.Stat) { s.Pzxid-- }, zktest.Pass, Changed},
			"children, their number":  {true, "/a", func(s *zk.Stat) { s.NumChildren++ }, zktest.Pass, Changed},
			"children, written":       {true, "/a", func(s *zk.Stat) { s.Mzxid-- }, zktest.Pass, Set},
			"missing":                 {false, "/missing", func(*zk.Stat) {}, zktest.Pass, Gone},
			"not allowed":             {false, "/a", func(*zk.Stat) {}, zktest.Answer(frames.CodeNoAuth), Set},
		} {
			watches := NewWatches(c.Requests, c.shared)
			w := newWatch(watchKey{sess: s, path: x.path, children: x.children})
			was := *stat
			x.was(&was)
			w.answered(View{Stat: &was}, nil)
			at := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Op == zktest.OpExists && r.Path == x.path {
					return x.answer
				}
				return zktest.Pass
			})
			watches.table.rearming.compare(w, 99)
			at()
			require.Equal(t, x.want, w.latest().State, name)
			require.Equal(t, x.want == Set && name != "not allowed", w.sure == 99, name)
		}
	})
}

// WatchNow returns what a node is now, although a watch of another caller was set before an event that never came.
func TestAWatchForAReaderOfItsDataIsReadAgain(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/a", []byte("old")))
		c := startClient(t, srv, "a")
		s := c.session(t)
		watches := NewWatches(c.Requests, c.shared)
		first, err := watches.WatchNow(t.Context(), s, "/a")
		require.NoError(t, err)
		same, err := watches.WatchNow(t.Context(), s, "/a")
		require.NoError(t, err)
		require.Same(t, first, same)
		require.True(t, same.IsCurrent() && same.IsOn("a") && !same.IsOn("b"))
		acl := func(perms int32) {
			require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: "/a", ACL: []zktest.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}}))
		}
		acl(0)
		require.NoError(t, srv.PutNode("/a", []byte("new")))
		acl(zktest.PermAll)
		time.Sleep(time.Second)
		v, err := watches.WatchNow(t.Context(), s, "/a")
		require.NoError(t, err)
		require.Equal(t, "new", string(v.Data))
		require.False(t, first.IsCurrent())
		require.True(t, v.IsCurrent())
		srv.Next(1, zktest.Answer(frames.CodeNoAuth), zktest.OpExists)
		_, err = watches.WatchNow(t.Context(), s, "/a")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		_, err = watches.WatchNow(t.Context(), s, "/missing")
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

// Each number is passed once, a few at a time, and after an error no other one is.
func TestCallsSideBySide(t *testing.T) {
	tasks := NewTasks()
	for _, n := range []int{0, 1, 2, 3, 7} {
		var mu sync.Mutex
		var seen []int
		require.NoError(t, SideBySide(tasks, n, 3, func(i int) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, i)
			return nil
		}))
		slices.Sort(seen)
		require.Len(t, seen, n)
		for i, x := range seen {
			require.Equal(t, i, x)
		}
	}
	calls := 0
	require.ErrorIs(t, SideBySide(tasks, 5, 1, func(i int) error {
		calls++
		if i == 1 {
			return zk.ErrNoAuth
		}
		return nil
	}), zk.ErrNoAuth)
	require.Equal(t, 2, calls)
	<-tasks.Close()
	require.ErrorIs(t, SideBySide(tasks, 2, 2, func(int) error { return nil }), outcome.ErrClosed)
}

// Heartbeats check only the nodes of the session that they prove, and a check that is not answered is no proof.
func TestOnlyTheSessionsOwnNodesAreDue(t *testing.T) {
	virtual(t, zktest.Options{Latency: func(*rand.Rand) time.Duration { return time.Millisecond }}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		c := startClient(t, srv, "a")
		a, s := c.own(t, srv, "a"), c.session(t)
		other := &OwnNode{Dir: testDir, Name: "b", Sess: conn.NewSession(7, nil)}
		k := newCheckQueue()
		require.True(t, k.add(a, c.Heart))
		k.add(other, c.Heart)
		require.Equal(t, []*OwnNode{a}, k.due(s))
		require.Equal(t, []*OwnNode{other}, k.due(other.Sess))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(outcome.ErrLocked)
		require.ErrorIs(t, c.confirm(ctx, s, []*OwnNode{a}), outcome.ErrLocked)
		require.ErrorIs(t, c.ConfirmAll(ctx, s, []*OwnNode{a}), outcome.ErrLocked)
		require.NoError(t, c.confirm(t.Context(), s, []*OwnNode{a}))
		require.False(t, a.IsGone())
		many := slices.Repeat([]*OwnNode{a}, 300)
		n := fitting(many, maxChecks)
		require.Equal(t, maxChecks/a.checkSize(), n)
		require.Equal(t, 1, fitting(many, 1))
		require.Equal(t, 300, fitting(many, 300*a.checkSize()))
		require.Equal(t, 299, fitting(many, 300*a.checkSize()-1))
	})
}
