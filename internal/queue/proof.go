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
func (wa *waiter) grant(ctx context.Context, queueNode *waiter) error {
	wa.removal.held = true
	if !wa.engine.readable.Load() {
		wa.watchSelf()
	}
	if wa.czxid == 0 { // the reply to the create was lost; the other nodes of a batch have the same token
		own := node.Entry{Name: wa.Name}
		if err := wa.readCzxid(ctx, &own); err != nil {
			return wa.Because(goneIfMissing(err))
		}
		wa.czxid = own.Czxid
	}
	wa.engine.Hub.holders.add(wa.contender)
	for {
		if wa.isUnseen() {
			if err := wa.confirm(ctx, wa.nodes()); err != nil {
				return wa.Because(err)
			}
			wa.sawItself()
		}
		if queueNode != nil {
			if err := queueNode.isThere(ctx); err != nil {
				return err
			}
		}
		if err := wa.makeCertain(ctx); err != nil {
			return err
		}
		if err := wa.endGoneHolds(ctx); err != nil {
			return err
		}
		if wa.allIntact() && (queueNode == nil || queueNode.isIntact()) {
			return nil
		}
	}
}

// endGoneHolds ends the holds of this client that exclude ours and whose nodes are gone. For nodes
// without an active watch, it checks with the quorum. Permits do not need this: the listing that
// grants them shows all that are held.
func (wa *waiter) endGoneHolds(ctx context.Context) error {
	for !wa.recipe.limited {
		unwatched := wa.engine.Hub.holders.unwatched(wa.contender)
		if len(unwatched) == 0 {
			return nil
		}
		if err := wa.confirm(ctx, unwatched); !errors.Is(err, outcome.ErrGone) {
			return err
		}
	}
	return nil
}

// isUnseen reports whether one of our nodes is not watched and was not recently seen to exist.
func (wa *waiter) isUnseen() bool {
	for x := range wa.each {
		if x.self.Load() == nil {
			return time.Since(wa.looked) > aloneGrace
		}
	}
	return false
}

// allIntact reports whether all our nodes are intact, as far as this is known without a request.
func (wa *waiter) allIntact() bool {
	for x := range wa.each {
		if !x.isIntact() {
			return false
		}
	}
	return !wa.isUnseen() && wa.Sess.Lease.Fresh() && wa.engine.Requests.Link.Carries(wa.Sess)
}

// sawItself records that our node, and the nodes created with it, exist now.
func (wa *waiter) sawItself() { wa.looked = time.Now() }

// makeCertain verifies that our node, and the nodes created with it, may hold.
func (wa *waiter) makeCertain(ctx context.Context) error {
	members := wa.members()
	for _, x := range slices.Backward(members) {
		if err := x.isThere(ctx); err != nil {
			return x.Because(err)
		}
	}
	for _, x := range members {
		wa.engine.Heart.Keep(&x.OwnNode)
	}
	began := time.Now()
	err := wa.awaitLease(ctx)
	wa.proving += time.Since(began)
	if err != nil {
		return wa.Because(err)
	}
	wa.becomeFirst()
	for _, x := range slices.Backward(members) {
		if x.IsGone() {
			return x.Because(outcome.ErrGone)
		}
	}
	if !wa.engine.Requests.Link.Carries(wa.Sess) {
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
func (wa *waiter) awaitLease(ctx context.Context) error {
	ended := wa.Sess.Lease.TransactionEnd()
	for isEnough := wa.Sess.Lease.IsAmple; !isEnough(); isEnough = wa.Sess.Lease.Fresh {
		wa.setReason(pendingProof{wa.Sess.Lease})
		for x := range wa.each {
			x.watchSelf() // when the wait ends, our nodes will not have been seen recently
		}
		wa.engine.Heart.Nudge() // replies to other requests may have made a proof due
		if err := waitFor(ctx, &wa.OwnNode, ended); err != nil {
			return err
		}
		ended = wa.Sess.Lease.TransactionEnd()
	}
	return nil
}

// confirm verifies that nodes of this client still exist.
func (co *contender) confirm(ctx context.Context, nodes []*session.OwnNode) error {
	_, err := session.Again(ctx, func() (none struct{}, err error) { return none, co.engine.Heart.ConfirmAll(ctx, co.Sess, nodes) })
	return err
}
