package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

func (c operator) Evict(ctx context.Context, who ...Contender) error {
	inside, stop := either(ctx, c.life)
	defer stop()
	var errs []error
	evicted := map[string]bool{} // by group: one of several permits takes the others with it
	for _, w := range evictionOrder(who) {
		err := c.evict(inside, w)
		group := groupOf(w.name())
		if errors.Is(err, ErrNotHeld) && evicted[group] {
			continue
		}
		evicted[group] = group != "" && (err == nil || evicted[group])
		if err != nil {
			errs = append(errs, fmt.Errorf("zklock: evict %s: %w", printable(w.Node), c.explain(inside, err)))
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// evictionOrder puts those that wait before those that hold, the last in the queue first.
func evictionOrder(who []Contender) []Contender {
	var waiting, holding []Contender
	for _, w := range slices.Backward(who) {
		if w.Holds {
			holding = append(holding, w)
		} else {
			waiting = append(waiting, w)
		}
	}
	return append(waiting, holding...)
}

func (c *Client) evict(ctx context.Context, who Contender) error {
	if err := who.check(); err != nil {
		return err
	}
	for {
		n, err := c.seek(ctx, who)
		if err == nil && n.stat.EphemeralOwner != who.Session {
			err = fmt.Errorf("%w: the node belongs to another session, 0x%x", ErrNotHeld, n.stat.EphemeralOwner)
		}
		if err != nil {
			return err
		}
		_, err = persist(ctx, c.requests, func(s *session) (struct{}, error) { return struct{}{}, c.expel(ctx, s, who, n.stat.Version) })
		switch {
		case errors.Is(err, zk.ErrNoNode): // gone since: by us, if an answer was lost
			return nil
		case !errors.Is(err, zk.ErrBadVersion): // else its data, or the directory's, was written meanwhile
			return err
		}
	}
}

// expel deletes a contender's node. If the contender waits, the same transaction leaves a
// mark for it.
func (c *Client) expel(ctx context.Context, s *session, who Contender, version int32) error {
	dir := who.Node[:strings.LastIndexByte(who.Node, '/')]
	guid := guidOf(who.name())
	if who.Holds || guid == "" || !c.mayNote(dir, nil) {
		return c.deleteVersion(ctx, s, who.Node, version)
	}
	n, err := c.get(ctx, s, dir)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	b, ours := parseBoard(n.data)
	if err != nil || !ours {
		return c.deleteVersion(ctx, s, who.Node, version)
	}
	answers, err := c.multi(ctx, s,
		&zk.DeleteRequest{Path: who.Node, Version: version},
		&zk.SetDataRequest{Path: dir, Data: b.withEvicted(guid).encode(), Version: n.stat.Version})
	if errors.Is(err, zk.ErrNoAuth) && !c.mayNote(dir, answers) {
		return c.deleteVersion(ctx, s, who.Node, version)
	}
	return err
}
