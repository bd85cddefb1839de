package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

func (c client) revoke(ctx context.Context, who zklock.Contender) error {
	inside := c.Inside(ctx)
	defer inside.Leave()
	if err := c.mark(inside, who); err != nil {
		return fmt.Errorf("zklock: revoke %s: %w", node.Printable(who.Node), c.Explain(inside, err))
	}
	return nil
}

func (c client) mark(ctx context.Context, who zklock.Contender) error {
	if err := check(who); err != nil {
		return err
	}
	if strings.Contains(nameOf(who), node.LatchInfix) {
		return fmt.Errorf("%w: a leader latch cannot be asked to let go", zklock.ErrInvalid)
	}
	for {
		n, err := c.seek(ctx, who)
		if err != nil || node.IsRevocation(n.Data) {
			return err
		}
		mark := node.CuratorRevocation
		if node.ClientOf(nameOf(who)) == node.ClientZklock {
			mark = node.WithRevocation(n.Data)
		}
		_, err = session.Persist(ctx, c.Requests, func(s *session.Session) (*zk.Stat, error) {
			return c.Set(ctx, s, who.Node, mark, n.Stat.Version)
		})
		if !errors.Is(err, zk.ErrBadVersion) { // else somebody wrote meanwhile, perhaps we, and the answer was lost
			return notHeldIfMissing(err)
		}
	}
}

// seek reads a contender's node and checks that it is still that contender's.
func (c client) seek(ctx context.Context, who zklock.Contender) (session.Node, error) {
	n, err := session.Persist(ctx, c.Requests, func(s *session.Session) (session.Node, error) { return c.Get(ctx, s, who.Node) })
	switch {
	case err != nil:
		return session.Node{}, notHeldIfMissing(err)
	case who.Session != 0 && n.Stat.EphemeralOwner != who.Session:
		return session.Node{}, fmt.Errorf("%w: the node is of session 0x%x, not 0x%x", zklock.ErrNotHeld, n.Stat.EphemeralOwner, who.Session)
	case who.Token != 0 && n.Stat.Czxid != who.Token:
		return session.Node{}, fmt.Errorf("%w: the node is another one of the same name", zklock.ErrNotHeld)
	}
	return n, nil
}

func notHeldIfMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: the node is gone", zklock.ErrNotHeld)
	}
	return err
}
