// SPDX-License-Identifier: Apache-2.0

// Package outcome defines the errors of the library, and classifies errors of requests by what they
// imply about the outcome.
package outcome

import (
	"errors"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/escape"
)

// The errors that callers see. Package zklock documents them.
var (
	ErrLost         = errors.New("lock was lost")
	ErrNotAcquired  = errors.New("lock was not acquired")
	ErrReleased     = error(kind{"lock was released", ErrNotHeld})
	ErrNotHeld      = errors.New("not held")
	ErrLocked       = errors.New("already locked")
	ErrDeadlock     = errors.New("already held by this context")
	ErrClosed       = errors.New("client is closed")
	ErrNotConnected = errors.New("no connection to a server")
	ErrUncertain    = errors.New("outcome unknown: no reply received")
	ErrInvalid      = errors.New("invalid argument")
	ErrMismatch     = errors.New("path is in use with different settings")
	ErrLimit        = errors.New("limit exceeded")
	ErrEvicted      = errors.New("evicted from the queue")
)

// kind is an error with a text of its own that wraps a more general one.
type kind struct {
	text string
	of   error
}

func (k kind) Error() string { return k.text }

func (k kind) Unwrap() error { return k.of }

// Evicted returns an error that wraps ErrEvicted, and says by which host the contender was evicted and
// why. Each of these can be empty, and comes from anybody who may write at the lock's path.
func Evicted(by, reason string) error {
	text := "evicted"
	if by != "" {
		text += " by " + escape.Short(by, 64)
	}
	if reason != "" {
		text += ": " + escape.Text(reason)
	}
	if text == "evicted" {
		return ErrEvicted
	}
	return kind{text, ErrEvicted}
}

// The errors of package slots, which documents them.
var (
	ErrDone      = errors.New("already done")
	ErrForgotten = errors.New("slot is too old: its result is no longer recorded")
	ErrAhead     = errors.New("slot is in the future")
	ErrFull      = errors.New("record of slots is full")
	ErrLate      = errors.New("run has not begun before the next one was due")
)

// Errors that end an attempt inside the library. Callers never see them.
var (
	// ErrGone means that our own node was deleted by another client while we waited.
	ErrGone = errors.New("own node was deleted")
	// ErrSessionOver is returned by operations that started under a session that is now over.
	ErrSessionOver = conn.ErrSessionOver
)
