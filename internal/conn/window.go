// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// maxUnanswered is how many bytes of requests other than heartbeats may be unanswered on a
// connection, or fewer if the connection needs more than a part of the session timeout for them. A
// longer request is sent if nothing else is unanswered. A heartbeat is answered after everything that
// was sent before it, so it waits for at most this much.
const maxUnanswered = 1 << 20

// errEnded is the error of a wait for room on a connection that has ended.
var errEnded = errors.New("connection has ended")

// window limits how many bytes are unanswered on a connection. The callers that wait for room get it
// in the order in which they have come.
type window struct {
	pace *pace

	mu      sync.Mutex    // guards the fields below
	slice   time.Duration // how long the connection may need for what is unanswered; zero means no limit
	used    int
	since   time.Time // when used was zero, or when the pace was measured last
	carried int       // how many bytes were answered after that
	waiters []*waiter
	closed  bool
}

// measured is how many bytes must be answered to measure the pace.
const measured = 32 << 10

// waiter is a caller that waits for room.
type waiter struct {
	size  int
	ready chan struct{} // closed when the room is reserved, or when the window is closed
}

// reserve waits until there is room for size bytes, and reserves it. If ctx or over is done first, or
// if the connection ends, it reserves nothing and returns an error.
func (w *window) reserve(ctx context.Context, over <-chan struct{}, size int) error {
	waits := w.join(size)
	if waits == nil {
		return nil
	}
	select {
	case <-waits.ready:
		return w.ended()
	case <-over:
		w.giveUp(waits)
		return ErrSessionOver
	case <-ctx.Done():
		w.giveUp(waits)
		return context.Cause(ctx)
	}
}

// reserveUntil is like reserve, but reserves the room at the given time even if there is none. A zero
// time never comes.
func (w *window) reserveUntil(by time.Time, size int) {
	waits := w.join(size)
	if waits == nil {
		return
	}
	var late <-chan time.Time
	if !by.IsZero() {
		timer := time.NewTimer(time.Until(by))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-waits.ready:
	case <-late:
		w.giveUp(waits)
		w.use(size)
	}
}

// join reserves room for size bytes and returns nil, or returns a waiter that gets the room later.
func (w *window) join(size int) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.take(size) {
		return nil
	}
	waits := &waiter{size, make(chan struct{})}
	w.waiters = append(w.waiters, waits)
	return waits
}

// tryReserve reserves room for size bytes, or reports false if there is none now.
func (w *window) tryReserve(size int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.take(size)
}

// take is tryReserve for a caller that holds mu.
func (w *window) take(size int) bool {
	if !w.closed && (len(w.waiters) > 0 || !w.fits(size)) {
		return false
	}
	w.add(size)
	return true
}

// add adds size to what is used. It must be called with mu held.
func (w *window) add(size int) {
	if w.used == 0 {
		w.since, w.carried = time.Now(), 0
	}
	w.used += size
}

// fits reports whether there is room for size bytes. It must be called with mu held.
func (w *window) fits(size int) bool {
	return w.used == 0 || w.used+size <= w.pace.fits(w.slice, maxUnanswered)
}

// begin begins to measure the pace: requests for which room was reserved are sent only now.
func (w *window) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.carried = time.Now(), 0
}

// setSlice sets how long the connection may need for what is unanswered.
func (w *window) setSlice(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slice = d
}

// answered is free for a request that was answered.
func (w *window) answered(size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.carried += size
	if now := time.Now(); w.carried >= measured {
		w.pace.carried(w.carried, now.Sub(w.since))
		w.since, w.carried = now, 0
	}
	w.used -= size
	w.admit()
}

// use reserves room even if there is none.
func (w *window) use(size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(size)
}

// free returns room that was reserved.
func (w *window) free(size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used -= size
	w.admit()
}

// admit reserves room for the waiters for which there is some. It must be called with mu held.
func (w *window) admit() {
	for len(w.waiters) > 0 && w.fits(w.waiters[0].size) {
		w.add(w.waiters[0].size)
		close(w.waiters[0].ready)
		w.waiters = slices.Delete(w.waiters, 0, 1)
	}
}

// giveUp removes a waiter. If it has got its room in the meantime, giveUp returns the room.
func (w *window) giveUp(waits *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiters, waits); i >= 0 {
		w.waiters = slices.Delete(w.waiters, i, i+1)
	} else if !w.closed {
		w.used -= waits.size
	}
	w.admit()
}

// close ends all waits: the connection has ended.
func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, waits := range w.waiters {
		close(waits.ready)
	}
	w.waiters = nil
}

// ended returns an error if the connection has ended.
func (w *window) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errEnded
	}
	return nil
}
