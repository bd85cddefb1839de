package web

import (
	"context"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/operate"
)

// board is what all streams show.
type board struct {
	path    string
	changes bool // pages may change something

	mu      sync.Mutex
	begun   time.Time // guarded by mu, as all that follows
	table   *locks.Table
	past    map[string]*history  // by path
	ended   int                  // contenders that have left, in all histories
	stands  map[string]time.Time // when each circle was first seen, by its key
	found   []locks.Circle       // the circles in the table
	fresh   bool                 // found is of the table as it is
	away    bool                 // there is no connection to a server
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

// begin says that the watch begins now.
func (b *board) begin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun, b.table = now, locks.NewTable(now)
}

// follow watches until ctx ends, which is not an error.
func (b *board) follow(ctx context.Context, client *zklock.Client) error {
	for q, err := range operate.Watch(ctx, client, b.path) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		b.note(q, time.Now())
	}
	return nil
}

// note takes a queue in.
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

// keptInAll is how many contenders that have left are kept of all locks together.
const keptInAll = 20_000

// forget bounds what is kept. It must be called with mu held.
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

// tell wakes all that wait for a change. It must be called with mu held.
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

// setAway notes whether there is no connection to a server.
func (b *board) setAway(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away != away {
		b.away = away
		b.tell()
	}
}

// hasAsked notes that a contender was asked to let go: the data of nodes is not watched.
func (b *board) hasAsked(path, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.past[path]; h != nil && h.live[node] != nil {
		h.live[node].asked = true
		b.tell()
	}
}

// contender returns one that is in a queue, as it was last seen.
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

// standing is how long a circle must have been seen before it is shown: the queues were read at different times.
const standing = time.Second

// circles returns the circles that have stood for a while, and when to look again because another one may have.
// It must be called with mu held.
func (b *board) circles(now time.Time) (shown []locks.Circle, again time.Time) {
	if !b.fresh {
		b.found, b.fresh = locks.Circles(b.queues()), true
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

// earliest returns the earlier of two times, of which the first may be zero for none.
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
