// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

func (c client) inspect(ctx context.Context, path string) (*Queue, error) {
	callCtx := c.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	if err := node.CheckPath(path); err != nil {
		return nil, fmt.Errorf("zklock: inspect %s: %w", node.Printable(path), err)
	}
	q, err := session.Persist(callCtx, c.Requests, func(s *session.Session) (*Queue, error) { return c.look(callCtx, s, path) })
	if err != nil {
		return nil, fmt.Errorf("zklock: inspect %s: %w", node.Printable(path), c.Requests.Explain(callCtx, err))
	}
	return q, nil
}

func (c client) look(ctx context.Context, s *session.Session, path string) (*Queue, error) {
	l, err := c.Requests.FreshList(ctx, s, c.Root+path)
	if errors.Is(err, zk.ErrNoNode) {
		return &Queue{Path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	return c.lookIn(ctx, s, path, l)
}

// lookIn reads the queue of a directory that was already listed.
func (c client) lookIn(ctx context.Context, s *session.Session, path string, l session.Listing) (*Queue, error) {
	dir := c.Root + path
	entries := node.ParseEntries(l.Names)
	q := &Queue{Path: path, Issued: issued(l.Stat, entries)}
	var err error
	q.Contenders, err = c.readAll(ctx, s, dir, entries)
	if err == nil && len(q.Contenders) > 0 && node.HasDelayMark(nameOf(q.Contenders[0])) {
		err = c.lookAtDelay(ctx, s, dir, q)
	}
	if err == nil && slices.Contains(l.Names, node.LeasesDir[1:]) {
		err = c.lookAtPermits(ctx, s, dir, q)
	}
	return q, err
}

// lookAtDelay clears Holds of all contenders while the lock-delay runs.
func (c client) lookAtDelay(ctx context.Context, s *session.Session, dir string, q *Queue) error {
	r, err := c.ReadRecord(ctx, s, dir)
	if errors.Is(err, zklock.ErrMismatch) { // it cannot be parsed
		return nil
	}
	there := slices.ContainsFunc(q.Contenders, func(contender zklock.Contender) bool { return nameOf(contender) == r.By })
	if r.Fate == node.WasLost || r.Fate == node.IsHeld && !there {
		for i := range q.Contenders {
			q.Contenders[i].Holds = false
		}
	}
	return err
}

// lookAtPermits adds the contenders of a semaphore: first the held permits, in order, and then the
// places in the queue of the acquires that wait for permits. The first of these may already have
// created its permits; only its place in the queue is shown.
func (c client) lookAtPermits(ctx context.Context, s *session.Session, dir string, q *Queue) error {
	n, err := c.Requests.Get(ctx, s, dir+node.LeasesDir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	if limit, err := node.ParseLimit(n.Data); err == nil { // Curator stores no number
		q.Permits = limit
	}
	asking, err := c.lookAtPermitsIn(ctx, s, dir+node.PermitQueueDir, q)
	if err != nil {
		return err
	}
	permits, err := c.lookAtPermitsIn(ctx, s, dir+node.LeasesDir, q)
	if err != nil {
		return err
	}
	q.Contenders = append(q.Contenders, showPermits(permits, asking, q.Permits)...)
	return nil
}

// lookAtPermitsIn reads one of a semaphore's directories.
func (c client) lookAtPermitsIn(ctx context.Context, s *session.Session, dir string, q *Queue) ([]zklock.Contender, error) {
	l, err := c.Requests.List(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := node.ParseEntries(l.Names)
	q.Issued = max(q.Issued, issued(l.Stat, entries))
	found, err := c.readAll(ctx, s, dir, entries)
	for i := range found {
		found[i].Kind = KindPermit
	}
	return found, err
}

// showPermits returns the nodes of permits that are held, followed by one node for each acquire
// that waits for permits. The names of zklock's nodes show which of them belong to one acquire: it
// waits as long as its place in the queue exists and its permits are not all within the limit. All
// other zklock permits are held, even if there are more than the limit after a Resize. Permits of
// other libraries are held if they are within the limit.
func showPermits(permits, asking []zklock.Contender, limit int) []zklock.Contender {
	asks, made, unfit := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, waiter := range asking {
		asks[node.GroupOf(nameOf(waiter))] = true
	}
	within := func(i int) bool { return limit == 0 || i < limit }
	for i, p := range permits {
		group := node.GroupOf(nameOf(p))
		made[group] = true
		unfit[group] = unfit[group] || !within(i)
	}
	var shown []zklock.Contender
	for i, p := range permits {
		group := node.GroupOf(nameOf(p))
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
	for _, waiter := range asking {
		group := node.GroupOf(nameOf(waiter))
		if group != "" && made[group] && !unfit[group] {
			continue // it holds and is about to leave the queue
		}
		waiter.Holds = false
		shown = append(shown, waiter)
	}
	return shown
}

// issued returns the number of children that a directory has ever had. Cversion counts creations
// plus deletions; adding the children that still exist gives twice the number of creations.
func issued(stat *zk.Stat, entries []node.Entry) int64 {
	if slices.ContainsFunc(entries, func(e node.Entry) bool { return e.Seq < 0 }) {
		return 1<<31 - 1 // the counter is exhausted
	}
	return int64(uint32(stat.Cversion+stat.NumChildren) / 2)
}

// readersAtOnce limits how many requests Inspect sends at the same time, and therefore the memory
// for the nodes' data, which can be up to a megabyte each.
const readersAtOnce = 16

// readAll reads the nodes of entries and returns them in order, without deleted nodes.
func (c client) readAll(ctx context.Context, s *session.Session, dir string, entries []node.Entry) ([]zklock.Contender, error) {
	type found struct {
		node.Entry
		contender zklock.Contender
	}
	all := make([]*found, len(entries))
	err := session.SideBySide(c.Requests.Calls, len(entries), readersAtOnce, func(i int) error {
		e := entries[i]
		n, err := c.Requests.Get(ctx, s, dir+"/"+e.Name)
		if err != nil {
			return outcome.IgnoreMissing(err)
		}
		e.Czxid, e.Shared = n.Stat.Czxid, e.Shared || node.IsDowngraded(n.Data)
		all[i] = &found{e, shortened(zklock.Contender(e.View(dir, n.Data, n.Stat)))}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(f *found) bool { return f == nil })
	slices.SortFunc(all, func(a, b *found) int { return node.Compare(a.Entry, b.Entry) })
	contenders := make([]zklock.Contender, len(all))
	exclusive := false // whether a contender ahead is exclusive
	for i, f := range all {
		contenders[i] = f.contender
		contenders[i].Holds = i == 0 || f.Shared && !exclusive
		exclusive = exclusive || !f.Shared
	}
	return contenders, nil
}
