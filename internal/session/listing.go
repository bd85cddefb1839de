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

// A lister requests listings for those that wait for them.
type lister struct {
	tasks *Tasks
	ask   func(listed) (Listing, error)
}

// share returns a listing that is requested after the call. If none is in progress and the directory
// is not known to be long, request is called, which must have then called with the reply.
func (ls *listings) share(by lister, key listed, request func(then func(Listing, error))) *listing {
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
	ls.running[key] = l
	if _, long := ls.long[key.dir]; long {
		ls.begin(by, key, l)
		return l
	}
	request(func(got Listing, err error) { ls.answered(by, key, l, got, err) })
	return l
}

// begin starts a goroutine that requests l, and the listings after it. If the client is closed, l
// gets an error. It must be called with mu held.
func (ls *listings) begin(by lister, key listed, l *listing) {
	// Owned by the client; ends when no caller waits for another listing, at the latest when Close
	// ends the connection and then waits for it.
	if by.tasks.Run(func() { ls.askAll(by, key, l) }) {
		return
	}
	delete(ls.running, key)
	for ; l != nil; l = l.next {
		l.err = outcome.ErrClosed
		l.done.Set()
	}
}

// answered handles the reply to a request that share has begun, or the reason why it was not sent.
func (ls *listings) answered(by lister, key listed, l *listing, got Listing, err error) {
	finish := func() { ls.finish(by, key, l, got, err) }
	switch {
	case errors.Is(err, conn.ErrNotSent): // others may share it
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.begin(by, key, l) // asks again
	case len(got.Names) < manyChildren:
		finish()
	// Owned by the client; ends when the names are parsed; Close waits for it.
	case !by.tasks.Run(finish):
		finish()
	}
}

// finish sets what l shows, and has the next listing requested if a caller waits for it.
func (ls *listings) finish(by lister, key listed, l *listing, got Listing, err error) {
	if next := ls.set(key, l, got, err); next != nil {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.begin(by, key, next)
	}
}

// askAll requests listings one after another until no caller waits for another one.
func (ls *listings) askAll(by lister, key listed, l *listing) {
	for l != nil {
		got, err := ls.askOnce(by, key)
		l = ls.set(key, l, got, err)
	}
}

// askOnce requests a listing as soon as there is room for it.
func (ls *listings) askOnce(by lister, key listed) (Listing, error) {
	if room := ls.roomFor(key.dir); room != nil {
		room <- struct{}{}
		defer func() { <-room }()
	}
	return by.ask(key)
}

// set sets what l shows, and returns the listing to request after it, or nil if there is none. A
// missing directory has no children.
func (ls *listings) set(key listed, l *listing, got Listing, err error) (next *listing) {
	if err != nil {
		got = NewListing(nil, nil, time.Now())
	}
	got.Queue() // parse here: sorting would enlarge a waiter's stack permanently
	l.Listing, l.err = got, err
	next = ls.follow(key, l)
	l.done.Set()
	return next
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

// follow records what l shows, and returns the listing to request after it, or nil if there is none.
func (ls *listings) follow(key listed, l *listing) *listing {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.err == nil {
		ls.remember(key.dir, len(l.Names))
	}
	ls.running[key] = l.next
	if l.next == nil {
		delete(ls.running, key)
	}
	return l.next
}
