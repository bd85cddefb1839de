// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
)

func (c client) evict(ctx context.Context, reason string, contenders ...zklock.Contender) error {
	if len(reason) > node.MaxReason {
		return fmt.Errorf("zklock: evict: %w: reason of %d bytes, the limit is %d", zklock.ErrInvalid, len(reason), node.MaxReason)
	}
	origin := node.NewOrigin(c.Identity, reason)
	callCtx := c.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	var errs []error
	evicted := map[string]bool{} // by group: evicting one of several permits removes the others
	for _, w := range evictionOrder(contenders) {
		err := c.evictOne(callCtx, w, origin)
		group := node.GroupOf(nameOf(w))
		if errors.Is(err, zklock.ErrNotHeld) && evicted[group] {
			continue
		}
		evicted[group] = group != "" && (err == nil || evicted[group])
		if err != nil {
			errs = append(errs, fmt.Errorf("zklock: evict %s: %w", node.Printable(w.Node), c.Requests.Explain(callCtx, err)))
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// evictionOrder returns waiters before holders, the last in the queue first.
func evictionOrder(contenders []zklock.Contender) []zklock.Contender {
	var waiting, holding []zklock.Contender
	for _, w := range slices.Backward(contenders) {
		if w.Holds {
			holding = append(holding, w)
		} else {
			waiting = append(waiting, w)
		}
	}
	return append(waiting, holding...)
}

func (c client) evictOne(ctx context.Context, contender zklock.Contender, origin node.Origin) error {
	if err := check(contender); err != nil {
		return err
	}
	for {
		n, err := c.seek(ctx, contender)
		if err == nil && n.Stat.EphemeralOwner != contender.Session {
			err = fmt.Errorf("%w: the node belongs to a different session, 0x%x", zklock.ErrNotHeld, n.Stat.EphemeralOwner)
		}
		if err != nil {
			return err
		}
		_, err = session.Persist(ctx, c.Requests, func(s *session.Session) (struct{}, error) {
			return struct{}{}, c.deleteAndMark(ctx, s, contender, n.Stat.Version, origin)
		})
		if errors.Is(err, zk.ErrNotEmpty) {
			_, err = session.Persist(ctx, c.Requests, func(s *session.Session) (struct{}, error) { return struct{}{}, c.clearOut(ctx, s, contender.Node) })
			if err == nil {
				continue
			}
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode): // gone in the meantime, perhaps deleted by us if a reply was lost
			_, err = session.Persist(ctx, c.Requests, func(s *session.Session) (struct{}, error) { return struct{}{}, c.deletePermits(ctx, s, contender) })
			return err
		case !errors.Is(err, zk.ErrBadVersion): // otherwise its data or the directory's was written in the meantime
			return err
		}
	}
}

// deleteAndMark deletes a contender's node. The same transaction leaves a mark for the node's owner, which
// may be waiting, or may be first without knowing it yet.
func (c client) deleteAndMark(ctx context.Context, s *session.Session, contender zklock.Contender, version int32, origin node.Origin) error {
	dir := node.EvictedIn(contender.Node[:strings.LastIndexByte(contender.Node, '/')], contender.Kind == KindPermit)
	guid := node.GUIDOf(nameOf(contender))
	if guid == "" || !c.Unnoted.MayNote(dir, nil) {
		return c.Requests.Delete(ctx, s, contender.Node, version)
	}
	n, err := c.Requests.Get(ctx, s, dir)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	b, ours := node.ParseDirData(n.Data)
	if err != nil || !ours {
		return c.Requests.Delete(ctx, s, contender.Node, version)
	}
	answers, err := c.Requests.Multi(ctx, s,
		&zk.DeleteRequest{Path: contender.Node, Version: version},
		&zk.SetDataRequest{Path: dir, Data: b.WithEvicted(node.Eviction{GUID: guid, Origin: origin}).Encode(), Version: n.Stat.Version})
	if queue.Refused(answers) == 1 && (errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) && !c.Unnoted.MayNote(dir, answers)) {
		return c.Requests.Delete(ctx, s, contender.Node, version)
	}
	return err
}

// deletePermits deletes the permits that a contender created from its place in the queue, which is gone:
// the permits may have been granted in the meantime.
func (c client) deletePermits(ctx context.Context, s *session.Session, contender zklock.Contender) error {
	above, isPlace := strings.CutSuffix(contender.Node[:strings.LastIndexByte(contender.Node, '/')], node.PermitQueueDir)
	group := node.GroupOf(nameOf(contender))
	if contender.Kind != KindPermit || !isPlace || group == "" {
		return nil
	}
	leases := above + node.LeasesDir
	l, err := c.Requests.FreshList(ctx, s, leases)
	if err != nil {
		return outcome.IgnoreMissing(err)
	}
	for _, name := range l.Names {
		if node.GroupOf(name) != group {
			continue
		}
		stat, err := c.Requests.Stat(ctx, s, leases+"/"+name)
		if err == nil && stat.EphemeralOwner == contender.Session {
			err = c.Requests.Delete(ctx, s, leases+"/"+name, -1)
		}
		err = outcome.IgnoreMissing(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// clearOut deletes the nodes below a contender's node. No lock creates such nodes, and they prevent
// the removal of the contender.
func (c client) clearOut(ctx context.Context, s *session.Session, path string) error {
	l, err := c.Requests.List(ctx, s, path)
	if err != nil {
		return c.explainNoAuth(ctx, s, path, zk.PermRead, "list", outcome.IgnoreMissing(err))
	}
	for _, name := range l.Names {
		child := path + "/" + name
		err := c.Requests.Delete(ctx, s, child, -1)
		if errors.Is(err, zk.ErrNotEmpty) {
			err = c.clearOut(ctx, s, child)
			if err == nil {
				err = c.Requests.Delete(ctx, s, child, -1)
			}
		}
		err = outcome.IgnoreMissing(err)
		if err != nil && !errors.Is(err, zk.ErrNotEmpty) {
			return c.explainNoAuth(ctx, s, path, zk.PermDelete, "delete", err)
		}
	}
	return nil
}

// explainNoAuth adds to a refusal who has the permission perm for the children of a node, if that
// can be determined.
func (c client) explainNoAuth(ctx context.Context, s *session.Session, path string, perm int32, what string, err error) error {
	if !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	acl, aclErr := c.Requests.GetACL(ctx, s, path)
	if aclErr != nil {
		return fmt.Errorf("%s children of %s: not permitted, and the ACL cannot be read: %w", what, node.Printable(path), err)
	}
	var may []string
	for _, a := range acl {
		if a.Perms&perm != 0 {
			user, _, _ := strings.Cut(a.ID, ":") // without the password's hash
			may = append(may, node.Printable(a.Scheme+":"+user))
		}
	}
	return fmt.Errorf("%s children of %s: only these identities may: [%s]: %w", what, node.Printable(path), strings.Join(may, " "), err)
}
