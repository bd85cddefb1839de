// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
)

// TestErrorsAreClassified has every error of the package, each of them also wrapped.
func TestErrorsAreClassified(t *testing.T) {
	type class struct{ refused, unsent, transient, ofSlot bool }
	refused, final, slot := class{refused: true, unsent: true}, class{}, class{ofSlot: true}
	for err, want := range map[error]class{
		zk.ErrNoNode: refused, zk.ErrNoAuth: refused, zk.ErrBadVersion: refused, zk.ErrNoChildrenForEphemerals: refused, zk.ErrNodeExists: refused,
		zk.ErrNotEmpty: refused, zk.ErrInvalidACL: refused, zk.ErrAuthFailed: refused, zk.ErrBadArguments: refused, zk.ErrInvalidPath: refused,
		zk.ErrInvalidFlags: refused, frames.ErrLocalSession: refused, frames.ErrQuota: refused,
		ErrSessionOver: final, ErrGone: final, ErrClosed: final, ErrLocked: final, ErrLimit: final, ErrInvalid: final, ErrMismatch: final, ErrEvicted: final,
		frames.ErrTooLong: final, context.Canceled: final, context.DeadlineExceeded: final,
		ErrDone: slot, ErrForgotten: slot, ErrAhead: slot, ErrFull: slot,
		conn.ErrNotSent: {unsent: true, transient: true}, frames.ErrThrottled: {unsent: true, transient: true},
		io.EOF: {transient: true}, zk.ErrConnectionClosed: {transient: true}, zk.ErrSessionExpired: {transient: true}, frames.ErrorOf(-999): {transient: true},
	} {
		for _, err := range []error{err, fmt.Errorf("why: %w", err)} {
			require.Equal(t, want, class{IsRefusal(err), WasNotDone(err), IsTransient(err), IsOfSlot(err)}, err)
		}
	}
	require.Equal(t, class{}, class{IsRefusal(nil), WasNotDone(nil), IsTransient(nil), IsOfSlot(nil)})
	require.NoError(t, IgnoreMissing(nil))
	require.NoError(t, IgnoreMissing(fmt.Errorf("read: %w", zk.ErrNoNode)))
	require.ErrorIs(t, IgnoreMissing(zk.ErrNoAuth), zk.ErrNoAuth)
	require.ErrorIs(t, ErrReleased, ErrNotHeld)
	require.EqualError(t, ErrReleased, "lock was released")
}

func TestAnEndedContextIsTheErrorAndItsCause(t *testing.T) {
	open := t.Context()
	canceled, cancel := context.WithCancel(open)
	cancel()
	caused, end := context.WithCancelCause(open)
	end(ErrClosed)
	late, cancel := context.WithTimeout(open, 0)
	defer cancel()
	waited := WaitedFor(io.EOF, "a lock of joe")
	for name, c := range map[string]struct {
		ctx      context.Context
		err      error
		text     string
		is, isnt []error
	}{
		"open":     {open, io.EOF, "EOF", []error{io.EOF}, []error{context.Canceled}},
		"canceled": {canceled, io.EOF, "context canceled", []error{context.Canceled}, []error{io.EOF}},
		"caused":   {caused, io.EOF, "context canceled\nclient is closed", []error{context.Canceled, ErrClosed}, []error{io.EOF}},
		"late":     {late, io.EOF, "context deadline exceeded", []error{context.DeadlineExceeded}, []error{io.EOF}},
		"waited":   {canceled, waited, "context canceled (waited for a lock of joe)", []error{context.Canceled}, []error{io.EOF}},
		"no error": {caused, nil, "context canceled\nclient is closed", []error{context.Canceled, ErrClosed}, nil},
	} {
		err := CauseOf(c.ctx, c.err)
		require.EqualError(t, err, c.text, name)
		for _, is := range c.is {
			require.ErrorIs(t, err, is, name)
		}
		for _, isnt := range c.isnt {
			require.NotErrorIs(t, err, isnt, name)
		}
	}
	require.NoError(t, CauseOf(open, nil))
	require.EqualError(t, WaitedFor(waited, "another lock"), "EOF (waited for a lock of joe)", "it says that once")
	require.Equal(t, io.EOF, WithWaitOf(io.ErrNoProgress, io.EOF))
}

// ending is a context whose error is that of a hold: a context of a hold that has ended.
type ending struct {
	context.Context
	err error
}

func (e ending) Err() error { return e.err }

func TestTheEndOfAnotherHoldIsOnlyText(t *testing.T) {
	lost, end := context.WithCancelCause(t.Context())
	end(fmt.Errorf("/a: %w", ErrLost))
	for _, why := range []error{ErrLost, ErrReleased, ErrClosed} {
		err := Beside(lost, why)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, why)
		require.EqualError(t, err, "context canceled: /a: lock was lost")
		require.Equal(t, why, Beside(t.Context(), why), "no context has ended")
		require.Equal(t, why, Beside(ending{lost, ErrLost}, why), "it is this hold's own end")
	}
	refusal := errors.New("refused")
	require.Equal(t, refusal, Beside(lost, refusal))
	require.NoError(t, Beside(lost, nil))
}

func TestAnErrorSaysOnceThatALockWasNotAcquired(t *testing.T) {
	waited := WaitedFor(context.DeadlineExceeded, "a lock of joe")
	err := NotAcquired(fmt.Errorf("lock: %w", waited))
	require.EqualError(t, err, "lock: context deadline exceeded (waited for a lock of joe)")
	require.ErrorIs(t, err, ErrNotAcquired)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Same(t, err, NotAcquired(err))
	require.EqualError(t, WithWaitOf(err, io.EOF), "EOF (waited for a lock of joe)")

	around := Ran(fmt.Errorf("work: %w", err))
	require.EqualError(t, around, "work: lock: context deadline exceeded (waited for a lock of joe)")
	require.NotErrorIs(t, around, ErrNotAcquired)
	require.NotErrorIs(t, fmt.Errorf("more: %w", errors.Join(around, io.EOF)), ErrNotAcquired)
	require.ErrorIs(t, around, context.DeadlineExceeded)
	var w *waitedFor
	require.ErrorAs(t, around, &w)
	require.ErrorIs(t, NotAcquired(around), ErrNotAcquired, "the lock around it was not acquired either")
	require.Equal(t, io.EOF, Ran(io.EOF))
	require.NoError(t, Ran(nil))
}
