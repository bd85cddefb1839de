// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
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
func (su *support) isMissing() bool {
	su.mu.Lock()
	defer su.mu.Unlock()
	return su.hangUps >= su.limit()
}

// isKnown reports whether a server has replied to such a request.
func (su *support) isKnown() bool {
	su.mu.Lock()
	defer su.mu.Unlock()
	return su.known
}

// limit returns the current limit. It must be called with mu held.
func (su *support) limit() int {
	if su.known {
		return manyHangUps
	}
	return enoughHangUps
}

// judge handles the outcome of a request that was sent on a connection. It reports whether this
// outcome has shown that the servers do not support the request.
func (su *support) judge(err error, on *conn.Attachment) (missing bool) {
	su.mu.Lock()
	defer su.mu.Unlock()
	before := su.hangUps
	switch {
	case errors.Is(err, frames.ErrUnimplemented):
		su.hangUps, su.known = enoughHangUps, false
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, outcome.ErrSessionOver): // some servers also assign another session
		if su.hungUp != on { // a lost connection fails all its pending requests, but counts once
			su.hangUps, su.hungUp = su.hangUps+1, on
		}
	case err == nil || outcome.IsRefusal(err):
		su.hangUps, su.known = 0, true
	}
	limit := su.limit()
	return before < limit && su.hangUps >= limit
}

// clickHouseNode exists on the servers of ClickHouse Keeper since late 2022, and of RaftKeeper, which is derived from it.
const clickHouseNode = "/keeper/api_version"

// OnClickHouse reports whether the servers are ClickHouse Keeper's. Until 2026 these close the connection on requests for container nodes
// and on SetWatches. A client whose connection ends there loses its session, with all that it holds. So ask before such a request.
func (r *Requests) OnClickHouse(ctx context.Context, s *Session) (bool, error) {
	if known := r.onClickHouse.Load(); known != nil {
		return *known, nil
	}
	_, err := r.Stat(ctx, s, clickHouseNode)
	if err != nil && !outcome.IsRefusal(err) {
		return false, err
	}
	found := err == nil
	r.onClickHouse.Store(&found)
	return found, nil
}
