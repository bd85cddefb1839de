package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Evict removes contenders that Inspect has returned, whatever they are doing. It is for
// operators: a process hangs, and others need its lock. Evict removes the waiters first,
// beginning with the last, so that none of them is granted in between.
//
// A holder of this library learns of it at once, with ErrLost. A holder of another library
// may go on as if it held the lock: make sure that it is stopped. A waiter of this library
// gets ErrEvicted when those ahead of it have gone, and does not queue again; if the
// directory's data cannot be written or belongs to somebody else, the waiter does not learn
// that it was evicted, and queues again.
//
// Evict only removes the given nodes, and only while they belong to the given sessions; a
// node that no session ends has the session 0. If a contender is gone, the error wraps
// ErrNotHeld. If several are given, the error names those that were not removed, and the
// others are removed.
func (c *Client) Evict(ctx context.Context, who ...Contender) error {
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
