package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

func (c operator) Inspect(ctx context.Context, path string) (*snapshot, error) {
	inside, stop := either(ctx, c.life)
	defer stop()
	if err := checkPath(path); err != nil {
		return nil, fmt.Errorf("zklock: inspect %s: %w", printable(path), err)
	}
	q, err := persist(inside, c.requests, func(s *session) (*snapshot, error) { return c.look(inside, s, path) })
	if err != nil {
		return nil, fmt.Errorf("zklock: inspect %s: %w", printable(path), c.explain(inside, err))
	}
	return q, nil
}

func (c *Client) look(ctx context.Context, s *session, path string) (*snapshot, error) {
	dir := c.root + path
	q := &snapshot{Path: path}
	l, err := c.freshList(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return q, nil
	}
	if err != nil {
		return nil, err
	}
	entries := parseEntries(l.names)
	q.Issued = issued(l.stat, entries)
	q.Contenders, err = c.readAll(ctx, s, dir, entries)
	if err == nil && len(q.Contenders) > 0 && isDelayed(q.Contenders[0].name()) {
		err = c.lookAtDelay(ctx, s, dir, q)
	}
	if err == nil && slices.Contains(l.names, leasesDir[1:]) {
		err = c.lookAtPermits(ctx, s, dir, q)
	}
	return q, err
}

// lookAtDelay shows nobody as a holder while all wait for the lock-delay.
func (c *Client) lookAtDelay(ctx context.Context, s *session, dir string, q *snapshot) error {
	r, err := c.readRecord(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, ErrInvalid) {
		return nil
	}
	there := slices.ContainsFunc(q.Contenders, func(who Contender) bool { return who.name() == r.by })
	if r.fate == wasLost || r.fate == isHeld && !there {
		for i := range q.Contenders {
			q.Contenders[i].Holds = false
		}
	}
	return err
}

// lookAtPermits adds the contenders of a semaphore: the permits that are held, in order, and
// then the places in the queue of those that ask for some. The first of these may have
// created its permits already; only its place in the queue is shown.
func (c *Client) lookAtPermits(ctx context.Context, s *session, dir string, q *snapshot) error {
	n, err := c.get(ctx, s, dir+leasesDir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	if limit, err := parseLimit(n.data); err == nil { // Curator stores none
		q.Permits = limit
	}
	asking, err := c.lookAtPermitsIn(ctx, s, dir+gateDir, q)
	if err != nil {
		return err
	}
	permits, err := c.lookAtPermitsIn(ctx, s, dir+leasesDir, q)
	if err != nil {
		return err
	}
	q.Contenders = append(q.Contenders, showPermits(permits, asking, q.Permits)...)
	return nil
}

// lookAtPermitsIn reads one of a semaphore's directories.
func (c *Client) lookAtPermitsIn(ctx context.Context, s *session, dir string, q *snapshot) ([]Contender, error) {
	l, err := c.list(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := parseEntries(l.names)
	q.Issued = max(q.Issued, issued(l.stat, entries))
	found, err := c.readAll(ctx, s, dir, entries)
	for i := range found {
		found[i].Kind = kindPermit
	}
	return found, err
}

// showPermits returns the nodes of permits that are held, and after them one node for each
// acquire that waits for some. The names of this library's nodes show which belong to one
// acquire: it waits as long as its place in the queue exists and its permits are not all
// within the limit. All other permits of this library are held, even if they are more than
// the limit after a Resize. Permits of other libraries are held if they are within the limit.
func showPermits(permits, asking []Contender, limit int) []Contender {
	asks, made, unfit := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, gate := range asking {
		asks[groupOf(gate.name())] = true
	}
	within := func(i int) bool { return limit == 0 || i < limit }
	for i, p := range permits {
		group := groupOf(p.name())
		made[group] = true
		unfit[group] = unfit[group] || !within(i)
	}
	var shown []Contender
	for i, p := range permits {
		group := groupOf(p.name())
		switch waits := asks[group] && unfit[group]; {
		case group == "":
			p.Holds = within(i)
		case waits:
			continue // its place in the queue is shown instead
		default:
			p.Holds = true
		}
		shown = append(shown, p)
	}
	for _, gate := range asking {
		group := groupOf(gate.name())
		if group != "" && made[group] && !unfit[group] {
			continue // it holds and is about to leave the queue
		}
		gate.Holds = false
		shown = append(shown, gate)
	}
	return shown
}

// issued returns the number of children that a directory has ever had. Cversion counts
// creations plus deletions; adding the children that still exist gives twice the number of
// creations.
func issued(stat *zk.Stat, entries []entry) int64 {
	if slices.ContainsFunc(entries, func(e entry) bool { return e.seq < 0 }) {
		return 1<<31 - 1 // the counter is exhausted
	}
	return int64(uint32(stat.Cversion+stat.NumChildren) / 2)
}

// readersAtOnce bounds how many requests Inspect sends at once, and with that the memory for
// the nodes' data, which can be a megabyte each.
const readersAtOnce = 16

// readAll reads the nodes of entries and returns them in order, without those that are gone.
func (c *Client) readAll(ctx context.Context, s *session, dir string, entries []entry) ([]Contender, error) {
	type found struct {
		entry
		who Contender
	}
	all := make([]*found, len(entries))
	err := sideBySide(c.calls, len(entries), readersAtOnce, func(i int) error {
		e := entries[i]
		n, err := c.get(ctx, s, dir+"/"+e.name)
		if err != nil {
			return ignoreMissing(err)
		}
		e.czxid, e.shared = n.stat.Czxid, e.shared || isDowngraded(n.data)
		all[i] = &found{e, shortened(newContenderOf(dir, e, n))}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(f *found) bool { return f == nil })
	slices.SortFunc(all, func(a, b *found) int { return order(a.entry, b.entry) })
	contenders := make([]Contender, len(all))
	exclusive := false // one of those ahead excludes others
	for i, f := range all {
		contenders[i] = f.who
		contenders[i].Holds = i == 0 || f.shared && !exclusive
		exclusive = exclusive || !f.shared
	}
	return contenders, nil
}
