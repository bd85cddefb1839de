// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"
	"sync/atomic"

	"github.com/zklock-go/zklock/internal/outcome"
)

// Tasks counts goroutines of one kind, so that Close can wait for them. A goroutine whose task has
// ended takes another one: a release is too short to justify a new goroutine and its stack.
type Tasks struct {
	mu      sync.Mutex    // guards the fields below
	n       int           // tasks and goroutines that have not ended
	closed  bool          // no new task may start
	resting []chan func() // each is read by a goroutine without a task
	most    int           // the maximum length of resting
	idle    chan struct{} // closed when closed is true and no task is left
}

// maxResting limits how many goroutines wait for a task: a client with one lock has at most this
// many tasks at once.
const maxResting = 4

func NewTasks() *Tasks { return &Tasks{idle: make(chan struct{}), most: maxResting} }

// Enter registers the caller as a task and returns true; the caller must call Done. After Close it
// returns false.
func (ts *Tasks) Enter() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return false
	}
	ts.n++
	return true
}

// Done ends the task that Enter registered.
func (ts *Tasks) Done() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.n--
	if ts.closed && ts.n == 0 {
		close(ts.idle)
	}
}

// Run starts fn as a task and returns true. After Close it returns false and does not start fn.
func (ts *Tasks) Run(fn func()) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return false
	}
	if last := len(ts.resting) - 1; last >= 0 {
		ts.resting[last] <- fn // never waits: the channel has a buffer of one
		ts.resting = ts.resting[:last]
		return true
	}
	ts.n++
	// Owned by t; ends with fn, or when Close ends its wait for another task; the caller of Close
	// waits.
	go ts.work(fn)
	return true
}

// Continue runs fn in a goroutine, as a part of a task that Enter has registered. fn must call Done.
func (ts *Tasks) Continue(fn func()) {
	if !ts.Run(fn) {
		// Owned by the task; ends with fn; the caller of Close waits.
		go fn()
	}
}

// work runs fn, and then the tasks that it is given while it rests.
func (ts *Tasks) work(fn func()) {
	defer ts.Done()
	more := make(chan func(), 1)
	for fn != nil {
		fn()
		fn = ts.rest(more)
	}
}

// rest waits for the next task and returns it, or returns nil if the goroutine should end.
func (ts *Tasks) rest(more chan func()) func() {
	ts.mu.Lock()
	if ts.closed || len(ts.resting) == ts.most {
		ts.mu.Unlock()
		return nil
	}
	ts.resting = append(ts.resting, more)
	ts.mu.Unlock()
	return <-more
}

// Close refuses new tasks and returns a channel that is closed when the last task has ended.
func (ts *Tasks) Close() <-chan struct{} {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !ts.closed {
		ts.closed = true
		for _, r := range ts.resting {
			close(r)
		}
		ts.resting = nil
		if ts.n == 0 {
			close(ts.idle)
		}
	}
	return ts.idle
}

// SideBySide calls fn with 0 to n-1, several calls at a time. After an error it starts no more
// calls. It returns the first error once all calls have returned.
func SideBySide(owner *Tasks, n, several int, fn func(i int) error) error {
	var next atomic.Int64
	errs := make(chan error, several)
	worker := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				errs <- nil
				return
			}
			if err := fn(i); err != nil {
				next.Store(int64(n)) // no worker starts another call
				errs <- err
				return
			}
		}
	}
	several = min(several, n)
	for range several {
		// Owned by the caller of SideBySide, which waits for it; ends with the last call of fn.
		if !owner.Run(worker) {
			errs <- outcome.ErrClosed
		}
	}
	var first error
	for range several {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
