package session

import (
	"context"
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
//	state     while                                        changes by  to        when
//	setting   the server has not answered                  answered    attended  it has set the watch
//	                                                                   ended     it has refused
//	attended  a goroutine looks what has happened          rest        resting   nothing has
//	                                                       fire        ended     something has
//	resting   nobody looks, and nothing has happened       wake        attended  an event of the node has passed on the wire, the
//	                                                                             connection has changed, the session has ended, or
//	                                                                             a comparison shows that an event was lost
//	ended     it has fired, or will never
//
// Fields without a guard are set before ready or Fired, and never again.
type NodeWatch struct {
	key   watchKey
	ready Latch // the server has answered
	seen
	err error

	missed Latch  // an event of it was lost: see compare
	Fired  Latch  // not for a watch that was refused
	found  Change // set before missed
	Saw    Change // set before Fired

	mu        sync.Mutex      // guards what follows
	state     watchState      // changed by step
	disturbed bool            // an event of the node may have passed since the watch was last asked for, so it must not rest
	awaited   int32           // the number of waiters
	then      func()          // what WhenFired has asked for; nil for nothing
	events    <-chan zk.Event // of the watch as it was last set
	moved     <-chan struct{} // closed when the connection has changed since then
	renewed   chan struct{}   // closed when the watch is set anew; nil while nobody waits for that
	rounds    int32           // of comparisons: see isDue
}

// watchState is the state of a NodeWatch.
type watchState uint8

const (
	setting watchState = iota
	attended
	resting
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

// answered takes the server's answer to the request that sets the watch, and reports whether it is
// set. moved is closed when the connection has changed since before that request.
func (w *NodeWatch) answered(now seen, events <-chan zk.Event, moved <-chan struct{}, err error) bool {
	defer w.ready.Set()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; err != nil {
		w.step(setting, ended)
		return false
	}
	w.seen, w.events, w.moved = now, events, moved
	return w.step(setting, attended)
}

// rest reports whether nothing has happened to the watch. Then the caller may leave it alone: what
// happens wakes it. After closed nobody would.
func (w *NodeWatch) rest(closed <-chan struct{}) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.disturbed && !IsClosed(w.moved) && !w.key.sess.IsOver() && !IsClosed(closed) && w.step(attended, resting)
}

// wake reports whether the watch has rested until now, and the caller has to have it looked after.
// disturbed means that something may have happened to its node.
func (w *NodeWatch) wake(disturbed bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disturbed = w.disturbed || disturbed
	return w.step(resting, attended)
}

// fire ends the watch, and tells those who wait for that.
func (w *NodeWatch) fire(saw Change) {
	w.mu.Lock()
	var then func()
	if w.step(attended, ended) {
		w.Saw, then, w.then = saw, w.then, nil
		w.Fired.Set()
	}
	w.mu.Unlock()
	if then != nil {
		then()
	}
}

// forget forgets what has happened to a watch that is about to be set anew.
func (w *NodeWatch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disturbed = false
}

// renew takes the channels of a watch that was set anew.
func (w *NodeWatch) renew(events <-chan zk.Event, moved <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.moved = events, moved
	if w.renewed != nil {
		close(w.renewed)
		w.renewed = nil
	}
}

func (w *NodeWatch) latest() (events <-chan zk.Event, moved <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events, w.moved
}

// IsOn reports whether the watch is on a node of that name.
func (w *NodeWatch) IsOn(name string) bool { return node.BaseName(w.key.path) == name }

// Answered waits until the server has answered the request that sets the watch.
func (w *NodeWatch) Answered(ctx context.Context, s *Session) error {
	select {
	case <-w.ready.Done():
		return w.err
	case <-s.Over():
		return outcome.ErrSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// IsQuiet reports whether the watch has not fired, so that nothing had happened to the node
// before the last event or answer that the caller has seen. The client library delivers the
// events of one connection in their order: an earlier event is in the watch's channel by
// then, even if the goroutine that waits for it has not received it yet.
//
// After a reconnect IsQuiet reports false until the watch is set anew, which closes renewed.
func (w *NodeWatch) IsQuiet() (quiet bool, renewed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.events: // look finds the channel closed
	default:
		if !IsClosed(w.moved) && !w.missed.IsSet() {
			return true, nil
		}
	}
	if w.renewed == nil {
		w.renewed = make(chan struct{})
	}
	return false, w.renewed
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
// the session ends ErrSessionOver, and if ctx ends its cause. The end of its session fires a watch. Each
// further channel here would cost every waiter a hundred bytes.
func (w *NodeWatch) Await(ctx context.Context, gone <-chan struct{}) (Change, error) {
	w.await(1)
	defer w.await(-1)
	select {
	case <-w.Fired.Done():
		if w.key.sess.IsOver() {
			return 0, outcome.ErrSessionOver
		}
		return w.Saw, nil
	case <-gone:
		return 0, outcome.ErrGone
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
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
	if w.rounds%2 != 0 || w.state == setting || w.state == ended || w.missed.IsSet() {
		return false
	}
	return w.key.children || w.awaited > 1 || w.awaited == 1 && w.then == nil
}
