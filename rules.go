package zklock

// A rule returns which of the contenders ahead of one to wait for, by its index. It is negative
// if there is none, and the lock is free for that one.
type rule func(ahead []entry) int

// afterAll is the rule of a mutex and of a writer: wait for all that are ahead.
func afterAll(ahead []entry) int { return len(ahead) - 1 }

// afterExclusive is the rule of a reader: wait for the nearest writer ahead.
func afterExclusive(ahead []entry) int {
	for i := len(ahead) - 1; i >= 0; i-- {
		if !ahead[i].shared {
			return i
		}
	}
	return -1
}
