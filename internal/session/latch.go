// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"
	"sync/atomic"
)

// A Latch is an event that happens once. It creates a channel only when somebody waits for it: most
// latches of most holds have no waiters. The zero value is ready for use.
type Latch struct {
	mu       sync.Mutex
	happened atomic.Bool   // set with mu held
	waited   chan struct{} // guarded by mu: closed by Set; nil until somebody waits, and after Set
}

// happened is the channel of every latch that is set.
var happened = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Set sets the latch and reports whether it was not set before.
func (l *Latch) Set() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.happened.Swap(true) {
		return false
	}
	if l.waited != nil {
		close(l.waited)
		l.waited = nil
	}
	return true
}

// IsSet reports whether the latch is set.
func (l *Latch) IsSet() bool { return l.happened.Load() }

// Done returns a channel that is closed when the latch is set.
func (l *Latch) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.happened.Load() {
		return happened
	}
	if l.waited == nil {
		l.waited = make(chan struct{})
	}
	return l.waited
}
