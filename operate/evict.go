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

func (c client) evict(ctx context.Context, who ...zklock.Contender) error {
	inside := c.Inside(ctx)
	defer inside.Leave()
	var errs []error
	evicted := map[string]bool{} // by group: one of several permits takes the others with it
	for _, w := range evictionOrder(who) {
		err := c.evictOne(inside, w)
		group := node.GroupOf(nameOf(w))
		if errors.Is(err, zklock.ErrNotHeld) && evicted[group] {
			continue
		}
		evicted[group] = group != "" && (err == nil || evicted[group])
		if err != nil {
			errs = append(errs, fmt.Errorf("zklock: evict %s: %w", node.Printable(w.Node), c.Explain(inside, err)))
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// evictionOrder puts those that wait before those that hold, the last in the queue first.
func evictionOrder(who []zklock.Contender) []zklock.Contender {
	var waiting, holding []zklock.Contender
	for _, w := range slices.Backward(who) {
		if w.Holds {
			holding = append(holding, w)
		} else {
			waiting = append(waiting, w)
		}
	}
	return append(waiting, holding...)
}

func (c client) evictOne(ctx context.Context, who zklock.Contender) error {
	if err := check(who); err != nil {
		return err
	}
	for {
		n, err := c.seek(ctx, who)
		if err == nil && n.Stat.EphemeralOwner != who.Session {
			err = fmt.Errorf("%w: the node belongs to another session, 0x%x", zklock.ErrNotHeld, n.Stat.EphemeralOwner)
		}
		if err != nil {
			return err
		}
		_, err = session.Persist(ctx, c.Requests, func(s *session.Session) (struct{}, error) { return struct{}{}, c.expel(ctx, s, who, n.Stat.Version) })
		if errors.Is(err, zk.ErrNotEmpty) {
			_, err = session.Persist(ctx, c.Requests, func(s *session.Session) (struct{}, error) { return struct{}{}, c.clearOut(ctx, s, who.Node) })
			if err == nil {
				continue
			}
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode): // gone since: by us, if an answer was lost
			_, err = session.Persist(ctx, c.Requests, func(s *session.Session) (struct{}, error) { return struct{}{}, c.takeBack(ctx, s, who) })
			return err
		case !errors.Is(err, zk.ErrBadVersion): // else its data, or the directory's, was written meanwhile
			return err
		}
	}
}

// expel deletes a contender's node. The same transaction leaves a mark for its maker, which may
// wait, or be first without knowing it yet.
func (c client) expel(ctx context.Context, s *session.Session, who zklock.Contender, version int32) error {
	dir := node.EvictedIn(who.Node[:strings.LastIndexByte(who.Node, '/')], who.Kind == KindPermit)
	guid := node.GUIDOf(nameOf(who))
	if guid == "" || !c.MayNote(dir, nil) {
		return c.Delete(ctx, s, who.Node, version)
	}
	n, err := c.Get(ctx, s, dir)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	b, ours := node.ParseDirData(n.Data)
	if err != nil || !ours {
		return c.Delete(ctx, s, who.Node, version)
	}
	answers, err := c.Multi(ctx, s,
		&zk.DeleteRequest{Path: who.Node, Version: version},
		&zk.SetDataRequest{Path: dir, Data: b.WithEvicted(guid).Encode(), Version: n.Stat.Version})
	if queue.Refused(answers) == 1 && (errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) && !c.MayNote(dir, answers)) {
		return c.Delete(ctx, s, who.Node, version)
	}
	return err
}

// takeBack deletes the permits that a contender has made from its place in the queue for them, which is gone: it may have been
// granted them meanwhile.
func (c client) takeBack(ctx context.Context, s *session.Session, who zklock.Contender) error {
	above, isPlace := strings.CutSuffix(who.Node[:strings.LastIndexByte(who.Node, '/')], node.GateDir)
	group := node.GroupOf(nameOf(who))
	if who.Kind != KindPermit || !isPlace || group == "" {
		return nil
	}
	leases := above + node.LeasesDir
	l, err := c.FreshList(ctx, s, leases)
	if err != nil {
		return outcome.IgnoreMissing(err)
	}
	for _, name := range l.Names {
		if node.GroupOf(name) != group {
			continue
		}
		stat, err := c.Stat(ctx, s, leases+"/"+name)
		if err == nil && stat.EphemeralOwner == who.Session {
			err = c.Delete(ctx, s, leases+"/"+name, -1)
		}
		if err = outcome.IgnoreMissing(err); err != nil {
			return err
		}
	}
	return nil
}

// clearOut deletes the nodes below a contender's. No lock makes such nodes: they keep a contender
// from being removed.
func (c client) clearOut(ctx context.Context, s *session.Session, path string) error {
	l, err := c.List(ctx, s, path)
	if err != nil {
		return c.nameThoseWhoMay(ctx, s, path, zk.PermRead, "list", outcome.IgnoreMissing(err))
	}
	for _, name := range l.Names {
		child := path + "/" + name
		err := c.Delete(ctx, s, child, -1)
		if errors.Is(err, zk.ErrNotEmpty) {
			if err = c.clearOut(ctx, s, child); err == nil {
				err = c.Delete(ctx, s, child, -1)
			}
		}
		if err = outcome.IgnoreMissing(err); err != nil && !errors.Is(err, zk.ErrNotEmpty) {
			return c.nameThoseWhoMay(ctx, s, path, zk.PermDelete, "delete", err)
		}
	}
	return nil
}

// nameThoseWhoMay adds to the refusal of what was to be done with the children of a node who has
// the permission for it, if that can be known.
func (c client) nameThoseWhoMay(ctx context.Context, s *session.Session, path string, perm int32, what string, err error) error {
	if !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	acl, aclErr := c.GetACL(ctx, s, path)
	if aclErr != nil {
		return fmt.Errorf("%s the children of %s, by whose ACL that is not allowed, nor may the ACL be read: %w", what, node.Printable(path), err)
	}
	var may []string
	for _, a := range acl {
		if a.Perms&perm != 0 {
			user, _, _ := strings.Cut(a.ID, ":") // not the password's hash
			may = append(may, node.Printable(a.Scheme+":"+user))
		}
	}
	return fmt.Errorf("%s the children of %s, which by its ACL only these may: [%s]: %w", what, node.Printable(path), strings.Join(may, " "), err)
}
