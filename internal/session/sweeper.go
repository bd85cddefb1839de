// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/conn"
)

// A Sweeper repeats work on a connection until nothing is left to do. The work belongs to the connection and not to a client: it
// continues after the client is closed. The Sweeper has a goroutine only while the connection carries a session, so a program that
// closes its connection ends it.
type Sweeper struct {
	link  *conn.Link
	tasks *Tasks
	// sweep does the work under s, and returns the time until it should be called again, or zero if nothing is left, or never if it is due
	// only when the connection has changed or Wake is called. Its ctx is done when the connection is lost.
	sweep func(ctx context.Context, s *Session) time.Duration
	kick  chan struct{}

	mu      sync.Mutex
	running bool // guarded by mu: a goroutine is in run
	due     bool // guarded by mu: Wake was called after the last sweep began
}

// NewSweeper returns a Sweeper for the connection of the hub. The caller calls Wake when there is work; the Sweeper does so itself
// whenever the connection begins to carry a session and isAny returns true.
func (h *Hub) NewSweeper(isAny func() bool, sweep func(ctx context.Context, s *Session) time.Duration) *Sweeper {
	sw := &Sweeper{link: h.Link, tasks: h.sweeps, sweep: sweep, kick: make(chan struct{}, 1)}
	h.Link.WhenCarried(func() {
		if isAny() {
			sw.mu.Lock()
			defer sw.mu.Unlock()
			if !sw.running { // a goroutine in run sees the new session itself
				sw.start()
			}
		}
	})
	return sw
}

// sweptAtOnce limits how many calls of SideBySide run at a time.
const sweptAtOnce = 16

// SideBySide calls fn with 0 to n-1, several calls at a time.
func (sw *Sweeper) SideBySide(n int, fn func(i int)) {
	_ = SideBySide(sw.tasks, n, sweptAtOnce, func(i int) error { fn(i); return nil })
}

// Wake makes the sweep run soon, or when the connection carries a session.
func (sw *Sweeper) Wake() {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	if !sw.running {
		sw.start()
		return
	}
	sw.due = true
	select {
	case sw.kick <- struct{}{}:
	default:
	}
}

// start must be called with mu held, while no goroutine is in run.
func (sw *Sweeper) start() {
	sw.due = true
	// Owned by the hub; ends when nothing is left to do, or with the connection. Close of a client that has its own connection waits for
	// it; otherwise the program's connection ends it.
	sw.running = sw.link.Carried() != nil && sw.tasks.Run(sw.run)
}

// run calls sweep until nothing is left to do or the connection is lost.
func (sw *Sweeper) run() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	for {
		s, changed := sw.next()
		if s == nil {
			return
		}
		wait := sw.sweep(whileOpen{context.Background(), changed}, s)
		if wait == 0 {
			continue
		}
		timer.Stop()
		if wait != never { // a timer would fire after an hour
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-changed:
		case <-sw.kick:
		}
		sw.mu.Lock()
		sw.due = true
		sw.mu.Unlock()
	}
}

// next returns the session that the connection carries, and a channel that is closed when that changes. If there is none, or nothing is
// left to do, it returns nil, and the goroutine ends.
func (sw *Sweeper) next() (*Session, <-chan struct{}) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	s, changed := sw.link.State()
	if s == nil || !sw.due {
		sw.running = false
		return nil, nil
	}
	sw.due = false
	return s, changed
}

// whileOpen is a context that is done when a channel is closed.
type whileOpen struct {
	context.Context // which is never done
	closed          <-chan struct{}
}

func (w whileOpen) Done() <-chan struct{} { return w.closed }

func (w whileOpen) Err() error {
	if IsClosed(w.closed) {
		return context.Canceled
	}
	return nil
}
