package lease

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const leaseTerm = 10 * time.Second

const leaseValid = leaseTerm * 95 / 100

// takes is how long an operation of these tests takes: what counts from when it was sent, and what from when it was
// answered, must show.
const takes = 20 * time.Millisecond

// session is a lease and the run of its present connection.
type session struct {
	*Lease
	run *Run
}

// leaseAt runs a test of a lease of a session that was made just now.
func leaseAt(t *testing.T, tick time.Duration, fn func(l *session)) {
	synctest.Test(t, func(*testing.T) {
		l := &session{Lease: New(Clock(nil), leaseTerm, tick)}
		l.run = l.Created(l.now())
		fn(l)
	})
}

// op is an operation that takes a while.
func (l *session) op(of Evidence) {
	sent := l.now()
	time.Sleep(takes)
	l.run.Note(sent, of)
}

// touches are two touches, of which the older counts.
func (l *session) touches() Instant {
	sent := l.now()
	l.op(OfServer)
	l.op(OfServer)
	return sent
}

// bringUp is what brings touches up to the leader, a lag after they were answered.
func (l *session) bringUp() {
	l.op(OfLeader)
	time.Sleep(l.pause())
	l.op(OfLeader)
}

// proof are the steps that prove what was touched a lag ago.
func (l *session) proof() {
	l.bringUp()
	l.op(OfQuorum)
}

// heartbeats keep the run without a gap for a while, as those of an idle client do.
func (l *session) heartbeats(during time.Duration) {
	for until := time.Now().Add(during); ; {
		start := time.Now()
		l.op(OfServer)
		l.op(OfLeader)
		touched := time.Now()
		time.Sleep(l.BetweenSyncs())
		l.op(OfLeader)
		if l.IsFading() {
			l.op(OfLeader)
		}
		next := l.NextBeat(start, touched)
		if next.After(until) {
			return
		}
		time.Sleep(time.Until(next))
	}
}

// takenBack is a reconnect.
func (l *session) takenBack() (asked Instant) {
	asked = l.now()
	time.Sleep(takes)
	l.run = l.TakenBack(asked, leaseTerm)
	return asked
}

// provenSince is what the lease dates from.
func (l *session) provenSince() time.Duration { return leaseValid - l.Remaining() }

func TestALeaseEndsALittleBeforeTheSession(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Equal(t, leaseValid, l.Remaining())
		time.Sleep(leaseValid)
		require.LessOrEqual(t, l.Remaining(), time.Duration(0))
	})
}

func TestAnswersOfOneServerProveNothing(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		begun := l.now()
		l.heartbeats(8 * time.Second)
		require.Equal(t, l.now().Since(begun), l.provenSince())
	})
}

func TestAProofDatesFromTheOlderOfTwoTouches(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(3 * time.Second)
		first := l.touches()
		time.Sleep(l.lag())
		l.proof()
		require.Equal(t, l.now().Since(first), l.provenSince(), "from when it was sent, not from when it was answered")
	})
}

// Each step that is missing, or comes too soon, leaves the lease where it was.
func TestEveryStepOfAProofIsNeeded(t *testing.T) {
	const short = time.Millisecond
	for name, steps := range map[string]func(l *session){
		"one touch": func(l *session) {
			l.op(OfServer)
			time.Sleep(l.lag())
			l.proof()
		},
		"the second touch was answered too late": func(l *session) {
			l.op(OfServer)
			sent := l.now()
			time.Sleep(l.lag())
			l.run.Note(sent, OfServer)
			l.proof()
		},
		"the leader's ping was not due": func(l *session) {
			l.touches()
			time.Sleep(l.lag() - short)
			l.proof()
		},
		"the first sync was sent too soon, and answered late": func(l *session) {
			l.touches()
			sent := l.now()
			time.Sleep(l.lag())
			l.run.Note(sent, OfLeader)
			time.Sleep(l.pause())
			l.op(OfLeader)
			l.op(OfQuorum)
		},
		"one sync": func(l *session) {
			l.touches()
			time.Sleep(l.lag())
			l.op(OfLeader)
			l.op(OfQuorum)
		},
		"two syncs at once": func(l *session) {
			l.touches()
			time.Sleep(l.lag())
			l.op(OfLeader)
			time.Sleep(l.pause() - short)
			l.op(OfLeader)
			l.op(OfQuorum)
		},
		"the second sync was sent too soon, and answered late": func(l *session) {
			l.touches()
			time.Sleep(l.lag())
			l.op(OfLeader)
			sent := l.now()
			time.Sleep(l.pause())
			l.run.Note(sent, OfLeader)
			l.op(OfQuorum)
		},
		"the quorum operation was sent before the second sync was answered": func(l *session) {
			l.touches()
			time.Sleep(l.lag())
			l.op(OfLeader)
			time.Sleep(l.pause())
			sent := l.now()
			l.op(OfLeader)
			l.run.Note(sent, OfQuorum)
		},
		"no quorum": func(l *session) {
			l.touches()
			time.Sleep(l.lag())
			l.bringUp()
			l.op(OfLeader)
		},
		"another connection": func(l *session) {
			l.touches()
			time.Sleep(l.lag())
			l.op(OfLeader)
			old := l.run
			l.takenBack()
			time.Sleep(l.pause())
			l.op(OfServer)
			sent := l.now()
			time.Sleep(takes)
			old.Note(sent, OfLeader)
			old.Note(sent, OfQuorum)
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaseAt(t, 0, func(l *session) {
				begun := l.now()
				time.Sleep(2 * time.Second)
				steps(l)
				require.Equal(t, l.now().Since(begun), l.provenSince())
			})
		})
	}
}

// Without a transaction for a thousand timeouts, one is enough: the run has no gap.
func TestOneTransactionProvesALongRun(t *testing.T) {
	for _, idle := range []time.Duration{leaseTerm / 2, 2 * leaseTerm, 1000 * leaseTerm} {
		leaseAt(t, 0, func(l *session) {
			l.heartbeats(idle)
			require.Less(t, l.Remaining(), leaseTerm*4/10+idle)
			l.op(OfQuorum)
			require.GreaterOrEqual(t, l.Remaining(), leaseTerm*4/10)
		})
	}
}

// While the run had a gap, the leader may have taken the session to end it. It has marked it, and refuses its transactions,
// only a while later.
func TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled(t *testing.T) {
	gap := func(l *session) (since time.Time) {
		time.Sleep(leaseValid - l.lag())
		l.touches()
		time.Sleep(l.lag())
		l.bringUp()
		l.op(OfLeader)
		require.Negative(t, l.Remaining())
		return time.Now()
	}
	leaseAt(t, 0, func(l *session) {
		since := gap(l)
		for time.Now().Add(takes).Before(since.Add(l.settling())) {
			l.op(OfQuorum)
			require.Negative(t, l.Remaining(), "%v after the run began", time.Since(since))
		}
		time.Sleep(time.Until(since.Add(l.settling())))
		l.op(OfQuorum)
		require.Positive(t, l.Remaining())
	})
	leaseAt(t, 0, func(l *session) {
		since := gap(l)
		sent := l.now()
		time.Sleep(time.Until(since.Add(l.settling())))
		l.run.Note(sent, OfQuorum)
		require.Negative(t, l.Remaining(), "it was sent too soon, though answered late")
	})
	leaseAt(t, 0, func(l *session) { // the gap is in the middle of a long run
		l.heartbeats(3 * leaseTerm)
		time.Sleep(leaseTerm)
		gap(l)
		l.op(OfQuorum)
		require.Negative(t, l.Remaining())
	})
}

// A touch that is heard too late is the first of another run, though the answers before it were in time.
func TestATouchThatIsHeardTooLateEndsTheRun(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(3 * time.Second)
		l.touches()
		time.Sleep(l.lag())
		l.bringUp() // on its way to the leader before the last proof ran out
		time.Sleep(leaseValid)
		l.op(OfLeader)
		l.op(OfQuorum)
		require.Negative(t, l.Remaining())
	})
}

func TestBeingTakenBackCountsFromWhenTheLeaderHasAnsweredOnThatConnection(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		begun := l.now()
		time.Sleep(3 * time.Second)
		asked := l.takenBack()
		l.op(OfLeader)
		require.Equal(t, l.now().Since(begun), l.provenSince(), "a leader that was deposed takes sessions back, and answers syncs")
		l.op(OfQuorum)
		require.Equal(t, l.now().Since(asked), l.provenSince())
	})
}

// A leader that was deposed can keep a run without a gap for long. The next leader counts from its own beginning only.
func TestARunExtendsNoProofAcrossConnections(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.heartbeats(3 * leaseTerm)
		l.takenBack()
		l.op(OfQuorum)
		require.Negative(t, l.Remaining(), "the new leader may be about to end the session")
		time.Sleep(l.settling() - takes)
		l.op(OfQuorum)
		require.Negative(t, l.Remaining(), "it is not known since when it has counted us")
		time.Sleep(l.settling())
		l.op(OfQuorum)
		require.Positive(t, l.Remaining())
	})
}

// The answer to the connection request can be that to an earlier one: only what is answered behind it tells that the leader
// has taken the session back.
func TestATakeBackIsNotHeardByItsOwnAnswer(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(2 * leaseTerm)
		l.takenBack()
		time.Sleep(2 * l.settling())
		l.op(OfQuorum)
		require.Negative(t, l.Remaining(), "the run begins with this answer")
		time.Sleep(l.settling())
		l.op(OfQuorum)
		require.Positive(t, l.Remaining())
	})
}

func TestTheSmallestTimeoutEverNegotiatedCounts(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.run = l.TakenBack(l.now(), 4*leaseTerm)
		require.Equal(t, leaseValid, l.Remaining(), "a longer timeout must not stretch what was proven before")
		l.op(OfQuorum)
		require.Equal(t, leaseValid-takes, l.Remaining(), "the leader may count by the one that the session was made with")
		l.run = l.TakenBack(l.now(), leaseTerm/2)
		require.Equal(t, leaseValid/2-takes, l.Remaining())
	})
}

func TestATickTimeSetsWhenALeadersPingIsDue(t *testing.T) {
	for _, tick := range []time.Duration{time.Second, 8 * time.Second} { // more than half of the timeout: such servers exist
		leaseAt(t, tick, func(l *session) {
			require.Equal(t, tick/2*105/100+40*time.Millisecond, l.lag())
			begun := l.now()
			time.Sleep(time.Second)
			first := l.touches()
			time.Sleep(l.lag() - time.Millisecond)
			l.op(OfLeader)
			time.Sleep(l.pause())
			l.op(OfLeader)
			l.op(OfQuorum)
			require.Equal(t, l.now().Since(begun), l.provenSince())
			time.Sleep(l.pause())
			l.op(OfLeader)
			l.op(OfQuorum)
			require.InDelta(t, l.now().Since(first), l.provenSince(), float64(takes+l.grain()))
		})
	}
}

func TestASessionThatIsTooShortForTheTickCannotBeProven(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) { require.True(t, l.CanProve()) })
	leaseAt(t, 20*time.Second, func(l *session) { require.False(t, l.CanProve()) })
}

// The quorum is asked when an answer would prove more, and not before.
func TestTheQuorumIsAskedForWhatCanBeProven(t *testing.T) {
	due := func(l *session) bool {
		wait, ok := l.NextQuorum()
		return ok && wait == 0
	}
	leaseAt(t, 0, func(l *session) {
		require.False(t, due(l), "all is proven")
		time.Sleep(time.Second)
		l.touches()
		time.Sleep(l.lag())
		l.op(OfLeader)
		require.False(t, due(l), "nothing further has come up to the leader")
		time.Sleep(l.pause())
		l.op(OfLeader)
		require.True(t, due(l))
		before := l.Remaining()
		l.op(OfQuorum)
		require.Greater(t, l.Remaining(), before)
		require.False(t, due(l))
		time.Sleep(2 * leaseTerm)
		require.False(t, due(l), "what is known is too old")
		l.takenBack()
		require.False(t, due(l), "nothing was heard yet, and the last proof has run out")
		l.op(OfLeader)
		wait, ok := l.NextQuorum()
		require.True(t, ok)
		require.Equal(t, l.settling(), wait)
		time.Sleep(wait)
		l.op(OfQuorum)
		require.Positive(t, l.Remaining())
	})
}

// On a clock that never stands still, what is due is due now, and not a moment after the question.
func TestWhatIsDueIsDueNow(t *testing.T) {
	var calls time.Duration
	begun := Clock(nil)()
	l := New(func() Instant { calls++; return begun.Add(calls) }, leaseTerm, 0)
	l.Created(begun)
	l.TakenBack(begun.Add(time.Second), leaseTerm)
	calls = time.Second
	wait, ok := l.NextQuorum()
	require.True(t, ok)
	require.Zero(t, wait)
}

// Without anything else to do, heartbeats at the lease's rhythm leave four tenths of the timeout at a grant.
func TestHeartbeatsKeepFourTenthsCertain(t *testing.T) {
	for _, tick := range []time.Duration{0, 200 * time.Millisecond, 2 * time.Second, 5 * time.Second} {
		for _, term := range []time.Duration{2 * time.Second, 4 * time.Second, 10 * time.Second, 30 * time.Second} {
			if tick > term/2 {
				continue
			}
			t.Run(fmt.Sprint(tick, term), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := New(Clock(nil), term, tick)
					run := l.Created(l.now())
					op := func(of Evidence) {
						sent := l.now()
						time.Sleep(time.Millisecond)
						run.Note(sent, of)
					}
					for i := range 200 {
						start := time.Now()
						op(OfServer)
						op(OfLeader)
						touched := time.Now()
						time.Sleep(l.BetweenSyncs())
						op(OfLeader)
						if i%40 > 10 { // else it is idle: what could be proven counts
							op(OfQuorum)
							require.GreaterOrEqual(t, l.Remaining(), term*40/100)
						}
						next := l.NextBeat(start, touched)
						require.Greater(t, time.Until(next), term/16, "heartbeats crowd")
						time.Sleep(time.Until(next))
						if i%40 >= 10 {
							op(OfQuorum)
							require.GreaterOrEqual(t, l.Remaining(), term*40/100)
						}
					}
				})
			})
		}
	}
}

// Heartbeats that are sent late, or answered late, are followed by one that makes up for it as soon as it can.
func TestAHeartbeatFollowsFromWhatTheLastOneBringsUp(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.heartbeats(3 * leaseTerm)
		last := time.Now()
		time.Sleep(leaseTerm / 4)
		l.touches()
		next := l.NextBeat(last, last)
		require.LessOrEqual(t, next.Sub(last), leaseTerm*3/10)
	})
}

func TestABusyClientKeepsFewClaimsAndAFreshLease(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		for i := range 6_000 {
			l.op(OfQuorum)
			if i%100 == 0 {
				l.proof()
			}
		}
		require.Greater(t, l.Remaining(), leaseTerm*4/10)
		for _, c := range []claims{l.run.pairs, l.run.synced, l.run.upstream} {
			require.LessOrEqual(t, len(c), maxClaims)
		}
	})
}

func TestALeaseTellsWhatIsKnown(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Contains(t, l.String(), "lease=9.5s of 10s heard=")
		l.takenBack()
		require.Contains(t, l.String(), "nothing heard")
	})
}

func TestTheClockThatSaysLongerCounts(t *testing.T) {
	a := Instant{Mono: time.Unix(0, 0), Wall: time.Unix(0, 0)}
	require.Equal(t, time.Hour, Instant{Mono: time.Unix(1, 0), Wall: time.Unix(3600, 0)}.Since(a))
	require.Equal(t, time.Hour, Instant{Mono: time.Unix(3600, 0), Wall: time.Unix(-50, 0)}.Since(a))
}
