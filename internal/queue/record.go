// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// agree returns the record of the lock in dir. It returns ErrMismatch if the lock is held with
// a delay that is not ours. That may be a stale reply from a lagging server, so agree reads the record again
// after a quorum check before it fails.
func (en *Engine) agree(ctx context.Context, s *session.Session, dir string) (recordAt, error) {
	r, err := en.ReadRecord(ctx, s, dir)
	if err != nil || !en.differs(r) {
		return r, err
	}
	return session.UpToDate(ctx, en.Requests, s, func() (recordAt, error) {
		r, err := en.ReadRecord(ctx, s, dir)
		if err != nil || !en.differs(r) {
			return r, err
		}
		_, err = en.Requests.Stat(ctx, s, dir+"/"+r.By)
		if err == nil {
			err = fmt.Errorf("%w: lock-delay is %v, not %v", outcome.ErrMismatch, r.Delay, en.Delay)
		}
		return r, outcome.IgnoreMissing(err)
	})
}

// differs reports whether a record names a holder whose delay is not ours.
func (en *Engine) differs(r recordAt) bool { return r.Fate == node.IsHeld && r.Delay != en.Delay }

// ReadRecord reads the record of the lock in dir. The record of a lock that has none is empty.
func (en *Engine) ReadRecord(ctx context.Context, s *session.Session, dir string) (recordAt, error) {
	n, err := en.Requests.Get(ctx, s, dir+node.RecordSuffix)
	if errors.Is(err, zk.ErrNoNode) {
		return recordAt{}, nil
	}
	if err != nil {
		return recordAt{}, err
	}
	r, err := node.ParseRecord(n.Data)
	return recordAt{r, true, n.Stat.Version, n.Stat.Mtime}, err
}

// errRecordMoved reports that the record has changed since it was read.
var errRecordMoved = errors.New("lock record has changed")

// post replaces the record by r, if it is still the one in over and our node exists. An empty r
// deletes it.
func (co *contender) post(ctx context.Context, over recordAt, r node.Record) error {
	if r.Fate == node.IsHeld {
		co.record.sent = true
	}
	co.record.at = nil
	answers, err := co.engine.Requests.Multi(ctx, co.Sess, co.Exists(), co.posting(over, r))
	switch {
	case err == nil && answers[1].Stat != nil:
		co.record.at = &recordAt{r, true, answers[1].Stat.Version, answers[1].Stat.Mtime}
		return nil
	case err == nil && r.Fate == node.IsHeld: // created, with the version zero; its time does not matter
		co.record.at = &recordAt{Record: r, exists: true}
		return nil
	case err == nil:
		return nil
	case Refused(answers) == 0:
		return goneIfMissing(answers[0].Error)
	case hasMoved(err):
		return errRecordMoved
	}
	return err
}

// hasMoved reports whether an operation on a record was refused because the record has changed.
func hasMoved(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists)
}

// posting returns the operation that replaces the record in over by r.
func (co *contender) posting(over recordAt, r node.Record) any {
	path := co.Dir + node.RecordSuffix
	switch {
	case r == node.Record{}:
		return &zk.DeleteRequest{Path: path, Version: over.version}
	case !over.exists:
		return &zk.CreateRequest{Path: path, Data: r.Encode(), Acl: co.engine.Directories.ACL}
	}
	return &zk.SetDataRequest{Path: path, Data: r.Encode(), Version: over.version}
}

// Refused returns the index of the operation of a transaction that was refused, or -1 if none was.
func Refused(answers []zk.MultiResponse) int {
	for i, a := range answers {
		if a.Error != nil {
			return i
		}
	}
	return -1
}

// releaseRecord returns the operations that record our release; there are none if there is nothing
// to record. They belong to the transaction that deletes our node. A write of ours that is still in
// flight may be executed before that transaction, which then is refused because the record has
// changed; it cannot be executed after it.
func (co *contender) releaseRecord(ctx context.Context, s *session.Session) ([]any, error) {
	if !co.record.sent || co.removal.lost {
		return nil, nil
	}
	if co.record.at == nil {
		r, err := co.engine.ReadRecord(ctx, s, co.Dir)
		switch {
		case errors.Is(err, outcome.ErrMismatch), outcome.IsRefusal(err): // no longer ours
			co.record.sent = false
			return nil, nil
		case err != nil:
			return nil, err
		}
		co.record.at = &r
	}
	at := *co.record.at
	switch {
	case !at.exists: // make sure that it does not exist
		return []any{co.posting(at, node.Record{Delay: co.lockDelay()}), co.posting(recordAt{exists: true}, node.Record{})}, nil
	case at.Fate != node.IsHeld || at.By != co.Name:
		return []any{&zk.CheckVersionRequest{Path: co.Dir + node.RecordSuffix, Version: at.version}}, nil
	}
	return []any{co.posting(at, co.released())}, nil
}

// released returns what replaces the record of our hold when that is released, or when its delay has
// passed. That is nothing, unless another contender that waits may need to know that we held: one
// that has seen the same contender without a record ahead of it as we have.
//
// A record that we may not delete stays.
func (co *contender) released() node.Record {
	if co.record.isNeeded || co.engine.fixedRecords.has(co.Dir, math.MaxInt64) {
		return node.Record{Delay: co.lockDelay(), Fate: node.WasReleased, By: co.Name}
	}
	return node.Record{}
}

// recordRefused handles the refusal of the operations that releaseRecord returned. Another attempt
// makes sense only if they can differ.
func (co *contender) recordRefused(err error) {
	isFixed := errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrNotEmpty)
	if isFixed && co.released() == (node.Record{}) {
		co.engine.fixedRecords.put(co.Dir, struct{}{})
		return
	}
	co.record.wasRefused(hasMoved(err))
}

// recordReleased remembers that the lock has no record, if a transaction with the operations that
// releaseRecord returned has deleted it.
func (co *contender) recordReleased() {
	if co.record.sent && !co.removal.lost && co.released() == (node.Record{}) {
		co.engine.noRecord.put(co.Dir, struct{}{})
	}
}
