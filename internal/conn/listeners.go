// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zklock-go/zklock/internal/frames"
)

// listeners are the functions that are called for every watch event. Reading them takes no lock.
type listeners struct {
	mu  sync.Mutex // held while all changes
	all atomic.Pointer[[]*listener]
}

type listener struct {
	fn func(s *Session, e frames.Event)
}

// change replaces the listeners with what to returns for a copy of them.
func (ls *listeners) change(to func(all []*listener) []*listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var all []*listener
	if old := ls.all.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = to(all)
	ls.all.Store(&all)
}

// notify passes an event to the listeners.
func (ls *listeners) notify(s *Session, e frames.Event) {
	all := ls.all.Load()
	if all == nil || s == nil {
		return
	}
	for _, one := range *all {
		one.fn(s, e)
	}
}
