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
	begun   time.Time // when the newest heartbeat began
	asked   Instant   // the newest touch that a transaction was sent for
	askedAt time.Time // when it was sent
	tried   Instant   // the newest touch that an additional sync was sent for
	kinds   [Quorum + 1]kind
}

// A kind records the state of the requests of one Step.
type kind struct {
	pending int       // requests that have not ended
	failed  bool      // whether the last request that ended has not achieved what it was sent for
	again   time.Time // when the next one may be sent after a failure
}
