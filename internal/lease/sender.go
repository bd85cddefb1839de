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

// A sender is what has been sent on a connection. Nothing of it counts for a proof: a mistake here costs holds, and never
// makes the lease longer.
type sender struct {
	begun   time.Time // when the newest heartbeat began
	asked   Instant   // the newest touch that a transaction was sent for
	askedAt time.Time // when it was sent
	tried   Instant   // the newest touch that a sync of its own was sent for
	kinds   [Quorum + 1]kind
}

// A kind is what is known of the requests of one Step.
type kind struct {
	pending int       // requests that have not ended
	failed  bool      // the last one that ended has not brought the answer that it was sent for
	again   time.Time // when the next one may be sent after that
}
