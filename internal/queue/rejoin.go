// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/session"
)

// rejoins spreads the requests with which the acquires of a client queue again after its session has ended. Other clients have often
// lost their sessions at the same time, and heartbeats would wait at the servers behind the requests of all of them. So one acquire goes
// first. As long as replies do not wait at the servers, each acquire that has queued lets two others follow. Otherwise the next goes alone,
// after a random pause that grows with that time.
type rejoins struct {
	mu      sync.Mutex       // guards the fields below
	limit   int              // how many may queue at the same time
	running int              // how many do, or have done so and pause
	waiting []*session.Latch // in their order; set when the acquire may queue
}

// enter waits until another acquire may queue. If it returns nil, leave must be called.
func (r *rejoins) enter(ctx context.Context) error {
	r.mu.Lock()
	if r.running == 0 {
		r.limit = 1
	}
	if r.running < r.limit {
		r.running++
		r.mu.Unlock()
		return nil
	}
	turn := new(session.Latch)
	r.waiting = append(r.waiting, turn)
	r.mu.Unlock()
	err := turn.Await(ctx)
	if err != nil && !turn.Set() {
		r.next() // the turn has come all the same
	}
	return err
}

// leave records that an acquire has queued, or has failed to. queued is how long replies wait at the servers now; zero or less means that
// they do not. The next one follows after eight to sixteen times as long, but after at most twice most.
func (r *rejoins) leave(queued, most time.Duration) {
	r.mu.Lock()
	if queued > 0 {
		r.limit = 1
	} else {
		r.limit++
	}
	r.mu.Unlock()
	if queued > 0 {
		least := min(8*queued, most)
		time.AfterFunc(least+rand.N(least), r.next)
		return
	}
	r.next()
}

// next ends a turn, and begins the next ones.
func (r *rejoins) next() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	for r.running < r.limit && len(r.waiting) > 0 {
		if r.waiting[0].Set() { // otherwise that acquire has given up
			r.running++
		}
		r.waiting = r.waiting[1:]
	}
}

// awaitRejoin waits until the acquire with that progress may queue under s, if it has lost a place together with its session. Heartbeats come
// first: if little of the lease remains, it waits for up to a session timeout until there is more. The caller must call
// queued when the acquire has queued. On a distant network, replies differ by as much as a round trip without any queue.
func (en *Engine) awaitRejoin(ctx context.Context, s *session.Session, pr *progress) (queued func(), err error) {
	if pr == nil || !pr.rejoins {
		return func() {}, nil
	}
	if err := en.rejoins.enter(ctx); err != nil {
		return nil, err
	}
	term := s.Lease.Term()
	if !s.Lease.IsEnough() {
		inside, cancel := context.WithTimeout(ctx, term)
		_ = en.Heart.ProveEnough(inside)
		cancel()
	}
	return func() { en.rejoins.leave(s.Lease.Queued()-s.Lease.Distance(), term) }, nil
}
