// SPDX-License-Identifier: Apache-2.0

package slots

import "github.com/zklock-go/zklock/internal/outcome"

var (
	// ErrDone is returned if the slot is already marked as done.
	ErrDone = outcome.ErrDone
	// ErrForgotten is returned for a slot that is older than all recorded slots of its period. It
	// is unknown whether its work was done, so it is not done again.
	ErrForgotten = outcome.ErrForgotten
	// ErrAhead is returned for a slot that begins more than one period after the leader's time:
	// this host's clock or the leader's clock is wrong. Without this error, a host whose clock is
	// ahead could mark the slots of the other hosts.
	ErrAhead = outcome.ErrAhead
	// ErrFull is returned for a slot that is not marked, and whose mark has no room: the path already
	// has marks of 1000 names or of 32 periods. Its work is not done, because it could be done again.
	// Prune makes room; another path has room, too.
	ErrFull = outcome.ErrFull
	// ErrLate is reported for a run of a Job that has not begun on this host when the next run was due, or
	// that would begin after a later one was done. Another host may have done it, or may be doing it.
	ErrLate = outcome.ErrLate
)
