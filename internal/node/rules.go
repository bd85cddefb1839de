package node

// A Rule returns which of the contenders ahead of one to wait for, by its index. It is negative
// if there is none, and the lock is free for that one.
type Rule func(ahead []Entry) int

// AfterAll is the rule of a mutex and of a writer: wait for all that are ahead.
func AfterAll(ahead []Entry) int { return len(ahead) - 1 }

// AfterExclusive is the rule of a reader: wait for the nearest writer ahead.
func AfterExclusive(ahead []Entry) int {
	for i := len(ahead) - 1; i >= 0; i-- {
		if !ahead[i].Shared {
			return i
		}
	}
	return -1
}
