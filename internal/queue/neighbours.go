package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// notASemaphore refuses a directory where permits are held: their
// holders and those of a lock at the same path would know nothing of each other. A semaphore
// that nobody uses any more is removed, so that its next user looks for others first.
func (c *Engine) notASemaphore(ctx context.Context, sess *session.Session, dir string, line *node.Line) error {
	if !line.Permits {
		return nil
	}
	used := fmt.Errorf("%w: a semaphore is at that path", outcome.ErrMismatch)
	n, err := session.Again(ctx, func() (session.Node, error) { return c.Get(ctx, sess, dir+node.LeasesDir) })
	switch {
	case err == nil && !strings.HasPrefix(string(n.Data), node.LimitPrefix):
		return nil
	case err == nil && n.Stat.NumChildren > 0:
		return used
	case err == nil:
		_, err = session.Again(ctx, func() (struct{}, error) {
			return struct{}{}, c.Delete(ctx, sess, dir+node.LeasesDir, n.Stat.Version)
		})
	}
	switch {
	case errors.Is(err, zk.ErrNotEmpty):
		return used
	case outcome.IsRefusal(err): // gone, or not ours to look at
		return nil
	}
	return err
}

// notDelayed refuses a directory in which contenders stand that have
// a lock-delay, if we have none: we would not wait for it.
func (c *Engine) notDelayed(r *Recipe, line *node.Line) error {
	if !r.Delays || c.Delay > 0 || !line.Delayed {
		return nil
	}
	return fmt.Errorf("%w: the lock has a lock-delay, and this client has none", outcome.ErrMismatch)
}

// notAQueue refuses a directory in which contenders for a lock stand, for a semaphore that is new there.
func (c *Engine) notAQueue(ctx context.Context, sess *session.Session, dir string) error {
	l, err := c.List(ctx, sess, dir)
	if err != nil {
		return err
	}
	if len(l.Line().Entries) > 0 {
		return fmt.Errorf("%w: a lock of another kind is at that path", outcome.ErrMismatch)
	}
	return nil
}
