package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

func (c operator) Revoke(ctx context.Context, who Contender) error {
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
		if clientOf(who.name()) == clientZklock {
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
