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

// beginRemoval stops watching the contender's nodes. It returns a function that deletes them and
// returns the outcome.
func (c *Engine) beginRemoval(t *contender) func() error {
	c.holders.remove(t)
	for x := range t.each {
		if self := x.self.Load(); self != nil {
			self.stop()
		}
		c.Heart.Leave(&x.OwnNode)
	}
	return func() error {
		defer t.unkeep()
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
}

// removeThen deletes the contender's nodes in the background and calls done, which must not wait,
// with the outcome. It keeps trying until the client is closed, even if the connection is lost. If the
// deletion needs only one request, that is sent now.
func (c *Engine) removeThen(t *contender, done func(error)) {
	removed := c.beginRemoval(t)
	if !c.Removals.Enter() {
		done(outcome.ErrClosed)
		return
	}
	end := func(err error) {
		done(err)
		c.Removals.Done()
	}
	// Owned by the client; ends when the node is certainly gone, or when Close gives up waiting for it.
	slowly := func() { c.Removals.Continue(func() { end(removed()) }) }
	if !t.isSimple() {
		slowly()
		return
	}
	var over atomic.Bool // the reply has arrived, or Close waits no longer
	stop := context.AfterFunc(c.Requests.CleanupCtx, func() {
		if !over.Swap(true) {
			slowly() // which ends at once
		}
	})
	t.deleteNow(func(gone bool) {
		switch {
		case over.Swap(true):
		case gone:
			stop()
			t.uncount()
			t.unkeep()
			end(nil)
		default:
			stop()
			slowly()
		}
	})
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
		t.removal.hasRead(n.Stat.Version)
	}
}

// uncount stops counting nodes that are known to be gone.
func (t *contender) uncount() {
	if t.counted > 0 {
		_ = addOwned(t.Sess, -t.counted) // a negative number never exceeds the limit
		t.counted = 0
	}
}
