// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// grant returns nil if the contender, which is first in the queue, holds the lock; otherwise it
// returns the reason why not. Our node and the nodes created with it must exist under the session
// of the current connection, and that session must be proven alive. queueNode is our node in another
// queue that must exist as well, or nil if there is none. All of this must hold at the same time.
// Verifying one condition can take as long as a reconnect, so grant rechecks the others afterwards.
func (t *place) grant(ctx context.Context, queueNode *place) error {
	t.removal.held = true
	if !t.engine.readable.Load() {
		t.watchSelf()
	}
	if t.czxid == 0 { // the reply to the create was lost; the other nodes of a batch have the same token
		own := node.Entry{Name: t.Name}
		if err := t.readCzxid(ctx, &own); err != nil {
			return t.Because(goneIfMissing(err))
		}
		t.czxid = own.Czxid
	}
	t.engine.holders.add(t.contender)
	for {
		if t.isUnseen() {
			if err := t.confirm(ctx, t.nodes()); err != nil {
				return t.Because(err)
			}
			t.sawItself()
		}
		if queueNode != nil {
			if err := queueNode.isThere(ctx); err != nil {
				return err
			}
		}
		if err := t.makeCertain(ctx); err != nil {
			return err
		}
		if err := t.endGoneHolds(ctx); err != nil {
			return err
		}
		if t.allIntact() && (queueNode == nil || queueNode.isIntact()) {
			return nil
		}
	}
}

// endGoneHolds ends the holds of this client that exclude ours and whose nodes are gone. For nodes
// without an active watch, it checks with the quorum. Permits do not need this: the listing that
// grants them shows all that are held.
func (t *place) endGoneHolds(ctx context.Context) error {
	for !t.recipe.limited {
		unwatched := t.engine.holders.unwatched(t.contender)
		if len(unwatched) == 0 {
			return nil
		}
		if err := t.confirm(ctx, unwatched); !errors.Is(err, outcome.ErrGone) {
			return err
		}
	}
	return nil
}

// isUnseen reports whether one of our nodes is not watched and was not recently seen to exist.
func (t *place) isUnseen() bool {
	for x := range t.each {
		if x.self.Load() == nil {
			return time.Since(t.looked) > aloneGrace
		}
	}
	return false
}

// allIntact reports whether all our nodes are intact, as far as this is known without a request.
func (t *place) allIntact() bool {
	for x := range t.each {
		if !x.isIntact() {
			return false
		}
	}
	return !t.isUnseen() && t.Sess.Lease.Fresh() && t.engine.Requests.Link.Carries(t.Sess)
}

// sawItself records that our node, and the nodes created with it, exist now.
func (t *place) sawItself() { t.looked = time.Now() }

// makeCertain verifies that our node, and the nodes created with it, may hold.
func (t *place) makeCertain(ctx context.Context) error {
	members := t.members()
	for _, x := range slices.Backward(members) {
		if err := x.isThere(ctx); err != nil {
			return x.Because(err)
		}
	}
	for _, x := range members {
		t.engine.Heart.Keep(&x.OwnNode)
	}
	began := time.Now()
	err := t.awaitLease(ctx)
	t.proving += time.Since(began)
	if err != nil {
		return t.Because(err)
	}
	t.becomeFirst()
	for _, x := range slices.Backward(members) {
		if x.IsGone() {
			return x.Because(outcome.ErrGone)
		}
	}
	if !t.engine.Requests.Link.Carries(t.Sess) {
		return outcome.ErrSessionOver
	}
	return nil
}

// awaitLease waits until the lease proves that the session is alive. At first it waits for
// Lease.IsAmple, the remaining time with which every hold normally starts; after one quorum check,
// Lease.Fresh is enough. Without this, a lagging server could show us first in the queue after our
// session has ended. Heartbeats check with the quorum because our nodes are kept.
//
// It waits once for all our nodes and watches each of them. An unwatched node would have to be read
// again after each wait, and if replies are slow, the lease would have to be proven again after
// each read.
func (t *place) awaitLease(ctx context.Context) error {
	checked := t.engine.Heart.Asked()
	for isEnough := t.Sess.Lease.IsAmple; !isEnough(); isEnough = t.Sess.Lease.Fresh {
		t.setReason(isUnproven{t.Sess.Lease})
		for x := range t.each {
			x.watchSelf() // when the wait ends, our nodes will not have been seen recently
		}
		t.engine.Heart.Nudge() // replies to other requests may have made a proof due
		select {
		case <-checked:
			checked = t.engine.Heart.Asked()
		case <-t.Gone.Done():
			return outcome.ErrGone
		case <-t.Sess.Over():
			return outcome.ErrSessionOver
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// confirm verifies that nodes of this client still exist.
func (t *contender) confirm(ctx context.Context, nodes []*session.OwnNode) error {
	_, err := session.Again(ctx, func() (none struct{}, err error) { return none, t.engine.Heart.ConfirmAll(ctx, t.Sess, nodes) })
	return err
}
