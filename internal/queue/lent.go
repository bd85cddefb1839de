// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"sync"
)

// lent are the contenders of a client whose goroutines are in a function of the program. Such a function need not return, so Close takes
// these contenders over and removes them.
type lent struct {
	mu       sync.Mutex
	all      map[*contender]struct{} // guarded by mu
	recalled bool                    // guarded by mu: no contender is lent any more
}

// lend calls fn, a function of the program. If the client is closed before fn returns, lend returns the cause, and the contender no
// longer belongs to the caller.
func (co *contender) lend(fn func()) error {
	lent := &co.engine.lent
	if !lent.add(co) {
		return context.Cause(co.engine.Requests.Life)
	}
	defer func() { co.isTaken = !lent.takeBack(co) }() // also after a panic
	fn()
	return context.Cause(co.engine.Requests.Life)
}

func (le *lent) add(co *contender) bool {
	le.mu.Lock()
	defer le.mu.Unlock()
	if le.recalled {
		return false
	}
	if le.all == nil {
		le.all = map[*contender]struct{}{}
	}
	le.all[co] = struct{}{}
	return true
}

// takeBack returns false if Recall has taken the contender.
func (le *lent) takeBack(co *contender) bool {
	le.mu.Lock()
	defer le.mu.Unlock()
	_, ours := le.all[co]
	delete(le.all, co)
	return ours
}

// Recall removes the contenders whose goroutines are in a function of the program, after the client's life has ended.
func (en *Engine) Recall() {
	en.lent.mu.Lock()
	all := en.lent.all
	en.lent.all, en.lent.recalled = nil, true
	en.lent.mu.Unlock()
	for co := range all {
		en.removeThen(co, func(error) {})
	}
}
