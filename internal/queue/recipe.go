package queue

import "github.com/zklock-go/zklock/internal/node"

// A Recipe is what differs between the recipes that stand in one queue.
type Recipe struct {
	Name    string    // for errors and observers
	Infix   string    // of its nodes' names
	Rule    node.Rule // for which of those ahead to wait
	below   bool      // its nodes are in a directory below the lock's path, not in that itself
	limited bool      // its directory's data is a number of permits
	Delays  bool      // Options.LockDelay applies to it
	Shared  bool      // several hold at a time, so a holder may have others ahead of it
	// fixed means that the data of its nodes must never change. Those that wait for such a
	// node expect its end only; if its data changes instead, they never look again.
	Fixed bool
	// passes, if not nil, reports whether a node with that data does not stand in our way
	// although the rule says so: it is a writer's that has become a reader.
	Passes func(data []byte) bool
}

// depth returns how many parts at the end of a queue's directory belong to the lock alone.
func (r *Recipe) depth() int {
	if r.below {
		return 2
	}
	return 1
}

// exclusive reports whether a holder has nobody ahead of it.
func (r *Recipe) exclusive() bool { return !r.Shared }
