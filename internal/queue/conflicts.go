// SPDX-License-Identifier: Apache-2.0

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

// notASemaphore returns ErrMismatch if permits are held at the path: the holders of permits and the
// holder of a lock there would not exclude each other. It removes a semaphore that is not in use, or
// whose number of permits is about to be stored, so that its next user first looks for a lock.
func (en *Engine) notASemaphore(ctx context.Context, sess *session.Session, dir string, queue *node.Queue) error {
	if !queue.Permits {
		return nil
	}
	for {
		err := en.removeUnused(ctx, sess, dir+node.LeasesDir)
		switch {
		case errors.Is(err, zk.ErrNotEmpty):
			return fmt.Errorf("%w: path is used by a semaphore", outcome.ErrMismatch)
		case errors.Is(err, zk.ErrBadVersion): // a number was stored since we looked
		case outcome.IsRefusal(err): // gone, or not accessible to us
			return nil
		default:
			return err
		}
	}
}

// removeUnused removes the directory of a semaphore's permits. If there are permits, it returns
// zk.ErrNotEmpty. It keeps a directory that has other data or other children, because it may belong
// to a lock.
func (en *Engine) removeUnused(ctx context.Context, sess *session.Session, leases string) error {
	n, err := session.Again(ctx, func() (session.Node, error) { return en.Requests.Get(ctx, sess, leases) })
	if err != nil {
		return err
	}
	numbered := strings.HasPrefix(string(n.Data), node.LimitPrefix)
	switch {
	case !numbered && len(n.Data) > 0:
		return nil
	case !numbered && n.Stat.NumChildren > 0:
		return en.unlessPermits(ctx, sess, leases)
	case n.Stat.NumChildren > 0:
		return zk.ErrNotEmpty
	}
	_, err = session.Again(ctx, func() (struct{}, error) {
		return struct{}{}, en.Requests.Delete(ctx, sess, leases, n.Stat.Version)
	})
	if errors.Is(err, zk.ErrNotEmpty) && !numbered {
		return zk.ErrBadVersion
	}
	return err
}

// unlessPermits returns zk.ErrNotEmpty if there are permits in a directory that has no number.
// Their users are about to store a number again, and may already have looked for a lock. If the
// directory has become empty in the meantime, it returns zk.ErrBadVersion and the caller must check
// again.
func (en *Engine) unlessPermits(ctx context.Context, sess *session.Session, leases string) error {
	l, err := session.Again(ctx, func() (session.Listing, error) { return en.Requests.List(ctx, sess, leases) })
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

// checkDelay returns ErrMismatch if contenders in the directory have a lock-delay and we have none:
// we would not wait for it.
func (en *Engine) checkDelay(r *Recipe, queue *node.Queue) error {
	if !r.TakesDelay || en.Delay > 0 || !queue.HasDelay {
		return nil
	}
	return fmt.Errorf("%w: lock has a lock-delay, but this client has none", outcome.ErrMismatch)
}

// notAQueue returns ErrMismatch if the directory, in which a semaphore is about to be created,
// contains contenders for a lock.
func (en *Engine) notAQueue(ctx context.Context, sess *session.Session, dir string) error {
	l, err := en.Requests.List(ctx, sess, dir)
	if err != nil {
		return err
	}
	if entries := l.Queue().Entries; len(entries) > 0 {
		return fmt.Errorf("%w: path is used by a %s", outcome.ErrMismatch, entries[0].Lock())
	}
	return nil
}
