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

// prepare makes sure, before the contender queues, that its lock has our delay.
func (t *place) prepare(ctx context.Context, s *session.Session) error {
	if t.delay() == 0 {
		return nil
	}
	r, known := t.c.records.take(t.Dir)
	if !known || r.sess != s {
		var err error
		if r, err = session.Again(ctx, func() (recordAt, error) { return t.c.agree(ctx, s, t.Dir) }); err != nil {
			return err
		}
	}
	t.claim.saw(r)
	return nil
}

// becomeHolder makes the contender, which is first in the queue, the holder in its lock's record. If
// the hold before it was not released, succeed waits for the delay, or returns ErrLocked if the
// caller does not wait.
//
// What it reads may be old, but it writes only over the version that it has read. A reader does
// not write if the last hold was released: it reads the record when it has seen the writers
// before it leave.
func (t *place) becomeHolder(ctx context.Context, waits bool) error {
	if t.delay() == 0 {
		return nil
	}
	if t.recipe.Shared || len(t.met) > 0 {
		t.claim.forget() // it was read before others left
	}
	outwaited := "" // the hold after whose loss we have waited
	var p session.Pace
	for {
		r, lost, err := t.consult(ctx)
		if err == nil {
			switch nextFor(r.Record, lost, outwaited, t.recipe.Shared) {
			case beHolder:
				return nil
			case awaitDelay:
				if err = t.awaitDelay(ctx, r, waits); err == nil {
					outwaited = lost
				}
			case claimRecord:
				if err = t.post(ctx, r, t.holderRecord(r)); err == nil {
					t.sawItself()
					return nil
				}
			case recordLoss:
				err = t.post(ctx, r, node.Record{Delay: r.Delay, Fate: node.WasLost, By: lost})
			}
		}
		if outcome.IsTransient(err) && !errors.Is(err, errRecordMoved) && ctx.Err() == nil {
			t.c.Link.MetTrouble(err)
			err = p.Next(ctx)
		}
		if err != nil && !errors.Is(err, errRecordMoved) {
			return t.Because(err)
		}
	}
}

// A step is what a place that is first does next about its lock's record.
type step int

const (
	beHolder    step = iota // nothing: it is the holder
	claimRecord             // write that it holds
	recordLoss              // write that the hold before was lost, from when on the delay counts
	awaitDelay              // wait until the delay has passed
)

// nextFor returns the step for a record. lost is the hold before ours that is not known to have been
// released, and outwaited the one after whose loss we have waited; both are "" for none.
func nextFor(r node.Record, lost, outwaited string, shared bool) step {
	switch {
	case lost == "" && (shared || r.Fate == node.IsHeld): // then by us: an answer was lost
		return beHolder
	case lost == "" || lost == outwaited:
		return claimRecord
	case r.Fate == node.WasLost && r.By == lost:
		return awaitDelay
	}
	return recordLoss
}

// holderRecord returns what the record is to say when we succeed. Readers do not stand in it.
func (t *place) holderRecord(r recordAt) node.Record {
	if t.recipe.Shared {
		return node.Record{Delay: r.Delay, Fate: node.WasReleased, By: t.Name}
	}
	return node.Record{Delay: r.Delay, Fate: node.IsHeld, By: t.Name}
}

// consult returns the record, and the hold before ours that is not known to have been released, by
// its node; "" for none.
func (t *place) consult(ctx context.Context) (r recordAt, lost string, err error) {
	if t.claim.at != nil {
		r = *t.claim.at
	} else if r, err = t.c.agree(ctx, t.Sess, t.Dir); err != nil {
		return r, "", err
	}
	t.claim.saw(r)
	lost, err = t.unreleased(ctx, r)
	return r, lost, err
}

// unreleased returns what consult does. Contenders without a delay, which are those of other
// libraries, do not stand in the record: one that was ahead of us may have held after the hold
// that the record names, and is not known to have released.
func (t *place) unreleased(ctx context.Context, r recordAt) (string, error) {
	if name := t.met.unrecordedBehind(r.By); name != "" {
		return name, nil
	}
	switch {
	case r.Fate == node.WasLost:
		return r.By, nil
	case r.Fate != node.IsHeld || r.By == t.Name:
		return "", nil
	case t.recipe.Shared: // a writer that has become a reader can be ahead of us and alive
		_, err := t.c.Stat(ctx, t.Sess, t.Dir+"/"+r.By)
		if !errors.Is(err, zk.ErrNoNode) {
			return "", err
		}
	}
	return r.By, nil
}

// serversTime returns a time that the servers' clock has certainly reached, in milliseconds: when our node was created. A node that
// is older than the record is written again, unchanged, unless its data must never change: the one that waited before us may have
// given up when most of the delay had passed.
func (t *place) serversTime(ctx context.Context, r recordAt) (int64, error) {
	for {
		n, err := t.c.Get(ctx, t.Sess, t.Path())
		if err != nil || n.Stat.Ctime >= r.mtime || t.recipe.Fixed {
			return ctimeOf(n), err
		}
		t.Hear(n)
		stat, err := t.c.Set(ctx, t.Sess, t.Path(), t.Shown(t.OwnData()), n.Stat.Version)
		switch {
		case err == nil:
			return stat.Mtime, nil
		case errors.Is(err, zk.ErrNoAuth): // who may not write its own node learns no other time
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

// awaitDelay waits until the record has stood for the delay. How long it has stood is known from the servers' clock.
func (t *place) awaitDelay(ctx context.Context, r recordAt, waits bool) error {
	now, err := t.serversTime(ctx, r)
	if err != nil {
		return goneIfMissing(err)
	}
	stood := time.Duration(now-r.mtime-1) * time.Millisecond // at least: both are rounded down
	left := r.Delay - max(0, stood)
	switch {
	case left <= 0:
		return nil
	case !waits:
		return fmt.Errorf("%w: its last holder was lost, and the lock-delay has %v left", outcome.ErrLocked, left)
	}
	t.c.Log.Info("zklock: waiting for the lock-delay", "dir", t.Dir, "lost", r.By, "left", left)
	t.c.Keep(&t.OwnNode)
	t.watchSelf(0)
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.Gone.Done():
		return outcome.ErrGone
	case <-t.Sess.Over():
		return outcome.ErrSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
