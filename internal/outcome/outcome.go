// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
)

// refusals are the errors that prove that a server did not carry out the request.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists,
	zk.ErrNotEmpty, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags,
	frames.ErrLocalSession, frames.ErrQuota,
}

// IsRefusal reports whether err is a server's refusal: repeating the request gives the same error.
func IsRefusal(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// WasNotDone reports whether a request that failed with err cannot have been carried out.
func WasNotDone(err error) bool {
	return IsRefusal(err) || errors.Is(err, conn.ErrNotSent) || errors.Is(err, frames.ErrThrottled)
}

// IsTransient reports whether another attempt, on this connection or the next, can succeed. An
// unknown error counts as transient, because the client library returns raw network errors and
// error codes that it does not know.
func IsTransient(err error) bool {
	return err != nil && !IsRefusal(err) && !isFinal(err)
}

// isFinal reports whether err is an error of this package or of a context, or of a reply that will be as
// long the next time.
func isFinal(err error) bool {
	if IsOfSlot(err) {
		return true
	}
	for _, f := range []error{ErrSessionOver, ErrGone, ErrClosed, ErrLocked, ErrLimit, ErrInvalid, ErrMismatch, ErrEvicted, frames.ErrTooLong, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

// IsOfSlot reports whether err describes the state of a slot, which further attempts do not change.
func IsOfSlot(err error) bool {
	return errors.Is(err, ErrDone) || errors.Is(err, ErrForgotten) || errors.Is(err, ErrAhead) || errors.Is(err, ErrFull) || errors.Is(err, ErrLate)
}

// IgnoreMissing returns nil if err says that a node does not exist, and otherwise err.
func IgnoreMissing(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// CauseOf returns the error of a call under ctx that failed with err. If ctx has ended, errors.Is
// finds both ctx.Err() and the context's cause in it; otherwise it is err.
func CauseOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if !errors.Is(cause, ctx.Err()) {
		cause = errors.Join(ctx.Err(), cause)
	}
	return WithWaitOf(err, cause)
}

// Beside returns the error of a call under ctx that failed with why and concerns a hold that has
// not ended. If ctx has ended because another hold ended, that reason is included only as text:
// errors.Is would otherwise report the end of this hold.
func Beside(ctx context.Context, why error) error {
	if end := ctx.Err(); end != nil && !isEnd(end) && isEnd(why) {
		return fmt.Errorf("%w: %v", end, context.Cause(ctx))
	}
	return why
}

// isEnd reports whether err means that a hold has ended.
func isEnd(err error) bool {
	return errors.Is(err, ErrLost) || errors.Is(err, ErrReleased) || errors.Is(err, ErrClosed)
}

// WaitedFor returns err, with which a caller ended its wait, extended by what it waited for. An
// error says that once.
func WaitedFor(err error, what string) error {
	var w *waitedFor
	if errors.As(err, &w) {
		return err
	}
	return &waitedFor{err, what}
}

// WithWaitOf returns cause extended by what the caller waited for according to err, if err says so.
func WithWaitOf(err, cause error) error {
	var w *waitedFor
	if errors.As(err, &w) {
		return WaitedFor(cause, w.what)
	}
	return cause
}

type waitedFor struct {
	error
	what string
}

func (w *waitedFor) Error() string { return fmt.Sprintf("%v (waited for %s)", w.error, w.what) }

func (w *waitedFor) Unwrap() error { return w.error }
