package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// remove deletes the contender's node in the background, and sends the outcome to the
// channel that it returns. It goes on whatever happens to the caller or the connection, for
// as long as the client lives.
func (c *engine) remove(t *contender) <-chan error {
	removed := c.beginRemoval(t)
	done := make(chan error, 1)
	if t.led {
		done <- nil
		return done
	}
	c.leaving.add(t.dir, 1)
	end := func(err error) {
		c.leaving.add(t.dir, -1)
		done <- err
	}
	// Owned by the client; ends when the node is certainly gone, or when Close gives up
	// waiting for it.
	if !c.removals.run(func() { end(removed()) }) {
		end(ErrClosed)
	}
	return done
}

// beginRemoval takes leave of the contender's node, and returns what deletes it and returns
// the outcome.
func (c *engine) beginRemoval(t *contender) func() error {
	if t.sentinel != nil {
		t.sentinel.stop()
	}
	c.unkeep(&t.ownNode)
	return func() error {
		if t.led {
			return nil
		}
		err := t.clear(c.afterlife)
		if isRefusal(err) {
			// Owned by the client; ends when the node is gone or the client's life ends; Close waits for it.
			c.calls.run(func() { t.insist(c.life) })
		}
		return err
	}
}

// insist tries to delete a node again and again after a refusal, which may be temporary.
func (t *contender) insist(ctx context.Context) {
	ticker := time.NewTicker(max(t.sess.Lease.Term()/4, time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !isRefusal(t.clear(ctx)) {
			return
		}
	}
}

// clear deletes the node. It returns nil if the node does not exist any more.
func (t *contender) clear(ctx context.Context) error {
	var p pace
	for {
		err := t.tryClear(ctx)
		switch {
		case err == nil || errors.Is(err, zk.ErrNoNode):
			return nil
		case isRefusal(err) || ctx.Err() != nil:
			return err
		}
		if err := p.next(ctx); err != nil {
			return err
		}
	}
}

func (t *contender) tryClear(ctx context.Context) error {
	if t.created == nil {
		return nil // never asked for
	}
	if err := t.settle(ctx); err != nil || t.name == "" {
		return err
	}
	if t.sess.HasExpired() && t.entered {
		return nil // the server has deleted it with the session
	}
	s, err := t.c.link.Attached(ctx)
	if err != nil {
		return err
	}
	return t.leave(ctx, s)
}

// leave deletes the node, in one transaction with what it leaves behind: a note, and the word in
// the lock's record that it was released.
func (t *contender) leave(ctx context.Context, s *session) error {
	if len(t.with) > 0 {
		return t.deleteAll(ctx, s)
	}
	for {
		word, err := t.parting(ctx, s)
		if err != nil {
			return err
		}
		ops := []any{&zk.DeleteRequest{Path: t.path(), Version: t.unread}}
		noted := t.isToNote()
		if noted {
			ops = append(ops, t.writeNote())
		}
		if word != nil {
			ops = append(ops, word)
		}
		if len(ops) == 1 {
			return t.deleteOwn(ctx, s)
		}
		answers, err := t.c.multi(ctx, s, ops...)
		switch {
		case err == nil:
			t.parted(s, answers[len(ops)-1].Stat)
			return nil
		case !isRefusal(err):
			return err
		case refused(answers) == 0:
			return t.deleteOwn(ctx, s)
		case noted && refused(answers) == 1:
			t.c.mayNote(t.dir, answers)
		default:
			t.claim.rebuffed(err)
		}
	}
}

// deleteOwn deletes our node. If a request to let go has come since we last read the node, it
// notes that first: an acquire that gives up its place in the queue for permits goes on to
// hold those, and the request is for that hold.
func (t *contender) deleteOwn(ctx context.Context, s *session) error {
	for {
		err := t.c.deleteVersion(ctx, s, t.path(), t.unread)
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
		n, err := t.c.get(ctx, s, t.path())
		if err != nil {
			return err
		}
		t.hear(n)
		t.unread = n.stat.Version
	}
}
