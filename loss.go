// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// nodeLoss is the reason why a holding ended whose node is gone. The holding ends before anybody knows
// why the node is gone. The client then asks the servers, and from then on the same error says it: it
// may wrap ErrEvicted in addition to ErrLost.
type nodeLoss struct {
	of    *holding
	at    time.Time
	first error                 // the reason without what the servers know
	why   atomic.Pointer[error] // the reason with it; nil if it is not known
	final session.Latch         // set when the error no longer changes: why is known, or the client has given up
}

func (l *nodeLoss) Error() string { return l.Unwrap().Error() }

func (l *nodeLoss) Unwrap() error {
	if why := l.why.Load(); why != nil {
		return *why
	}
	return l.first
}

// lost returns the reason with which the holding ends because the node is gone.
func (ho *holding) lost(n *session.OwnNode) error {
	why := n.Loss()
	if !n.WasDeleted() {
		return why
	}
	return &nodeLoss{of: ho, at: time.Now(), first: why}
}

// askWhy asks the servers why a node of the holding is gone: an operator has evicted it, or the session
// has expired. It does not wait. why is the reason why the holding has ended; if that is not one of its
// own nodes, askWhy does nothing.
func (ho *holding) askWhy(why error) {
	l, ok := why.(*nodeLoss)
	if !ok || l.of != ho {
		return
	}
	ask := func() {
		defer l.final.Set()
		ctx, cancel := context.WithDeadline(ho.engine.Requests.Life, l.at.Add(l.patience()))
		defer cancel()
		switch fate := ho.grant.Fate(ctx); {
		case errors.Is(fate, ErrEvicted):
			l.know(fmt.Errorf("%w: %w", ErrLost, fate))
			ho.engine.Requests.Log.Warn("zklock: lock was evicted", "path", ho.path, "node", ho.nodes[0].Name, "err", l)
		case errors.Is(fate, outcome.ErrSessionOver):
			l.know(fmt.Errorf("%w, because its session has expired", l.first))
		}
	}
	// Owned by the client; ends within the question's time; Close waits for it.
	if !ho.engine.Requests.Calls.Run(ask) {
		l.final.Set()
	}
}

func (l *nodeLoss) know(why error) { l.why.Store(&why) }

// patience is how long after the loss the servers are asked for its reason.
func (l *nodeLoss) patience() time.Duration { return l.of.engine.Requests.Term() / 4 }

// awaitReason waits until the reason for a loss is known or the client has given up, or until ctx ends.
// That is at most a quarter of the session timeout after the loss.
func awaitReason(ctx context.Context, why error) {
	var l *nodeLoss
	if !errors.As(why, &l) {
		return
	}
	select {
	case <-l.final.Done():
	case <-ctx.Done():
	}
}
