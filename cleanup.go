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
func (c *Client) remove(t *contender) <-chan error {
	t.depart()
	c.unkeep(t)
	done := make(chan error, 1)
	if t.led {
		done <- nil
		return done
	}
	// Owned by the client; ends when the node is certainly gone, or when Close gives up
	// waiting for it.
	if !c.removals.run(func() {
		err := t.clear(c.afterlife)
		done <- err
		if isRefusal(err) {
			// Owned by the client; ends when the node is gone or the client's life ends; Close waits for it.
			c.calls.run(func() { t.insist(c.life) })
		}
	}) {
		done <- ErrClosed
	}
	return done
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
