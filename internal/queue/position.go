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
func (wa *waiter) enter(ctx context.Context, s *session.Session) error {
	var p session.Pace
	for {
		b, err := wa.engine.Requests.Bundle(ctx, s)
		if err != nil {
			return err
		}
		wa.begin(b, s)
		a := wa.creation
		list := func(context.Context) (none session.Listing, _ error) { return none, zk.ErrNoNode }
		if a.expected == nil {
			list = b.List(wa.Dir)
		}
		err = b.Send(ctx)
		if err != nil {
			return err
		}
		l, listErr := list(ctx)
		err = wa.settle(ctx)
		if err != nil {
			return err
		}
		switch a.fate(wa.Name != "", wa.engine.Requests.Link.Carries(s)) {
		case fateCreated:
			if listErr == nil {
				return wa.locate(ctx, a, &l)
			}
			return wa.locate(ctx, a, nil)
		case fateLate:
			return outcome.ErrSessionOver
		case fateNotAlone:
			wa.noticeOthers(a)
		case fateReplacedGone:
			wa.engine.remove(a.takeReplaced())
		case fateNoDirectory:
			err = wa.engine.Directories.MakeDir(ctx, s, wa.Dir, wa.recipe.depth())
		case fateRefused:
			return session.NotPermitted("create a node in", wa.Dir, a.err)
		case fateNotCreated:
			err = p.Next(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// locate finds the position of a contender whose node was created by attempt a. l is a listing that
// was sent after the create, or nil if there is none.
func (wa *waiter) locate(ctx context.Context, a *creation, l *session.Listing) error {
	wa.creation = nil
	if wa.isAlone(a) {
		return nil
	}
	wa.noticeOthers(a)
	return wa.findPosition(ctx, l)
}

// isAlone reports whether the attempt has shown that our node is the only one. If so, it sets the
// position.
func (wa *waiter) isAlone(a *creation) bool {
	if a.dir == nil || a.dir.NumChildren != 1 {
		return false
	}
	wa.engine.Hub.holders.endMissing(wa.contender, func(string) bool { return false })
	wa.nearest.beginListing()
	wa.nearest.selectBlockers(wa.recipe.Rule, nil)
	wa.listed, wa.looked = a.dir.Mzxid, a.looked
	wa.engine.alone.put(wa.Dir, lastAlone{version: a.dir.Version, data: a.expected.data})
	return true
}

// findPosition sets the position from a listing. It lists again if l is nil or was made before the
// node was created.
func (wa *waiter) findPosition(ctx context.Context, l *session.Listing) error {
	if l == nil || !wa.complete(l.Queue()) {
		again, err := wa.engine.Requests.ListAgain(ctx, wa.Sess, wa.Dir)
		switch {
		case errors.Is(err, zk.ErrNoNode) || err == nil && !wa.complete(again.Queue()):
			return outcome.ErrGone
		case err != nil:
			return err
		}
		l = &again
	}
	queue := l.Queue()
	if err := wa.engine.notASemaphore(ctx, wa.Sess, wa.Dir, queue); err != nil {
		return err
	}
	if err := wa.engine.checkDelay(wa.recipe, queue); err != nil {
		return err
	}
	wa.engine.Hub.holders.endMissing(wa.contender, queue.Has)
	wa.nearest.beginListing()
	wa.listed, wa.looked = l.Stat.Mzxid, l.At
	wa.rememberAlone(*l)
	own, _ := node.ParseEntry(wa.Name)
	ahead, err := wa.order(ctx, queue, &own)
	if err != nil {
		return err
	}
	if wa.initialAhead == nil && wa.lockDelay() > 0 {
		wa.initialAhead = newInitialAhead(ahead)
	}
	wa.nearest.selectBlockers(wa.recipe.Rule, wa.notOurs(ahead))
	return nil
}

// czxidsAtOnce bounds how many nodes are read in parallel.
const czxidsAtOnce = 16

// order returns the entries of queue that are ahead of own. If the sequence numbers do not give the
// order, it requests the czxids and leaves out contenders that have left in the meantime. Callers
// must not modify the result.
func (wa *waiter) order(ctx context.Context, queue *node.Queue, own *node.Entry) ([]node.Entry, error) {
	if ahead, known := queue.Before(*own); known {
		return ahead, nil
	}
	entries, err := wa.readCzxids(ctx, slices.Clone(queue.Entries), own)
	return node.Ahead(entries, *own), err
}

// readCzxids sets the czxid of own, and of the entries whose sequence numbers do not give their
// order relative to own. It drops entries whose nodes are gone. It reads our own node last: if our
// node existed before another one went, that would prove nothing.
func (wa *waiter) readCzxids(ctx context.Context, entries []node.Entry, own *node.Entry) ([]node.Entry, error) {
	var tied []*node.Entry
	for i := range entries {
		if e := &entries[i]; e.Name != own.Name && node.NeedCzxid(*e, *own) {
			tied = append(tied, e)
		}
	}
	err := session.SideBySide(wa.engine.Requests.Calls, len(tied), czxidsAtOnce, func(i int) error { return outcome.IgnoreMissing(wa.readCzxid(ctx, tied[i])) })
	if err != nil {
		return nil, err
	}
	err = wa.readCzxid(ctx, own)
	if err != nil {
		return nil, goneIfMissing(err)
	}
	wa.nearest.positionReplaced(tied)
	return slices.DeleteFunc(entries, func(e node.Entry) bool {
		missing := e.Name != own.Name && e.Czxid == 0 && node.NeedCzxid(e, *own)
		if missing {
			wa.nearest.noticeReplaced(e)
			wa.engine.Hub.holders.endMissing(wa.contender, func(name string) bool { return name != e.Name })
		}
		return missing
	}), nil
}

// readCzxid sets an entry's czxid and owner from its node.
func (co *contender) readCzxid(ctx context.Context, e *node.Entry) error {
	stat, err := session.Again(ctx, func() (*zk.Stat, error) { return co.engine.Requests.Stat(ctx, co.Sess, co.Dir+"/"+e.Name) })
	if err == nil {
		e.Czxid, e.Owner = stat.Czxid, stat.EphemeralOwner
	}
	return err
}

// blocker returns the index of the contender in ahead that blocks a newcomer, or a negative number
// if there is none.
func (en *Engine) blocker(ctx context.Context, s *session.Session, r *Recipe, dir string, ahead []node.Entry) (int, error) {
	for {
		i := r.Rule(ahead)
		if i < 0 || r.Passes == nil {
			return i, nil
		}
		n, err := en.Requests.Get(ctx, s, dir+"/"+ahead[i].Name)
		switch {
		case err == nil && !r.Passes(n.Data):
			return i, nil
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return i, err
		}
		ahead = ahead[:i]
	}
}
