// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// aloneGrace is how long a contender that found the queue empty may hold before it watches its own
// node, so a lock that is released immediately costs no watch. A contender that sees other
// contenders, or last saw its own node longer ago, watches it before it holds.
const aloneGrace = 10 * time.Millisecond

// selfWatch watches a node of ours: its deletion ends the hold, and its data may carry a revocation
// request. When the watch has fired, selfWatch sets another one, until the node is gone or stop is
// called. It has a goroutine only after an error, or while it handles data that others have written.
type selfWatch struct {
	engine *Engine
	node   *session.OwnNode
	begin  atomic.Pointer[time.Timer]   // starts it; nil if it begins at once
	view   atomic.Pointer[session.View] // of the last watch, which may have fired; nil before the first
	left   atomic.Bool                  // stop was called
}

// newSelfWatch returns a selfWatch that must be started.
func newSelfWatch(c *Engine, n *session.OwnNode) *selfWatch { return &selfWatch{engine: c, node: n} }

// startAfter calls start after the given time, unless the watch is stopped before.
func (sw *selfWatch) startAfter(d time.Duration) { sw.begin.Store(time.AfterFunc(d, sw.start)) }

// start requests the watch, unless it was stopped, and does not wait.
func (sw *selfWatch) start() {
	if sw.left.Load() {
		return
	}
	b := sw.engine.Requests.BundleNow(sw.node.Sess)
	sw.startWith(b)
	b.SendNow()
}

// startWith is like start, but adds the request to b.
func (sw *selfWatch) startWith(b *session.Bundle) {
	sw.engine.Watches.AddTo(b, sw.node.Path()).AwaitAnswer(sw)
}

// Answered implements session.Owner.
func (sw *selfWatch) Answered(v *session.View) {
	sw.judge(v.Err)
	switch {
	case v.Err == nil && bytes.Equal(v.Data, sw.node.OwnData()): // nobody has written it
		sw.follow(v)
	case v.Err == nil || outcome.IsTransient(v.Err):
		// Owned by the client; ends when the watch is set, when the node is to be deleted, when it or
		// its session is gone, or when the client is closed, which waits for it.
		sw.engine.Requests.Calls.Run(sw.run)
	}
}

// stop ends the watch, because the node is about to be deleted, or prevents it from beginning.
func (sw *selfWatch) stop() {
	if begin := sw.begin.Load(); begin != nil {
		begin.Stop()
	}
	sw.left.Store(true)
	if v := sw.view.Load(); v != nil {
		v.StopNotify()
	}
}

// isActive reports whether the node is intact, in the sense of await.
func (sw *selfWatch) isActive() bool {
	v := sw.view.Load()
	return v != nil && !sw.node.IsGone() && v.Latest().IsCurrent()
}

// await waits until it is certain that the node still existed when the events that the caller has
// seen happened: others leave, but our own node may have been deleted before them. A watch that is
// set shows this without a request. If run has not set it, because it pauses after an error, await
// does: when await returns nil, isActive reports true until something happens.
func (sw *selfWatch) await(ctx context.Context) error {
	n := sw.node
	for {
		v, err := session.Again(ctx, func() (*session.View, error) { return sw.watch(ctx) })
		switch {
		case n.IsGone():
			return outcome.ErrGone
		case err != nil:
			return err
		case v.IsCurrent():
			sw.follow(v)
			return nil
		}
		if err := waitFor(ctx, n, v.Newer()); err != nil {
			return err
		}
	}
}

// waitFor waits until happened is closed or sends a value. If our node n is gone before that, it returns ErrGone; if its session is
// over, ErrSessionOver; if ctx is done, its cause.
func waitFor[T any](ctx context.Context, n *session.OwnNode, happened <-chan T) error {
	select {
	case <-happened:
		return nil
	case <-n.Gone.Done():
		return outcome.ErrGone
	case <-n.Sess.Over():
		return outcome.ErrSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watch returns a view of the node. If the node is missing or we may not read it, it is gone.
func (sw *selfWatch) watch(ctx context.Context) (*session.View, error) {
	v, err := sw.engine.Watches.Watch(ctx, sw.node.Sess, sw.node.Path())
	sw.judge(err)
	return v, err
}

// judge uses the result of a request that reads the node.
func (sw *selfWatch) judge(err error) {
	switch {
	case err == nil:
		sw.engine.readable.Store(true)
	case errors.Is(err, zk.ErrNoNode):
		sw.node.MarkGone(nil)
	case outcome.IsRefusal(err):
		sw.node.MarkGone(session.ErrUnreadable)
	}
}

// run sets the watch, unless it is set, and handles what it shows.
func (sw *selfWatch) run() {
	var p session.Pace
	for !sw.left.Load() {
		v, err := sw.watch(sw.engine.Requests.Life)
		if err == nil {
			sw.view.Store(v) // isActive must not report false while inspect waits for a reply
			sw.inspect(session.Node{Data: v.Data, Stat: v.Stat})
			sw.follow(v)
			return
		}
		if !outcome.IsTransient(err) || p.Next(sw.engine.Requests.Life) != nil {
			return
		}
	}
}

// follow has Fired called when the watch fires.
func (sw *selfWatch) follow(v *session.View) {
	sw.view.Store(v)
	v.Notify(sw)
	if sw.left.Load() { // stop may have been called before Notify
		v.StopNotify()
	}
}

// Fired implements session.Owner. It starts another watch, unless the node or its session is gone.
func (sw *selfWatch) Fired(saw session.State) {
	switch {
	case sw.node.Sess.IsOver():
	case saw == session.Gone:
		sw.node.Sess.NodeDeleted()
		sw.node.MarkGone(nil)
	default:
		sw.start()
	}
}

// inspect checks our own node's data for a revocation request and for a forged downgrade. After a
// request it restores the rest of the data.
func (sw *selfWatch) inspect(seen session.Node) {
	own := sw.node.OwnData()
	if bytes.Equal(seen.Data, own) {
		return // nobody has written it
	}
	if node.IsDowngraded(seen.Data) && !node.IsDowngraded(own) {
		sw.node.MarkGone(session.ErrForged)
	}
	if sw.node.Hear(seen) {
		sw.putBack(seen)
	}
}

// putBack restores our data, together with the request, if Curator's message has replaced it. It
// does not restore data that must never change.
func (sw *selfWatch) putBack(seen session.Node) {
	if sw.node.Fixed || !bytes.Equal(seen.Data, node.CuratorRevocation) {
		return
	}
	var p session.Pace
	for {
		_, err := sw.engine.Requests.Set(sw.engine.Requests.Life, sw.node.Sess, sw.node.Path(), node.WithRevocation(sw.node.OwnData()), seen.Stat.Version)
		if !outcome.IsTransient(err) || sw.left.Load() || p.Next(sw.engine.Requests.Life) != nil {
			return // it is written, or somebody has written since, which the next watch handles
		}
	}
}
