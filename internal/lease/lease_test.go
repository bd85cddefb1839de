package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const leaseTerm = 10 * time.Second

const leaseValid = leaseTerm * 95 / 100

// leaseAt runs a test of a lease of a session that was made just now.
func leaseAt(t *testing.T, tick time.Duration, fn func(l *Lease)) {
	synctest.Test(t, func(*testing.T) {
		l := New(Clock(nil), leaseTerm, tick)
		l.Begun(l.now())
		fn(l)
	})
}

// op is an operation that takes a while.
func op(l *Lease, takes time.Duration, of Evidence) {
	sent := l.now()
	time.Sleep(takes)
	l.Note(sent, of)
}

// touches are two touches, of which the older counts.
func touches(l *Lease) Instant {
	sent := l.now()
	op(l, time.Millisecond, OfServer)
	op(l, time.Millisecond, OfServer)
	return sent
}

// proof are the steps that prove what was touched a lag ago.
func proof(l *Lease) {
	op(l, 0, OfLeader)
	time.Sleep(l.pause())
	op(l, 0, OfLeader)
	op(l, 0, OfQuorum)
}

// provenSince is what the lease dates from.
func provenSince(l *Lease) time.Duration { return leaseValid - l.Remaining() }

func TestALeaseEndsALittleBeforeTheSession(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		require.Equal(t, leaseValid, l.Remaining())
		time.Sleep(leaseValid)
		require.LessOrEqual(t, l.Remaining(), time.Duration(0))
	})
}

func TestAnswersOfOneServerProveNothing(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		for range 8 {
			time.Sleep(time.Second)
			op(l, time.Millisecond, OfServer)
			op(l, time.Millisecond, OfLeader)
		}
		require.Less(t, l.Remaining(), 2*time.Second)
	})
}

func TestAProofDatesFromTheOlderOfTwoTouches(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		time.Sleep(3 * time.Second)
		first := touches(l)
		time.Sleep(l.lag())
		proof(l)
		require.Equal(t, l.now().Since(first), provenSince(l), "from when it was sent, not from when it was answered")
	})
}

// Each step that is missing, or comes too soon, leaves the lease where it was.
func TestEveryStepOfAProofIsNeeded(t *testing.T) {
	for name, steps := range map[string]func(l *Lease){
		"one touch": func(l *Lease) {
			op(l, time.Millisecond, OfServer)
			time.Sleep(l.lag())
			proof(l)
		},
		"the leader's ping was not due": func(l *Lease) {
			touches(l)
			time.Sleep(l.lag() - time.Millisecond)
			proof(l)
		},
		"one sync": func(l *Lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, OfLeader)
			op(l, 0, OfQuorum)
		},
		"two syncs at once": func(l *Lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, OfLeader)
			time.Sleep(l.pause() - time.Millisecond)
			op(l, 0, OfLeader)
			op(l, 0, OfQuorum)
		},
		"the quorum operation was sent before the second sync was answered": func(l *Lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, OfLeader)
			time.Sleep(l.pause())
			sent := l.now()
			op(l, time.Millisecond, OfLeader)
			l.Note(sent, OfQuorum)
		},
		"no quorum": func(l *Lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, OfLeader)
			time.Sleep(l.pause())
			op(l, 0, OfLeader)
			op(l, 0, OfServer)
		},
		"another connection": func(l *Lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, OfLeader)
			l.Attached(l.now(), leaseTerm)
			l.claimed = Instant{}
			time.Sleep(l.pause())
			op(l, 0, OfLeader)
			op(l, 0, OfQuorum)
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaseAt(t, 0, func(l *Lease) {
				begun := l.now()
				time.Sleep(2 * time.Second)
				steps(l)
				require.Equal(t, l.now().Since(begun), provenSince(l))
			})
		})
	}
}

// A leader that is about to end a session still takes its touches and its writes.
func TestALeaseThatRanOutRevivesOnlyWithASecondQuorumOperation(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		time.Sleep(leaseValid - 3*time.Second)
		first := touches(l)
		time.Sleep(3 * time.Second)
		proof(l)
		require.Negative(t, l.Remaining(), "the session may be among those that the leader is ending")
		op(l, 0, OfQuorum)
		require.Negative(t, l.Remaining(), "it may still be")
		time.Sleep(l.settling())
		op(l, 0, OfQuorum)
		require.Equal(t, l.now().Since(first), provenSince(l))
	})
}

func TestBeingTakenBackCountsFromTheFirstQuorumOperation(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		time.Sleep(3 * time.Second)
		asked := l.now()
		l.Attached(asked, leaseTerm)
		op(l, time.Second, OfLeader)
		require.Equal(t, 4*time.Second, provenSince(l), "a leader that was deposed takes sessions back, and answers syncs")
		op(l, time.Second, OfQuorum)
		require.Equal(t, 2*time.Second, provenSince(l))
	})
}

func TestTheSmallestTimeoutEverNegotiatedCounts(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		l.Attached(l.now(), 4*leaseTerm)
		require.Equal(t, leaseValid, l.Remaining(), "a longer timeout must not stretch what was proven before")
		op(l, 0, OfQuorum)
		require.Equal(t, leaseValid, l.Remaining(), "the leader may count by the one that the session was made with")
		l.Attached(l.now(), leaseTerm/2)
		require.Equal(t, leaseValid/2, l.Remaining())
	})
}

func TestATickTimeSetsWhenALeadersPingIsDue(t *testing.T) {
	for _, tick := range []time.Duration{time.Second, 8 * time.Second} { // more than half of the timeout: such servers exist
		leaseAt(t, tick, func(l *Lease) {
			require.Equal(t, tick/2*105/100+40*time.Millisecond, l.lag())
			begun := l.now()
			first := touches(l)
			time.Sleep(l.lag() - 2*time.Millisecond)
			proof(l)
			require.Equal(t, l.now().Since(begun), provenSince(l))
			time.Sleep(2 * time.Millisecond)
			proof(l)
			require.Equal(t, l.now().Since(first), provenSince(l))
		})
	}
}

func TestASessionThatIsTooShortForTheTickCannotBeProven(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *Lease) { require.True(t, l.CanProve()) })
	leaseAt(t, 20*time.Second, func(l *Lease) { require.False(t, l.CanProve()) })
}

// A client that was idle relies on the leader's pings being on time, for a while.
func TestAColdLeaseIsProvisional(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		for range 12 {
			time.Sleep(leaseTerm / 3)
			op(l, time.Millisecond, OfServer) // the client library's pings
		}
		time.Sleep(leaseTerm / 4)
		op(l, 0, OfQuorum)
		require.Negative(t, l.Remaining(), "nobody has asked for it")
		l.Begin()
		op(l, time.Millisecond, OfQuorum)
		require.GreaterOrEqual(t, l.Remaining(), leaseTerm*35/100)
		require.False(t, l.IsProven())
		first := touches(l)
		time.Sleep(l.lag())
		proof(l)
		require.False(t, l.IsProven(), "the last proof has run out, so another quorum operation must follow")
		time.Sleep(l.settling())
		op(l, 0, OfQuorum)
		require.True(t, l.IsProven())
		require.InDelta(t, l.now().Since(first), provenSince(l), float64(l.grain()))
	})
}

func TestAColdLeaseEndsIfNoFullProofComes(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		time.Sleep(10 * leaseTerm)
		op(l, 0, OfServer)
		time.Sleep(leaseTerm / 4)
		l.Begin()
		due := l.lag() + l.pause() + l.settling() + leaseTerm*36/100
		for from := l.now(); l.now().Since(from) < due; time.Sleep(leaseTerm / 10) {
			op(l, 0, OfServer)
			op(l, 0, OfQuorum)
			require.Positive(t, l.Remaining())
		}
		op(l, 0, OfQuorum)
		require.LessOrEqual(t, l.Remaining(), time.Duration(0))
	})
}

// Without anything else to do, heartbeats at the lease's rhythm keep four tenths of the timeout certain.
func TestHeartbeatsKeepFourTenthsCertain(t *testing.T) {
	for _, tick := range []time.Duration{0, 200 * time.Millisecond, 2 * time.Second, 5 * time.Second} {
		for _, term := range []time.Duration{2 * time.Second, 4 * time.Second, 10 * time.Second, 30 * time.Second} {
			if tick > term/2 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				l := New(Clock(nil), term, tick)
				l.Begun(l.now())
				for range 200 {
					start := time.Now()
					op(l, time.Millisecond, OfServer)
					op(l, time.Millisecond, OfLeader)
					touched := time.Now()
					time.Sleep(l.BetweenSyncs())
					op(l, time.Millisecond, OfLeader)
					op(l, time.Millisecond, OfQuorum)
					time.Sleep(time.Until(l.NextBeat(start, touched)))
					require.GreaterOrEqual(t, l.Remaining(), term*40/100, "tick %v, timeout %v", tick, term)
				}
			})
		}
	}
}

func TestABusyClientKeepsFewClaimsAndAFreshLease(t *testing.T) {
	leaseAt(t, 0, func(l *Lease) {
		for i := range 60_000 {
			op(l, time.Millisecond, OfQuorum)
			if i%2000 == 0 {
				proof(l)
			}
		}
		require.Greater(t, l.Remaining(), leaseTerm*4/10)
		for _, c := range []claims{l.single, l.pairs, l.synced, l.upstream, l.pending} {
			require.LessOrEqual(t, len(c), maxClaims)
		}
	})
}

func TestTheClockThatSaysLongerCounts(t *testing.T) {
	a := Instant{Mono: time.Unix(0, 0), Wall: time.Unix(0, 0)}
	require.Equal(t, time.Hour, Instant{Mono: time.Unix(1, 0), Wall: time.Unix(3600, 0)}.Since(a))
	require.Equal(t, time.Hour, Instant{Mono: time.Unix(3600, 0), Wall: time.Unix(-50, 0)}.Since(a))
}
