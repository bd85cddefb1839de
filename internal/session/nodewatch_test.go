package session

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/outcome"
)

// aWatch returns a watch in that state, on a connection that has not changed.
func aWatch(t *testing.T, in watchState) (w *NodeWatch, moved chan struct{}) {
	t.Helper()
	moved = make(chan struct{})
	w = &NodeWatch{key: watchKey{sess: new(conn.Session), path: "/a"}}
	if in != setting {
		require.True(t, w.answered(seen{}, make(chan zk.Event, 1), moved, nil))
	}
	switch in {
	case resting:
		require.True(t, w.rest(nil))
	case ended:
		w.fire(NodeGone)
	}
	require.Equal(t, in, w.state)
	return w, moved
}

func TestAWatchChangesItsStateAsItsTableSays(t *testing.T) {
	answered := func(w *NodeWatch) { w.answered(seen{}, nil, nil, nil) }
	refused := func(w *NodeWatch) { w.answered(seen{}, nil, nil, zk.ErrNoNode) }
	rest := func(w *NodeWatch) { w.rest(nil) }
	wake := func(w *NodeWatch) { w.wake(true) }
	fire := func(w *NodeWatch) { w.fire(NodeChanged) }
	for name, c := range map[string]struct {
		does func(*NodeWatch)
		then [4]watchState // what becomes of a watch that is setting, attended, resting, ended
	}{
		"answered": {answered, [4]watchState{attended, attended, resting, ended}},
		"refused":  {refused, [4]watchState{ended, attended, resting, ended}},
		"rest":     {rest, [4]watchState{setting, resting, resting, ended}},
		"wake":     {wake, [4]watchState{setting, attended, attended, ended}},
		"fire":     {fire, [4]watchState{setting, ended, resting, ended}},
	} {
		for _, from := range []watchState{setting, attended, resting, ended} {
			w, _ := aWatch(t, from)
			c.does(w)
			assert.Equal(t, c.then[from], w.state, "%s in state %d", name, from)
		}
	}
}

func TestAWatchRestsOnlyWhileWhatHappensWouldWakeIt(t *testing.T) {
	w, _ := aWatch(t, setting)
	w.wake(true) // its event has overtaken the answer
	require.True(t, w.answered(seen{}, nil, nil, nil))
	assert.False(t, w.rest(nil))
	w.forget()
	assert.True(t, w.rest(nil))

	w, moved := aWatch(t, attended)
	close(moved)
	assert.False(t, w.rest(nil), "its connection has changed")

	w, _ = aWatch(t, attended)
	assert.False(t, w.rest(happened), "nobody looks after those that rest")
}

func TestOnlyTheFirstEndOfAWatchIsTold(t *testing.T) {
	w, _ := aWatch(t, attended)
	told := 0
	require.True(t, w.WhenFired(func() { told++ }))
	w.fire(NodeGone)
	w.fire(NodeChanged)
	assert.Equal(t, 1, told)
	assert.Equal(t, NodeGone, w.Saw)
	assert.False(t, w.WhenFired(func() {}))
	assert.False(t, w.NeverMind())
}

func TestARefusedWatchTellsWhyAndIsNotCompared(t *testing.T) {
	w, _ := aWatch(t, setting)
	assert.False(t, w.answered(seen{}, nil, nil, zk.ErrNoNode))
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
	w, _ := aWatch(t, resting)
	assert.Zero(t, due(w))
	w.WhenFired(func() {})
	assert.Zero(t, due(w), "heartbeats look after our own node")
	w.await(1)
	assert.Equal(t, 2, due(w))
	w.NeverMind()
	assert.Equal(t, 2, due(w))
	w.missed.Set()
	assert.Zero(t, due(w))
}

func TestAWaiterForAWatchIsCountedWhileItWaits(t *testing.T) {
	w, _ := aWatch(t, resting)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(outcome.ErrClosed)
	_, err := w.Await(ctx, nil)
	assert.ErrorIs(t, err, outcome.ErrClosed)
	assert.False(t, w.isAwaited())
}
