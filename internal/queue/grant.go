// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// A Grant has the nodes of a waiter that was granted, and how they were obtained. It does not keep the
// waiter's knowledge of other contenders.
type Grant struct {
	lead   *contender // and the batch that it leads
	Token  int64
	Waited bool // for a contender ahead
	// Proving is how long it waited, once first in the queue, until the lease was proven.
	Proving time.Duration
}

// granted returns the grant of a waiter, or nil if wa is nil.
func (wa *waiter) granted() *Grant {
	if wa == nil {
		return nil
	}
	return &Grant{wa.contender, wa.czxid, wa.waited, wa.proving}
}

// Nodes returns our nodes in queue order.
func (g *Grant) Nodes() []*session.OwnNode { return g.lead.nodes() }

// WatchSelf watches our nodes after aloneGrace, if they still exist then.
func (g *Grant) WatchSelf() {
	for x := range g.lead.each {
		x.watchSelfAfter(aloneGrace)
	}
}

// Release stops watching our nodes and deletes them. It calls done, which must not wait, with the
// outcome. lost means that the hold ended without a release, so nothing must record a release.
func (g *Grant) Release(lost bool, done func(error)) {
	if lost {
		g.lead.removal.lost = true
	}
	g.lead.engine.removeThen(g.lead, done)
}

// Retire stops watching our node; the transaction that creates its successor deletes it.
func (g *Grant) Retire() {
	g.lead.engine.stopWatching(g.lead)
	g.lead.unkeep()
}

// Fate asks the servers why the hold of our nodes was lost. The error wraps ErrEvicted if one of them was
// evicted. It is ErrGone if one was deleted in another way, and otherwise ErrSessionOver, or the error of a ctx that ended before they
// replied. The hold may be about to end: MarkGone ends it before the node counts as gone.
func (g *Grant) Fate(ctx context.Context) error {
	err := outcome.ErrSessionOver
	if slices.ContainsFunc(g.Nodes(), (*session.OwnNode).WasFoundGone) {
		err = g.lead.whyGone(ctx)
	}
	return g.lead.unlessEvicted(ctx, err)
}

// whyGone returns ErrSessionOver if our node is gone because the servers have ended its session, and ErrGone if the session lives. If
// ctx ends first, it returns the error of ctx.
func (co *contender) whyGone(ctx context.Context) error {
	none := func() (struct{}, error) { return struct{}{}, nil }
	_, err := session.Again(ctx, func() (struct{}, error) { return session.UpToDate(ctx, co.engine.Requests, co.Sess, none) })
	return cmp.Or(err, outcome.ErrGone)
}

// WatchOthers returns a view of the directory's children whose watch was set while our node existed,
// and whether any contender wanted the lock at that time.
func (g *Grant) WatchOthers(ctx context.Context) (v *session.View, wanted bool, err error) {
	co := g.lead
	for {
		v, err := co.engine.Watches.WatchChildren(ctx, co.Sess, co.Dir)
		switch {
		case err != nil:
			return nil, false, err
		case !slices.Contains(v.Names, co.Name): // the server lags behind
			_, err = v.Await(ctx, co.Gone.Done())
		default:
			return v, g.isWanted(v.Names), nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// isWanted reports whether any other contender is in the queue: it waits for our hold to end, since
// every contender ahead of an exclusive hold has gone.
func (g *Grant) isWanted(names []string) bool {
	return slices.ContainsFunc(node.ParseEntries(names), func(e node.Entry) bool { return e.Name != g.lead.Name })
}

// unlessEvicted returns an error that wraps ErrEvicted if our node, or a node created together with it, was
// evicted. Otherwise it returns err. A process that was stopped during the eviction
// first finds that its session is over.
func (co *contender) unlessEvicted(ctx context.Context, err error) error {
	if !errors.Is(err, outcome.ErrGone) && !errors.Is(err, outcome.ErrSessionOver) || co.guid == "" || co.engine.Unnoted.untrusted {
		return err
	}
	dir := node.EvictedIn(co.Dir, co.recipe.limited)
	n, readErr := session.Persist(ctx, co.engine.Requests, func(s *session.Session) (session.Node, error) {
		return co.marksIn(ctx, s, dir)
	})
	if readErr != nil {
		return err
	}
	b, _ := node.ParseDirData(n.Data)
	for x := range co.each {
		if e, found := b.EvictionOf(x.guid); found {
			return outcome.Evicted(e.By, e.Reason)
		}
	}
	return err
}

// marksIn reads the directory with the marks of evictions. After an expiry, the first server of the next session knows all marks that
// were set while our node existed. Otherwise the quorum is asked first: when many clients have lost their sessions together, that takes
// the leader longer than all else.
func (co *contender) marksIn(ctx context.Context, s *session.Session, dir string) (session.Node, error) {
	get := func() (session.Node, error) { return co.engine.Requests.Get(ctx, s, dir) }
	if moved := s.Reattached(); s != co.Sess && co.Sess.HasExpired() && s.IsOnFirst() {
		if n, err := get(); !session.IsClosed(moved) {
			return n, err
		}
	}
	return session.UpToDate(ctx, co.engine.Requests, s, get)
}
