// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// remove is removeThen for a caller that may wait for the outcome, which is sent to the returned
// channel.
func (c *Engine) remove(t *contender) <-chan error {
	done := make(chan error, 1)
	c.deleting.add(t.Dir, 1)
	c.removeThen(t, func(err error) {
		c.deleting.add(t.Dir, -1)
		done <- err
	})
	return done
}

// stopWatching is called before the contender's nodes are deleted.
func (c *Engine) stopWatching(t *contender) {
	c.holders.remove(t)
	for x := range t.each {
		if self := x.self.Load(); self != nil {
			self.stop()
		}
		c.Heart.Leave(&x.OwnNode)
	}
}

// removeThen deletes the contender's nodes in the background and calls done, which must not wait,
// with the outcome. It keeps trying until the client is closed, even if the connection is lost. If the
// deletion needs only one request, that is sent now.
func (c *Engine) removeThen(t *contender, done func(error)) {
	c.stopWatching(t)
	if !c.Removals.Enter() {
		done(outcome.ErrClosed)
		return
	}
	d := &departure{t: t, done: done}
	if t.isSimple() {
		d.atOnce()
		return
	}
	d.slowly()
}

// A departure is the deletion of a contender's nodes. It ends with a call of done.
type departure struct {
	t    *contender
	done func(error)
	over atomic.Bool // the reply to the request of atOnce has arrived, or Close waits no longer
	stop func() bool // stops waiting for Close
}

// atOnce sends the one request that the deletion needs. Without an answer that says that the node is
// gone, the deletion goes on slowly.
func (d *departure) atOnce() {
	d.stop = context.AfterFunc(d.t.engine.Requests.CleanupCtx, func() {
		if !d.over.Swap(true) {
			d.slowly() // which ends at once
		}
	})
	d.t.deleteNow(d.answered)
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
	d.t.uncount()
	d.t.unkeep()
	d.end(nil)
}

// slowly deletes the nodes in a goroutine.
func (d *departure) slowly() {
	// Owned by the client; ends when the nodes are certainly gone, or when Close gives up waiting for it.
	d.t.engine.Removals.Continue(func() { d.end(d.t.delete()) })
}

func (d *departure) end(err error) {
	d.done(err)
	d.t.engine.Removals.Done()
}

// delete deletes the contender's nodes and returns the outcome. After a refusal it keeps trying in the
// background.
func (t *contender) delete() error {
	defer t.unkeep()
	c := t.engine
	err := t.clear(c.Requests.CleanupCtx)
	if outcome.IsRefusal(err) {
		r := c.refused.add(t.anyPath(), err)
		c.Requests.Log.Warn("zklock: deletion of own node refused, trying again", "path", c.Requests.Shown(t.Dir), "node", node.BaseName(t.anyPath()), "err", err)
		// Owned by the client; ends when the node is gone or the client's life ends; Close waits for it.
		if !c.Requests.Calls.Run(func() {
			t.keepDeleting(c.Requests.Life)
			c.refused.remove(r)
		}) {
			c.refused.remove(r)
		}
	}
	return err
}

// isSimple reports whether one request that needs no preparation deletes all that the contender has.
func (t *contender) isSimple() bool {
	recorded := t.record.sent && !t.removal.lost
	return t.batch == nil && t.creation == nil && !recorded && !t.Sess.HasExpired()
}

// deleteNow sends the request that deletes our node, in one transaction with a note if that is to be
// written. It calls then, which must not wait, with whether the node is certainly gone.
func (t *contender) deleteNow(then func(gone bool)) {
	isGone := func(err error) bool { return outcome.IgnoreMissing(err) == nil }
	b := t.engine.Requests.BundleNow(t.Sess)
	if t.isToNote() {
		ops := []any{&zk.DeleteRequest{Path: t.Path(), Version: t.removal.unread}, t.writeNote()}
		b.Multi(ops, func(answers []zk.MultiResponse, err error) {
			if Refused(answers) == 1 {
				t.engine.Unnoted.MayNote(t.Dir, answers)
			}
			then(err == nil || Refused(answers) == 0 && isGone(err))
		})
	} else {
		b.Delete(t.Path(), t.removal.unread, func(err error) { then(isGone(err)) })
	}
	b.SendNow()
}

// unkeep undoes Keep for all nodes.
func (t *contender) unkeep() {
	for x := range t.each {
		t.engine.Heart.Unkeep(&x.OwnNode)
	}
}

// keepDeleting retries the deletion after a refusal, which may be temporary.
func (t *contender) keepDeleting(ctx context.Context) {
	ticker := time.NewTicker(max(t.Sess.Lease.Term()/4, time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !outcome.IsRefusal(t.clear(ctx)) {
			return
		}
	}
}

// clear deletes the contender's nodes. It returns nil if they no longer exist.
func (t *contender) clear(ctx context.Context) error {
	var p session.Pace
	for {
		err := t.tryClear(ctx)
		switch {
		case err == nil || errors.Is(err, zk.ErrNoNode):
			t.uncount()
			return nil
		case outcome.IsRefusal(err) || ctx.Err() != nil:
			return err
		}
		if err := p.Next(ctx); err != nil {
			return err
		}
	}
}

func (t *contender) tryClear(ctx context.Context) error {
	switch {
	case t.creation == nil && t.Sess.HasExpired():
		return nil // the servers deleted it with the session
	case t.creation != nil && t.creation.answered == nil:
		return nil // it was never requested
	case t.creation != nil:
		if err := t.settle(ctx); err != nil || t.Name == "" {
			return err
		}
	}
	s, err := t.engine.Requests.Link.Attached(ctx)
	if err != nil {
		return err
	}
	return t.deleteUnder(ctx, s)
}

// deleteUnder deletes the node in one transaction with what it leaves behind: a note, and the release in
// the lock's record.
func (t *contender) deleteUnder(ctx context.Context, s *session.Session) error {
	if t.batch != nil {
		return t.deleteAll(ctx, s)
	}
	for {
		record, err := t.releaseRecord(ctx, s)
		if err != nil {
			return err
		}
		ops := []any{&zk.DeleteRequest{Path: t.Path(), Version: t.removal.unread}}
		noted := t.isToNote()
		if noted {
			ops = append(ops, t.writeNote())
		}
		ops = append(ops, record...)
		if len(ops) == 1 {
			return t.deleteOwn(ctx, s)
		}
		answers, err := t.engine.Requests.Multi(ctx, s, ops...)
		switch {
		case err == nil:
			t.recordReleased()
			return nil
		case !outcome.IsRefusal(err):
			return err
		case Refused(answers) == 0:
			return t.deleteOwn(ctx, s)
		case noted && Refused(answers) == 1:
			t.engine.Unnoted.MayNote(t.Dir, answers)
		default:
			t.recordRefused(err)
		}
	}
}

// deleteOwn deletes our node. If a revocation request has arrived since the node was last read, it
// handles that first: an acquire that gives up its node in the queue for permits may hold permits
// afterwards, and the request is for that hold.
func (t *contender) deleteOwn(ctx context.Context, s *session.Session) error {
	for {
		err := t.engine.Requests.Delete(ctx, s, t.Path(), t.removal.unread)
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
		n, err := t.engine.Requests.Get(ctx, s, t.Path())
		if err != nil {
			return err
		}
		t.Hear(n)
		t.removal.unread = n.Stat.Version
	}
}

// uncount stops counting nodes that are known to be gone.
func (t *contender) uncount() {
	if t.counted > 0 {
		_ = addOwned(t.Sess, -t.counted) // a negative number never exceeds the limit
		t.counted = 0
	}
}
