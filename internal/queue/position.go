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
func (pl *place) enter(ctx context.Context, s *session.Session) error {
	queued, err := pl.engine.awaitRejoin(ctx, s, pl.progress)
	if err != nil {
		return err
	}
	defer queued()
	var p session.Pace
	for {
		b, err := pl.engine.Requests.Bundle(ctx, s)
		if err != nil {
			return err
		}
		pl.begin(b, s)
		a := pl.creation
		list := func(context.Context) (none session.Listing, _ error) { return none, zk.ErrNoNode }
		if a.expected == nil {
			list = b.List(pl.Dir)
		}
		err = b.Send(ctx)
		if err != nil {
			return err
		}
		l, listErr := list(ctx)
		err = pl.settle(ctx)
		if err != nil {
			return err
		}
		switch a.fate(pl.Name != "", pl.engine.Requests.Link.Carries(s)) {
		case fateCreated:
			if listErr == nil {
				return pl.locate(ctx, a, &l)
			}
			return pl.locate(ctx, a, nil)
		case fateLate:
			return outcome.ErrSessionOver
		case fateNotAlone:
			pl.noticeOthers(a)
		case fateReplacedGone:
			pl.engine.remove(a.takeReplaced())
		case fateNoDirectory:
			err = pl.engine.Directories.MakeDir(ctx, s, pl.Dir, pl.recipe.depth())
		case fateRefused:
			return session.NotPermitted("create a node in", pl.Dir, a.err)
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
func (pl *place) locate(ctx context.Context, a *creation, l *session.Listing) error {
	pl.creation = nil
	if pl.isAlone(a) {
		return nil
	}
	pl.noticeOthers(a)
	return pl.findPosition(ctx, l)
}

// isAlone reports whether the attempt has shown that our node is the only one. If so, it sets the
// position.
func (pl *place) isAlone(a *creation) bool {
	if a.dir == nil || a.dir.NumChildren != 1 {
		return false
	}
	pl.engine.Hub.holders.endMissing(pl.contender, func(string) bool { return false })
	pl.nearest.beginListing()
	pl.nearest.selectBlockers(pl.recipe.Rule, nil)
	pl.listed, pl.looked = a.dir.Mzxid, a.looked
	pl.engine.alone.put(pl.Dir, lastAlone{version: a.dir.Version, data: a.expected.data})
	return true
}

// findPosition sets the position from a listing. It lists again if l is nil or was made before the
// node was created.
func (pl *place) findPosition(ctx context.Context, l *session.Listing) error {
	if l == nil || !pl.complete(l.Queue()) {
		again, err := pl.engine.Requests.ListAgain(ctx, pl.Sess, pl.Dir)
		switch {
		case errors.Is(err, zk.ErrNoNode) || err == nil && !pl.complete(again.Queue()):
			return outcome.ErrGone
		case err != nil:
			return err
		}
		l = &again
	}
	queue := l.Queue()
	if err := pl.engine.notASemaphore(ctx, pl.Sess, pl.Dir, queue); err != nil {
		return err
	}
	if err := pl.engine.checkDelay(pl.recipe, queue); err != nil {
		return err
	}
	pl.engine.Hub.holders.endMissing(pl.contender, queue.Has)
	pl.nearest.beginListing()
	pl.listed, pl.looked = l.Stat.Mzxid, l.At
	pl.rememberAlone(*l)
	own, _ := node.ParseEntry(pl.Name)
	ahead, err := pl.order(ctx, queue, &own)
	if err != nil {
		return err
	}
	if pl.initialAhead == nil && pl.lockDelay() > 0 {
		pl.initialAhead = newInitialAhead(ahead)
	}
	pl.nearest.selectBlockers(pl.recipe.Rule, pl.notOurs(ahead))
	return nil
}

// czxidsAtOnce bounds how many nodes are read in parallel.
const czxidsAtOnce = 16

// order returns the entries of queue that are ahead of own. If the sequence numbers do not give the
// order, it requests the czxids and leaves out contenders that have left in the meantime. Callers
// must not modify the result.
func (pl *place) order(ctx context.Context, queue *node.Queue, own *node.Entry) ([]node.Entry, error) {
	if ahead, known := queue.Before(*own); known {
		return ahead, nil
	}
	entries, err := pl.readCzxids(ctx, slices.Clone(queue.Entries), own)
	return node.Ahead(entries, *own), err
}

// readCzxids sets the czxid of own, and of the entries whose sequence numbers do not give their
// order relative to own. It drops entries whose nodes are gone. It reads our own node last: if our
// node existed before another one went, that would prove nothing.
func (pl *place) readCzxids(ctx context.Context, entries []node.Entry, own *node.Entry) ([]node.Entry, error) {
	var tied []*node.Entry
	for i := range entries {
		if e := &entries[i]; e.Name != own.Name && node.NeedCzxid(*e, *own) {
			tied = append(tied, e)
		}
	}
	err := session.SideBySide(pl.engine.Requests.Calls, len(tied), czxidsAtOnce, func(i int) error { return outcome.IgnoreMissing(pl.readCzxid(ctx, tied[i])) })
	if err != nil {
		return nil, err
	}
	err = pl.readCzxid(ctx, own)
	if err != nil {
		return nil, goneIfMissing(err)
	}
	pl.nearest.positionReplaced(tied)
	return slices.DeleteFunc(entries, func(e node.Entry) bool {
		missing := e.Name != own.Name && e.Czxid == 0 && node.NeedCzxid(e, *own)
		if missing {
			pl.nearest.noticeReplaced(e)
			pl.engine.Hub.holders.endMissing(pl.contender, func(name string) bool { return name != e.Name })
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
