// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// remove is removeThen for a caller that may wait for the outcome, which is sent to the returned
// channel.
func (en *Engine) remove(co *contender) <-chan error {
	done := make(chan error, 1)
	if co.isTaken {
		done <- outcome.ErrClosed
		return done
	}
	en.removeThen(co, func(err error) { done <- err })
	return done
}

// stopWatching is called before the contender's nodes are deleted.
func (en *Engine) stopWatching(co *contender) {
	en.Hub.holders.remove(co)
	for x := range co.each {
		if self := x.self.Load(); self != nil {
			self.stop()
		}
		en.Heart.Leave(&x.OwnNode)
	}
}

// removeThen deletes the contender's nodes in the background and calls done, which must not wait,
// with the outcome. It keeps trying until the client is closed, even if the connection is lost; after
// that the hub continues. If the deletion needs only one request, that is sent now.
func (en *Engine) removeThen(co *contender, done func(error)) {
	en.stopWatching(co)
	if !en.Removals.Enter() {
		en.Hub.leftovers.add(co, outcome.ErrClosed)
		done(outcome.ErrClosed)
		return
	}
	d := &departure{co: co, done: done}
	if co.isSimple() {
		d.atOnce()
		return
	}
	d.slowly()
}

// A departure is the deletion of a contender's nodes. It ends with a call of done.
//
// This is not ideal: there are two ways to delete a node, and over decides which of three goroutines
// continues if the reply to atOnce, the end of the connection and the end of Close's wait come together. One
// way would be slowly alone, but then each release of an uncontended lock would need a goroutine that
// waits for one reply.
type departure struct {
	co   *contender
	done func(error)
	over atomic.Bool // the reply to the request of atOnce has arrived, or Close waits no longer
	stop func() bool // stops waiting for Close
}

// atOnce sends the one request that the deletion needs. If the answer does not show that the node is
// gone, slowly continues.
func (d *departure) atOnce() {
	d.stop = context.AfterFunc(d.co.engine.Requests.CleanupCtx, func() {
		if !d.over.Swap(true) {
			d.slowly() // which ends at once
		}
	})
	d.co.deleteNow(d.answered)
}

func (d *departure) answered(gone bool) {
	if d.over.Swap(true) {
		return
	}
	d.stop()
	if !gone {
		d.slowly()
		return
	}
	d.co.uncount()
	d.co.unkeep()
	d.end(nil)
}

// slowly deletes the nodes in a goroutine.
func (d *departure) slowly() {
	// Owned by the client; ends when the nodes are certainly gone, or when Close gives up waiting for it.
	d.co.engine.Removals.Continue(func() { d.end(d.co.delete()) })
}

func (d *departure) end(err error) {
	d.done(err)
	d.co.engine.Removals.Done()
}

// delete deletes the contender's nodes and returns the outcome. If that is an error, the hub keeps trying.
func (co *contender) delete() error {
	defer co.unkeep()
	err := co.clear(co.engine.Requests.CleanupCtx)
	if err != nil {
		co.engine.Hub.leftovers.add(co, err)
	}
	return err
}

// isSimple reports whether one request without preparation deletes all nodes of the contender.
func (co *contender) isSimple() bool {
	recorded := co.record.sent && !co.removal.lost
	return co.batch == nil && co.creation == nil && !recorded && !co.endedWithSession()
}

// endedWithSession reports whether the servers have deleted the contender's nodes together with the session.
func (co *contender) endedWithSession() bool { return co.creation == nil && co.Sess.HasExpired() }

// deleteNow sends the request that deletes our node, in one transaction with a note if that is to be
// written. It calls then, which must not wait, with whether the node is certainly gone.
func (co *contender) deleteNow(then func(gone bool)) {
	isGone := func(err error) bool { return outcome.IgnoreMissing(err) == nil }
	b := co.engine.Requests.BundleNow(co.Sess)
	if co.isToNote() {
		ops := []any{&zk.DeleteRequest{Path: co.Path(), Version: co.removal.unread}, co.writeNote()}
		b.Multi(ops, func(answers []zk.MultiResponse, err error) {
			if Refused(answers) == 1 {
				co.engine.Unnoted.MayNote(co.Dir, answers)
			}
			then(err == nil || Refused(answers) == 0 && isGone(err))
		})
	} else {
		b.Delete(co.Path(), co.removal.unread, func(err error) { then(isGone(err)) })
	}
	b.SendNow()
}

// unkeep undoes Keep for all nodes.
func (co *contender) unkeep() {
	for x := range co.each {
		co.engine.Heart.Unkeep(&x.OwnNode)
	}
}

// clear deletes the contender's nodes. It returns nil if they no longer exist.
func (co *contender) clear(ctx context.Context) error {
	var p session.Pace
	for {
		err := co.tryClear(ctx)
		switch {
		case err == nil:
			return nil
		case outcome.IsRefusal(err) || ctx.Err() != nil:
			return err
		}
		if err := p.Next(ctx); err != nil {
			return err
		}
	}
}

// tryClear makes one attempt to delete the contender's nodes. It returns nil if they no longer exist.
func (co *contender) tryClear(ctx context.Context) error {
	err := outcome.IgnoreMissing(co.tryDelete(ctx))
	if err == nil {
		co.uncount()
	}
	return err
}

func (co *contender) tryDelete(ctx context.Context) error {
	switch {
	case co.endedWithSession():
		return nil
	case co.creation != nil && co.creation.answered == nil:
		return nil // it was never requested
	case co.creation != nil:
		if err := co.settle(ctx); err != nil || co.Name == "" {
			return err
		}
	}
	s, err := co.engine.Requests.Link.Attached(ctx)
	if err != nil || co.endedWithSession() { // perhaps it was known only with the connection
		return err
	}
	return co.deleteUnder(ctx, s)
}

// deleteUnder deletes the node. The same transaction writes a note, and the release in the lock's record.
func (co *contender) deleteUnder(ctx context.Context, s *session.Session) error {
	if co.batch != nil {
		return co.deleteAll(ctx, s)
	}
	for {
		record, err := co.releaseRecord(ctx, s)
		if err != nil {
			return err
		}
		ops := []any{&zk.DeleteRequest{Path: co.Path(), Version: co.removal.unread}}
		noted := co.isToNote()
		if noted {
			ops = append(ops, co.writeNote())
		}
		ops = append(ops, record...)
		if len(ops) == 1 {
			return co.deleteOwn(ctx, s)
		}
		answers, err := co.engine.Requests.Multi(ctx, s, ops...)
		switch {
		case err == nil:
			co.recordReleased()
			return nil
		case !outcome.IsRefusal(err):
			return err
		case Refused(answers) == 0:
			return co.deleteOwn(ctx, s)
		case noted && Refused(answers) == 1:
			co.engine.Unnoted.MayNote(co.Dir, answers)
		default:
			co.recordRefused(err)
		}
	}
}

// deleteOwn deletes our node. If a revocation request has arrived since the node was last read, it
// handles that first: an acquire that gives up its node in the queue for permits may hold permits
// afterwards, and the request is for that hold.
func (co *contender) deleteOwn(ctx context.Context, s *session.Session) error {
	for {
		err := co.engine.Requests.Delete(ctx, s, co.Path(), co.removal.unread)
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
		n, err := co.engine.Requests.Get(ctx, s, co.Path())
		if err != nil {
			return err
		}
		co.Hear(n)
		co.removal.unread = n.Stat.Version
	}
}

// uncount stops counting nodes that are known to be gone.
func (co *contender) uncount() {
	if co.counted > 0 {
		_ = addOwned(co.Sess, -co.counted) // a negative number never exceeds the limit
		co.counted = 0
	}
}
