package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/door"
)

// refusals are the errors after which it is certain that a server has not done what it was
// asked for.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists,
	zk.ErrNotEmpty, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags,
}

// isRefusal reports whether err is a server's refusal: asking again gives the same answer.
func isRefusal(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// wasNotSent reports whether a request that failed with err cannot have been carried out.
func wasNotSent(err error) bool { return isRefusal(err) || errors.Is(err, zk.ErrNoServer) }

// isTransient reports whether another attempt, on this connection or the next, can help. An
// error that is not known here counts as transient, because the client library returns raw
// network errors and codes of servers that it has no name for.
func isTransient(err error) bool {
	return err != nil && !isRefusal(err) && !isFinal(err)
}

// isFinal reports whether err is an error of this package or of a context.
func isFinal(err error) bool {
	if isOfSlot(err) {
		return true
	}
	for _, f := range []error{errSessionOver, errGone, ErrClosed, ErrLocked, ErrLimit, ErrInvalid, ErrEvicted, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

// isOfSlot reports whether err says what is known of the slot, which no further attempt changes.
func isOfSlot(err error) bool {
	return errors.Is(err, door.ErrDone) || errors.Is(err, door.ErrForgotten) || errors.Is(err, door.ErrAhead)
}

// goneIfMissing returns errGone for the error of a node that does not exist, else err.
func goneIfMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return errGone
	}
	return err
}

// ignoreMissing returns nil for the error of a node that does not exist, else err.
func ignoreMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// causeOf returns err, with which a call under ctx failed, or if ctx has ended an error in
// which errors.Is finds both ctx.Err() and the context's cause.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrLost) || errors.Is(cause, ErrReleased) || errors.Is(cause, ErrClosed):
		return cause
	case errors.Is(cause, ctx.Err()):
		return cause
	}
	return errors.Join(ctx.Err(), cause)
}
