// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// support records whether servers support a kind of request. Some servers hang up on requests that
// they do not know, instead of replying that it is unimplemented.
type support struct {
	mu      sync.Mutex       // guards the fields below
	hangUps int              // consecutive connections that ended on such a request
	hungUp  *conn.Attachment // the last of these connections
	known   bool             // a server has replied to such a request
}

// enoughHangUps is how many consecutive connections may end on a request before the client stops
// sending such requests. A server that has replied to one supports it, and is rarely replaced by
// one that does not, so then the limit is manyHangUps.
const (
	enoughHangUps = 2
	manyHangUps   = 10
)

// isMissing reports whether the servers do not support the request.
func (p *support) isMissing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hangUps >= p.limit()
}

// isKnown reports whether a server has replied to such a request.
func (p *support) isKnown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// limit returns the current limit. It must be called with mu held.
func (p *support) limit() int {
	if p.known {
		return manyHangUps
	}
	return enoughHangUps
}

// judge handles the outcome of a request that was sent on a connection. It reports whether this
// outcome has shown that the servers do not support the request.
func (p *support) judge(err error, on *conn.Attachment) (missing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.hangUps
	switch {
	case errors.Is(err, frames.ErrUnimplemented):
		p.hangUps, p.known = enoughHangUps, false
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, outcome.ErrSessionOver): // some servers also assign another session
		if p.hungUp != on { // a lost connection fails all its pending requests, but counts once
			p.hangUps, p.hungUp = p.hangUps+1, on
		}
	case err == nil || outcome.IsRefusal(err):
		p.hangUps, p.known = 0, true
	}
	limit := p.limit()
	return before < limit && p.hangUps >= limit
}
