// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// A Step is a kind of request.
type Step int

const (
	Nothing Step = iota
	Touch        // a read
	Sync         // a sync
	Quorum       // a transaction that changes nothing
)

// A sender records what has been sent on a connection. Proofs do not depend on it: a mistake here costs holds, but never makes the
// lease too long.
type sender struct {
	begun     time.Time // when the newest heartbeat began
	proving   Instant   // the newest touch that a transaction was sent for
	provingAt time.Time // when it was sent
	hearing   Instant   // the newest touch that an additional sync was sent for
	proves    bool      // transactions are sent: a node is kept
	spreads   bool      // the second heartbeat begins at a random time: see atRandom
	kinds     [Quorum + 1]kind
}

// keep records whether a node is kept. If it is the first, a request that has failed is due again by then.
func (s *sender) keep(proves bool, by time.Time) {
	if proves && !s.proves {
		for i := range s.kinds {
			if s.kinds[i].again.After(by) {
				s.kinds[i].again = by
			}
		}
	}
	s.proves = proves
}

// A kind records the state of the requests of one Step.
type kind struct {
	pending int       // requests that have not ended
	failed  int       // how many requests in a row have not achieved what they were sent for
	again   time.Time // when the next one may be sent after a failure
}
