package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// prepare makes sure, before the contender queues, that its lock has our delay.
func (t *place) prepare(ctx context.Context, s *session) error {
	if t.delay() == 0 {
		return nil
	}
	r, known := t.c.records.take(t.dir)
	if !known || r.sess != s {
		var err error
		if r, err = again(ctx, func() (recordAt, error) { return t.c.agree(ctx, s, t.dir) }); err != nil {
			return err
		}
	}
	t.claim.at = &r
	return nil
}

// succeed makes the contender, which is first in the queue, the holder in its lock's record. If
// the hold before it was not released, succeed waits for the delay, or returns ErrLocked if the
// caller does not wait.
//
// What it reads may be old, but it writes only over the version that it has read. A reader does
// not write if the last hold was released: it reads the record when it has seen the writers
// before it leave.
func (t *place) succeed(ctx context.Context, waits bool) error {
	if t.delay() == 0 {
		return nil
	}
	if t.recipe.shared || len(t.met) > 0 {
		t.claim.at = nil // it was read before others left
	}
	outwaited := "" // the hold after whose loss we have waited
	var p pace
	for {
		r, lost, err := t.consult(ctx)
		switch {
		case err != nil:
		case lost == "" && (t.recipe.shared || r.fate == isHeld): // then by us: an answer was lost
			return nil
		case lost == "" || lost == outwaited:
			if err = t.post(ctx, r, t.succession(r)); err == nil {
				t.looked = time.Now()
				return nil
			}
		case r.fate == wasLost && r.by == lost:
			if err = t.outwait(ctx, r, waits); err == nil {
				outwaited = lost
			}
		default:
			err = t.post(ctx, r, record{r.delay, wasLost, lost})
		}
		if isTransient(err) && !errors.Is(err, errRecordMoved) && ctx.Err() == nil {
			t.c.link.Note(err)
			err = p.next(ctx)
		}
		if err != nil && !errors.Is(err, errRecordMoved) {
			return t.because(err)
		}
	}
}

// succession returns what the record is to say when we succeed. Readers do not stand in it.
func (t *place) succession(r recordAt) record {
	if t.recipe.shared {
		return record{r.delay, wasReleased, t.name}
	}
	return record{r.delay, isHeld, t.name}
}

// consult returns the record, and the hold before ours that is not known to have been released, by
// its node; "" for none.
func (t *place) consult(ctx context.Context) (r recordAt, lost string, err error) {
	if t.claim.at != nil {
		r = *t.claim.at
	} else if r, err = t.c.agree(ctx, t.sess, t.dir); err != nil {
		return r, "", err
	}
	t.claim.at = &r
	lost, err = t.unreleased(ctx, r)
	return r, lost, err
}

// unreleased returns what consult does. Contenders without a delay, which are those of other
// libraries, do not stand in the record: one that was ahead of us may have held after the hold
// that the record names, and is not known to have released.
func (t *place) unreleased(ctx context.Context, r recordAt) (string, error) {
	for i := len(t.met) - 1; i >= 0 && t.met[i].name != r.by; i-- {
		if e := t.met[i]; !e.shared && !isDelayed(e.name) {
			return e.name, nil
		}
	}
	switch {
	case r.fate == wasLost:
		return r.by, nil
	case r.fate != isHeld || r.by == t.name:
		return "", nil
	case t.recipe.shared: // a writer that has become a reader can be ahead of us and alive
		_, err := t.c.stat(ctx, t.sess, t.dir+"/"+r.by)
		if !errors.Is(err, zk.ErrNoNode) {
			return "", err
		}
	}
	return r.by, nil
}

// outwait waits until the record has stood for the delay. How long it had stood when our node was
// created is known from the servers' clock, and counts; how long ago that was does not.
func (t *place) outwait(ctx context.Context, r recordAt, waits bool) error {
	stat, err := t.c.stat(ctx, t.sess, t.path())
	if err != nil {
		return goneIfMissing(err)
	}
	stood := time.Duration(stat.Ctime-r.mtime-1) * time.Millisecond // at least: both are rounded down
	left := r.delay - max(0, stood)
	switch {
	case left <= 0:
		return nil
	case !waits:
		return fmt.Errorf("%w: its last holder was lost, and the lock-delay has %v left", ErrLocked, left)
	}
	t.c.log.Info("zklock: waiting for the lock-delay", "dir", t.dir, "lost", r.by, "left", left)
	t.c.keep(&t.ownNode)
	t.guard(0)
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.gone.done():
		return errGone
	case <-t.sess.Over():
		return errSessionOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
