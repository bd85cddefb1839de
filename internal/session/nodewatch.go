package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Change is what a watch has seen.
type Change uint8

const (
	NodeGone    Change = iota + 1
	NodeChanged        // the data or the children have changed, or may have: look again
)

type watchKey struct {
	sess     *Session
	path     string
	children bool // the watch is on those of the node, and not on its data
}

// seen is what a server answered when it set a watch.
type seen struct {
	Stat  *zk.Stat
	Data  []byte   // of a data watch
	Names []string // of a watch on children
}

// NodeWatch is a watch on a node that existed when the watch was set: on its data, or on its
// children. It is in one of these states:
//
//	state     while                              changes by  to        when
//	setting   the server has not answered        answered    standing  it has set the watch
//	                                                         ended     it has refused
//	standing  nothing has happened to the node   lapse       renewing  the connection has changed
//	                                             fire        ended     something has happened, or may have
//	renewing  the server has not answered again  renewed     standing  it has set the watch anew, and nothing has happened meanwhile
//	                                             fire        ended     something has, or may have
//	ended     it has fired, or will never
//
// Fields without a guard are set before ready or Fired, and never again.
type NodeWatch struct {
	key   watchKey
	ready Latch // the server has answered
	seen
	err error

	Fired Latch  // not for a watch that was refused
	Saw   Change // set before Fired

	mu      sync.Mutex      // guards what follows
	state   watchState      // changed by step
	early   Change          // what an event has said before the server has answered; zero for nothing
	awaited int32           // the number of waiters
	then    func()          // what WhenFired has asked for; nil for nothing
	moved   <-chan struct{} // closed when the connection has changed since the watch was last asked for
	anew    chan struct{}   // closed when the watch is set anew; nil while nobody waits for that
	rounds  int32           // of comparisons: see isDue
}

// watchState is the state of a NodeWatch.
type watchState uint8

const (
	setting watchState = iota
	standing
	renewing
	ended
)

// step changes the state if it is from, and reports whether it was. It must be called with mu held.
func (w *NodeWatch) step(from, to watchState) bool {
	if w.state != from {
		return false
	}
	w.state = to
	return true
}

// asks notes that the watch is asked for on the present connection.
func (w *NodeWatch) asks() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved = w.key.sess.Reattached()
}

// answered takes the server's answer to the request that sets the watch. It returns what has happened to the node
// meanwhile, zero for nothing.
func (w *NodeWatch) answered(now seen, err error) Change {
	defer w.ready.Set()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; err != nil {
		w.step(setting, ended)
		return 0
	}
	w.seen = now
	w.step(setting, standing)
	return w.meanwhile()
}

// meanwhile returns what has happened to the node, or may have, since the watch was asked for. It must be called with mu held.
func (w *NodeWatch) meanwhile() Change {
	if w.early == 0 && IsClosed(w.moved) {
		return NodeChanged // nobody sets it anew
	}
	return w.early
}

// isAnswered reports whether the server has answered the request that sets the watch. If it has not, the
// watch remembers what an event has said: that belongs to a watch that was set before, or has overtaken the answer.
func (w *NodeWatch) isAnswered(saw Change) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == setting || w.state == renewing {
		w.early = saw
		return false
	}
	return true
}

// lapse notes that the watch does not stand any more if the connection has changed, and reports whether it is to be set anew.
func (w *NodeWatch) lapse() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return IsClosed(w.moved) && w.step(standing, renewing)
}

// renewed takes the server's answer to the request that sets the watch anew. It returns what has happened to the node,
// or may have, zero for nothing.
func (w *NodeWatch) renewed(now seen, err error) Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return NodeGone
	case err != nil || now.Stat.Mzxid != w.Stat.Mzxid || !slices.Equal(now.Names, w.Names):
		return NodeChanged
	}
	saw := w.meanwhile()
	if saw == 0 && w.step(renewing, standing) && w.anew != nil {
		close(w.anew)
		w.anew = nil
	}
	return saw
}

// fire ends the watch if the server has answered for it, and reports whether it has. It returns what WhenFired has asked for,
// nil for nothing. Those who wait are told then, or by the caller after that: our own node's holder is told of its end
// before another of this client is granted what it has held.
func (w *NodeWatch) fire(saw Change) (then func(), fired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.step(standing, ended) && !w.step(renewing, ended) {
		return nil, false
	}
	w.Saw, then, w.then = saw, w.then, nil
	if then == nil {
		w.Fired.Set()
	}
	return then, true
}

// IsOn reports whether the watch is on a node of that name.
func (w *NodeWatch) IsOn(name string) bool { return node.BaseName(w.key.path) == name }

// Answered waits until the server has answered the request that sets the watch.
func (w *NodeWatch) Answered(ctx context.Context, s *Session) error {
	caller, client := ends(ctx)
	select {
	case <-w.ready.Done():
		return w.err
	case <-s.Over():
		return outcome.ErrSessionOver
	case <-caller:
	case <-client:
	}
	return endOf(ctx)
}

// IsQuiet reports whether the watch has not fired, so that nothing had happened to the node
// before the last event or answer that the caller has seen: each watch takes its events before what comes
// after them on the connection.
//
// After a reconnect IsQuiet reports false until the watch is set anew, which closes anew.
func (w *NodeWatch) IsQuiet() (quiet bool, anew <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == standing && !IsClosed(w.moved) {
		return true, nil
	}
	if w.anew == nil {
		w.anew = make(chan struct{})
	}
	return false, w.anew
}

// WhenFired has fn called, which must not wait, when the watch fires, and counts as a waiter until
// then. It reports false if the watch has fired. There is one such waiter at a time.
func (w *NodeWatch) WhenFired(fn func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == ended {
		return false
	}
	w.then = fn
	w.awaited++
	return true
}

// NeverMind takes back what WhenFired was asked for, and reports true unless it has happened.
func (w *NodeWatch) NeverMind() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.then == nil {
		return false
	}
	w.then = nil
	w.awaited--
	return true
}

// Await waits until the watched node changes. If gone is closed first it returns ErrGone, if
// the session ends ErrSessionOver, and if ctx ends its cause. The end of its session fires a watch, and so does
// the client's. Each further channel here would cost every waiter a hundred bytes.
func (w *NodeWatch) Await(ctx context.Context, gone <-chan struct{}) (Change, error) {
	w.await(1)
	defer w.await(-1)
	caller, _ := ends(ctx)
	select {
	case <-w.Fired.Done():
	case <-gone:
		return 0, outcome.ErrGone
	case <-caller:
		return 0, endOf(ctx)
	}
	switch {
	case w.key.sess.IsOver():
		return 0, outcome.ErrSessionOver
	case ctx.Err() != nil:
		return 0, endOf(ctx)
	}
	return w.Saw, nil
}

// await counts n more waiters.
func (w *NodeWatch) await(n int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited += n
}

// isAwaited reports whether anybody waits for the watch.
func (w *NodeWatch) isAwaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awaited > 0
}

// isDue counts a round of comparisons. It reports whether the watch is to be compared in it: in its
// second round and in every other from then on, if anybody has to learn of a change by this watch
// alone. Heartbeats look after our own nodes.
func (w *NodeWatch) isDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds++
	if w.rounds%2 != 0 || w.state != standing {
		return false
	}
	return w.key.children || w.awaited > 1 || w.awaited == 1 && w.then == nil
}
