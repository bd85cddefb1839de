// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// enter creates the contender's node at the end of the queue, under session s, and finds its
// position. It sends the listing together with the create; the server processes them in that order.
func (t *place) enter(ctx context.Context, s *session.Session) error {
	var p session.Pace
	for {
		b, err := t.engine.Requests.Bundle(ctx, s)
		if err != nil {
			return err
		}
		t.begin(b, s)
		a := t.creation
		list := func(context.Context) (none session.Listing, _ error) { return none, zk.ErrNoNode }
		if a.counted == nil {
			list = b.List(t.Dir)
		}
		err = b.Send(ctx)
		if err != nil {
			return err
		}
		l, listErr := list(ctx)
		err = t.settle(ctx)
		if err != nil {
			return err
		}
		switch a.fate(t.Name != "", t.engine.Requests.Link.Carries(s)) {
		case wasCreated:
			if listErr == nil {
				return t.locate(ctx, &l)
			}
			return t.locate(ctx, nil)
		case mayBeLate:
			return outcome.ErrSessionOver
		case metOthers:
			t.noticeOthers(a)
		case lacksReplaced:
			t.engine.remove(a.takeReplaced())
		case lacksDir:
			err = t.engine.Directories.MakeDir(ctx, s, t.Dir, t.recipe.depth())
		case wasRefused:
			return a.err
		case wasNotMade:
			err = p.Next(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// locate finds the position of a contender whose node was created. l is a listing that was sent
// after the create, or nil if there is none.
func (t *place) locate(ctx context.Context, l *session.Listing) error {
	a := t.enteredQueue()
	if t.isAlone(a.counted) {
		return nil
	}
	t.noticeOthers(a)
	return t.findPosition(ctx, l)
}

// isAlone reports whether the create has shown that our node is the only one. If so, it sets the
// position.
func (t *place) isAlone(counted *count) bool {
	if counted == nil || counted.dir == nil || counted.dir.NumChildren != 1 {
		return false
	}
	dir := counted.dir
	t.engine.holders.endMissing(t.contender, func(string) bool { return false })
	t.nearest.beginListing()
	t.nearest.selectBlockers(t.recipe.Rule, nil)
	t.listed, t.looked = dir.Mzxid, counted.looked
	t.engine.alone.put(t.Dir, lastAlone{dir.Version, counted.expected.data})
	return true
}

// findPosition sets the position from a listing. It lists again if l is nil or was made before the
// node was created.
func (t *place) findPosition(ctx context.Context, l *session.Listing) error {
	if l == nil || !t.complete(l.Queue()) {
		again, err := t.engine.Requests.ListAgain(ctx, t.Sess, t.Dir)
		switch {
		case errors.Is(err, zk.ErrNoNode) || err == nil && !t.complete(again.Queue()):
			return outcome.ErrGone
		case err != nil:
			return err
		}
		l = &again
	}
	queue := l.Queue()
	if err := t.engine.notASemaphore(ctx, t.Sess, t.Dir, queue); err != nil {
		return err
	}
	if err := t.engine.notDelayed(t.recipe, queue); err != nil {
		return err
	}
	t.engine.holders.endMissing(t.contender, queue.Has)
	t.nearest.beginListing()
	t.listed, t.looked = l.Stat.Mzxid, l.At
	t.rememberAlone(*l)
	own, _ := node.ParseEntry(t.Name)
	ahead, err := t.order(ctx, queue, &own)
	if err != nil {
		return err
	}
	if t.initialAhead == nil && t.delay() > 0 {
		t.initialAhead = newInitialAhead(ahead)
	}
	t.nearest.selectBlockers(t.recipe.Rule, t.notOurs(ahead))
	return nil
}

// czxidsAtOnce bounds how many nodes are read in parallel.
const czxidsAtOnce = 16

// order returns the entries of queue that are ahead of own. If the sequence numbers do not give the
// order, it requests the czxids and leaves out contenders that have left in the meantime. Callers
// must not modify the result.
func (t *place) order(ctx context.Context, queue *node.Queue, own *node.Entry) ([]node.Entry, error) {
	if ahead, known := queue.Before(*own); known {
		return ahead, nil
	}
	entries, err := t.readCzxids(ctx, slices.Clone(queue.Entries), own)
	return node.Ahead(entries, *own), err
}

// readCzxids sets the czxid of own, and of the entries whose sequence numbers do not give their
// order relative to own. It drops entries whose nodes are gone. It reads our own node last: if our
// node existed before another one went, that would prove nothing.
func (t *place) readCzxids(ctx context.Context, entries []node.Entry, own *node.Entry) ([]node.Entry, error) {
	var tied []*node.Entry
	for i := range entries {
		if e := &entries[i]; e.Name != own.Name && node.NeedCzxid(*e, *own) {
			tied = append(tied, e)
		}
	}
	err := session.SideBySide(t.engine.Requests.Calls, len(tied), czxidsAtOnce, func(i int) error { return outcome.IgnoreMissing(t.readCzxid(ctx, tied[i])) })
	if err != nil {
		return nil, err
	}
	err = t.readCzxid(ctx, own)
	if err != nil {
		return nil, goneIfMissing(err)
	}
	t.nearest.positionReplaced(tied)
	return slices.DeleteFunc(entries, func(e node.Entry) bool {
		missing := e.Name != own.Name && e.Czxid == 0 && node.NeedCzxid(e, *own)
		if missing {
			t.nearest.noticeReplaced(e)
			t.engine.holders.endMissing(t.contender, func(name string) bool { return name != e.Name })
		}
		return missing
	}), nil
}

// readCzxid sets an entry's czxid and owner from its node.
func (t *contender) readCzxid(ctx context.Context, e *node.Entry) error {
	stat, err := session.Again(ctx, func() (*zk.Stat, error) { return t.engine.Requests.Stat(ctx, t.Sess, t.Dir+"/"+e.Name) })
	if err == nil {
		e.Czxid, e.Owner = stat.Czxid, stat.EphemeralOwner
	}
	return err
}

// blocker returns the index of the contender in ahead that blocks a newcomer, or a negative number
// if there is none.
func (c *Engine) blocker(ctx context.Context, s *session.Session, r *Recipe, dir string, ahead []node.Entry) (int, error) {
	for {
		i := r.Rule(ahead)
		if i < 0 || r.Passes == nil {
			return i, nil
		}
		n, err := c.Requests.Get(ctx, s, dir+"/"+ahead[i].Name)
		switch {
		case err == nil && !r.Passes(n.Data):
			return i, nil
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return i, err
		}
		ahead = ahead[:i]
	}
}
