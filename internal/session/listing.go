// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Listing is a server's reply about a directory: its children and its own stat. Callers may share
// it and must not modify it.
type Listing struct {
	Names  []string
	Stat   *zk.Stat
	At     time.Time // when the reply arrived
	parsed *parsedQueue
}

// parsedQueue is the queue that a listing's names describe, parsed once.
type parsedQueue struct {
	once sync.Once
	of   *node.Queue
}

// NewListing returns a Listing of the given names.
func NewListing(names []string, stat *zk.Stat, at time.Time) Listing {
	return Listing{names, stat, at, new(parsedQueue)}
}

// Queue returns the queue that the names describe.
func (l Listing) Queue() *node.Queue {
	l.parsed.once.Do(func() { l.parsed.of = node.NewQueue(l.Names) })
	return l.parsed.of
}

// listings are a client's listings in progress. Each directory is listed by one request at a time:
// in a long queue the reply is long, and a heartbeat sent after the request is answered after it.
//
// A caller that lists a directory while a listing is in progress gets the next listing, together
// with all callers that come in the meantime. That request is sent after they have called, so the
// listing shows everything that had happened by then, as a request of their own would.
type listings struct {
	mu      sync.Mutex
	running map[listed]*listing // guarded by mu: the listings in progress
	long    map[string]struct{} // guarded by mu: directories that had many children when they were last listed
	room    chan struct{}       // guarded by mu: has one element per long listing in progress; nil before the first
}

const (
	manyChildren = 1000   // a listing with at least this many children counts as long
	longAtOnce   = 2      // long listings of a client at the same time
	maxLong      = 10_000 // how many directories are remembered
)

// listed identifies a listing: a directory, and the session under which it is listed.
type listed struct {
	sess *conn.Session
	dir  string
}

// listing is a listing that callers wait for.
type listing struct {
	done Latch
	next *listing // guarded by the mutex of listings: the one to request after this one; nil if there is none
	Listing
	err error
}

// share returns a listing that is requested after the call. If none is in progress and the directory
// is not known to be long, request is called, which must have then called with the reply.
func (ls *listings) share(r *Requests, key listed, request func(then func(Listing, error))) *listing {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if running := ls.running[key]; running != nil {
		if running.next == nil {
			running.next = new(listing)
		}
		return running.next
	}
	if ls.running == nil {
		ls.running = map[listed]*listing{}
	}
	l := new(listing)
	if _, long := ls.long[key.dir]; long {
		ls.begin(r, key, l)
		return l
	}
	ls.running[key] = l
	request(func(got Listing, err error) { ls.answered(r, key, l, got, err) })
	return l
}

// answered handles the reply to a request that share has begun, or the reason why it was not sent.
func (ls *listings) answered(r *Requests, key listed, l *listing, got Listing, err error) {
	finish := func() { ls.finish(r, key, l, got, err) }
	switch {
	case errors.Is(err, conn.ErrNotSent): // others may share it
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.begin(r, key, l)
	case len(got.Names) < manyChildren:
		finish()
	// Owned by the client; ends when the names are parsed; Close waits for it.
	case !r.Calls.Run(finish):
		finish()
	}
}

// begin starts a goroutine that requests l. If the client is closed, l gets an error. It must be called
// with mu held.
func (ls *listings) begin(r *Requests, key listed, l *listing) {
	ls.running[key] = l
	// Owned by the client; ends with the reply, at the latest when Close ends the connection and then
	// waits for it.
	if r.Calls.Run(func() { ls.ask(r, key, l) }) {
		return
	}
	delete(ls.running, key)
	for ; l != nil; l = l.next {
		l.err = outcome.ErrClosed
		l.done.Set()
	}
}

// ask requests l as soon as there is room for it.
func (ls *listings) ask(r *Requests, key listed, l *listing) {
	room := ls.roomFor(key.dir)
	if room != nil {
		room <- struct{}{}
	}
	got, err := r.children(key)
	if room != nil {
		<-room
	}
	ls.finish(r, key, l, got, err)
}

// finish sets what l shows, and begins the next listing if a caller waits for it.
func (ls *listings) finish(r *Requests, key listed, l *listing, got Listing, err error) {
	if err != nil {
		got = NewListing(nil, nil, time.Now()) // a missing directory has no children
	}
	got.Queue() // parse here: sorting would enlarge a waiter's stack permanently
	l.Listing, l.err = got, err
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if err == nil {
		ls.remember(key.dir, len(got.Names))
	}
	l.done.Set()
	if l.next == nil {
		delete(ls.running, key)
		return
	}
	ls.begin(r, key, l.next)
}

// roomFor returns the channel that limits listings of dir, or nil if dir is not known to be long.
func (ls *listings) roomFor(dir string) chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if _, ok := ls.long[dir]; !ok {
		return nil
	}
	if ls.room == nil {
		ls.room = make(chan struct{}, longAtOnce)
	}
	return ls.room
}

// remember records whether dir has many children. It must be called with mu held.
func (ls *listings) remember(dir string, children int) {
	switch {
	case children < manyChildren:
		delete(ls.long, dir)
	case ls.long == nil || len(ls.long) >= maxLong:
		ls.long = map[string]struct{}{dir: {}}
	default:
		ls.long[dir] = struct{}{}
	}
}
