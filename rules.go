package zklock

// A rule is what one recipe makes of the contenders ahead of one of its own: the index
// of the one to wait for, negative when there is none and the lock is ours.
type rule func(ahead []entry) int

// afterAll waits for everybody ahead: a mutex, a writer.
func afterAll(ahead []entry) int { return len(ahead) - 1 }

// afterExclusive waits for the nearest writer ahead: a reader.
func afterExclusive(ahead []entry) int {
	for i := len(ahead) - 1; i >= 0; i-- {
		if !ahead[i].shared {
			return i
		}
	}
	return -1
}

// A recipe is what differs between the recipes that stand in one queue.
type recipe struct {
	name    string // for errors and observers
	infix   string // of its nodes' names
	rule    rule
	below   bool // its nodes are in a directory below the lock's path, not in that itself
	limited bool // its directory's data is a number of permits
	shared  bool // several hold at a time, so a holder may have others ahead of it
	fixed   bool // its nodes' data must never change: those behind one look only for its end, and if its data changes instead they never look again
	// passes, if set, looks at the data of one who stands in our way: true means that it
	// no longer does (a writer that became a reader).
	passes func(data []byte) bool
}

// depth returns how many of the last parts of a queue's directory belong to the lock alone.
func (r *recipe) depth() int {
	if r.below {
		return 2
	}
	return 1
}

// exclusive reports whether a holder by this recipe had nobody ahead of it.
func (r *recipe) exclusive() bool { return !r.shared }
