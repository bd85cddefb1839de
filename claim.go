package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// recordAt is a record as a server has shown it.
type recordAt struct {
	record
	sess    *session // under which it was; on another, the servers may have been restored to an earlier state
	version int32
	mtime   int64 // when it was written, by the servers' clock, in milliseconds
}

// agree returns the record of the lock in dir if its delay is ours. Another delay may be that
// of a server that lags: it counts only if it is the quorum's.
func (c *engine) agree(ctx context.Context, s *session, dir string) (recordAt, error) {
	r, err := c.record(ctx, s, dir)
	if err != nil || r.delay == c.delay {
		return r, err
	}
	r, err = upToDate(ctx, c.requests, s, func() (recordAt, error) { return c.record(ctx, s, dir) })
	if err == nil && r.delay != c.delay {
		err = fmt.Errorf("%w: its lock-delay is %v, not %v", ErrInvalid, r.delay, c.delay)
	}
	return r, err
}

// record reads the record of the lock in dir. If there is none, it creates one with our delay.
func (c *engine) record(ctx context.Context, s *session, dir string) (recordAt, error) {
	for {
		r, err := c.readRecord(ctx, s, dir)
		if !errors.Is(err, zk.ErrNoNode) {
			return r, err
		}
		_, err = ask(ctx, c.requests, s, func(conn wire) (string, error) {
			return conn.Create(dir+recordSuffix, record{delay: c.delay}.encode(), zk.FlagPersistent, c.acl)
		})
		if errors.Is(err, zk.ErrNoNode) {
			err = c.makeDir(ctx, s, dir, 1) // with what is above it
		}
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return recordAt{}, err
		}
	}
}

func (c *engine) readRecord(ctx context.Context, s *session, dir string) (recordAt, error) {
	n, err := c.get(ctx, s, dir+recordSuffix)
	if err != nil {
		return recordAt{}, err
	}
	r, err := parseRecord(n.data)
	return recordAt{r, s, n.stat.Version, n.stat.Mtime}, err
}

// errRecordMoved says that the record is not what it was when we last saw it.
var errRecordMoved = errors.New("the lock's record has changed")

// post replaces the record that we saw, while our node exists.
func (t *contender) post(ctx context.Context, over recordAt, r record) error {
	if r.fate == isHeld {
		t.claim.sent = true
	}
	t.claim.at = nil
	answers, err := t.c.multi(ctx, t.sess, t.exists(), t.posting(r, over.version))
	switch {
	case err == nil:
		t.claim.at = &recordAt{r, t.sess, answers[1].Stat.Version, answers[1].Stat.Mtime}
		return nil
	case refused(answers) == 0:
		return goneIfMissing(answers[0].Error)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		return errRecordMoved
	}
	return err
}

func (t *contender) posting(r record, version int32) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: t.dir + recordSuffix, Data: r.encode(), Version: version}
}

// refused returns which operation of a transaction was refused, negative if none was.
func refused(answers []zk.MultiResponse) int {
	for i, a := range answers {
		if a.Error != nil {
			return i
		}
	}
	return -1
}

// parting returns the operation that tells in the record that we have released the lock, or nil if
// there is nothing to tell. It stands in the transaction that deletes our node: a claim of ours that
// is still under way somewhere can be carried out before that, and then the record has another version,
// but not after it.
func (t *contender) parting(ctx context.Context, s *session) (any, error) {
	if !t.claim.sent || t.lost {
		return nil, nil
	}
	if t.claim.at == nil {
		r, err := t.c.readRecord(ctx, s, t.dir)
		switch {
		case errors.Is(err, ErrInvalid), isRefusal(err): // gone, or not ours any more
			t.claim.sent = false
			return nil, nil
		case err != nil:
			return nil, err
		}
		t.claim.at = &r
	}
	at := *t.claim.at
	if at.fate != isHeld || at.by != t.name {
		return &zk.CheckVersionRequest{Path: t.dir + recordSuffix, Version: at.version}, nil
	}
	return t.posting(record{at.delay, wasReleased, t.name}, at.version), nil
}

// parted remembers the record that a transaction with parting has left, if it has written one.
func (t *contender) parted(s *session, stat *zk.Stat) {
	if at := t.claim.at; t.claim.sent && !t.lost && stat != nil {
		t.c.records.put(t.dir, recordAt{record{at.delay, wasReleased, t.name}, s, stat.Version, stat.Mtime})
	}
}

// rebuffed takes the refusal of what parting has returned. Only a record that has changed since
// is worth another attempt.
func (c *claim) rebuffed(err error) {
	c.at = nil
	c.sent = c.sent && errors.Is(err, zk.ErrBadVersion)
}
