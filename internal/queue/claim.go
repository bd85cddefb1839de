package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// agree returns the record of the lock in dir if its delay is ours. Another delay may be that
// of a server that lags: it counts only if it is the quorum's.
func (c *Engine) agree(ctx context.Context, s *session.Session, dir string) (recordAt, error) {
	r, err := c.record(ctx, s, dir)
	if err != nil || r.Delay == c.Delay {
		return r, err
	}
	r, err = session.UpToDate(ctx, c.Requests, s, func() (recordAt, error) { return c.record(ctx, s, dir) })
	if err == nil && r.Delay != c.Delay {
		err = fmt.Errorf("%w: its lock-delay is %v, not %v", outcome.ErrMismatch, r.Delay, c.Delay)
	}
	return r, err
}

// record reads the record of the lock in dir. If there is none, it creates one with our delay.
func (c *Engine) record(ctx context.Context, s *session.Session, dir string) (recordAt, error) {
	for {
		r, err := c.ReadRecord(ctx, s, dir)
		if !errors.Is(err, zk.ErrNoNode) {
			return r, err
		}
		_, err = c.Create(ctx, s, dir+node.RecordSuffix, node.Record{Delay: c.Delay}.Encode(), zk.FlagPersistent, c.ACL)
		if errors.Is(err, zk.ErrNoNode) {
			err = c.MakeDir(ctx, s, dir, 1) // with what is above it
		}
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return recordAt{}, err
		}
	}
}

func (c *Engine) ReadRecord(ctx context.Context, s *session.Session, dir string) (recordAt, error) {
	n, err := c.Get(ctx, s, dir+node.RecordSuffix)
	if err != nil {
		return recordAt{}, err
	}
	r, err := node.ParseRecord(n.Data)
	return recordAt{r, s, n.Stat.Version, n.Stat.Mtime}, err
}

// errRecordMoved says that the record is not what it was when we last saw it.
var errRecordMoved = errors.New("the lock's record has changed")

// post replaces the record that we saw, while our node exists.
func (t *contender) post(ctx context.Context, over recordAt, r node.Record) error {
	if r.Fate == node.IsHeld {
		t.claim.willSend()
	}
	t.claim.forget()
	answers, err := t.c.Multi(ctx, t.Sess, t.Exists(), t.posting(r, over.version))
	switch {
	case err == nil:
		t.claim.saw(recordAt{r, t.Sess, answers[1].Stat.Version, answers[1].Stat.Mtime})
		return nil
	case Refused(answers) == 0:
		return goneIfMissing(answers[0].Error)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		return errRecordMoved
	}
	return err
}

func (t *contender) posting(r node.Record, version int32) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: t.Dir + node.RecordSuffix, Data: r.Encode(), Version: version}
}

// Refused returns which operation of a transaction was refused, negative if none was.
func Refused(answers []zk.MultiResponse) int {
	for i, a := range answers {
		if a.Error != nil {
			return i
		}
	}
	return -1
}

// releaseRecord returns the operation that tells in the record that we have released the lock, or nil if
// there is nothing to tell. It stands in the transaction that deletes our node: a claim of ours that
// is still under way somewhere can be carried out before that, and then the record has another version,
// but not after it.
func (t *contender) releaseRecord(ctx context.Context, s *session.Session) (any, error) {
	if !t.claim.sent || t.lost {
		return nil, nil
	}
	if t.claim.at == nil {
		r, err := t.c.ReadRecord(ctx, s, t.Dir)
		switch {
		case errors.Is(err, outcome.ErrMismatch), outcome.IsRefusal(err): // gone, or not ours any more
			t.claim.void()
			return nil, nil
		case err != nil:
			return nil, err
		}
		t.claim.saw(r)
	}
	at := *t.claim.at
	if at.Fate != node.IsHeld || at.By != t.Name {
		return &zk.CheckVersionRequest{Path: t.Dir + node.RecordSuffix, Version: at.version}, nil
	}
	return t.posting(node.Record{Delay: at.Delay, Fate: node.WasReleased, By: t.Name}, at.version), nil
}

// recordReleased remembers the record that a transaction with releaseRecord has left, if it has written one.
func (t *contender) recordReleased(s *session.Session, stat *zk.Stat) {
	if at := t.claim.at; t.claim.sent && !t.lost && stat != nil {
		t.c.records.put(t.Dir, recordAt{node.Record{Delay: at.Delay, Fate: node.WasReleased, By: t.Name}, s, stat.Version, stat.Mtime})
	}
}
