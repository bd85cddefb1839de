// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"fmt"
	"strings"
)

// Incomplete is an error that does not end the sequence of Watch. It says how many directories below
// the path are not shown. If all of its numbers are zero, every directory is shown again.
type Incomplete struct {
	Unreadable int // the client may not read them, or a contender in them
	Unwatched  int // they have children, and are beyond the limit
	Empty      int // they had no children when Watch last looked, and are beyond the limit for such directories
}

// Error says how many directories are not shown, and why.
func (i *Incomplete) Error() string {
	var parts []string
	add := func(n int, format, formatMany string) {
		switch {
		case n == 1:
			parts = append(parts, format)
		case n > 1:
			parts = append(parts, fmt.Sprintf(formatMany, n))
		}
	}
	add(i.Unreadable, "1 directory could not be read", "%d directories could not be read")
	add(i.Unwatched, "1 directory is not watched: there are too many", "%d directories are not watched: there are too many")
	add(i.Empty, "1 empty directory is not watched: a lock in it is noticed late", "%d empty directories are not watched: a lock in them is noticed late")
	if parts == nil {
		return "every directory is shown"
	}
	return strings.Join(parts, "; ")
}
