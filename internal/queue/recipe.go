// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/zklock-go/zklock/internal/node"

// A Recipe describes how one recipe differs from the others that share a queue.
type Recipe struct {
	Name       string    // for errors and observers
	Infix      string    // in its nodes' names
	Rule       node.Rule // which contender ahead to wait for
	below      bool      // its nodes are in a directory below the lock's path, not directly in the path
	limited    bool      // its directory's data is a number of permits
	TakesDelay bool      // Options.LockDelay applies to it
	Shared     bool      // several contenders can hold at the same time, so a holder may have others ahead of it
	// ForSeveral means that a goroutine of the client's acquires for several callers. The observer is
	// then called later: there, a slow one would delay them all, and nobody could recover from a panic.
	ForSeveral bool
	// Fixed means that the data of its nodes must never change. Other waiters expect such a node
	// only to be deleted; if its data changes instead, they never check it again.
	Fixed bool
	// Passes, if not nil, reports whether a node with that data does not block us although the rule
	// says so: it belongs to a writer that has become a reader.
	Passes func(data []byte) bool
}

// depth returns how many trailing elements of a queue's directory belong to the lock alone.
func (r *Recipe) depth() int {
	if r.below {
		return 2
	}
	return 1
}

// exclusive reports whether a holder has no other contender ahead of it.
func (r *Recipe) exclusive() bool { return !r.Shared }
