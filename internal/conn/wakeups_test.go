// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/frames"
)

// These tests are run with yields between the statements, too: see internal/evidence/yields. Nothing in them takes longer than a minute of
// virtual time, unless a wake-up is missed.

// aMoment is a context for something that is due at once.
func aMoment(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestNoWakeUpIsMissedByARequestThatWaitsForAConnection(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		l.establish(7, term, 0, l.Now())
		s := l.Carried()
		for range 50 {
			l.lost(nil, nil, false)
			ready := make(chan error, 1)
			go func() { ready <- l.Ready(aMoment(t), s) }() // ends with its context
			l.establish(7, term, 0, l.Now())
			require.NoError(t, <-ready)
		}
	})
}

func TestNoWakeUpIsMissedByARequestThatWaitsForRoom(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := &window{pace: new(pace)}
		for range 50 {
			w.use(maxUnanswered)
			reserved := make(chan error, 2)
			for range 2 {
				go func() { reserved <- w.reserve(aMoment(t), nil, 10) }() // ends with its context
			}
			w.answered(maxUnanswered)
			for range 2 {
				require.NoError(t, <-reserved)
				w.answered(10)
			}
		}
	})
}

// A sender that finds its connection ended looks for the next one. If the link still had the one that has ended, it would look again
// and again without a pause.
func TestNoWakeUpIsMissedByASenderWhoseConnectionEnds(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := NewLink()
		w := wire(t, l)
		w.greet(t, 0, 7)
		s := l.Carried()
		for range 50 {
			sent := make(chan error, 2)
			for _, send := range []func(context.Context, *Session, ...Outgoing) error{l.Send, l.SendBeat} {
				go func() { sent <- send(aMoment(t), s, Outgoing{Request: frames.Sync("/"), By: newAsker()}) }() // ends with its context
			}
			w.gone(io.EOF)
			w = wire(t, l)
			w.greet(t, 7, 7)
			require.NoError(t, <-sent)
			require.NoError(t, <-sent)
		}
	})
}
