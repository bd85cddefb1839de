package session

import (
	"sync"
	"sync/atomic"
)

// A Latch is something that happens once. It makes a channel only for those who wait for it: most
// latches of most holds have nobody who does. Its zero value is ready for use.
type Latch struct {
	mu       sync.Mutex
	happened atomic.Bool   // set with mu held
	waited   chan struct{} // guarded by mu: closed when it happens; nil while nobody has waited, and afterwards
}

// happened is the channel of every latch that has been set.
var happened = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Set has it happen, and reports whether it had not before.
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

// IsSet reports whether it has happened.
func (l *Latch) IsSet() bool { return l.happened.Load() }

// Done returns a channel that is closed when it has happened.
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
