// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// prepare verifies, before the contender queues, that the lock is not held with another delay.
func (wa *waiter) prepare(ctx context.Context, s *session.Session) error {
	if wa.lockDelay() == 0 {
		return nil
	}
	_, known := wa.engine.noRecord.take(wa.Dir)
	if known {
		wa.record.at, wa.record.isAssumed = &recordAt{}, true
		return nil
	}
	return wa.readRecord(ctx, s)
}

// verify verifies what prepare has only assumed, for a contender that must wait: somebody has come since the client deleted the record.
func (wa *waiter) verify(ctx context.Context, s *session.Session) error {
	if !wa.record.isAssumed || len(wa.nearest.ahead) == 0 && wa.nearest.beyond == 0 {
		return nil
	}
	wa.record.isAssumed = false
	return wa.readRecord(ctx, s)
}

// readRecord reads the record, and returns ErrMismatch if the lock is held with another delay.
func (wa *waiter) readRecord(ctx context.Context, s *session.Session) error {
	r, err := session.Again(ctx, func() (recordAt, error) { return wa.engine.agree(ctx, s, wa.Dir) })
	wa.record.at = &r
	return err
}

// becomeHolder records the contender, which is first in the queue, as the holder in its lock's
// record. If the previous hold was not released, becomeHolder waits for the delay, or returns
// ErrLocked if waits is false.
//
// A lock has a record only while it is held, and after a hold that was not released. So if a
// contender creates the record, there is no such hold before it, however old its reading is. If it
// finds a record, it reads the record again when no exclusive contender is ahead any more. From then
// on only readers that end change the record until the contender's node is gone, and the contender
// overwrites only the version that it has read. A version alone would not be enough, because a
// record that is deleted and created again has the same versions.
func (wa *waiter) becomeHolder(ctx context.Context, waits bool) error {
	if wa.lockDelay() == 0 {
		return nil
	}
	wa.record.isNeeded = wa.initialAhead.unrecordedBehind("") != ""
	wa.outdateRecord()
	outwaited := "" // the lost hold whose delay has already passed
	var p session.Pace
	for {
		next, lost, err := wa.tryToHold(ctx, waits, outwaited)
		if next == beHolder && err == nil {
			return nil
		}
		if next == awaitDelay && err == nil {
			outwaited = lost
		}
		if errors.Is(err, errRecordMoved) {
			continue
		}
		err = wa.engine.pauseAfter(ctx, &p, err)
		if err != nil {
			return wa.Because(err)
		}
	}
}

// outdateRecord is called when the contender has become first. It forgets the record that was read
// before others left. If that record named a holder, which has probably released since, it assumes that
// there is none: a create of the record fails if there is one.
func (wa *waiter) outdateRecord() {
	at := wa.record.at
	switch {
	case wa.recipe.Shared:
		wa.record.at = nil
	case at == nil || !at.exists:
	case at.Fate == node.IsHeld && len(wa.initialAhead) > 0:
		wa.record.at = &recordAt{}
	default:
		wa.record.at = nil
	}
}

// tryToHold takes the next step. It returns that step, and the hold that was lost, if there is one.
// A contender that the record names is the holder.
func (wa *waiter) tryToHold(ctx context.Context, waits bool, outwaited string) (step, string, error) {
	r, lost, err := wa.consult(ctx)
	if err != nil {
		return 0, "", err
	}
	next := nextFor(r.Record, lost, outwaited, wa.recipe.Shared)
	switch next {
	case awaitDelay:
		err = wa.awaitDelay(ctx, r, waits)
	case claimRecord:
		err = wa.post(ctx, r, wa.holderRecord())
		if err == nil {
			wa.sawItself()
			next = beHolder
		}
	case recordLoss:
		err = wa.post(ctx, r, wa.lossRecord(r, lost))
	}
	return next, lost, err
}

// A step is the next action of the first contender on its lock's record.
type step int

const (
	beHolder    step = iota // nothing: it is the holder
	claimRecord             // record that it holds
	recordLoss              // record that the previous hold was lost, which starts the delay
	awaitDelay              // wait until the delay has passed
)

// nextFor returns the next step for a record. lost is the previous hold that is not known to have
// been released, and outwaited is the lost hold whose delay has already passed; both are "" if
// there is none.
func nextFor(r node.Record, lost, outwaited string, shared bool) step {
	switch {
	case lost == "" && (shared || r.Fate == node.IsHeld): // if held, then by us: the reply to our write was lost
		return beHolder
	case lost == "" || lost == outwaited:
		return claimRecord
	case r.Fate == node.WasLost && r.By == lost:
		return awaitDelay
	}
	return recordLoss
}

// holderRecord returns the record to write when the contender becomes the holder. A record never
// names a reader as the holder.
func (wa *waiter) holderRecord() node.Record {
	if wa.recipe.Shared {
		return wa.released()
	}
	return node.Record{Delay: wa.lockDelay(), Fate: node.IsHeld, By: wa.Name}
}

// lossRecord returns the record to write when the hold of a node was lost. The delay is that of the
// holder, if the record r names it.
func (wa *waiter) lossRecord(r recordAt, lost string) node.Record {
	delay := wa.lockDelay()
	if r.By == lost {
		delay = r.Delay
	}
	return node.Record{Delay: delay, Fate: node.WasLost, By: lost}
}

// consult returns the record and the node name of the previous hold that is not known to have been
// released, or "" if there is none.
func (wa *waiter) consult(ctx context.Context) (r recordAt, lost string, err error) {
	if wa.record.at == nil {
		r, err = wa.engine.ReadRecord(ctx, wa.Sess, wa.Dir)
		if err != nil {
			return r, "", err
		}
		wa.record.at = &r
	}
	r = *wa.record.at
	lost, err = wa.unreleased(ctx, r)
	return r, lost, err
}

// unreleased returns the second result of consult. Contenders of other libraries have no delay and do
// not appear in the record. Such a contender that was ahead of us may have held the lock after the holder
// that the record names, and may not have released it.
func (wa *waiter) unreleased(ctx context.Context, r recordAt) (string, error) {
	if name := wa.initialAhead.unrecordedBehind(r.By); name != "" {
		return name, nil
	}
	switch {
	case r.Fate == node.WasLost:
		return r.By, nil
	case r.Fate != node.IsHeld || r.By == wa.Name:
		return "", nil
	case wa.recipe.Shared: // a writer that became a reader can be ahead of us and still hold
		_, err := wa.engine.Requests.Stat(ctx, wa.Sess, wa.Dir+"/"+r.By)
		if !errors.Is(err, zk.ErrNoNode) {
			return "", err
		}
	}
	return r.By, nil
}

// leaderTime returns a time that the leader's clock has certainly reached, in milliseconds:
// normally when our node was created. If our node is older than the record, leaderTime writes the
// node's data again, unchanged, to get a newer time, unless that data must never change. Otherwise,
// if the waiter before us gave up when most of the delay had passed, we would wait for the whole
// delay again.
func (wa *waiter) leaderTime(ctx context.Context, r recordAt) (int64, error) {
	for {
		n, err := wa.engine.Requests.Get(ctx, wa.Sess, wa.Path())
		if err != nil || n.Stat.Ctime >= r.mtime || wa.recipe.Fixed {
			return ctimeOf(n), err
		}
		wa.Hear(n)
		stat, err := wa.engine.Requests.Set(ctx, wa.Sess, wa.Path(), wa.KeepRevocation(wa.OwnData()), n.Stat.Version)
		switch {
		case err == nil:
			return stat.Mtime, nil
		case errors.Is(err, zk.ErrNoAuth): // without write access to our own node there is no newer time
			return n.Stat.Ctime, nil
		case !errors.Is(err, zk.ErrBadVersion):
			return 0, err
		}
	}
}

func ctimeOf(n session.Node) int64 {
	if n.Stat == nil {
		return 0
	}
	return n.Stat.Ctime
}

// awaitDelay waits until the record is as old as the delay. It determines the record's age by the
// servers' clock.
func (wa *waiter) awaitDelay(ctx context.Context, r recordAt, waits bool) error {
	now, err := wa.leaderTime(ctx, r)
	if err != nil {
		return goneIfMissing(err)
	}
	stood := time.Duration(now-r.mtime-1) * time.Millisecond // a lower bound: both times are rounded down
	left := r.Delay - max(0, stood)
	switch {
	case left <= 0:
		return nil
	case !waits:
		return fmt.Errorf("%w: last holder was lost, %v of the lock-delay remain", outcome.ErrLocked, left)
	}
	wa.engine.Requests.Log.Info("zklock: waiting for the lock-delay", "path", wa.engine.Requests.CallerPath(wa.Dir), "holder", r.By, "remaining", left)
	wa.engine.Heart.Keep(&wa.OwnNode)
	wa.watchSelf()
	wa.setReason(pendingDelay{r.By, time.Now().Add(left)})
	timer := time.NewTimer(left)
	defer timer.Stop()
	err = waitFor(ctx, &wa.OwnNode, timer.C)
	if err == nil {
		wa.becomeFirst()
	}
	return err
}
