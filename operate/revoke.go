// SPDX-License-Identifier: Apache-2.0

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

func (c client) revoke(ctx context.Context, contender zklock.Contender) error {
	callCtx := c.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	if err := c.mark(callCtx, contender); err != nil {
		return fmt.Errorf("zklock: revoke %s: %w", node.Printable(contender.Node), c.Requests.Explain(callCtx, err))
	}
	return nil
}

func (c client) mark(ctx context.Context, contender zklock.Contender) error {
	if err := check(contender); err != nil {
		return err
	}
	if strings.Contains(nameOf(contender), node.LatchInfix) {
		return fmt.Errorf("%w: a LeaderLatch cannot be revoked", zklock.ErrInvalid)
	}
	for {
		n, err := c.seek(ctx, contender)
		if err != nil || node.IsRevocation(n.Data) {
			return err
		}
		mark := node.CuratorRevocation
		if node.ClientOf(nameOf(contender)) == node.ClientZklock {
			mark = node.WithRevocation(n.Data)
		}
		_, err = session.Persist(ctx, c.Requests, func(s *session.Session) (*zk.Stat, error) {
			return c.Requests.Set(ctx, s, contender.Node, mark, n.Stat.Version)
		})
		if !errors.Is(err, zk.ErrBadVersion) { // otherwise the node was written in the meantime, perhaps by us and the reply was lost
			return notHeldIfMissing(err)
		}
	}
}

// seek reads a contender's node and checks that it still belongs to that contender.
func (c client) seek(ctx context.Context, contender zklock.Contender) (session.Node, error) {
	n, err := session.Persist(ctx, c.Requests, func(s *session.Session) (session.Node, error) { return c.Requests.Get(ctx, s, contender.Node) })
	switch {
	case err != nil:
		return session.Node{}, notHeldIfMissing(err)
	case contender.Session != 0 && n.Stat.EphemeralOwner != contender.Session:
		return session.Node{}, fmt.Errorf("%w: the node belongs to session 0x%x, not 0x%x", zklock.ErrNotHeld, n.Stat.EphemeralOwner, contender.Session)
	case contender.Token != 0 && n.Stat.Czxid != contender.Token:
		return session.Node{}, fmt.Errorf("%w: the node is a different one with the same name", zklock.ErrNotHeld)
	}
	return n, nil
}

func notHeldIfMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: the node is gone", zklock.ErrNotHeld)
	}
	return err
}
