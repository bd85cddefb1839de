// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/operate"
)

// board holds the data that all streams show.
type board struct {
	path    string
	changes bool // pages may make changes

	mu      sync.Mutex
	begun   time.Time // guarded by mu, like the fields below
	table   *locks.Table
	past    map[string]*history  // by path
	ended   int                  // number of contenders that have left, in all histories
	stands  map[string]time.Time // when each cycle was first seen, by its key
	found   []locks.Cycle        // the cycles in the table
	fresh   bool                 // found is up to date with table
	silent  time.Time            // since when no server has answered; zero if one does
	gaps    operate.Incomplete   // what is not watched
	changed chan struct{}        // closed at the next change
}

func newBoard(path string, changes bool) *board {
	b := &board{
		path: path, changes: changes, past: map[string]*history{},
		stands: map[string]time.Time{}, changed: make(chan struct{}),
	}
	b.begin(time.Now())
	return b
}

// begin records that the watch begins now.
func (b *board) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun, b.table = now, locks.NewTable(now)
}

// follow watches until ctx is done, and then returns nil.
func (b *board) follow(ctx context.Context, client *zklock.Client) error {
	for q, err := range operate.Watch(ctx, client, b.path) {
		if ctx.Err() != nil {
			return nil
		}
		var gaps *operate.Incomplete
		switch {
		case errors.As(err, &gaps):
			b.set(func() { b.gaps = *gaps })
		case err != nil:
			return err
		default:
			b.note(q, time.Now())
		}
	}
	return nil
}

// note records the state of a queue.
func (b *board) note(q *operate.Queue, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.table.Update(q, now)
	h := b.past[q.Path]
	if h == nil {
		h = newHistory()
		b.past[q.Path] = h
	}
	before := len(h.ended)
	h.note(q, now, now.Sub(b.begun) < locks.Settling)
	b.ended += len(h.ended) - before
	b.forget()
	b.fresh = false
	b.tell()
}

// keptInAll is how many contenders that have left are kept for all locks together.
const keptInAll = 20_000

// forget drops contenders that have left if there are more than keptInAll. It must be called with mu held.
func (b *board) forget() {
	if b.ended <= keptInAll {
		return
	}
	b.ended = 0
	for path, h := range b.past {
		if h.forgetHalf() {
			delete(b.past, path)
		}
		b.ended += len(h.ended)
	}
}

// tell wakes the goroutines that wait for a change. It must be called with mu held.
func (b *board) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// change returns a channel that is closed at the next change.
func (b *board) change() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// followContact records, until ctx is done, since when no server has answered.
func (b *board) followContact(ctx context.Context, silentSince func() time.Time) {
	for now := b.silent; pause(ctx, contactPace); {
		if since := silentSince(); !since.Equal(now) {
			now = since
			b.set(func() { b.silent = since })
		}
	}
}

// contactPace is how often followContact looks.
const contactPace = 200 * time.Millisecond

// set makes a change that pages show.
func (b *board) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	b.tell()
}

// hasAsked records that a contender was asked to release its lock. The watch does not show this, because the data of nodes
// is not watched.
func (b *board) hasAsked(path, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.past[path]; h != nil && h.live[node] != nil {
		h.live[node].asked = true
		b.tell()
	}
}

// contender returns a contender of a queue, as last seen.
func (b *board) contender(path, node string, token int64) (zklock.Contender, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.table.Lock(path); l != nil {
		for _, who := range l.Queue.Contenders {
			if who.Node == node && who.Token == token {
				return who, true
			}
		}
	}
	return zklock.Contender{}, false
}

// standing is how long a cycle must have been seen before it is shown, because queues are read at different times.
const standing = time.Second

// cycles returns the cycles that have been seen for long enough, and when to call it again because others may have been by
// then. It must be called with mu held.
func (b *board) cycles(now time.Time) (shown []locks.Cycle, again time.Time) {
	if !b.fresh {
		b.found, b.fresh = locks.Cycles(b.queues()), true
		since := b.stands
		b.stands = map[string]time.Time{}
		for _, c := range b.found {
			b.stands[c.Key()] = earliest(since[c.Key()], now)
		}
	}
	for _, c := range b.found {
		due := b.stands[c.Key()].Add(standing)
		if due.After(now) {
			again = earliest(again, due)
			continue
		}
		shown = append(shown, c)
	}
	return shown, again
}

// earliest returns the earlier of two times. It ignores t if t is zero.
func earliest(t, other time.Time) time.Time {
	if t.IsZero() || other.Before(t) {
		return other
	}
	return t
}

// queues returns the queues in the table. It must be called with mu held.
func (b *board) queues() (all []*operate.Queue) {
	for _, l := range b.table.Busiest() {
		all = append(all, l.Queue)
	}
	return all
}

// pause waits for d. It returns false if ctx is done first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
