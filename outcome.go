package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// refusals are the errors that say for certain that a server did not do what was asked.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists,
	zk.ErrNotEmpty, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags,
}

// isRefusal reports whether err is final: asking again gives the same answer.
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

// isTransient reports whether trying again, on this connection or the next, can help.
// An unknown error may be one that it can help with: the library hands out raw network errors and server codes
// that it has no name for.
func isTransient(err error) bool {
	return err != nil && !isRefusal(err) && !isFinal(err)
}

// isFinal reports whether err is one of ours, or of a context.
func isFinal(err error) bool {
	for _, f := range []error{errSessionOver, errGone, ErrClosed, ErrLocked, ErrLimit, ErrInvalid, ErrEvicted, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

func goneIfMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return errGone
	}
	return err
}

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
