package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// Revoke asks a contender that Inspect has returned to let go of its lock. It closes the
// holder's Hold.Revoked; the holder decides whether and when to unlock. Curator's holders
// with a RevocationListener are asked in the way that they understand; holders of other
// libraries do not notice. A waiter is asked as soon as it holds, unless it loses its node
// before it is next in line.
//
// If the contender is gone, Revoke returns ErrNotHeld. If it is a member of an election with
// Latch, Revoke returns ErrInvalid and changes nothing: Curator's latches wait for the end
// of the node before their own, and a change of its data would make them wait for ever.
func (c *Client) Revoke(ctx context.Context, who Contender) error {
	inside, stop := either(ctx, c.life)
	defer stop()
	if err := c.revoke(inside, who); err != nil {
		return fmt.Errorf("zklock: revoke %s: %w", printable(who.Node), c.explain(inside, err))
	}
	return nil
}

func (c *Client) revoke(ctx context.Context, who Contender) error {
	if err := who.check(); err != nil {
		return err
	}
	if strings.Contains(who.name(), latchInfix) {
		return fmt.Errorf("%w: a leader latch cannot be asked to let go", ErrInvalid)
	}
	for {
		n, err := c.seek(ctx, who)
		if err != nil || isRevocation(n.data) {
			return err
		}
		mark := curatorRevocation
		if clientOf(who.name()) == ClientZklock {
			mark = withRevocation(n.data)
		}
		_, err = persist(ctx, c.requests, func(s *session) (*zk.Stat, error) {
			return c.set(ctx, s, who.Node, mark, n.stat.Version)
		})
		if !errors.Is(err, zk.ErrBadVersion) { // else somebody wrote meanwhile, perhaps we, and the answer was lost
			return notHeldIfMissing(err)
		}
	}
}

// seek reads a contender's node and checks that it is still that contender's.
func (c *Client) seek(ctx context.Context, who Contender) (node, error) {
	n, err := persist(ctx, c.requests, func(s *session) (node, error) { return c.get(ctx, s, who.Node) })
	switch {
	case err != nil:
		return node{}, notHeldIfMissing(err)
	case who.Session != 0 && n.stat.EphemeralOwner != who.Session:
		return node{}, fmt.Errorf("%w: the node is of session 0x%x, not 0x%x", ErrNotHeld, n.stat.EphemeralOwner, who.Session)
	case who.Token != 0 && n.stat.Czxid != who.Token:
		return node{}, fmt.Errorf("%w: the node is another one of the same name", ErrNotHeld)
	}
	return n, nil
}

func notHeldIfMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: the node is gone", ErrNotHeld)
	}
	return err
}

// revocation is a request to let go. All nodes of one acquire share it: its place in the
// queue, its permits, and the nodes that it creates when it has to queue again.
type revocation struct {
	once  sync.Once
	heard chan struct{} // closed when somebody has asked
}

func newRevocation() *revocation { return &revocation{heard: make(chan struct{})} }

func (r *revocation) hear() { r.once.Do(func() { close(r.heard) }) }

// hear looks for a request to let go in our own node's data.
func (t *contender) hear(n node) bool {
	if !isRevocation(n.data) {
		return false
	}
	t.asked.hear()
	return true
}

// inspect looks for a request and for a forged downgrade in our own node's data, and
// restores the data beside the request. The node's watcher calls it.
func (t *contender) inspect(n node) {
	if isDowngraded(n.data) && !isDowngraded(t.ownData()) {
		t.forsake(errForged)
	}
	if t.hear(n) {
		t.putBack(n)
	}
}

// shown returns data as it should stand in our node: with the request, if there was one.
func (t *contender) shown(data []byte) []byte {
	if t.recipe != latchRecipe && isClosed(t.asked.heard) {
		return withRevocation(data)
	}
	return data
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

// putBack restores our data, with the request, if Curator's message has replaced it. It does
// not restore a latch's: see Revoke.
func (t *contender) putBack(n node) {
	if t.recipe == latchRecipe || !bytes.Equal(n.data, curatorRevocation) {
		return
	}
	var p pace
	for {
		_, err := t.c.set(t.c.life, t.sess, t.path(), withRevocation(t.ownData()), n.stat.Version)
		if !isTransient(err) || !t.linger(p.longer()) {
			return // written; or somebody wrote since, which is looked at as well
		}
	}
}

// ownData returns what our node's data should be.
func (t *contender) ownData() []byte {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.data
}
