// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/frames"
)

// Attached waits until the connection carries a session, and returns it. If ctx is done first,
// Attached returns its cause. If servers refuse the login (see SetLogin), it returns the refusal.
func (l *Link) Attached(ctx context.Context) (*Session, error) {
	for {
		s, changed := l.State()
		if s != nil {
			return s, nil
		}
		if err := l.login.verdict(); err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// State returns the session that the connection carries, or nil if there is none, and a channel
// that is closed when that changes.
func (l *Link) State() (*Session, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carried.Load(), l.changed
}

// Carried returns the session that the connection carries, or nil if there is none.
func (l *Link) Carried() *Session { return l.carried.Load() }

// Latest returns the newest session, which may be over, or nil before the first.
func (l *Link) Latest() *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Carries reports whether s is still the client's session, connected or not.
func (l *Link) Carries(s *Session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session == s && !s.IsOver()
}

// ErrNotSent is the error of a request that was not sent because no connection was open or because too
// many requests were unanswered.
var ErrNotSent = errors.New("not sent: no connection to a server that takes more requests")

// Send sends requests under s, one after another and if possible in one write, as soon as a connection
// carries s and has room for them. A reply is valid if the link carries s when the reply arrives. If
// Send returns an error, nothing was sent.
func (l *Link) Send(ctx context.Context, s *Session, requests ...Outgoing) error {
	for {
		conn, err := l.connWithRoom(ctx, s, sizeOf(requests))
		if err != nil || conn.send(requests) {
			return err
		}
	}
}

// SendNow is like Send, but does not wait: it returns ErrNotSent if no connection carries s, or if the
// connection has no room for the requests.
func (l *Link) SendNow(s *Session, requests ...Outgoing) error {
	conn, err := l.connOf(s)
	if err != nil {
		return err
	}
	if !conn.room.tryReserve(sizeOf(requests)) || !conn.send(requests) {
		return ErrNotSent
	}
	return nil
}

// sizeOf returns how many bytes the requests have together.
func sizeOf(requests []Outgoing) (size int) {
	for _, q := range requests {
		size += len(q.Request)
	}
	return size
}

// connWithRoom waits until a connection carries s and has room for size bytes, reserves the room, and
// returns the connection.
func (l *Link) connWithRoom(ctx context.Context, s *Session, size int) (*proxy, error) {
	for {
		conn, err := l.connFor(ctx, s)
		if err != nil {
			return nil, err
		}
		err = conn.room.reserve(ctx, s.Over(), size)
		if err == nil {
			if err = l.awaitLease(ctx, s, conn, size); err != nil {
				conn.room.free(size)
			}
		}
		if !errors.Is(err, errEnded) {
			return conn, err
		}
	}
}

// SendBeat is like Send for a request of a heartbeat. It is sent before all other requests that are
// not yet written, and needs no room.
func (l *Link) SendBeat(ctx context.Context, s *Session, requests ...Outgoing) error {
	for {
		conn, err := l.connFor(ctx, s)
		if err != nil || conn.sendBeats(requests) {
			return err
		}
	}
}

// SendBeatNow is like SendBeat, but does not wait for a connection.
func (l *Link) SendBeatNow(s *Session, requests ...Outgoing) error {
	conn, err := l.connOf(s)
	if err == nil && !conn.sendBeats(requests) {
		return ErrNotSent
	}
	return err
}

// connFor waits until a connection carries s, and returns it.
func (l *Link) connFor(ctx context.Context, s *Session) (*proxy, error) {
	for {
		if err := l.Ready(ctx, s); err != nil {
			return nil, err
		}
		if conn, err := l.connOf(s); !errors.Is(err, ErrNotSent) {
			return conn, err
		}
	}
}

// connOf returns the connection that carries s, or ErrNotSent if none does.
func (l *Link) connOf(s *Session) (*proxy, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.session != s || s.IsOver():
		return nil, ErrSessionOver
	case l.carried.Load() == nil:
		return nil, ErrNotSent
	}
	return l.conn, nil
}

// Ready waits until requests can be sent under s. If ctx is done, nothing is to be sent.
func (l *Link) Ready(ctx context.Context, s *Session) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.mu.Lock()
		ready, over, changed := l.carried.Load() == s, l.session != s || s.IsOver(), l.changed
		l.mu.Unlock()
		switch {
		case over:
			return ErrSessionOver
		case ready:
			return nil
		}
		select {
		case <-changed:
		case <-s.Over():
		case <-ctx.Done():
		}
	}
}

// AwaitLoss waits until the connection that carried s is lost, and returns true. If ctx is done
// first, it returns false. changed and again are what State and Reattached returned earlier.
func (l *Link) AwaitLoss(ctx context.Context, s *Session, changed, again <-chan struct{}) bool {
	for {
		select {
		case <-changed:
		case <-again:
			return true
		case <-ctx.Done():
			return false
		}
		var now *Session
		now, changed = l.State()
		if now != s {
			return true
		}
	}
}

// Unanswered returns the time since which the server that carries s has been silent while a request was
// outstanding. It returns false if no request is outstanding.
func (l *Link) Unanswered(s *Session) (since time.Time, ok bool) {
	conn, err := l.connOf(s)
	if err != nil {
		return time.Time{}, false
	}
	return conn.unanswered()
}

// Abandon ends the connection that carries s, so that the client library switches to another
// server.
func (l *Link) Abandon(s *Session) {
	if conn, err := l.connOf(s); err == nil {
		conn.hangUp()
	}
}

// Listen calls fn for every watch event until the returned function is called. Events arrive in
// order, and before any later reply. fn must not wait.
func (l *Link) Listen(fn func(s *Session, e frames.Event)) (stop func()) {
	added := &listener{fn}
	l.listeners.change(func(all []*listener) []*listener { return append(all, added) })
	return func() {
		l.listeners.change(func(all []*listener) []*listener {
			return slices.DeleteFunc(all, func(other *listener) bool { return other == added })
		})
	}
}
