package outcome

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
)

// refusals are the errors after which it is certain that a server has not done what it was
// asked for.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists,
	zk.ErrNotEmpty, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags,
	frames.ErrLocalSession, frames.ErrQuota,
}

// IsRefusal reports whether err is a server's refusal: asking again gives the same answer.
func IsRefusal(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// WasNotSent reports whether a request that failed with err cannot have been carried out.
func WasNotSent(err error) bool {
	return IsRefusal(err) || errors.Is(err, conn.ErrNotSent) || errors.Is(err, frames.ErrThrottled)
}

// IsTransient reports whether another attempt, on this connection or the next, can help. An
// error that is not known here counts as transient, because the client library returns raw
// network errors and codes of servers that it has no name for.
func IsTransient(err error) bool {
	return err != nil && !IsRefusal(err) && !isFinal(err)
}

// isFinal reports whether err is an error of this package or of a context.
func isFinal(err error) bool {
	if IsOfSlot(err) {
		return true
	}
	for _, f := range []error{ErrSessionOver, ErrGone, ErrClosed, ErrLocked, ErrLimit, ErrInvalid, ErrMismatch, ErrEvicted, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

// IsOfSlot reports whether err says what is known of the slot, which no further attempt changes.
func IsOfSlot(err error) bool {
	return errors.Is(err, ErrDone) || errors.Is(err, ErrForgotten) || errors.Is(err, ErrAhead)
}

// IgnoreMissing returns nil for the error of a node that does not exist, else err.
func IgnoreMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// CauseOf returns err, with which a call under ctx failed, or if ctx has ended an error in
// which errors.Is finds both ctx.Err() and the context's cause.
func CauseOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if !errors.Is(cause, ctx.Err()) {
		cause = errors.Join(ctx.Err(), cause)
	}
	var b *behind
	if errors.As(err, &b) {
		return Behind(cause, b.whom)
	}
	return cause
}

// Beside returns why, with which a call under ctx failed that is about a hold, which lasts. Where ctx has ended with another hold,
// that is in the text only: with errors.Is it would be the end of this one.
func Beside(ctx context.Context, why error) error {
	if end := ctx.Err(); end != nil && !isEnd(end) && isEnd(why) {
		return fmt.Errorf("%w: %v", end, context.Cause(ctx))
	}
	return why
}

// isEnd reports whether err says how a hold has ended.
func isEnd(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, ErrReleased) || errors.Is(err, ErrClosed)
}

// Behind returns err, with which a caller has ended its wait, as one that says whom the wait was for.
func Behind(err error, whom string) error { return &behind{err, whom} }

type behind struct {
	error
	whom string
}

func (b *behind) Error() string { return fmt.Sprintf("%v (waited for %s)", b.error, b.whom) }

func (b *behind) Unwrap() error { return b.error }
