// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"time"

	"github.com/zklock-go/zklock/compare/ways"
)

// first measures one client that takes a new lock each time, which needs a directory or a row that does not exist yet.
func (b *bench) first(ctx context.Context) error {
	return b.measure(ctx, "first", 0, b.ways, b.firstLocks)
}

func (b *bench) firstLocks(ctx context.Context, w ways.Way) (map[string]float64, error) {
	session, err := w.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = bounded("closing", func() { _ = session.Close() }) }()
	before, err := requests(ctx, b.servedBy(w))
	if err != nil {
		return nil, err
	}
	var turns []turn
	from := time.Now()
	for end := from.Add(b.plan.Window); len(turns) == 0 || time.Now().Before(end); {
		t, err := b.firstLock(ctx, session)
		if err != nil {
			return nil, err
		}
		turns = append(turns, t)
	}
	to := time.Now()
	after, err := requests(ctx, b.servedBy(w))
	if err != nil {
		return nil, err
	}
	values := summarize(turns, from, to, false)
	values[Requests] = float64(after-before) / float64(len(turns))
	return values, nil
}

// firstLock takes and releases a lock with a new name. The turn does not include the time to create the contender.
func (b *bench) firstLock(ctx context.Context, session ways.Session) (t turn, err error) {
	locker, err := session.Locker(ctx, b.lockName())
	if err != nil {
		return t, err
	}
	t.asked = time.Now()
	if err := locker.Lock(ctx); err != nil {
		return t, err
	}
	t.got = time.Now()
	t.giving = t.got
	if err := locker.Unlock(ctx); err != nil {
		return t, err
	}
	t.given = time.Now()
	return t, locker.Close()
}
