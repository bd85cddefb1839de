// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"sync/atomic"
	"time"
)

// largeRequest is the size from which a request may occupy a slow connection for a part of the lease.
const largeRequest = 64 << 10

// pace is how fast a link's connections carry requests to the servers, as far as that is known.
type pace struct {
	perMiB atomic.Int64 // how long the last requests took for each MiB; zero if it is not known
}

// carried records that requests of that size were answered in the time d.
func (p *pace) carried(size int, d time.Duration) {
	p.perMiB.Store(max(1, int64(float64(d)*(1<<20)/float64(size))))
}

// takes returns how long a request of that size probably takes. ok is false if that is not known.
func (p *pace) takes(size int) (d time.Duration, ok bool) {
	perMiB := p.perMiB.Load()
	return time.Duration(float64(perMiB) * float64(size) / (1 << 20)), perMiB > 0
}

// fits returns how many bytes a connection probably carries in the time d, at most most, or a quarter of that if it is not known. A d
// of zero means no limit.
func (p *pace) fits(d time.Duration, most int) int {
	switch perMiB := p.perMiB.Load(); {
	case d == 0:
		return most
	case perMiB == 0:
		return most / 4
	default:
		return int(min(float64(d)*(1<<20)/float64(perMiB), float64(most)))
	}
}

// awaitLease waits until enough of the lease of s remains for a request of that size on conn, for which room was reserved, but no
// longer than a session timeout. If nothing is known of the link, it assumes that the request takes a fifth of the session timeout.
func (l *Link) awaitLease(ctx context.Context, s *Session, conn *proxy, size int) error {
	if size < largeRequest {
		return nil
	}
	term := s.Lease.Term()
	takes, ok := l.pace.takes(size)
	if !ok {
		takes = term / 5
	}
	defer conn.room.begin()
	poll := time.NewTicker(max(term/100, time.Millisecond))
	defer poll.Stop()
	for until := time.Now().Add(term); !s.Lease.HasRoomFor(takes) && time.Now().Before(until); {
		select {
		case <-poll.C:
			if err := conn.room.ended(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
