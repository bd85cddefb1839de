// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"time"
)

// errSilent is reported for a server that does not answer.
var errSilent = errors.New("no reply from the server for too long, switching to another server")

// never is how long the heartbeats' loop waits if nothing is due. Any event wakes it earlier.
const never = time.Hour

// leaveIfSilent leaves a server that does not answer early enough for another server to prove the lease: if the server was cut off,
// no error would arrive before all holds are lost. It first calls report, which must not wait, with the reason. It returns the time until
// it must be called again.
func (r *Requests) leaveIfSilent(s *Session, now time.Time, report func(error)) time.Duration {
	since, waiting := r.Link.Unanswered(s)
	patience := s.Lease.Patience()
	if !waiting {
		return patience // a heartbeat that has just begun is not sent yet
	}
	if wait := since.Add(patience).Sub(now); wait > 0 {
		return wait
	}
	report(errSilent)
	s.Lease.Leave()
	r.Link.Abandon(s)
	return never
}
