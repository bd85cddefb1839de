package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// notASemaphore refuses a directory, whose children are given, where permits are held: their
// holders and those of a lock at the same path would know nothing of each other. A semaphore
// that nobody uses any more is removed, so that its next user looks for others first.
func (r *requests) notASemaphore(ctx context.Context, sess *session, dir string, names []string) error {
	if !slices.Contains(names, leasesDir[1:]) {
		return nil
	}
	used := fmt.Errorf("%w: a semaphore is at that path", ErrInvalid)
	n, err := again(ctx, func() (node, error) { return r.get(ctx, sess, dir+leasesDir) })
	switch {
	case err == nil && !strings.HasPrefix(string(n.data), limitPrefix):
		return nil
	case err == nil && n.stat.NumChildren > 0:
		return used
	case err == nil:
		_, err = again(ctx, func() (struct{}, error) {
			return struct{}{}, r.deleteVersion(ctx, sess, dir+leasesDir, n.stat.Version)
		})
	}
	switch {
	case errors.Is(err, zk.ErrNotEmpty):
		return used
	case isRefusal(err): // gone, or not ours to look at
		return nil
	}
	return err
}

// notDelayed refuses a directory, whose children are given, in which contenders stand that have
// a lock-delay, if we have none: we would not wait for it.
func (c *engine) notDelayed(r *recipe, names []string) error {
	if !r.delays || c.delay > 0 || !slices.ContainsFunc(names, isDelayed) {
		return nil
	}
	return fmt.Errorf("%w: the lock has a lock-delay, and this client has none", ErrInvalid)
}

// notAQueue refuses a directory in which contenders for a lock stand, for a semaphore that is new there.
func (r *requests) notAQueue(ctx context.Context, sess *session, dir string) error {
	l, err := r.list(ctx, sess, dir)
	if err != nil {
		return err
	}
	if len(parseEntries(l.names)) > 0 {
		return fmt.Errorf("%w: a lock of another kind is at that path", ErrInvalid)
	}
	return nil
}
