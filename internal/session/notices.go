// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"sync"
	"time"
)

// maxNotices limits how many notices wait: a client that loses ten thousand holds at once, of which
// each is an event and a log line, drops none.
const maxNotices = 1 << 16

// slowNotice is how long a notice may take before it is reported as slow, and reportEvery how often
// that is reported.
const (
	slowNotice  = time.Second
	reportEvery = time.Minute
)

// Notices calls the program's functions, its observer and its log handler, one after another in
// the order in which they were put. Nothing that a hold depends on waits for them.
type Notices struct {
	Report func(Slowness) // tells the program that its functions are slow; called as the others are
	tasks  *Tasks         // the goroutine that calls them, if any

	mu            sync.Mutex // guards the fields below
	waiting       []func()
	running       bool
	ended         bool
	slow          Slowness
	reported      time.Time // when Report was called last
	reportedDrops int       // how many dropped notices it has reported
}

// Slowness describes the program's functions that are slow.
type Slowness struct {
	Longest time.Duration // of all calls that have returned
	Waiting int           // notices that wait
	Dropped int           // notices that were dropped, because too many waited or Close reached its limit
}

// String describes s, or returns an empty string if nothing was slow.
func (s Slowness) String() string {
	if s.Longest < slowNotice && s.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("observer or log handler is slow: took up to %v, %d notices wait, %d dropped", s.Longest.Round(time.Millisecond), s.Waiting, s.Dropped)
}

// NewNotices returns Notices without any. The caller must set Report and call Close.
func NewNotices() *Notices { return &Notices{tasks: NewTasks()} }

// Put arranges for notify to be called soon, and returns at once. If too many notices wait, or after
// Close, it drops notify and returns false.
func (n *Notices) Put(notify func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || len(n.waiting) == maxNotices {
		n.slow.Dropped++
		return false
	}
	n.waiting = append(n.waiting, notify)
	if !n.running {
		// Owned by n; ends when no notice waits; Close waits for it for the time it is given.
		n.running = n.tasks.Run(n.deliver)
	}
	return true
}

// Slowness describes the program's functions.
func (n *Notices) Slowness() Slowness {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.slow
	s.Waiting = len(n.waiting)
	return s
}

// deliver calls what was put until nothing is left.
func (n *Notices) deliver() {
	for {
		notify, ok := n.next()
		if !ok {
			return
		}
		began := time.Now()
		notify()
		if s, due := n.took(time.Since(began)); due {
			n.Report(s)
		}
	}
}

// next returns the next notice. It returns false if there is none.
func (n *Notices) next() (notify func(), ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiting) == 0 {
		n.waiting, n.running = nil, false
		return nil, false
	}
	notify, n.waiting[0] = n.waiting[0], nil
	n.waiting = n.waiting[1:]
	return notify, true
}

// took records how long a notice took. due reports whether the slowness should be reported now.
func (n *Notices) took(d time.Duration) (s Slowness, due bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow.Longest = max(n.slow.Longest, d)
	if d >= slowNotice || n.slow.Dropped > n.reportedDrops {
		due = n.reported.IsZero() || time.Since(n.reported) >= reportEvery
	}
	if due {
		n.reported, n.reportedDrops = time.Now(), n.slow.Dropped
	}
	s = n.slow
	s.Waiting = len(n.waiting)
	return s, due
}

// Close waits until all notices are delivered, or until limit is closed. It drops what then still
// waits; the call that is in progress ends when the program's function returns.
func (n *Notices) Close(limit <-chan struct{}) {
	delivered := n.tasks.Close()
	select {
	case <-delivered:
	case <-limit:
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow.Dropped += len(n.waiting)
	n.waiting, n.ended = nil, true
}
