package session

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// aWatch returns a watch in that state, on a connection that has not changed until moved is closed.
func aWatch(t *testing.T, in watchState) (w *NodeWatch, moved chan struct{}) {
	t.Helper()
	moved = make(chan struct{})
	w = &NodeWatch{key: watchKey{sess: new(conn.Session), path: "/a"}, moved: moved}
	if in != setting {
		require.Zero(t, w.answered(seen{Stat: new(zk.Stat)}, nil))
	}
	switch in {
	case renewing:
		w.moved = happened
		require.True(t, w.lapse())
		w.moved = moved
	case ended:
		w.fire(NodeGone)
	}
	require.Equal(t, in, w.state)
	return w, moved
}

func TestAWatchChangesItsStateAsItsTableSays(t *testing.T) {
	answered := func(w *NodeWatch) { w.answered(seen{}, nil) }
	refused := func(w *NodeWatch) { w.answered(seen{}, zk.ErrNoNode) }
	lapse := func(w *NodeWatch) { w.moved = happened; w.lapse() }
	renewed := func(w *NodeWatch) { w.renewed(seen{Stat: new(zk.Stat)}, nil) }
	fire := func(w *NodeWatch) { w.fire(NodeChanged) }
	for name, c := range map[string]struct {
		does func(*NodeWatch)
		then [4]watchState // what becomes of a watch that is setting, standing, renewing, ended
	}{
		"answered": {answered, [4]watchState{standing, standing, renewing, ended}},
		"refused":  {refused, [4]watchState{ended, standing, renewing, ended}},
		"lapse":    {lapse, [4]watchState{setting, renewing, renewing, ended}},
		"renewed":  {renewed, [4]watchState{setting, standing, standing, ended}},
		"fire":     {fire, [4]watchState{setting, ended, ended, ended}},
	} {
		for _, from := range []watchState{setting, standing, renewing, ended} {
			w, _ := aWatch(t, from)
			w.Stat = new(zk.Stat)
			c.does(w)
			assert.Equal(t, c.then[from], w.state, "%s in state %d", name, from)
		}
	}
}

func TestWhatHappensBeforeTheAnswerIsNotLost(t *testing.T) {
	w, _ := aWatch(t, setting)
	require.False(t, w.isAnswered(NodeGone)) // its event has overtaken the answer
	assert.Equal(t, NodeGone, w.answered(seen{}, nil))

	w, moved := aWatch(t, setting)
	close(moved)
	assert.Equal(t, NodeChanged, w.answered(seen{}, nil), "nobody has set it anew on the next connection")

	w, _ = aWatch(t, renewing)
	require.False(t, w.isAnswered(NodeChanged))
	assert.Equal(t, NodeChanged, w.renewed(seen{Stat: new(zk.Stat)}, nil))

	w, moved = aWatch(t, renewing)
	close(moved)
	assert.Equal(t, NodeChanged, w.renewed(seen{Stat: new(zk.Stat)}, nil))
}

func TestAWatchThatIsSetAnewComparesWhatItShows(t *testing.T) {
	for _, c := range []struct {
		now  seen
		err  error
		then Change
	}{
		{seen{Stat: new(zk.Stat)}, nil, 0},
		{seen{Stat: &zk.Stat{Mzxid: 1}}, nil, NodeChanged},
		{seen{Stat: new(zk.Stat), Names: []string{"a"}}, nil, NodeChanged},
		{seen{}, zk.ErrNoNode, NodeGone},
		{seen{}, zk.ErrConnectionClosed, NodeChanged},
	} {
		w, _ := aWatch(t, renewing)
		quiet, anew := w.IsQuiet()
		require.False(t, quiet)
		assert.Equal(t, c.then, w.renewed(c.now, c.err))
		quiet, _ = w.IsQuiet()
		assert.Equal(t, c.then == 0, quiet)
		assert.Equal(t, c.then == 0, IsClosed(anew))
	}
}

func TestAWatchLapsesOnlyWithItsConnection(t *testing.T) {
	w, moved := aWatch(t, standing)
	assert.False(t, w.lapse())
	close(moved)
	quiet, _ := w.IsQuiet()
	assert.False(t, quiet)
	assert.True(t, w.lapse())
	assert.False(t, w.lapse(), "it is being set anew")
}

func TestAnEventSaysToEachWatchWhatConcernsIt(t *testing.T) {
	for kind, says := range map[frames.EventKind][2]Change{ // to a watch on data, and on children
		frames.NodeDeleted:     {NodeGone, NodeGone},
		frames.DataChanged:     {NodeChanged, 0},
		frames.ChildrenChanged: {0, NodeChanged},
		1:                      {0, 0}, // created
	} {
		assert.Equal(t, says, [2]Change{changeOf(kind, false), changeOf(kind, true)}, "kind %d", kind)
	}
}

func TestOnlyTheFirstEndOfAWatchIsTold(t *testing.T) {
	w, _ := aWatch(t, standing)
	told := 0
	require.True(t, w.WhenFired(func() { told++ }))
	then, fired := w.fire(NodeGone)
	require.True(t, fired)
	then()
	_, fired = w.fire(NodeChanged)
	assert.False(t, fired)
	assert.Equal(t, 1, told)
	assert.Equal(t, NodeGone, w.Saw)
	assert.False(t, w.WhenFired(func() {}))
	assert.False(t, w.NeverMind())
}

func TestARefusedWatchTellsWhyAndIsNotCompared(t *testing.T) {
	w, _ := aWatch(t, setting)
	assert.Zero(t, w.answered(seen{}, zk.ErrNoNode))
	assert.ErrorIs(t, w.Answered(t.Context(), w.key.sess), zk.ErrNoNode)
	w.await(2)
	for range 4 {
		assert.False(t, w.isDue())
	}
}

func TestAWatchIsComparedWhileSomebodyDependsOnIt(t *testing.T) {
	due := func(w *NodeWatch) (due int) {
		for range 4 {
			if w.isDue() {
				due++
			}
		}
		return due
	}
	w, _ := aWatch(t, standing)
	assert.Zero(t, due(w))
	w.WhenFired(func() {})
	assert.Zero(t, due(w), "heartbeats look after our own node")
	w.await(1)
	assert.Equal(t, 2, due(w))
	w.NeverMind()
	assert.Equal(t, 2, due(w))
	w.fire(NodeChanged)
	assert.Zero(t, due(w))
}

func TestAWaiterForAWatchIsCountedWhileItWaits(t *testing.T) {
	w, _ := aWatch(t, standing)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(outcome.ErrClosed)
	_, err := w.Await(ctx, nil)
	assert.ErrorIs(t, err, outcome.ErrClosed)
	assert.False(t, w.isAwaited())
}
