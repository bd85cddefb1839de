// SPDX-License-Identifier: Apache-2.0

package node

// A Rule returns the index of the contender to wait for, among those ahead. It is negative if there
// is none, which means that the lock is free for the caller.
type Rule func(ahead []Entry) int

// AfterAll is the rule of a mutex and of a writer: wait for all contenders ahead.
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
