package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// remove deletes the contender's nodes in the background, and sends the outcome to the
// channel that it returns. It goes on whatever happens to the caller or the connection, for
// as long as the client lives.
func (c *Engine) remove(t *contender) <-chan error {
	removed := c.beginRemoval(t)
	done := make(chan error, 1)
	c.leaving.add(t.Dir, 1)
	end := func(err error) {
		c.leaving.add(t.Dir, -1)
		done <- err
	}
	// Owned by the client; ends when the node is certainly gone, or when Close gives up
	// waiting for it.
	if !c.Removals.Run(func() { end(removed()) }) {
		end(outcome.ErrClosed)
	}
	return done
}

// beginRemoval takes leave of the contender's nodes, and returns what deletes them and returns
// the outcome.
func (c *Engine) beginRemoval(t *contender) func() error {
	c.holders.remove(t)
	for x := range t.each {
		if self := x.self.Load(); self != nil {
			self.stop()
		}
		c.Leave(&x.OwnNode)
	}
	return func() error {
		defer t.unkeep()
		err := t.clear(c.Afterlife)
		if outcome.IsRefusal(err) {
			// Owned by the client; ends when the node is gone or the client's life ends; Close waits for it.
			c.Calls.Run(func() { t.keepDeleting(c.Life) })
		}
		return err
	}
}

// unkeep ends what Keep has begun.
func (t *contender) unkeep() {
	for x := range t.each {
		t.c.Unkeep(&x.OwnNode)
	}
}

// keepDeleting tries to delete a node again and again after a refusal, which may be temporary.
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

// clear deletes the node. It returns nil if the node does not exist any more.
func (t *contender) clear(ctx context.Context) error {
	var p session.Pace
	for {
		err := t.tryClear(ctx)
		switch {
		case err == nil || errors.Is(err, zk.ErrNoNode):
			t.disown()
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
		return nil // the server has deleted it with the session
	case t.creation != nil && t.creation.answered == nil:
		return nil // never asked for
	case t.creation != nil:
		if err := t.settle(ctx); err != nil || t.Name == "" {
			return err
		}
	}
	s, err := t.c.Link.Attached(ctx)
	if err != nil {
		return err
	}
	return t.leave(ctx, s)
}

// leave deletes the node, in one transaction with what it leaves behind: a note, and the word in
// the lock's record that it was released.
func (t *contender) leave(ctx context.Context, s *session.Session) error {
	if t.batch != nil {
		return t.deleteAll(ctx, s)
	}
	for {
		word, err := t.releaseRecord(ctx, s)
		if err != nil {
			return err
		}
		ops := []any{&zk.DeleteRequest{Path: t.Path(), Version: t.unread}}
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
		answers, err := t.c.Multi(ctx, s, ops...)
		switch {
		case err == nil:
			t.recordReleased(s, answers[len(ops)-1].Stat)
			return nil
		case !outcome.IsRefusal(err):
			return err
		case Refused(answers) == 0:
			return t.deleteOwn(ctx, s)
		case noted && Refused(answers) == 1:
			t.c.MayNote(t.Dir, answers)
		default:
			t.claim.wasRefused(err)
		}
	}
}

// deleteOwn deletes our node. If a request to let go has come since we last read the node, it
// notes that first: an acquire that gives up its place in the queue for permits goes on to
// hold those, and the request is for that hold.
func (t *contender) deleteOwn(ctx context.Context, s *session.Session) error {
	for {
		err := t.c.Delete(ctx, s, t.Path(), t.unread)
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
		n, err := t.c.Get(ctx, s, t.Path())
		if err != nil {
			return err
		}
		t.Hear(n)
		t.hasRead(n.Stat.Version)
	}
}

// disown counts the nodes no more, which are certainly gone.
func (t *contender) disown() {
	if t.owns > 0 {
		_ = addOwned(t.Sess, -t.owns) // never over the limit
		t.owns = 0
	}
}
