// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"fmt"
	"strconv"
)

// Plain is the kind that every peer supports.
const Plain = "plain"

// Session is one session of a peer's client library.
type Session struct {
	peer *Peer
	id   string
}

// Open opens a session.
func (p *Peer) Open(ctx context.Context) (*Session, error) {
	id, err := p.Ask(ctx, "open")
	if err != nil {
		return nil, err
	}
	return &Session{p, id}, nil
}

// End ends the session.
func (s *Session) End(ctx context.Context) error {
	_, err := s.peer.Ask(ctx, "end", s.id)
	return err
}

// Contender returns a contender for the lock of this kind at this path. more is the argument MORE, for kinds that have one.
func (s *Session) Contender(ctx context.Context, kind, path string, more ...string) (*Contender, error) {
	id, err := s.peer.Ask(ctx, append([]string{"contender", s.id, kind, path}, more...)...)
	if err != nil {
		return nil, err
	}
	return &Contender{s.peer, id}, nil
}

// Revoke asks the holder with this node to release.
func (s *Session) Revoke(ctx context.Context, node string) error {
	_, err := s.peer.Ask(ctx, "revoke", s.id, node)
	return err
}

// Leader returns the member that leads at a path, as the library sees it.
func (s *Session) Leader(ctx context.Context, kind, path string) (string, error) {
	return s.peer.Ask(ctx, "leader", s.id, kind, path)
}

// Contender acquires and releases one lock. Lock, Unlock, Held and Close must not be called concurrently.
type Contender struct {
	peer *Peer
	id   string
}

func (c *Contender) ask(ctx context.Context, verb string) (string, error) {
	return c.peer.Ask(ctx, verb, c.id)
}

// Lock waits for the lock and returns its token, or 0 if the library has none. If ctx ends first, the library keeps waiting.
func (c *Contender) Lock(ctx context.Context) (token int64, err error) {
	value, err := c.ask(ctx, "lock")
	if err != nil {
		return 0, err
	}
	if token, err = strconv.ParseInt(value, 10, 64); err != nil {
		return 0, fmt.Errorf("lock: %w", err)
	}
	return token, nil
}

// Unlock releases the lock.
func (c *Contender) Unlock(ctx context.Context) error {
	_, err := c.ask(ctx, "unlock")
	return err
}

// Held reports whether the lock is held according to the library.
func (c *Contender) Held(ctx context.Context) (bool, error) {
	value, err := c.ask(ctx, "held")
	if err != nil {
		return false, err
	}
	return strconv.ParseBool(value)
}

// Sign waits for the next sign: doubt, trust or loss.
func (c *Contender) Sign(ctx context.Context) (string, error) { return c.ask(ctx, "sign") }

// Revoked waits until the holder is asked to release.
func (c *Contender) Revoked(ctx context.Context) error {
	_, err := c.ask(ctx, "revoked")
	return err
}

// Close ends the contender.
func (c *Contender) Close(ctx context.Context) error {
	_, err := c.ask(ctx, "close")
	return err
}
