package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// notASemaphore refuses a directory where permits are held: their
// holders and those of a lock at the same path would know nothing of each other. A semaphore
// that nobody uses, or whose number is just about to be stored, is removed, so that its next user
// looks for others first.
func (c *Engine) notASemaphore(ctx context.Context, sess *session.Session, dir string, line *node.Line) error {
	if !line.Permits {
		return nil
	}
	for {
		err := c.removeUnused(ctx, sess, dir+node.LeasesDir)
		switch {
		case errors.Is(err, zk.ErrNotEmpty):
			return fmt.Errorf("%w: a semaphore is at that path", outcome.ErrMismatch)
		case errors.Is(err, zk.ErrBadVersion): // a number was stored since we looked
		case outcome.IsRefusal(err): // gone, or not ours to look at
			return nil
		default:
			return err
		}
	}
}

// removeUnused removes the directory of a semaphore's permits. If there are any, it returns zk.ErrNotEmpty. It
// leaves one alone that has other data, or other children, as that of a lock can have.
func (c *Engine) removeUnused(ctx context.Context, sess *session.Session, leases string) error {
	n, err := session.Again(ctx, func() (session.Node, error) { return c.Get(ctx, sess, leases) })
	if err != nil {
		return err
	}
	numbered := strings.HasPrefix(string(n.Data), node.LimitPrefix)
	switch {
	case !numbered && len(n.Data) > 0:
		return nil
	case !numbered && n.Stat.NumChildren > 0:
		return c.unlessPermits(ctx, sess, leases)
	case n.Stat.NumChildren > 0:
		return zk.ErrNotEmpty
	}
	_, err = session.Again(ctx, func() (struct{}, error) {
		return struct{}{}, c.Delete(ctx, sess, leases, n.Stat.Version)
	})
	if errors.Is(err, zk.ErrNotEmpty) && !numbered {
		return zk.ErrBadVersion
	}
	return err
}

// unlessPermits returns zk.ErrNotEmpty if there are permits in a directory that has no number. Its users are about to store one
// again, and may have looked for a lock already. If it got empty meanwhile, it is to be looked at again.
func (c *Engine) unlessPermits(ctx context.Context, sess *session.Session, leases string) error {
	l, err := session.Again(ctx, func() (session.Listing, error) { return c.List(ctx, sess, leases) })
	switch {
	case err != nil:
		return err
	case len(l.Names) == 0:
		return zk.ErrBadVersion
	case slices.ContainsFunc(l.Names, func(name string) bool { return strings.Contains(name, node.LeaseInfix) }):
		return zk.ErrNotEmpty
	}
	return nil
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
