// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// State is what a View says about its watch.
type State uint8

const (
	Requested State = iota // the server has not replied yet
	Set                    // the server has set the watch
	Refused                // the server has not set the watch: see View.Err
	Changed                // the watch has fired: the data or the children have changed, or may have
	Gone                   // the watch has fired: the node was deleted
)

// A View is what a watch shows of its node. It never changes. When the watch shows something else,
// it publishes another View and closes the channel that Newer returns.
//
// A watch is Requested, and then Refused or Set. When it has fired it is Changed or Gone. It is
// Set once more after each reconnect: its View then has the same reply and another connection. After
// Refused, Changed and Gone there is no other View, so a caller that waits for one asks again.
type View struct {
	State State
	Stat  *zk.Stat // of the reply that set the watch; nil before it
	Data  []byte   // of a data watch
	Names []string // of a children watch
	Err   error    // why the watch is Refused

	watch *watch
	on    *conn.Attachment // the connection on which the watch was last requested
	newer chan struct{}    // closed when there is a newer View; nil if there will be none
}

// Newer returns a channel that is closed when there is a newer View, or if there will be none.
func (v *View) Newer() <-chan struct{} {
	if v.State > Set {
		return happened
	}
	return v.newer
}

// Latest returns the newest View.
func (v *View) Latest() *View { return v.watch.latest() }

// IsOn reports whether the watch is on a node with that name.
func (v *View) IsOn(name string) bool { return node.BaseName(v.watch.key.path) == name }

// IsCurrent reports whether v is the newest View, and the watch is set and has not fired. In that case
// nothing had happened to the node before the last event or reply that the caller has seen, because
// each watch handles its events before anything that follows them on the connection. From a
// reconnect until the watch is set again, no View is current.
func (v *View) IsCurrent() bool {
	w := v.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view == v && w.state == Set && !v.on.HasEnded()
}

// Answered waits until the server has replied to the request that sets the watch, and returns a
// View that contains the reply.
func (v *View) Answered(ctx context.Context) (*View, error) {
	caller, client := ends(ctx)
	for v.State == Requested {
		select {
		case <-v.newer:
			v = v.Latest()
			continue
		case <-v.watch.key.sess.Over():
			return nil, outcome.ErrSessionOver
		case <-caller:
		case <-client:
		}
		return nil, endOf(ctx)
	}
	return v, v.Err
}

// Await waits until the watch fires, and returns Changed or Gone. If gone is closed first, it
// returns ErrGone; if the session ends, ErrSessionOver; and if ctx is done, its cause. The end of its
// session fires a watch, and closing the client wakes its waiters (see WakeAll), so Await needs no
// channels for these: each would cost every waiter a hundred bytes.
func (v *View) Await(ctx context.Context, gone <-chan struct{}) (State, error) {
	v.watch.addWaiters(1)
	defer v.watch.addWaiters(-1)
	caller, _ := ends(ctx)
	for v.State == Set && ctx.Err() == nil {
		select {
		case <-v.newer:
			v = v.Latest()
		case <-gone:
			return 0, outcome.ErrGone
		case <-caller:
			return 0, endOf(ctx)
		}
	}
	switch {
	case v.watch.key.sess.IsOver():
		return 0, outcome.ErrSessionOver
	case ctx.Err() != nil:
		return 0, endOf(ctx)
	}
	return v.State, nil
}

// An Owner is notified of what happens to a watch without a goroutine that waits: the owner of a
// watched node must not have one while nothing happens. Its methods must not wait.
type Owner interface {
	// Answered is called once the server has replied to the request that sets the watch, or once it
	// is known that the request was not sent: with a View that contains the reply, or the error.
	Answered(v *View)
	// Fired is called once when the watch fires, with what it has seen. The View that says so is
	// published after Fired has returned, so the hold of a node ends before another contender of
	// this client is granted the lock.
	Fired(saw State)
}

// AwaitAnswer has o.Answered called once the server has replied, at once if it has already.
func (v *View) AwaitAnswer(o Owner) {
	if now := v.watch.awaitAnswer(o); now != nil {
		o.Answered(now)
	}
}

// Notify has o.Fired called once when the watch fires, at once if it has already fired, and keeps the
// watch set until then. A watch has one owner at a time.
func (v *View) Notify(o Owner) {
	if fired := v.watch.setOwner(o); fired != 0 {
		o.Fired(fired)
	}
}

// StopNotify undoes AwaitAnswer and Notify.
func (v *View) StopNotify() { v.watch.setOwner(nil) }

type watchKey struct {
	sess     *Session
	path     string
	children bool // the watch is on the node's children, not on its data
}

// A watch is what all Views of one watch share.
//
// Invariants: while the view is Requested, state may already be Changed or Gone. From the reply on, state
// changes at most once, from Set. A watch whose state is Set is in watchTable.live. Of its Views, only the
// newest has an open channel newer, and only if that View is Requested or Set.
type watch struct {
	key watchKey

	mu sync.Mutex // guards the fields below
	// state is what is known of the watch. The View says it as well, except that it is Requested until the
	// reply although an event has overtaken that, and Set until the owner's Fired has returned.
	state   State
	view    *View // the newest; never nil
	owner   Owner // set by View.AwaitAnswer until the reply, and by View.Notify; nil if there is none, and once the watch has fired
	sure    int64 // the transaction up to which it has missed no change; zero before its first check
	waiters int32 // in Await; never negative
	checked bool  // whether the next round of checks checks it: see isDue
}

// newWatch returns a watch that is about to be requested.
func newWatch(key watchKey) *watch {
	w := &watch{key: key}
	w.view = &View{watch: w, on: key.sess.Attachment(), newer: make(chan struct{})}
	return w
}

func (w *watch) latest() *View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

// publish replaces the view, which is Requested or Set, by v in the watch's state. It must be called with
// mu held.
func (w *watch) publish(v View) {
	older := w.view
	v.watch, v.State, v.newer = w, w.state, nil
	if w.state == Set {
		v.newer = make(chan struct{})
	}
	w.view = &v
	close(older.newer)
}

// answered handles the server's reply to the request that sets the watch: a View of the node, or the
// reason why the watch is not set. It reports whether the watch is set and has not fired. It returns
// the owner that waits for the reply, or nil, and the View to pass to it.
func (w *watch) answered(now View, err error) (set bool, owner Owner, v *View) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now.on, now.Err = w.view.on, err
	switch {
	case err != nil:
		w.state = Refused
	case w.state != Requested: // it has fired
	case now.on.HasEnded(): // the watch will not be set again
		w.state = Changed
	default:
		w.state = Set
	}
	w.publish(now)
	owner, w.owner = w.owner, nil
	return w.state == Set, owner, w.view
}

// isOver reports whether the watch will show nothing else.
func (w *watch) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view.State != Requested && w.state != Set
}

// lapsed reports whether the connection on which the watch is set has ended, so that it must be set
// again. In that case since is the newest transaction whose event would have arrived on that
// connection.
func (w *watch) lapsed() (since int64, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != Set || !w.view.on.HasEnded() {
		return 0, false
	}
	return w.view.on.Seen(), true
}

// renewed handles the reply to the request that sets the watch again, which was sent on that
// attachment or a later one. It reports false if the watch must fire, because the server refuses to
// set it. If it was not set because the connection was lost, it stays lapsed, and is set again on the
// next one; if the session is over, dropSession fires it.
func (w *watch) renewed(on *conn.Attachment, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.state != Set || on.HasEnded() || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, outcome.ErrSessionOver):
	case err != nil:
		return false
	default:
		v := *w.view
		v.on = on
		w.publish(v)
	}
	return true
}

// fire records that the watch has fired, and reports whether it was set before. In that case it
// returns the owner, or nil, and the caller must call end. Before the server's reply fire only records
// what has happened: the event belongs to an earlier watch, or has overtaken the reply.
func (w *watch) fire(saw State) (owner Owner, fired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.state == Set:
		w.state = saw
		owner, w.owner = w.owner, nil
		return owner, true
	case w.view.State == Requested:
		w.state = saw
	}
	return nil, false
}

// wake publishes what the view shows already if somebody waits in Await.
func (w *watch) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == Set && w.waiters > 0 {
		w.publish(*w.view)
	}
}

// end publishes that the watch has fired.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.publish(*w.view)
}

// awaitAnswer sets the owner that waits for the reply. If the server has replied already, it returns
// the View and sets nothing.
func (w *watch) awaitAnswer(o Owner) *View {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.view.State != Requested {
		return w.view
	}
	w.owner = o
	return nil
}

// setOwner sets the owner, which may be nil. If the watch has already fired, setOwner returns what it
// has seen and sets nothing.
func (w *watch) setOwner(o Owner) (fired State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == Changed || w.state == Gone {
		return w.state
	}
	w.owner = o
	return 0
}

// addWaiters adds n waiters; n may be negative.
func (w *watch) addWaiters(n int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters += n
}

// isAwaited reports whether anybody waits until the watch fires.
func (w *watch) isAwaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters > 0 || w.owner != nil
}

// isDue counts a round of checks, and reports whether the watch should be checked in this round: in
// every second one, if it has waiters. Heartbeats check our own nodes. since is the transaction up to
// which it has missed no change, or zero if that is unknown.
func (w *watch) isDue() (since int64, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	due = w.checked
	w.checked = !w.checked
	if !due || w.state != Set || w.view.on.HasEnded() {
		return 0, false
	}
	return w.sure, w.key.children || w.waiters > 0
}

// confirm records that the watch has missed no change up to the transaction now.
func (w *watch) confirm(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sure = now
}

// isAs reports whether a node with that stat is as the watch has shown it. The number of children
// shows changes that Pzxid does not show once the directory's counter is at its maximum.
func (w *watch) isAs(now *zk.Stat) bool {
	was := w.latest().Stat
	if w.key.children {
		return now.Czxid == was.Czxid && now.Pzxid == was.Pzxid && now.NumChildren == was.NumChildren
	}
	return now.Czxid == was.Czxid && now.Mzxid == was.Mzxid
}

// isListed reports whether a SetWatches request notices every change. It does not for the children
// of a directory whose counter is at its maximum: creating a child then leaves Pzxid as it was. The
// shown counter is negative from half the maximum on.
func (w *watch) isListed() bool { return !w.key.children || w.latest().Stat.Cversion >= 0 }
