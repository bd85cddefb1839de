package session

import (
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Listing is what a server has answered about a directory: its children and its own state. Others
// may share it: nobody changes it.
type Listing struct {
	Names []string
	Stat  *zk.Stat
	At    time.Time // when the answer came in
	line  *line
}

// line is what a listing's names show of a queue, found out once.
type line struct {
	once sync.Once
	of   *node.Line
}

// NewListing returns a listing.
func NewListing(names []string, stat *zk.Stat, at time.Time) Listing {
	return Listing{names, stat, at, new(line)}
}

// Line returns what the names show of a queue.
func (l Listing) Line() *node.Line {
	l.line.once.Do(func() { l.line.of = node.NewLine(l.Names) })
	return l.line.of
}

// listings are those of one client that are under way. One directory is listed by one request at a
// time: in a long queue the answer is long, and a heartbeat that is sent after it is answered after it.
//
// A caller that asks for a directory while it is being listed gets the next listing, together with
// all that ask meanwhile. The request for that is sent after they have asked, so the listing shows what
// had happened by then, as one of their own would.
type listings struct {
	mu      sync.Mutex
	running map[listed]*listing // guarded by mu: those that are under way
	long    map[string]struct{} // guarded by mu: directories that had many children when they were last listed
	room    chan struct{}       // guarded by mu: has an element for each of those that is under way; nil before the first
}

const (
	manyChildren = 1000   // whose listing counts as long
	longAtOnce   = 2      // listings of a client
	maxLong      = 10_000 // directories that are remembered
)

// listed is what is listed, and under which session.
type listed struct {
	sess *conn.Session
	dir  string
}

// listing is a listing that callers wait for.
type listing struct {
	done Latch
	next *listing // guarded by the mutex of listings: to be asked for after this one, nil for none
	Listing
	err error
}

// share returns a listing that is asked for after the call, as one of tasks.
func (f *listings) share(tasks *Tasks, key listed, ask func(listed) (Listing, error)) *listing {
	f.mu.Lock()
	defer f.mu.Unlock()
	if running := f.running[key]; running != nil {
		if running.next == nil {
			running.next = new(listing)
		}
		return running.next
	}
	l := new(listing)
	// Owned by the client; ends when nobody waits for another listing, at the latest when Close ends the
	// connection and then waits for it.
	if !tasks.Run(func() { f.askAll(key, l, ask) }) {
		l.err = outcome.ErrClosed
		l.done.Set()
		return l
	}
	if f.running == nil {
		f.running = map[listed]*listing{}
	}
	f.running[key] = l
	return l
}

// askAll asks for one listing after the other until nobody waits for another.
func (f *listings) askAll(key listed, l *listing, ask func(listed) (Listing, error)) {
	for l != nil {
		l.Listing, l.err = f.askOnce(key, ask)
		next := f.follow(key, l)
		l.done.Set()
		l = next
	}
}

// askOnce asks for a listing when there is room for it.
func (f *listings) askOnce(key listed, ask func(listed) (Listing, error)) (Listing, error) {
	if room := f.roomFor(key.dir); room != nil {
		room <- struct{}{}
		defer func() { <-room }()
	}
	l, err := ask(key)
	if err == nil {
		f.remember(key.dir, len(l.Names))
		l.Line() // here, or sorting would make the stack of a waiter larger for good
	}
	return l, err
}

// roomFor returns the room that a listing of dir has to take; nil if the listing is short, as far as is known.
func (f *listings) roomFor(dir string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.long[dir]; !ok {
		return nil
	}
	if f.room == nil {
		f.room = make(chan struct{}, longAtOnce)
	}
	return f.room
}

// remember remembers whether dir has many children.
func (f *listings) remember(dir string, children int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case children < manyChildren:
		delete(f.long, dir)
	case f.long == nil || len(f.long) >= maxLong:
		f.long = map[string]struct{}{dir: {}}
	default:
		f.long[dir] = struct{}{}
	}
}

// follow returns the listing that is to be asked for after l, nil for none.
func (f *listings) follow(key listed, l *listing) *listing {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[key] = l.next
	if l.next == nil {
		delete(f.running, key)
	}
	return l.next
}
