// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// lapsed is the stage of a watch that was set on an earlier connection.
const lapsed = Gone + 1

// aWatch returns a watch in that state, on a session whose connection has not changed.
func aWatch(t *testing.T, in State) (w *watch, s *conn.Session) {
	t.Helper()
	s = conn.NewSession(7, nil)
	w = newWatch(watchKey{sess: s, path: "/a"})
	switch in {
	case Requested:
	case Refused:
		require.False(t, isSetBy(w, View{}, zk.ErrNoNode))
	default:
		require.True(t, isSetBy(w, View{Stat: new(zk.Stat)}, nil))
	}
	switch in {
	case lapsed:
		s.Reattach()
	case Changed, Gone:
		fireNow(w, in)
	}
	require.Equal(t, in, stageOf(w))
	return w, s
}

// stageOf returns the state of a watch, or lapsed.
func stageOf(w *watch) State {
	if _, yes := w.lapsed(); yes {
		return lapsed
	}
	return w.view.State
}

// fireNow fires a watch without an owner.
func fireNow(w *watch, saw State) {
	if _, fired := w.fire(saw); fired {
		w.end()
	}
}

func TestAWatchChangesItsState(t *testing.T) {
	reattach := func(_ *watch, s *conn.Session) { s.Reattach() }
	renewed := func(w *watch, s *conn.Session) { w.renewed(s.Attachment(), nil) }
	lost := func(w *watch, s *conn.Session) { w.renewed(s.Attachment(), zk.ErrConnectionClosed) }
	fire := func(w *watch, _ *conn.Session) { fireNow(w, Changed) }
	from := []State{Requested, Set, lapsed, Refused, Gone}
	for name, c := range map[string]struct {
		does func(*watch, *conn.Session)
		then []State // for each of from
	}{
		"reattach": {reattach, []State{Requested, lapsed, lapsed, Refused, Gone}},
		"renewed":  {renewed, []State{Requested, Set, Set, Refused, Gone}},
		"lost":     {lost, []State{Requested, Set, lapsed, Refused, Gone}},
		"fire":     {fire, []State{Requested, Changed, Changed, Refused, Gone}},
	} {
		for i, state := range from {
			w, s := aWatch(t, state)
			c.does(w, s)
			assert.Equal(t, c.then[i], stageOf(w), "%s in state %d", name, state)
			assert.Equal(t, c.then[i] != Requested && c.then[i] != Set && c.then[i] != lapsed, w.isOver())
		}
	}
}

// The keeper knows a watch before it is set.
// A caller that waits for a newer View must not wait for one that never comes.
func TestNewerIsClosedIfNoViewFollows(t *testing.T) {
	for _, in := range []State{Requested, Set, Refused, Changed, Gone} {
		w, _ := aWatch(t, in)
		require.Equal(t, in > Set, IsClosed(w.latest().Newer()), "state %d", in)
	}
}

func TestAWatchThatIsNotRequestedYetDoesNotLapse(t *testing.T) {
	w, s := aWatch(t, Requested)
	s.Reattach()
	_, yes := w.lapsed()
	require.False(t, yes)
	require.False(t, isSetBy(w, View{Stat: new(zk.Stat)}, nil), "it may have been set on either connection")
	require.Equal(t, Changed, w.latest().State)
}

func TestAChangeBeforeTheReplyIsNotLost(t *testing.T) {
	w, _ := aWatch(t, Requested)
	asked := w.latest()
	_, fired := w.fire(Gone) // its event has overtaken the reply
	require.False(t, fired)
	require.False(t, isSetBy(w, View{Data: []byte("x")}, nil))
	require.Equal(t, Gone, w.latest().State)
	v, err := asked.Answered(t.Context())
	require.NoError(t, err)
	require.Equal(t, []byte("x"), v.Data)
	saw, err := v.Await(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, Gone, saw)

	w, s := aWatch(t, lapsed)
	_, fired = w.fire(Changed)
	require.True(t, fired)
	require.True(t, w.renewed(s.Attachment(), nil))
	require.False(t, w.latest().IsCurrent())
}

func TestAWatchThatIsSetAgainIsCurrentAgain(t *testing.T) {
	for _, c := range []struct {
		err     error
		ok, set bool
	}{
		{nil, true, true},
		{zk.ErrConnectionClosed, true, false},
		{outcome.ErrSessionOver, true, false},
		{frames.ErrUnimplemented, false, false},
		{frames.ErrThrottled, false, false},
		{outcome.ErrClosed, false, false},
	} {
		w, s := aWatch(t, lapsed)
		before := w.latest()
		require.False(t, before.IsCurrent())
		assert.Equal(t, c.ok, w.renewed(s.Attachment(), c.err))
		assert.Equal(t, c.set, before.Latest().IsCurrent())
		assert.Equal(t, c.set, IsClosed(before.Newer()))
		assert.Same(t, before.Stat, before.Latest().Stat)
	}
}

// If the connection is lost before the reply, the watch is set on the next one, for changes since
// the connection on which it was last set.
func TestAWatchIsSetAgainUntilAConnectionLastsLongEnough(t *testing.T) {
	w, s := aWatch(t, Set)
	s.Saw(3)
	s.Reattach()
	assert.False(t, w.latest().IsCurrent())
	for i, renew := range []func() bool{
		func() bool { return w.renewed(s.Attachment(), zk.ErrConnectionClosed) },
		func() bool {
			on := s.Attachment()
			s.Reattach() // before the reply is handled
			return w.renewed(on, nil)
		},
		func() bool { return w.renewed(s.Attachment(), nil) },
	} {
		since, yes := w.lapsed()
		require.True(t, yes)
		assert.Equal(t, int64(3), since)
		assert.True(t, renew())
		assert.Equal(t, i == 2, w.latest().IsCurrent())
		s.Saw(8)
		s.Reattach()
	}
	since, _ := w.lapsed()
	assert.Equal(t, int64(8), since)
}

// Whoever has checked a View waits for the end of that View: nothing can happen in between that it
// does not learn of.
func TestNoChangeIsMissedBetweenACheckAndAWait(t *testing.T) {
	w, s := aWatch(t, Requested)
	checked := w.latest()
	require.True(t, isSetBy(w, View{Stat: new(zk.Stat)}, nil))
	require.True(t, IsClosed(checked.Newer()))
	require.False(t, checked.IsCurrent(), "it has not shown the node")
	checked = w.latest()
	require.True(t, checked.IsCurrent())
	s.Reattach()
	w.renewed(s.Attachment(), nil)
	require.True(t, IsClosed(checked.Newer()))
	require.False(t, checked.IsCurrent(), "it is of another connection")

	checked = w.latest()
	require.True(t, checked.IsCurrent())
	fireNow(w, Gone)
	require.True(t, IsClosed(checked.Newer()))
	saw, err := checked.Await(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, Gone, saw)
	require.Equal(t, Set, checked.State, "a View never changes")
}

// A waiter sleeps on through the reconnects in which nothing has happened to the node.
func TestAWaiterWaitsForTheEndOfItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := aWatch(t, Set)
		over := false
		go func() { // ends when the watch has fired
			saw, err := w.latest().Await(t.Context(), nil)
			assert.NoError(t, err)
			assert.Equal(t, Gone, saw)
			over = true
		}()
		for range 3 {
			synctest.Wait()
			require.True(t, w.isAwaited())
			s.Reattach()
			require.True(t, w.renewed(s.Attachment(), nil))
		}
		synctest.Wait()
		require.False(t, over)
		fireNow(w, Gone)
		synctest.Wait()
		require.True(t, over)
		require.False(t, w.isAwaited())
	})
}

func TestAnEventAffectsOnlyTheWatchesOfItsKind(t *testing.T) {
	for kind, says := range map[frames.EventKind][2]State{ // to a watch on data, and on children
		frames.NodeDeleted:     {Gone, Gone},
		frames.DataChanged:     {Changed, 0},
		frames.ChildrenChanged: {0, Changed},
		1:                      {0, 0}, // created
	} {
		assert.Equal(t, says, [2]State{changeOf(kind, false), changeOf(kind, true)}, "kind %d", kind)
	}
}

// testOwner records the calls of its methods.
type testOwner struct {
	answers []*View
	fired   func(State)
}

func ownerOf(fired func(State)) *testOwner { return &testOwner{fired: fired} }

func (o *testOwner) Answered(v *View) { o.answers = append(o.answers, v) }
func (o *testOwner) Fired(saw State)  { o.fired(saw) }

func TestAnOwnerGetsTheReply(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		fired State
		want  State
	}{
		"set":     {nil, 0, Set},
		"refused": {zk.ErrNoNode, 0, Refused},
		"fired":   {nil, Gone, Gone},
	} {
		w, _ := aWatch(t, Requested)
		o := ownerOf(func(State) { t.Error("the watch has not been set") })
		w.latest().AwaitAnswer(o)
		if c.fired != 0 {
			_, fired := w.fire(c.fired)
			require.False(t, fired, name)
		}
		require.Empty(t, o.answers, name)
		_, owner, v := w.answered(View{}, c.err)
		require.Same(t, o, owner, name)
		require.Equal(t, c.want, v.State, name)
		require.Same(t, w.latest(), v, name)
		w.latest().AwaitAnswer(o)
		require.Equal(t, []*View{v}, o.answers, "at once: "+name)
	}
	w, _ := aWatch(t, Requested)
	w.latest().AwaitAnswer(ownerOf(nil))
	w.latest().StopNotify()
	_, owner, _ := w.answered(View{}, nil)
	require.Nil(t, owner)
}

func TestAnOwnerIsNotifiedOnceByItsWatch(t *testing.T) {
	w, _ := aWatch(t, Set)
	var told []State
	notify := func(saw State) { told = append(told, saw) }
	w.latest().Notify(ownerOf(notify))
	owner, fired := w.fire(Gone)
	require.True(t, fired)
	owner.Fired(Gone)
	_, fired = w.fire(Changed)
	assert.False(t, fired)
	assert.False(t, w.latest().IsCurrent(), "it has fired, though no View says so yet")
	w.latest().Notify(ownerOf(notify))
	assert.Equal(t, []State{Gone, Gone}, told, "the second time at once")
	w.end()
	assert.Equal(t, Gone, w.latest().State)

	w, _ = aWatch(t, Set)
	w.latest().Notify(ownerOf(notify))
	w.latest().StopNotify()
	owner, fired = w.fire(Gone)
	assert.True(t, fired)
	assert.Nil(t, owner)
}

func TestARefusedWatchReturnsTheErrorAndIsNotCompared(t *testing.T) {
	w, _ := aWatch(t, Refused)
	v, err := w.latest().Answered(t.Context())
	assert.ErrorIs(t, err, zk.ErrNoNode)
	assert.Equal(t, Refused, v.State)
	w.addWaiters(2)
	for range 4 {
		_, due := w.isDue()
		assert.False(t, due)
	}
}

func TestAWatchIsComparedWhileACallerDependsOnIt(t *testing.T) {
	due := func(w *watch) (due int) {
		for range 4 {
			if _, yes := w.isDue(); yes {
				due++
			}
		}
		return due
	}
	w, _ := aWatch(t, Set)
	assert.Zero(t, due(w))
	w.latest().Notify(ownerOf(func(State) {}))
	assert.Zero(t, due(w), "heartbeats look after our own node")
	w.addWaiters(1)
	assert.Equal(t, 2, due(w))
	w.latest().StopNotify()
	assert.Equal(t, 2, due(w))
	w.fire(Changed)
	assert.Zero(t, due(w))
}

func TestAWaiterForAWatchIsCountedWhileItWaits(t *testing.T) {
	w, _ := aWatch(t, Set)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(outcome.ErrClosed)
	_, err := w.latest().Await(ctx, nil)
	assert.ErrorIs(t, err, outcome.ErrClosed)
	assert.False(t, w.isAwaited())
}

// isSetBy reports whether a reply sets a watch.
func isSetBy(w *watch, reply View, err error) bool {
	set, _, _ := w.answered(reply, err)
	return set
}
