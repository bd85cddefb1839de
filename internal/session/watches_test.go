// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"log/slog"
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

// watching is a client of a server in memory that has only watches, and what it has requested.
type watching struct {
	*Watches
	t   *testing.T
	srv *zktest.Server
	s   *Session

	mu   sync.Mutex
	sent []string // guarded by mu: the requests that read nodes or set watches
}

// inWatching runs fn in virtual time with a client and a node, /a.
func inWatching(t *testing.T, fn func(t *testing.T, w *watching)) {
	t.Helper()
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		w := &watching{t: t, srv: srv}
		w.srv.Intercept(w.note)
		link := conn.NewLink()
		r := &Requests{Link: link, Log: slog.New(slog.DiscardHandler), Calls: NewTasks()}
		var end context.CancelCauseFunc
		r.Life, end = context.WithCancelCause(context.Background())
		r.CleanupCtx = r.Life
		shared := (&Hub{Link: link}).Join()
		w.Watches = NewWatches(r, shared)
		library, events, err := zk.Connect(w.srv.Addrs(), 10*time.Second, zk.WithDialer(link.Dialer(conn.Dialing{Dial: w.srv.DialFrom("a")})),
			zk.WithHostProvider(link.Hosts(&conn.Rotation{})), zk.WithLogInfo(false), zk.WithLogger(silent{}))
		require.NoError(t, err)
		defer func() {
			end(outcome.ErrClosed)
			shared.Leave()
			library.Close()
			link.Close()
			for range events { // until the client library has stopped
			}
			<-r.Calls.Close()
		}()
		w.s, err = link.Attached(t.Context())
		require.NoError(t, err)
		w.Probe(w.s)
		require.NoError(t, w.srv.PutNode("/a", []byte("0")))
		w.took()
		fn(t, w)
	})
}

// note records a request.
func (w *watching) note(r *zktest.Request) zktest.Verdict {
	switch r.Op {
	case zktest.OpGetData, zktest.OpExists, zktest.OpGetChildren2, zktest.OpSetWatches:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent = append(w.sent, r.Op.String())
	}
	return zktest.Pass
}

// took returns the requests since the last call.
func (w *watching) took() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}

// set writes the node's data.
func (w *watching) set(data string) {
	w.t.Helper()
	require.NoError(w.t, w.srv.PutNode("/a", []byte(data)))
	synctest.Wait()
}

// view returns a View of the node.
func (w *watching) view() *View {
	w.t.Helper()
	v, err := w.Watch(w.t.Context(), w.s, "/a")
	require.NoError(w.t, err)
	return v
}

// reconnect drops the connection, calls meanwhile, and waits until watches can be set again.
func (w *watching) reconnect(meanwhile func()) {
	again := w.s.Reattached()
	w.srv.DropConnections()
	meanwhile()
	<-again
	time.Sleep(time.Second)
	require.False(w.t, w.s.IsOver())
}

// awaiting is a wait in the background.
type awaiting struct {
	saw  State
	err  error
	done chan struct{}
}

func (w *watching) await(v *View) *awaiting {
	a := &awaiting{done: make(chan struct{})}
	go func() { // ends when the watch fires, or with the test's context
		defer close(a.done)
		a.saw, a.err = v.Await(w.t.Context(), nil)
	}()
	synctest.Wait()
	return a
}

func (a *awaiting) isOver() bool {
	synctest.Wait()
	return IsClosed(a.done)
}

// liveWatches returns the watches that the client remembers, and how many the server has.
func (w *watching) liveWatches() (client, server int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.table.of(w.s)), w.srv.WatchCount()
}

func TestOneRequestServesAllWatchersOfANode(t *testing.T) {
	inWatching(t, func(t *testing.T, w *watching) {
		first, second := w.view(), w.view()
		require.Same(t, first, second)
		require.Equal(t, []byte("0"), first.Data)
		waits := []*awaiting{w.await(first), w.await(second)}
		require.Equal(t, []string{"getData"}, w.took())
		w.set("1")
		for _, a := range waits {
			require.True(t, a.isOver())
			require.NoError(t, a.err)
			require.Equal(t, Changed, a.saw)
		}
	})
}

// throttled is the answer of a server that has too many requests.
var throttled = zktest.Answer(-127)

func TestAThrottledWatchIsRequestedAgain(t *testing.T) {
	inWatching(t, func(t *testing.T, w *watching) {
		w.srv.Next(3, throttled, zktest.OpGetData)
		a := w.await(w.view())
		require.Equal(t, []string{"getData", "getData", "getData", "getData"}, w.took())
		w.set("1")
		require.True(t, a.isOver())
		require.Equal(t, Changed, a.saw)
	})
}

func TestAWatchIsRequestedAFewTimesFromThrottledServers(t *testing.T) {
	inWatching(t, func(t *testing.T, w *watching) {
		w.srv.Next(100, throttled, zktest.OpGetData)
		_, err := w.Watch(t.Context(), w.s, "/a")
		require.ErrorIs(t, err, frames.ErrThrottled)
		require.Len(t, w.took(), 6)
	})
}

// Between two looks at a node, its event arrives: the second one must not get the first one's View.
func TestAnEventBetweenTwoSubscriptionsIsNotMissed(t *testing.T) {
	inWatching(t, func(t *testing.T, w *watching) {
		first := w.view()
		w.set("1")
		second := w.view()
		require.NotSame(t, first.watch, second.watch)
		require.Equal(t, []byte("1"), second.Data)
		require.True(t, second.IsCurrent())
		require.Equal(t, []string{"getData", "getData"}, w.took())

		require.True(t, w.await(first).isOver(), "its event came before the wait")
		a := w.await(second)
		require.False(t, a.isOver())
		require.NoError(t, w.srv.DeleteNode("/a"))
		require.True(t, a.isOver())
		require.Equal(t, Gone, a.saw)
		_, err := w.Watch(t.Context(), w.s, "/a")
		require.ErrorIs(t, err, zk.ErrNoNode)
		client, server := w.liveWatches()
		require.Zero(t, client)
		require.Zero(t, server)
	})
}

func TestAReconnectWithoutAChangeEndsNoWait(t *testing.T) {
	inWatching(t, func(t *testing.T, w *watching) {
		before := w.view()
		a, owned := w.await(before), 0
		before.Notify(ownerOf(func(State) { owned++ }))
		w.took()
		for range 3 {
			w.reconnect(func() {})
			require.Equal(t, []string{"setWatches"}, w.took())
			require.False(t, a.isOver())
			now := before.Latest()
			require.True(t, now.IsCurrent())
			require.True(t, IsClosed(before.Newer()))
			require.Equal(t, []byte("0"), now.Data)
		}
		require.Same(t, before.Latest(), w.view())
		w.set("1")
		require.True(t, a.isOver())
		require.Equal(t, Changed, a.saw)
		require.Equal(t, 1, owned)
	})
}

// After a reconnect nothing is known of the node before the server has set the watch again.
func TestNoViewIsCurrentFromAReconnectUntilTheWatchIsSetAgain(t *testing.T) {
	inWatching(t, func(t *testing.T, w *watching) {
		v := w.view()
		a := w.await(v)
		w.srv.Next(1, zktest.Delay(2*time.Second), zktest.OpSetWatches)
		w.reconnect(func() {}) // and a second
		require.False(t, v.Latest().IsCurrent())
		require.NoError(t, w.srv.DeleteNode("/a")) // the server has no watch that it could fire
		require.False(t, a.isOver())
		time.Sleep(2 * time.Second)
		require.True(t, a.isOver())
		require.Equal(t, Gone, a.saw)
	})
}

func TestAReconnectWithAChangeFiresTheWatch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *watching)
		saw    State
	}{
		"written": {func(w *watching) { w.set("1") }, Changed},
		"deleted": {func(w *watching) { require.NoError(w.t, w.srv.DeleteNode("/a")) }, Gone},
	} {
		t.Run(name, func(t *testing.T) {
			inWatching(t, func(t *testing.T, w *watching) {
				a := w.await(w.view())
				w.reconnect(func() { c.change(w) })
				require.True(t, a.isOver())
				require.NoError(t, a.err)
				require.Equal(t, c.saw, a.saw)
			})
		})
	}
}

// A watch without waiters is not set again after a reconnect.
func TestAWatchIsForgottenWhenItsLastSubscriberHasLeft(t *testing.T) {
	inWatching(t, func(t *testing.T, w *watching) {
		v := w.view()
		v.Notify(ownerOf(func(State) { t.Error("the owner has left") }))
		ctx, leave := context.WithCancel(t.Context())
		_, err := v.Await(ctx, happened)
		require.ErrorIs(t, err, outcome.ErrGone)
		a := &awaiting{done: make(chan struct{})}
		go func() { // ends with its context
			defer close(a.done)
			a.saw, a.err = v.Await(ctx, nil)
		}()
		synctest.Wait()
		w.took()
		leave()
		require.True(t, a.isOver())
		require.ErrorIs(t, a.err, context.Canceled)
		w.reconnect(func() {})
		require.Equal(t, []string{"setWatches"}, w.took(), "for its owner")
		v.StopNotify()
		w.reconnect(func() {})
		require.Empty(t, w.took())
		require.Equal(t, Changed, v.Latest().State)
		client, server := w.liveWatches()
		require.Zero(t, client)
		require.Zero(t, server)
	})
}

func TestTheEndOfASessionFiresItsWatches(t *testing.T) {
	for name, end := range map[string]func(w *watching){
		"expired": func(w *watching) { w.srv.ExpireSession(w.s.ID) },
		"closed":  func(w *watching) { w.requests.Link.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inWatching(t, func(t *testing.T, w *watching) {
				v := w.view()
				var told []State
				v.Notify(ownerOf(func(saw State) { told = append(told, saw) }))
				children, err := w.WatchChildren(t.Context(), w.s, "/")
				require.NoError(t, err)
				waits := []*awaiting{w.await(v), w.await(children)}
				end(w)
				<-w.s.Over()
				for _, a := range waits {
					require.True(t, a.isOver())
					require.ErrorIs(t, a.err, outcome.ErrSessionOver)
				}
				require.Equal(t, []State{Changed}, told)
				_, err = w.Watch(t.Context(), w.s, "/a")
				require.ErrorIs(t, err, outcome.ErrSessionOver)
				client, _ := w.liveWatches()
				require.Zero(t, client)
			})
		})
	}
}

// A watch whose reply comes after the end of its session is maintained by nobody.
func TestAReplyAfterTheEndOfItsSessionFiresTheWatch(t *testing.T) {
	w, s := aWatch(t, Requested)
	watches := &watchTable{requests: &Requests{Calls: NewTasks()}, live: map[watchKey]*watch{w.key: w}}
	watches.dropSession(s)
	require.Equal(t, Requested, w.latest().State)
	watches.answered(w, View{Stat: new(zk.Stat)}, nil)
	require.Equal(t, Changed, w.latest().State)
	require.Empty(t, watches.live)
}

// Between the end of a watch and its removal, a new subscriber must not get it.
func TestAWatchThatHasEndedIsReplaced(t *testing.T) {
	for _, in := range []State{Refused, Changed, Gone} {
		w, s := aWatch(t, in)
		watches := &watchTable{requests: &Requests{Calls: NewTasks()}, live: map[watchKey]*watch{w.key: w}, keepers: map[*Session]struct{}{s: {}}}
		other, known, err := watches.liveOrNew(w.key, t.Context())
		require.NoError(t, err)
		require.False(t, known)
		require.NotSame(t, w, other)
		watches.drop(w)
		require.Same(t, other, watches.live[w.key], "another one")
	}
}
