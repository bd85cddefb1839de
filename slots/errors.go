package slots

import "github.com/zklock-go/zklock/internal/outcome"

var (
	// ErrDone is returned if the slot was marked as done before.
	ErrDone = outcome.ErrDone
	// ErrForgotten is returned for a slot that is older than all that are remembered of its
	// period: nobody knows whether it was done, so it is not done again.
	ErrForgotten = outcome.ErrForgotten
	// ErrAhead is returned for a slot that begins more than one period after the servers' time:
	// the clock of this host is wrong, or theirs. Otherwise one host whose clock is ahead could
	// mark the slots of the others.
	ErrAhead = outcome.ErrAhead
)
