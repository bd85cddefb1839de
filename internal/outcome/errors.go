// Package outcome has the errors of the library, and tells what the error of a request says about what was done.
package outcome

import (
	"errors"

	"github.com/zklock-go/zklock/internal/conn"
)

// The errors that callers see. Package zklock says what they mean.
var (
	ErrLost         = errors.New("lock was lost")
	ErrReleased     = errors.New("lock was released")
	ErrNotHeld      = errors.New("not held")
	ErrLocked       = errors.New("locked by another")
	ErrDeadlock     = errors.New("already held by this context")
	ErrClosed       = errors.New("client is closed")
	ErrNotConnected = errors.New("no connection to a server")
	ErrUncertain    = errors.New("answer was lost, it may have been done")
	ErrInvalid      = errors.New("invalid argument")
	ErrMismatch     = errors.New("others use the path differently")
	ErrLimit        = errors.New("more than there may be")
	ErrEvicted      = errors.New("evicted from the queue")
)

// The errors of package slots, which says what they mean.
var (
	ErrDone      = errors.New("already done")
	ErrForgotten = errors.New("too old to know whether it was done")
	ErrAhead     = errors.New("in the future")
)

// What ends an attempt inside the library. No caller sees these.
var (
	// ErrGone says that our own node was deleted by somebody else while we waited.
	ErrGone = errors.New("own node is gone")
	// ErrSessionOver is returned by what was begun under a session that is over.
	ErrSessionOver = conn.ErrSessionOver
)
