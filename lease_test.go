package zklock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const leaseTerm = 10 * time.Second

const leaseValid = leaseTerm * 95 / 100

// leaseAt runs a test of a lease of a session that was made just now.
func leaseAt(t *testing.T, tick time.Duration, fn func(l *lease)) {
	synctest.Test(t, func(*testing.T) {
		l := newLease(clockFrom(nil), leaseTerm, tick)
		l.begun(l.now())
		fn(l)
	})
}

// op is an operation that takes a while.
func op(l *lease, takes time.Duration, of evidence) {
	sent := l.now()
	time.Sleep(takes)
	l.note(sent, of)
}

// touches are two touches, of which the older counts.
func touches(l *lease) instant {
	sent := l.now()
	op(l, time.Millisecond, ofServer)
	op(l, time.Millisecond, ofServer)
	return sent
}

// proof are the steps that prove what was touched a lag ago.
func proof(l *lease) {
	op(l, 0, ofLeader)
	time.Sleep(l.pause())
	op(l, 0, ofLeader)
	op(l, 0, ofQuorum)
}

// provenSince is what the lease dates from.
func provenSince(l *lease) time.Duration { return leaseValid - l.remaining() }

func TestALeaseEndsALittleBeforeTheSession(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		require.Equal(t, leaseValid, l.remaining())
		time.Sleep(leaseValid)
		require.LessOrEqual(t, l.remaining(), time.Duration(0))
	})
}

func TestAnswersOfOneServerProveNothing(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		for range 8 {
			time.Sleep(time.Second)
			op(l, time.Millisecond, ofServer)
			op(l, time.Millisecond, ofLeader)
		}
		require.Less(t, l.remaining(), 2*time.Second)
	})
}

func TestAProofDatesFromTheOlderOfTwoTouches(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		time.Sleep(3 * time.Second)
		first := touches(l)
		time.Sleep(l.lag())
		proof(l)
		require.Equal(t, l.now().since(first), provenSince(l), "from when it was sent, not from when it was answered")
	})
}

// Each step that is missing, or comes too soon, leaves the lease where it was.
func TestEveryStepOfAProofIsNeeded(t *testing.T) {
	for name, steps := range map[string]func(l *lease){
		"one touch": func(l *lease) {
			op(l, time.Millisecond, ofServer)
			time.Sleep(l.lag())
			proof(l)
		},
		"the leader's ping was not due": func(l *lease) {
			touches(l)
			time.Sleep(l.lag() - time.Millisecond)
			proof(l)
		},
		"one sync": func(l *lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, ofLeader)
			op(l, 0, ofQuorum)
		},
		"two syncs at once": func(l *lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, ofLeader)
			time.Sleep(l.pause() - time.Millisecond)
			op(l, 0, ofLeader)
			op(l, 0, ofQuorum)
		},
		"the quorum operation was sent before the second sync was answered": func(l *lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, ofLeader)
			time.Sleep(l.pause())
			sent := l.now()
			op(l, time.Millisecond, ofLeader)
			l.note(sent, ofQuorum)
		},
		"no quorum": func(l *lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, ofLeader)
			time.Sleep(l.pause())
			op(l, 0, ofLeader)
			op(l, 0, ofServer)
		},
		"another connection": func(l *lease) {
			touches(l)
			time.Sleep(l.lag())
			op(l, 0, ofLeader)
			l.attached(l.now(), leaseTerm)
			l.claimed = instant{}
			time.Sleep(l.pause())
			op(l, 0, ofLeader)
			op(l, 0, ofQuorum)
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaseAt(t, 0, func(l *lease) {
				begun := l.now()
				time.Sleep(2 * time.Second)
				steps(l)
				require.Equal(t, l.now().since(begun), provenSince(l))
			})
		})
	}
}

// A leader that is about to end a session still takes its touches and its writes.
func TestALeaseThatRanOutRevivesOnlyWithASecondQuorumOperation(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		time.Sleep(leaseValid - 3*time.Second)
		first := touches(l)
		time.Sleep(3 * time.Second)
		proof(l)
		require.Negative(t, l.remaining(), "the session may be among those that the leader is ending")
		op(l, 0, ofQuorum)
		require.Negative(t, l.remaining(), "it may still be")
		time.Sleep(l.settling())
		op(l, 0, ofQuorum)
		require.Equal(t, l.now().since(first), provenSince(l))
	})
}

func TestBeingTakenBackCountsFromTheFirstQuorumOperation(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		time.Sleep(3 * time.Second)
		asked := l.now()
		l.attached(asked, leaseTerm)
		op(l, time.Second, ofLeader)
		require.Equal(t, 4*time.Second, provenSince(l), "a leader that was deposed takes sessions back, and answers syncs")
		op(l, time.Second, ofQuorum)
		require.Equal(t, 2*time.Second, provenSince(l))
	})
}

func TestTheSmallestTimeoutEverNegotiatedCounts(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		l.attached(l.now(), 4*leaseTerm)
		require.Equal(t, leaseValid, l.remaining(), "a longer timeout must not stretch what was proven before")
		op(l, 0, ofQuorum)
		require.Equal(t, leaseValid, l.remaining(), "the leader may count by the one that the session was made with")
		l.attached(l.now(), leaseTerm/2)
		require.Equal(t, leaseValid/2, l.remaining())
	})
}

func TestATickTimeSetsWhenALeadersPingIsDue(t *testing.T) {
	for _, tick := range []time.Duration{time.Second, 8 * time.Second} { // more than half of the timeout: such servers exist
		leaseAt(t, tick, func(l *lease) {
			require.Equal(t, tick/2*105/100+40*time.Millisecond, l.lag())
			begun := l.now()
			first := touches(l)
			time.Sleep(l.lag() - 2*time.Millisecond)
			proof(l)
			require.Equal(t, l.now().since(begun), provenSince(l))
			time.Sleep(2 * time.Millisecond)
			proof(l)
			require.Equal(t, l.now().since(first), provenSince(l))
		})
	}
}

func TestASessionThatIsTooShortForTheTickCannotBeProven(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *lease) { require.True(t, l.canProve()) })
	leaseAt(t, 20*time.Second, func(l *lease) { require.False(t, l.canProve()) })
}

// A client that was idle relies on the leader's pings being on time, for a while.
func TestAColdLeaseIsProvisional(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		for range 12 {
			time.Sleep(leaseTerm / 3)
			op(l, time.Millisecond, ofServer) // the client library's pings
		}
		time.Sleep(leaseTerm / 4)
		op(l, 0, ofQuorum)
		require.Negative(t, l.remaining(), "nobody has asked for it")
		l.begin()
		op(l, time.Millisecond, ofQuorum)
		require.GreaterOrEqual(t, l.remaining(), leaseTerm*35/100)
		require.False(t, l.isProven())
		first := touches(l)
		time.Sleep(l.lag())
		proof(l)
		require.False(t, l.isProven(), "the last proof has run out, so another quorum operation must follow")
		time.Sleep(l.settling())
		op(l, 0, ofQuorum)
		require.True(t, l.isProven())
		require.InDelta(t, l.now().since(first), provenSince(l), float64(l.grain()))
	})
}

func TestAColdLeaseEndsIfNoFullProofComes(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		time.Sleep(10 * leaseTerm)
		op(l, 0, ofServer)
		time.Sleep(leaseTerm / 4)
		l.begin()
		due := l.lag() + l.pause() + l.settling() + leaseTerm*36/100
		for from := l.now(); l.now().since(from) < due; time.Sleep(leaseTerm / 10) {
			op(l, 0, ofServer)
			op(l, 0, ofQuorum)
			require.Positive(t, l.remaining())
		}
		op(l, 0, ofQuorum)
		require.LessOrEqual(t, l.remaining(), time.Duration(0))
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
				l := newLease(clockFrom(nil), term, tick)
				l.begun(l.now())
				for range 200 {
					start := time.Now()
					op(l, time.Millisecond, ofServer)
					op(l, time.Millisecond, ofLeader)
					touched := time.Now()
					time.Sleep(l.betweenSyncs())
					op(l, time.Millisecond, ofLeader)
					op(l, time.Millisecond, ofQuorum)
					time.Sleep(time.Until(l.nextBeat(start, touched)))
					require.GreaterOrEqual(t, l.remaining(), term*35/100, "tick %v, timeout %v", tick, term)
				}
			})
		}
	}
}

func TestABusyClientKeepsFewClaimsAndAFreshLease(t *testing.T) {
	leaseAt(t, 0, func(l *lease) {
		for i := range 60_000 {
			op(l, time.Millisecond, ofQuorum)
			if i%2000 == 0 {
				proof(l)
			}
		}
		require.Greater(t, l.remaining(), leaseTerm*4/10)
		for _, c := range []claims{l.single, l.pairs, l.synced, l.upstream, l.pending} {
			require.LessOrEqual(t, len(c), maxClaims)
		}
	})
}

func TestTheClockThatSaysLongerCounts(t *testing.T) {
	a := instant{mono: time.Unix(0, 0), wall: time.Unix(0, 0)}
	require.Equal(t, time.Hour, instant{mono: time.Unix(1, 0), wall: time.Unix(3600, 0)}.since(a))
	require.Equal(t, time.Hour, instant{mono: time.Unix(3600, 0), wall: time.Unix(-50, 0)}.since(a))
}
