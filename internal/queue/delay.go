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
func (pl *place) prepare(ctx context.Context, s *session.Session) error {
	if pl.lockDelay() == 0 {
		return nil
	}
	_, known := pl.engine.noRecord.take(pl.Dir)
	if known {
		pl.record.at, pl.record.isAssumed = &recordAt{}, true
		return nil
	}
	return pl.readRecord(ctx, s)
}

// verify verifies what prepare has only assumed, for a contender that must wait: somebody has come since the client deleted the record.
func (pl *place) verify(ctx context.Context, s *session.Session) error {
	if !pl.record.isAssumed || len(pl.nearest.ahead) == 0 && pl.nearest.beyond == 0 {
		return nil
	}
	pl.record.isAssumed = false
	return pl.readRecord(ctx, s)
}

// readRecord reads the record, and returns ErrMismatch if the lock is held with another delay.
func (pl *place) readRecord(ctx context.Context, s *session.Session) error {
	r, err := session.Again(ctx, func() (recordAt, error) { return pl.engine.agree(ctx, s, pl.Dir) })
	pl.record.at = &r
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
func (pl *place) becomeHolder(ctx context.Context, waits bool) error {
	if pl.lockDelay() == 0 {
		return nil
	}
	pl.record.isNeeded = pl.initialAhead.unrecordedBehind("") != ""
	pl.outdateRecord()
	outwaited := "" // the lost hold whose delay has already passed
	var p session.Pace
	for {
		next, lost, err := pl.tryToHold(ctx, waits, outwaited)
		if next == beHolder && err == nil {
			return nil
		}
		if next == awaitDelay && err == nil {
			outwaited = lost
		}
		if errors.Is(err, errRecordMoved) {
			continue
		}
		err = pl.engine.pauseAfter(ctx, &p, err)
		if err != nil {
			return pl.Because(err)
		}
	}
}

// outdateRecord is called when the contender has become first. It forgets what the record said
// before others left, unless creating the record will show whether that is still so.
func (pl *place) outdateRecord() {
	at := pl.record.at
	switch {
	case pl.recipe.Shared:
		pl.record.at = nil
	case at == nil || !at.exists:
	case at.Fate == node.IsHeld && len(pl.initialAhead) > 0: // probably released since
		pl.record.at = &recordAt{}
	default:
		pl.record.at = nil
	}
}

// tryToHold takes the next step. It returns that step, and the hold that was lost, if there is one.
// A contender that the record names is the holder.
func (pl *place) tryToHold(ctx context.Context, waits bool, outwaited string) (step, string, error) {
	r, lost, err := pl.consult(ctx)
	if err != nil {
		return 0, "", err
	}
	next := nextFor(r.Record, lost, outwaited, pl.recipe.Shared)
	switch next {
	case awaitDelay:
		err = pl.awaitDelay(ctx, r, waits)
	case claimRecord:
		err = pl.post(ctx, r, pl.holderRecord())
		if err == nil {
			pl.sawItself()
			next = beHolder
		}
	case recordLoss:
		err = pl.post(ctx, r, pl.lossRecord(r, lost))
	}
	return next, lost, err
}

// A step is what a contender that is first does next about its lock's record.
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
func (pl *place) holderRecord() node.Record {
	if pl.recipe.Shared {
		return pl.released()
	}
	return node.Record{Delay: pl.lockDelay(), Fate: node.IsHeld, By: pl.Name}
}

// lossRecord returns the record to write when the hold of a node was lost. The delay is that of the
// holder, if the record r names it.
func (pl *place) lossRecord(r recordAt, lost string) node.Record {
	delay := pl.lockDelay()
	if r.By == lost {
		delay = r.Delay
	}
	return node.Record{Delay: delay, Fate: node.WasLost, By: lost}
}

// consult returns the record and the node name of the previous hold that is not known to have been
// released, or "" if there is none.
func (pl *place) consult(ctx context.Context) (r recordAt, lost string, err error) {
	if pl.record.at == nil {
		r, err = pl.engine.ReadRecord(ctx, pl.Sess, pl.Dir)
		if err != nil {
			return r, "", err
		}
		pl.record.at = &r
	}
	r = *pl.record.at
	lost, err = pl.unreleased(ctx, r)
	return r, lost, err
}

// unreleased returns the second result of consult. Contenders without a delay, which are those of
// other libraries, do not appear in the record: one that was ahead of us may have held after the
// hold that the record names, and is not known to have released.
func (pl *place) unreleased(ctx context.Context, r recordAt) (string, error) {
	if name := pl.initialAhead.unrecordedBehind(r.By); name != "" {
		return name, nil
	}
	switch {
	case r.Fate == node.WasLost:
		return r.By, nil
	case r.Fate != node.IsHeld || r.By == pl.Name:
		return "", nil
	case pl.recipe.Shared: // a writer that became a reader can be ahead of us and still hold
		_, err := pl.engine.Requests.Stat(ctx, pl.Sess, pl.Dir+"/"+r.By)
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
func (pl *place) leaderTime(ctx context.Context, r recordAt) (int64, error) {
	for {
		n, err := pl.engine.Requests.Get(ctx, pl.Sess, pl.Path())
		if err != nil || n.Stat.Ctime >= r.mtime || pl.recipe.Fixed {
			return ctimeOf(n), err
		}
		pl.Hear(n)
		stat, err := pl.engine.Requests.Set(ctx, pl.Sess, pl.Path(), pl.KeepRevocation(pl.OwnData()), n.Stat.Version)
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
func (pl *place) awaitDelay(ctx context.Context, r recordAt, waits bool) error {
	now, err := pl.leaderTime(ctx, r)
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
	pl.engine.Requests.Log.Info("zklock: waiting for the lock-delay", "path", pl.engine.Requests.CallerPath(pl.Dir), "holder", r.By, "remaining", left)
	pl.engine.Heart.Keep(&pl.OwnNode)
	pl.watchSelf()
	pl.setReason(pendingDelay{r.By, time.Now().Add(left)})
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		pl.becomeFirst()
		return nil
	case <-pl.Gone.Done():
		return outcome.ErrGone
	case <-pl.Sess.Over():
		return outcome.ErrSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
