// SPDX-License-Identifier: Apache-2.0

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

// takes is how long an operation of these tests takes. It shows whether something counts from the time of the request or of the
// reply.
const takes = 20 * time.Millisecond

// session is a lease and the run of its current connection.
type session struct {
	*Lease
	run *Run
}

// apart is the difference between the wall clock and the monotonic clock of these tests. It shows if one is used instead of the
// other.
var apart = []time.Duration{-1000 * time.Hour, 1000 * time.Hour}

// leaseAt runs a test with the lease of a session that was just created, once with a wall clock that is far behind and once with one
// that is far ahead.
func leaseAt(t *testing.T, tick time.Duration, fn func(l *session)) {
	for _, by := range apart {
		synctest.Test(t, func(*testing.T) {
			l := &session{Lease: New(Clock(func() time.Time { return time.Now().Add(by) }), leaseTerm, TickOf(tick))}
			l.run = l.Created(l.now(), takes)
			fn(l)
		})
	}
}

// op is an operation that takes a while.
func (l *session) op(of Evidence) { l.opFor(of, takes) }

func (l *session) opFor(of Evidence, takes time.Duration) {
	sent := l.now()
	time.Sleep(takes)
	l.run.Witness(sent, of)
}

// begin starts a heartbeat now.
func (l *session) begin() {
	l.run.sender.begun = time.Time{}
	l.Next(false)
}

// touches performs the two touches of a heartbeat, and returns the older one, which counts.
func (l *session) touches() Instant {
	l.begin()
	sent := l.now()
	l.op(OfServer)
	l.op(OfServer)
	return sent
}

// untilSync returns the time between the touches and the first sync.
func (l *session) untilSync() time.Duration { return l.lag() + l.standstill(time.Now()) }

// bringUp performs the steps after the touches, a lag after they were answered.
func (l *session) bringUp() {
	l.op(OfLeader)
	time.Sleep(l.pause())
	l.op(OfLeader)
}

// proof performs the steps that prove the touches of a lag ago.
func (l *session) proof() {
	l.bringUp()
	l.op(OfQuorum)
}

// brings maps each step to the evidence of its reply.
var brings = map[Step]Evidence{Touch: OfServer, Sync: OfLeader, Quorum: OfQuorum}

// heartbeats sends what is due for a while, as an idle client does.
func (l *session) heartbeats(during time.Duration) {
	for until := time.Now().Add(during); time.Now().Before(until); {
		d, wait := l.Next(false)
		if d.Step == Nothing {
			time.Sleep(min(wait, time.Until(until)))
			continue
		}
		l.op(brings[d.Step])
		l.Done(d)
	}
}

// quorum returns the time until a quorum transaction is due. ok is false if none is.
func (l *session) quorum() (time.Duration, bool) {
	now := l.now()
	_, at, ok := l.run.ready(now)
	return max(0, at.Sub(now.Mono)), ok
}

// takenBack performs a reconnect.
func (l *session) takenBack() (asked Instant) {
	asked = l.now()
	time.Sleep(takes)
	l.run = l.TakenBack(asked, leaseTerm, takes)
	l.run.sender.begun = time.Time{} // instead of at random
	return asked
}

// provenSince returns the age of the touch that the lease starts from.
func (l *session) provenSince() time.Duration { return leaseValid - l.Remaining() }

//zklock:promise P2.1 A1
func TestALeaseEndsALittleBeforeTheSession(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Equal(t, leaseValid, l.Remaining())
		time.Sleep(leaseValid)
		require.LessOrEqual(t, l.Remaining(), time.Duration(0))
	})
}

//zklock:promise P2.12
func TestAnswersOfOneServerProveNothing(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		begun := l.now()
		l.heartbeats(8 * time.Second)
		require.Equal(t, l.now().Since(begun), l.provenSince())
	})
}

//zklock:promise P2.1 A4
func TestAProofDatesFromTheOlderOfTwoTouches(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(3 * time.Second)
		first := l.touches()
		time.Sleep(l.untilSync())
		l.proof()
		require.Equal(t, l.now().Since(first), l.provenSince(), "from when it was sent, not from when it was answered")
	})
}

// A step that is missing, or comes too early, does not extend the lease.
//
//zklock:promise P2.1 A4
func TestEveryStepOfAProofIsNeeded(t *testing.T) {
	const short = time.Millisecond
	for name, steps := range map[string]func(l *session){
		"one touch": func(l *session) {
			l.begin()
			l.op(OfServer)
			time.Sleep(l.untilSync())
			l.proof()
		},
		"the second touch was answered too late": func(l *session) {
			l.begin()
			l.op(OfServer)
			sent := l.now()
			time.Sleep(l.untilSync())
			l.run.Witness(sent, OfServer)
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
			time.Sleep(l.untilSync())
			l.run.Witness(sent, OfLeader)
			time.Sleep(l.pause())
			l.op(OfLeader)
			l.op(OfQuorum)
		},
		"one sync": func(l *session) {
			l.touches()
			time.Sleep(l.untilSync())
			l.op(OfLeader)
			l.op(OfQuorum)
		},
		"two syncs at once": func(l *session) {
			l.touches()
			time.Sleep(l.untilSync())
			l.op(OfLeader)
			time.Sleep(l.pause() - short)
			l.op(OfLeader)
			l.op(OfQuorum)
		},
		"the second sync was sent too soon, and answered late": func(l *session) {
			l.touches()
			time.Sleep(l.untilSync())
			l.op(OfLeader)
			sent := l.now()
			time.Sleep(l.pause())
			l.run.Witness(sent, OfLeader)
			l.op(OfQuorum)
		},
		"the quorum operation was sent before the second sync was answered": func(l *session) {
			l.touches()
			time.Sleep(l.untilSync())
			l.op(OfLeader)
			time.Sleep(l.pause())
			sent := l.now()
			l.op(OfLeader)
			l.run.Witness(sent, OfQuorum)
		},
		"no quorum": func(l *session) {
			l.touches()
			time.Sleep(l.untilSync())
			l.bringUp()
			l.op(OfLeader)
		},
		"another connection": func(l *session) {
			l.touches()
			time.Sleep(l.untilSync())
			l.op(OfLeader)
			old := l.run
			l.takenBack()
			time.Sleep(l.pause())
			l.op(OfServer)
			sent := l.now()
			time.Sleep(takes)
			old.Witness(sent, OfLeader)
			sent = l.now()
			time.Sleep(takes)
			old.Witness(sent, OfQuorum)
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

// After a thousand timeouts without a transaction, one is enough if the run has no gap.
//
//zklock:promise P2.6
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

// While the run had a gap, the leader may have selected the session for expiry. Only some time later has it marked the session, so
// that it refuses the session's transactions.
//
//zklock:promise P2.1 A5
func TestAfterAGapATransactionProvesOnlyWhenTheRunHasSettled(t *testing.T) {
	gap := func(l *session) (since time.Time) {
		time.Sleep(leaseValid - l.lag())
		l.touches()
		time.Sleep(l.untilSync())
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
		l.run.Witness(sent, OfQuorum)
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

// A touch that is counted too late is the first of another run, although the replies before it arrived in time.
//
//zklock:promise P2.1 A5
func TestATouchThatReachesTheLeaderTooLateEndsTheRun(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(3 * time.Second)
		l.touches()
		time.Sleep(l.untilSync())
		l.bringUp() // on its way to the leader before the last proof ran out
		time.Sleep(leaseValid)
		l.op(OfLeader)
		l.op(OfQuorum)
		require.Negative(t, l.Remaining())
	})
}

// The last touch that was heard may run out while the next reply is under way: the leader may have handled the request after that.
//
//zklock:promise P2.1 A5
func TestATouchWhoseAnswerComesWhenTheLastRanOutBeginsARun(t *testing.T) {
	for _, late := range []time.Duration{0, takes - 1} {
		leaseAt(t, 0, func(l *session) {
			time.Sleep(3 * time.Second)
			l.touches()
			time.Sleep(l.untilSync())
			l.bringUp()
			time.Sleep(l.Remaining() + late - takes)
			l.op(OfLeader)
			require.Equal(t, -late, l.Remaining())
			l.op(OfQuorum)
			require.Negative(t, l.Remaining(), "the run begins when the last proof has run out")
		})
	}
	leaseAt(t, 0, func(l *session) {
		time.Sleep(3 * time.Second)
		l.touches()
		time.Sleep(l.untilSync())
		l.bringUp()
		time.Sleep(l.Remaining() - 1 - takes)
		l.op(OfLeader)
		l.op(OfQuorum)
		require.Positive(t, l.Remaining(), "it was in time")
	})
}

//zklock:promise P2.1 A5
func TestAReconnectCountsFromTheLeadersFirstReplyOnThatConnection(t *testing.T) {
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

// Somebody may have deleted our nodes while there was no connection. Until a heartbeat has found them, transactions extend no hold.
//
//zklock:promise P2.2
func TestANewConnectionExtendsNothingUntilOurNodesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		kept       bool // a node is kept before the reconnect
		reconnects int
		after      func(l *session)
		counts     bool
	}{
		"no node is kept":                      {false, 1, func(*session) {}, true},
		"a node is kept":                       {true, 1, func(*session) {}, false},
		"it is found":                          {true, 1, func(l *session) { l.run.Sighted() }, true},
		"there are two reconnects":             {true, 2, func(*session) {}, false},
		"it is found after the second":         {true, 2, func(l *session) { l.run.Sighted() }, true},
		"no node is kept any more":             {true, 1, func(l *session) { l.Next(false) }, true},
		"it is found on an earlier connection": {true, 1, func(l *session) { found := l.run; l.takenBack(); l.op(OfQuorum); found.Sighted() }, false},
	} {
		leaseAt(t, 0, func(l *session) {
			begun := l.now()
			l.Next(c.kept)
			for range c.reconnects {
				time.Sleep(time.Second)
				asked := l.takenBack()
				l.op(OfQuorum)
				if c.counts {
					begun = asked
				}
			}
			ended := l.TransactionEnd()
			c.after(l)
			require.Equal(t, l.now().Since(begun), l.provenSince(), name)
			if c.kept && c.counts {
				<-ended // who waits for a proof looks again
			}
		})
	}
}

// A deposed leader can continue a run without a gap for a long time. The next leader counts only from its own start.
//
//zklock:promise P2.1 A5
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

// The reply to the connection request can be the reply to an earlier one. Only a later reply shows that the leader has the session
// again.
//
//zklock:promise P2.1 A5
func TestAReconnectIsNotConfirmedByItsOwnReply(t *testing.T) {
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

//zklock:promise P2.1 A6
func TestTheSmallestTimeoutEverNegotiatedCounts(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.run = l.TakenBack(l.now(), 4*leaseTerm, takes)
		require.Equal(t, leaseValid, l.Remaining(), "a longer timeout must not stretch what was proven before")
		l.op(OfQuorum)
		require.Equal(t, leaseValid-takes, l.Remaining(), "the leader may count by the one that the session was made with")
		l.run = l.TakenBack(l.now(), leaseTerm/2, takes)
		require.Equal(t, leaseValid/2-takes, l.Remaining())
	})
}

func TestATickThatIsNotKnownIsTakenForHalfTheTimeout(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Equal(t, leaseTerm/4*105/100+40*time.Millisecond, l.lag())
		require.Equal(t, leaseTerm/4, l.settling())
	})
}

func TestALeaseUsesTheTickThatWasSet(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.SetTick(TickOf(6 * time.Second))
		require.Equal(t, 3*time.Second, l.halfTick())
		require.Equal(t, 3*time.Second, l.settling())
		l.SetTick(TickOf(time.Second))
		require.Equal(t, time.Second, l.settling())
		require.Equal(t, leaseTerm, l.Term())
	})
}

func TestALeaseIsFreshUntilAnEighthIsLeft(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(leaseValid - leaseTerm/8 - 1)
		require.True(t, l.Fresh())
		time.Sleep(time.Nanosecond)
		require.False(t, l.Fresh())
	})
}

// A leader that is paused together with its clock sends its next ping later by the pause, as far as that costs no heartbeats.
//
//zklock:promise P2.1 A3
func TestALagAllowsForALeaderThatStandsStill(t *testing.T) {
	for _, c := range []struct{ timeout, tick, distance, standstill time.Duration }{
		{10 * time.Second, 2 * time.Second, 0, 957 * time.Millisecond},
		{10 * time.Second, time.Second, 0, time.Second},
		{30 * time.Second, 2 * time.Second, 0, time.Second},
		{30 * time.Second, 2 * time.Second, 2 * time.Second, 0},
		{10 * time.Second, 2 * time.Second, 200 * time.Millisecond, 157 * time.Millisecond},
		{4 * time.Second, 2 * time.Second, 0, 0},
		{10 * time.Second, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New(Clock(nil), c.timeout, TickOf(c.tick))
			now := time.Now()
			if c.distance > 0 {
				l.replies.took(c.distance, OfLeader, now, c.timeout)
			}
			require.InDelta(t, c.standstill, l.standstill(now), float64(time.Millisecond), "%+v", c)
			if c.standstill > 0 {
				require.Equal(t, c.timeout/3, l.period(now), "%+v", c)
			}
		})
	}
}

func TestATickTimeSetsWhenALeadersPingIsDue(t *testing.T) {
	for _, tick := range []time.Duration{time.Second, 8 * time.Second} { // more than half of the timeout; such servers exist
		leaseAt(t, tick, func(l *session) {
			require.Equal(t, tick/2*105/100+40*time.Millisecond, l.lag())
			begun := l.now()
			time.Sleep(time.Second)
			first := l.touches()
			time.Sleep(l.untilSync() - time.Millisecond)
			l.op(OfLeader)
			time.Sleep(l.pause())
			l.op(OfLeader)
			l.op(OfQuorum)
			require.Equal(t, l.now().Since(begun), l.provenSince())
			time.Sleep(l.pause())
			l.op(OfLeader)
			l.op(OfQuorum)
			require.Equal(t, l.now().Since(first), l.provenSince())
		})
	}
}

func TestASessionThatIsTooShortForTheTickCannotBeProven(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) { require.True(t, l.CanProve(l.tick)) })
	leaseAt(t, 20*time.Second, func(l *session) { require.False(t, l.CanProve(l.tick)) })
	const longest = (leaseTerm*3/4 - 140*time.Millisecond) * 200 / 105 // half of it may be 1/20 longer, and there are 140 ms more
	leaseAt(t, longest, func(l *session) { require.True(t, l.CanProve(l.tick)) })
	leaseAt(t, longest+2*time.Microsecond, func(l *session) { require.False(t, l.CanProve(l.tick)) })
	leaseAt(t, 0, func(l *session) {
		require.True(t, l.CanProve(l.tick))
		l.SetTick(TickOf(2 * time.Second))
		require.True(t, l.CanProve(l.tick))
	})
}

// A quorum transaction is sent as soon as its reply would extend the proof, and not before.
func TestTheQuorumIsAskedOnlyIfItCanProveSomething(t *testing.T) {
	due := func(l *session) bool {
		wait, ok := l.quorum()
		return ok && wait == 0
	}
	leaseAt(t, 0, func(l *session) {
		require.False(t, due(l), "all is proven")
		time.Sleep(time.Second)
		l.touches()
		time.Sleep(l.untilSync())
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
		wait, ok := l.quorum()
		require.True(t, ok)
		require.Equal(t, l.settling(), wait)
		time.Sleep(wait)
		l.op(OfQuorum)
		require.Positive(t, l.Remaining())
	})
}

// With a clock that advances at each call, a step that is due at the call is due now and not a moment later.
func TestADueStepIsDueNow(t *testing.T) {
	var calls time.Duration
	begun := Clock(nil)()
	l := New(func() Instant { calls++; return begun.Add(calls) }, leaseTerm, TickOf(0))
	l.Created(begun, takes)
	l.TakenBack(begun.Add(time.Second), leaseTerm, takes)
	calls = time.Second
	d, _ := l.Next(true)
	require.Equal(t, Quorum, d.Step)
}

// On a new connection too, before anything is sent there.
func TestATransferWaitsForTheLeaseOnlyWhileANodeIsKept(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(leaseTerm * 6 / 10)
		l.Next(false)
		require.True(t, l.HasRoomFor(leaseTerm/5))
		l.Next(true)
		require.False(t, l.HasRoomFor(leaseTerm/5))
		l.takenBack()
		require.False(t, l.HasRoomFor(leaseTerm/5))
		l.Next(false)
		require.True(t, l.HasRoomFor(leaseTerm/5))
	})
}

// A grant waits for a longer lease if a longer one is possible at once.
func TestALeaseIsAmpleWithTwoFifthsLeft(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(leaseValid - leaseTerm*41/100 - 1)
		require.True(t, l.IsAmple())
		l.touches()
		time.Sleep(l.untilSync())
		l.op(OfLeader)
		require.Less(t, l.Remaining(), leaseTerm*41/100)
		require.True(t, l.IsAmple(), "nothing further is upstream")
		time.Sleep(l.pause())
		l.op(OfLeader)
		require.True(t, l.Fresh())
		require.False(t, l.IsAmple(), "the quorum need only be asked")
		l.proven = l.now().Add(-leaseValid + leaseTerm*2/5 + l.replies.slow - 1)
		require.False(t, l.IsAmple(), "its answer would come too late")
		l.proven = l.proven.Add(1)
		require.True(t, l.IsAmple(), "its answer will come in time")
		d := l.next(true)
		require.Equal(t, Quorum, d.Step)
		time.Sleep(l.replies.slow / 2)
		require.True(t, l.IsAmple(), "half of the answer's time has passed")
		time.Sleep(l.replies.slow)
		require.False(t, l.IsAmple(), "the answer is late")
		l.op(OfQuorum)
		require.True(t, l.IsAmple())
		time.Sleep(leaseValid)
		require.False(t, l.IsAmple(), "it has run out")
	})
}

// A touch that was sent while the wall clock was an hour behind looks an hour old. A proof of it would end the lease.
func TestAProofThatTheWallClockMakesTooOldIsNotRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set time.Duration
		l := &session{Lease: New(Clock(func() time.Time { return time.Now().Add(set) }), leaseTerm, TickOf(0))}
		l.run = l.Created(l.now(), takes)
		set = -time.Hour
		time.Sleep(time.Second)
		l.touches()
		time.Sleep(l.untilSync())
		l.bringUp()
		_, ok := l.quorum()
		require.True(t, ok)
		set = 0
		require.Positive(t, l.Remaining())
		_, ok = l.quorum()
		require.False(t, ok)
	})
}

// If replies take long, another server is probably no faster.
func TestPatienceIsAFifthOfTheTimeoutOrTwoSlowAnswers(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Equal(t, leaseTerm/5, l.Patience())
		sent := l.now()
		time.Sleep(4 * time.Second)
		l.run.Witness(sent, OfQuorum)
		require.Equal(t, 8*time.Second, l.Patience())
		for range 10 {
			l.op(OfServer)
			l.op(OfLeader)
		}
		require.Equal(t, 8*time.Second, l.Patience(), "what goes to the disks may still take as long")
		time.Sleep(leaseTerm)
		l.op(OfServer)
		require.Equal(t, leaseTerm/5, l.Patience())
	})
}

// It is remembered for one timeout after the reply. Each reply that takes as long starts that time again.
func TestASlowAnswerIsRememberedForATimeout(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		slow := func() {
			sent := l.now()
			time.Sleep(4 * time.Second)
			l.run.Witness(sent, OfServer)
		}
		slow()
		time.Sleep(leaseTerm - 5*time.Second)
		slow()
		for range 9 {
			time.Sleep(leaseTerm / 10)
			l.op(OfServer)
			require.Equal(t, 8*time.Second, l.Patience())
		}
		time.Sleep(leaseTerm / 5)
		l.op(OfServer)
		require.Equal(t, leaseTerm/5, l.Patience())
	})
}

// Each server that is left without success doubles the time for the next one.
func TestPatienceGrowsWithTheServersThatWereLeft(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		for _, fifths := range []time.Duration{1, 2, 4, 8} {
			require.Equal(t, fifths*leaseTerm/5, l.Patience())
			l.Leave()
			l.op(OfLeader)
		}
		time.Sleep(leaseTerm)
		l.op(OfLeader)
		require.Equal(t, leaseTerm/5, l.Patience())
	})
}

// On a new connection, the reply to a quorum transaction begins the run if the last proof is still valid.
func TestTheQuorumIsAskedOnANewConnectionWhileTheLastProofIsValid(t *testing.T) {
	for left, ask := range map[time.Duration]bool{1: true, 0: false} {
		leaseAt(t, 0, func(l *session) {
			time.Sleep(leaseValid - left - takes)
			l.takenBack()
			require.Equal(t, left, l.Remaining())
			wait, ok := l.quorum()
			require.Equal(t, ask, ok)
			require.Zero(t, wait)
		})
	}
}

func TestAnInstantIsBeforeAnotherByBothClocks(t *testing.T) {
	at := func(mono, wall int64) Instant { return Instant{time.Unix(mono, 0), time.Unix(wall, 0)} }
	require.True(t, at(1, 100).Before(at(2, 101)))
	require.False(t, at(2, 100).Before(at(2, 101)))
	require.False(t, at(1, 101).Before(at(2, 101)))
}

func TestWithoutAConnectionNothingIsDue(t *testing.T) {
	l := New(Clock(nil), leaseTerm, TickOf(0))
	d, _ := l.Next(true)
	require.Equal(t, Nothing, d.Step)
	require.Zero(t, l.Remaining())
	require.Equal(t, "lease=0s of 10s", l.String())
}

// Replies can be reported in a different order from their arrival.
func TestALateReplyShortensNoLease(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.heartbeats(leaseTerm)
		early := l.now()
		time.Sleep(takes)
		l.op(OfQuorum)
		before, known := l.Remaining(), l.run.heard
		l.run.Witness(early, OfLeader)
		l.run.Witness(early, OfServer)
		l.run.Witness(early, OfQuorum)
		require.Equal(t, before, l.Remaining())
		require.Equal(t, known, l.run.heard)
	})
}

func TestALeaseIsPrinted(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Contains(t, l.String(), "lease=9.5s of 10s heard=")
		l.takenBack()
		require.Contains(t, l.String(), "nothing heard")
	})
}

//zklock:promise P2.11 A2
func TestTheLongerOfTwoClocksCounts(t *testing.T) {
	a := Instant{Mono: time.Unix(0, 0), Wall: time.Unix(0, 0)}
	require.Equal(t, time.Hour, Instant{Mono: time.Unix(1, 0), Wall: time.Unix(3600, 0)}.Since(a))
	require.Equal(t, time.Hour, Instant{Mono: time.Unix(3600, 0), Wall: time.Unix(-50, 0)}.Since(a))
}

// If nothing else is sent, at least four tenths of the timeout always remain, provided that replies are fast enough. If they take
// longer, as much remains as four replies leave.
//
//zklock:promise P2.5
func TestHeartbeatsKeepFourTenthsCertain(t *testing.T) {
	for _, tick := range []time.Duration{0, 200 * time.Millisecond, 2 * time.Second, 5 * time.Second, 8 * time.Second} {
		for _, term := range []time.Duration{2 * time.Second, 4 * time.Second, 10 * time.Second, 30 * time.Second} {
			for _, takes := range []time.Duration{0, time.Millisecond, term / 100, term / 30, term / 10, term / 8} {
				t.Run(fmt.Sprint(tick, term, takes), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						l := &session{Lease: New(Clock(nil), term, TickOf(tick))}
						l.run = l.Created(l.now(), takes)
						bound := min(term*40/100, term*95/100-l.lag()-l.pause()-4*takes-term/12)
						if bound <= 0 {
							t.Skip("that cannot be")
						}
						sent := 0
						for until := time.Now().Add(15 * term); time.Now().Before(until); {
							d, wait := l.Next(time.Until(until) < 10*term) // idle before
							if d.Step != Nothing {
								sent++
								go func() {
									l.opFor(brings[d.Step], takes)
									l.Done(d)
								}()
								continue
							}
							time.Sleep(min(wait, term/400))
							if left := l.Remaining(); time.Until(until) < 9*term && left < bound-term/100 {
								t.Errorf("%v remain, not %v", left, bound)
								break
							}
						}
						time.Sleep(term) // the test may end only when no request is under way
						require.LessOrEqual(t, sent, 15*13*6, "heartbeats crowd")
					})
				})
			}
		}
	}
}

// The period follows from the promise: after a period, a lag, a pause and four replies, the promised time remains.
func TestTheRhythmFollowsFromThePromise(t *testing.T) {
	for _, c := range []struct{ tick, slow, want time.Duration }{
		{0, 0, leaseTerm*548/1000 - 2665*time.Millisecond - 100*time.Millisecond},
		{2 * time.Second, 0, leaseTerm / 3},
		{2 * time.Second, 600 * time.Millisecond, 5480*time.Millisecond - 1190*time.Millisecond - 2400*time.Millisecond},
		{0, time.Second, leaseTerm / 12},
		{8 * time.Second, 0, 5480*time.Millisecond - 4340*time.Millisecond},
		{10 * time.Second, 0, leaseTerm / 12},
	} {
		l := New(Clock(nil), leaseTerm, TickOf(c.tick))
		l.dialed = c.slow
		l.replies.fastest[OfLeader] = fastest{c.slow, c.slow, l.now().Mono}
		require.Equal(t, c.want, l.period(l.now().Mono), "%v", c)
	}
}

// A server's queue delays most replies, and does not make heartbeats more frequent. A network delays every reply, and is noticed after a
// while.
//
//zklock:promise P9.12
func TestAQueueDoesNotMakeHeartbeatsMoreFrequent(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		near := l.period(l.now().Mono)
		for range 4 * lookback {
			for _, takes := range []time.Duration{time.Millisecond, time.Second, time.Second, time.Second} {
				l.replied(takes)
				time.Sleep(leaseTerm)
				require.GreaterOrEqual(t, l.period(l.now().Mono), near-4*time.Millisecond)
			}
		}
		l.dialed = 100 * time.Millisecond
		for range 9 * lookback { // the server is far away now
			l.replied(100 * time.Millisecond)
			time.Sleep(leaseTerm / 4)
		}
		require.Equal(t, near-4*100*time.Millisecond, l.period(l.now().Mono))
		for range 20 {
			l.replied(time.Millisecond)
		}
		require.Equal(t, near-4*time.Millisecond, l.period(l.now().Mono))
		time.Sleep(3 * lookback * leaseTerm)
		require.Equal(t, near, l.period(l.now().Mono), "nothing was heard")
	})
}

// A queue can last for minutes after an outage. Clients remember for as long how far away the servers are.
//
//zklock:promise P9.12
func TestTheDistanceIsKnownForTenTimeoutsOfAQueue(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.replied(time.Millisecond)
		for range 10 {
			time.Sleep(leaseTerm)
			l.replied(time.Second)
			require.Equal(t, time.Millisecond, l.Distance())
		}
	})
}

// A client that moves to a distant server needs shorter periods at once, and on the way back longer ones.
func TestTheTimeToConnectIsThatOfTheCurrentServer(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		const far = leaseTerm / 25
		dialed := func(d time.Duration) time.Duration {
			l.run = l.TakenBack(l.now(), leaseTerm, d)
			l.replied(far)
			return l.period(l.now().Mono)
		}
		near := dialed(time.Millisecond)
		require.Equal(t, l.room(far), dialed(far))
		require.Greater(t, near, l.room(far))
		require.Equal(t, near, dialed(time.Millisecond))
	})
}

// replied records a reply of each kind that took that long.
func (l *session) replied(takes time.Duration) {
	for of := range OfQuorum + 1 {
		l.replies.took(takes, of, l.now().Mono, leaseTerm)
	}
}

// While replies usually wait at the servers, heartbeats are rarer, so that the queue ends. A single slow reply changes nothing.
//
//zklock:promise P9.12
func TestAQueueMakesHeartbeatsRarer(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.replied(time.Millisecond)
		near := l.period(l.now().Mono)
		l.replied(150 * time.Millisecond)
		require.Equal(t, near, l.period(l.now().Mono))
		for range 10 {
			l.replied(300 * time.Millisecond)
		}
		require.Equal(t, leaseTerm/3, l.period(l.now().Mono))
		for range 20 {
			l.replied(leaseTerm * 6 / 100)
		}
		require.Equal(t, near, l.period(l.now().Mono), "with a longer one, no lock could be granted")
		for range 20 {
			l.replied(time.Millisecond)
		}
		require.Equal(t, near, l.period(l.now().Mono))
	})
}

// On a network where replies take between once and twice as long, there is no queue.
//
//zklock:promise P2.5
func TestRepliesThatVaryAreNoQueue(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.replied(100 * time.Millisecond)
		near := l.period(l.now().Mono)
		for range 20 {
			l.replied(200 * time.Millisecond)
		}
		require.Equal(t, near, l.period(l.now().Mono))
	})
}

// The distance does not end with a session: after an outage, many clients have new sessions, and the servers a queue.
//
//zklock:promise P9.12
func TestANewSessionKnowsTheDistance(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.replied(time.Millisecond)
		near := l.period(l.now().Mono)
		next := New(l.now, leaseTerm, TickOf(0))
		next.Follow(l.Lease)
		next.Created(l.now(), takes)
		next.replies.took(time.Second, OfQuorum, l.now().Mono, leaseTerm)
		require.Equal(t, time.Millisecond, next.Distance())
		require.GreaterOrEqual(t, next.period(l.now().Mono), near)
	})
}

// Clients that connect again together send their heartbeats at different times afterwards: the first heartbeat after a reconnect, and the
// second one of a new session, begins at a random time within a period.
func TestHeartbeatsOfManyClientsSpread(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		waits := func(r *Run) time.Duration { return time.Until(r.sender.begun.Add(l.period(time.Now()))) }
		for range 20 {
			taken := l.TakenBack(l.now(), leaseTerm, takes)
			require.LessOrEqual(t, waits(taken), l.period(time.Now()))
			require.NotEqual(t, waits(taken), waits(l.TakenBack(l.now(), leaseTerm, takes)))
		}
		next := New(l.now, leaseTerm, TickOf(0))
		next.Follow(l.Lease)
		r := next.Created(l.now(), takes)
		d, _ := next.Next(false)
		require.Equal(t, Touch, d.Step, "the first begins at once")
		require.Positive(t, waits(r))
		require.Less(t, waits(r), l.period(time.Now()))
	})
}

// While a transaction is under way for the newest touch, no additional sync is sent for it.
func TestATransactionUnderWayNeedsNoSync(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) {
		time.Sleep(time.Second)
		l.touches()
		time.Sleep(l.untilSync())
		l.bringUp()
		d := l.next(true)
		require.Equal(t, Quorum, d.Step)
		time.Sleep(leaseValid - leaseTerm/16 - 2*l.replies.slow - l.now().Since(l.run.heard))
		l.run.sender.begun = time.Now()
		require.Equal(t, Nothing, l.next(true).Step)
		l.Done(d)
		require.Equal(t, Sync, l.next(false).Step, "it has failed")
	})
}

// In a server's queue, a lock is granted once a heartbeat has come through it, and if another one will in time.
//
//zklock:promise P9.12
func TestNoLockIsGrantedThatAQueueWouldCostAgain(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.follows = true
		require.True(t, l.Fresh(), "the session's creation is enough without a queue")
		l.replied(time.Millisecond)
		require.True(t, l.Fresh())
		for range 10 {
			l.replied(leaseTerm / 14)
		}
		l.follows = false
		require.False(t, l.Fresh(), "the queue becomes longer")
		l.replied(leaseTerm / 15)
		require.True(t, l.Fresh(), "no session was lost")
		l.follows = true
		require.False(t, l.Fresh(), "no heartbeat has come through the queue")
		require.False(t, l.IsAmple())
		time.Sleep(time.Second)
		l.touches()
		time.Sleep(l.untilSync())
		l.proof()
		require.True(t, l.Fresh())
		for range 20 {
			l.replied(leaseTerm / 8)
		}
		l.replied(leaseTerm / 9)
		require.False(t, l.Fresh(), "the next heartbeat would take too long")
		l.replied(time.Millisecond)
		for range 10 {
			l.replied(time.Millisecond)
		}
		require.True(t, l.Fresh(), "the queue has ended")
	})
}

// A queue that becomes longer delays a grant only if it is long, and in a session's first timeout: replies differ for many reasons.
func TestAQueueThatBecomesLongerDelaysOnlyEarlyGrants(t *testing.T) {
	for _, waits := range []time.Duration{leaseTerm / 30, leaseTerm / 15} {
		leaseAt(t, 0, func(l *session) {
			l.replied(time.Millisecond)
			for range 10 {
				l.replied(waits)
			}
			for d := time.Millisecond; time.Since(l.began) < 2*leaseTerm; d += time.Millisecond {
				time.Sleep(leaseTerm / 10)
				l.replied(waits + d)
				l.prove(l.now(), 0)
				require.Equal(t, waits < leaseTerm/20 || time.Since(l.began) >= leaseTerm, l.Fresh())
			}
		})
	}
}

// The fastest replies of a process that has never seen the servers without a queue are slow. More heartbeats would help only if a lock
// could be granted then.
//
//zklock:promise P9.12
func TestAQueueInWhichNoLockCanBeGrantedMakesHeartbeatsNoMoreFrequent(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.dialed = time.Millisecond
		without := l.period(l.now().Mono)
		l.replied(leaseTerm * 8 / 100)
		require.Less(t, l.period(l.now().Mono), without*9/10)
		for range 20 {
			l.replied(leaseTerm * 16 / 100)
		}
		require.GreaterOrEqual(t, l.period(l.now().Mono), without*9/10)
	})
}

// A distant network is no queue: its replies always take as long, and every lock is granted that heartbeats can keep.
func TestADistantNetworkIsNoQueue(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		for range 10 {
			l.replied(leaseTerm / 8)
			require.True(t, l.Fresh())
		}
	})
}

// A process of a fleet that starts at once sees the queue of all as the network, except that it has connected quickly.
//
//zklock:promise P9.12
func TestAReplyThatTakesMuchLongerThanConnectingDoesNotMakeHeartbeatsMoreFrequent(t *testing.T) {
	const dialed = time.Millisecond
	period := func(takes time.Duration) (d time.Duration) {
		leaseAt(t, 0, func(l *session) {
			l.dialed = dialed
			l.replied(takes)
			d = l.period(l.now().Mono)
		})
		return d
	}
	near := period(0) - 4*(2*dialed+leaseTerm/200)
	for _, takes := range []time.Duration{leaseTerm / 100, leaseTerm / 20, leaseTerm / 2} {
		require.Equal(t, near, period(takes), "%v", takes)
	}
	require.Equal(t, near, period(leaseTerm/9), "no touch is proven in time")
	leaseAt(t, 0, func(l *session) {
		l.dialed = dialed
		for range lookback + 1 {
			l.replied(leaseTerm / 9)
			time.Sleep(leaseTerm)
		}
		require.Equal(t, leaseTerm/12, l.period(l.now().Mono), "a queue would have ended")
	})
	took := leaseTerm * 8 / 100
	require.Equal(t, leaseTerm*93/100-2665*time.Millisecond-100*time.Millisecond-4*took-leaseTerm/6, period(took), "as long as locks can be granted")
}

// Of the kinds of replies, the slowest counts: commits can be slow where syncs are not.
func TestTheSlowestKindOfReplyIsTheDistance(t *testing.T) {
	var r replies
	now := time.Now()
	r.took(time.Millisecond, OfServer, now, leaseTerm)
	r.took(time.Second, OfQuorum, now, leaseTerm)
	require.Equal(t, time.Second, r.distance(now, leaseTerm))
	require.Equal(t, time.Second, r.slow)
}

// A reply that waited for a large request of ours is evidence like any other, but its time is not that of the network.
func TestAReplyThatWaitedForALargeRequestIsNoDistance(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		sent := l.now()
		time.Sleep(time.Second)
		l.run.WitnessDelayed(sent, OfQuorum)
		require.Zero(t, l.Distance())
		require.Zero(t, l.replies.usually(l.now().Mono, leaseTerm))
		require.Equal(t, time.Second, l.replies.slow, "what remains must bear it all the same")
		require.Equal(t, sent, l.run.heard)
	})
}

// next returns the request that is due now, and records that it is sent.
func (l *session) next(prove bool) Request {
	req, _ := l.Next(prove)
	return req
}

// A request that has failed is due again a pause later, and not before. Until a request of its kind succeeds, they are sent one at a
// time.
func TestARequestThatFailedIsDueAgainAPauseLater(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) {
		one, other := l.next(false), l.next(false)
		require.Equal(t, []Step{Touch, Touch, Nothing}, []Step{one.Step, other.Step, l.next(false).Step})
		require.False(t, l.Done(one))
		time.Sleep(l.pause())
		require.Equal(t, Nothing, l.next(false).Step, "the other is under way")
		for i := range 3 { // the pause doubles while no node is kept
			require.False(t, l.Done(other))
			time.Sleep(l.pause()<<(i+1) - 1)
			d, wait := l.Next(false)
			require.Equal(t, Nothing, d.Step)
			require.Equal(t, time.Duration(1), wait)
			time.Sleep(time.Nanosecond)
			other = l.next(false)
			require.Equal(t, []Step{Touch, Nothing}, []Step{other.Step, l.next(false).Step})
		}
		l.op(OfServer)
		require.True(t, l.Done(other))
		other = l.next(false)
		require.Equal(t, Touch, other.Step)
		l.op(OfServer)
		require.True(t, l.Done(other))
		time.Sleep(l.untilSync())
		l.run.sender.begun = time.Now() // no other heartbeat is due for a while
		sync := l.next(false)
		require.Equal(t, []Step{Sync, Nothing}, []Step{sync.Step, l.next(false).Step})
		l.op(OfServer) // it was throttled, or answered with an error
		require.False(t, l.Done(sync))
		time.Sleep(l.pause())
		sync = l.next(false)
		require.Equal(t, Sync, sync.Step)
		l.op(OfLeader)
		require.True(t, l.Done(sync))
		time.Sleep(l.pause())
		l.op(OfLeader) // the reply to another request
		ask := l.next(true)
		require.Equal(t, []Step{Quorum, Nothing}, []Step{ask.Step, l.next(true).Step})
		require.False(t, l.Done(ask))
		time.Sleep(l.pause())
		ask = l.next(true)
		require.Equal(t, Quorum, ask.Step)
		l.op(OfQuorum)
		require.True(t, l.Done(ask))
		require.NotEqual(t, Quorum, l.next(true).Step)
	})
}

// A failure does not delay requests of other kinds.
func TestASyncThatFailedKeepsNoTouch(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) {
		l.takenBack()
		touch, sync := l.next(false), l.next(false)
		require.Equal(t, []Step{Touch, Sync}, []Step{touch.Step, sync.Step})
		require.False(t, l.Done(sync))
		require.Equal(t, []Step{Touch, Nothing}, []Step{l.next(false).Step, l.next(false).Step}, "the sync was to be the second touch")
	})
}

// While a node is kept, a request that has failed is due again after a pause, even if it had failed often before.
func TestARequestOfAHolderIsRepeatedAfterAPause(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) {
		for range 12 {
			l.Done(l.next(false))
			time.Sleep(leaseTerm / 3)
		}
		for range 3 {
			d, wait := l.Next(true)
			if d.Step == Nothing {
				require.LessOrEqual(t, wait, l.pause())
				time.Sleep(wait)
				d = l.next(true)
			}
			require.NotEqual(t, Nothing, d.Step)
			l.Done(d)
		}
	})
}

// If a sync is due shortly before a heartbeat begins, the heartbeat begins with it: the sync is its second touch.
func TestAHeartbeatBeginsWithASync(t *testing.T) {
	begun := func(l *session) {
		one, other := l.next(false), l.next(false)
		l.run.Witness(l.now(), OfServer)
		l.run.Witness(l.now(), OfServer)
		require.True(t, l.Done(one) && l.Done(other))
		time.Sleep(l.untilSync())
	}
	for _, tick := range []time.Duration{0, 4700 * time.Millisecond} { // 2,665 ms of 2,715 have passed, and 2,508 of 2,872
		leaseAt(t, tick, func(l *session) {
			begun(l)
			sent := l.now()
			touch, sync := l.next(false), l.next(false)
			require.Equal(t, []Step{Touch, Sync, Nothing}, []Step{touch.Step, sync.Step, l.next(false).Step})
			l.run.Witness(sent, OfServer)
			l.run.Witness(sent, OfLeader)
			require.True(t, l.Done(touch) && l.Done(sync))
			require.Len(t, l.run.beats, 2)
			require.Equal(t, touched, l.run.beats[1].steps)
			require.Equal(t, sent, l.run.beats[1].sent)
		})
	}
	leaseAt(t, 4*time.Second, func(l *session) { // 2,140 ms of 3,240
		begun(l)
		require.Equal(t, []Step{Sync, Nothing}, []Step{l.next(false).Step, l.next(false).Step})
	})
}

// A heartbeat whose sync was refused can be upstream later than a heartbeat that began after it.
func TestTheNewestTouchThatIsUpstreamCounts(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.touches()
		time.Sleep(time.Second)
		newer := l.touches()
		time.Sleep(l.untilSync())
		l.bringUp()
		require.Len(t, l.run.beats, 2)
		l.run.beats[0], l.run.beats[1] = l.run.beats[1], l.run.beats[0]
		l.op(OfQuorum)
		require.Equal(t, newer, l.proven)
	})
}

func TestHeartbeatsThatAssumedAnotherTickProveNothing(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) {
		begun := l.now()
		time.Sleep(time.Second)
		l.touches()
		time.Sleep(l.untilSync())
		l.bringUp()
		l.SetTick(TickOf(8 * time.Second))
		l.op(OfQuorum)
		require.Equal(t, l.now().Since(begun), l.provenSince())
	})
}

// A proof that joins one with a shorter tick is only as good as that. The first transaction of a settled run ends this.
func TestALongerTickIsProvenBySettledRunsOnly(t *testing.T) {
	leaseAt(t, time.Second, func(l *session) {
		prove := func() time.Duration {
			time.Sleep(time.Millisecond)
			l.touches()
			time.Sleep(l.untilSync())
			l.bringUp()
			l.op(OfQuorum)
			return l.Remaining()
		}
		require.True(t, l.IsProven(), "the session is new")
		left := prove()
		require.Positive(t, left)
		require.True(t, l.IsProven())
		l.SetTick(TickOf(time.Second).With(TickOf(time.Second / 2)))
		require.True(t, l.IsProven(), "the longest is the same")
		l.SetTick(TickOf(3 * time.Second))
		require.Positive(t, l.Remaining(), "the holds of others continue")
		require.False(t, l.IsProven())
		prove()
		require.Greater(t, l.Remaining(), leaseTerm/4, "it joins the proof with the shorter tick")
		require.False(t, l.IsProven())
		time.Sleep(l.settling())
		prove()
		require.True(t, l.IsProven())
		l.SetTick(TickOf(time.Second))
		require.True(t, l.IsProven())
	})
}

func TestABusyClientKeepsFewHeartbeatsAndAFreshLease(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		for range 6_000 {
			if d, _ := l.Next(true); d.Step == Nothing {
				l.op(OfQuorum)
			} else {
				l.op(brings[d.Step])
				l.Done(d)
			}
			require.Less(t, len(l.run.beats), 18)
		}
		require.Greater(t, l.Remaining(), leaseTerm*4/10)
	})
}

// Replies can be reported in a different order from their arrival. The older touch is the one that was sent first.
func TestTheSecondTouchWasSentAfterTheFirst(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		begun := l.now()
		time.Sleep(time.Second)
		l.begin()
		early := l.now()
		time.Sleep(takes)
		l.op(OfServer)
		l.run.Witness(early, OfServer)
		time.Sleep(l.untilSync())
		l.proof()
		require.Equal(t, l.now().Since(begun), l.provenSince())
	})
}

// A sync that was sent before a touch was upstream may have overtaken it.
func TestATouchIsConfirmedByARequestSentWhenItIsUpstream(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(time.Second)
		begun := l.run.heard
		touch := l.touches()
		time.Sleep(l.untilSync())
		l.op(OfLeader)
		time.Sleep(l.pause())
		sent := l.now()
		l.op(OfLeader)
		l.run.Witness(sent, OfLeader)
		require.Equal(t, begun, l.run.heard)
		l.op(OfLeader)
		require.Equal(t, touch, l.run.heard)
	})
}

// A reply to the third attempt has taken as long as all three attempts.
func TestHowLongAnAnswerTakesCountsFromWhenItWasDue(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.touches()
		time.Sleep(l.lag() + time.Second)
		l.op(OfLeader)
		require.Equal(t, time.Second+takes, l.replies.slow)
	})
}

// An additional sync is sent on a connection on which no touch was heard yet, and for a run that would have a gap.
func TestASyncOfItsOwnBeginsARunAndKeepsItWithoutAGap(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) {
		l.takenBack()
		touch, sync := l.next(false), l.next(false)
		require.Equal(t, []Step{Touch, Sync, Nothing}, []Step{touch.Step, sync.Step, l.next(false).Step}, "the sync is a touch, too")
		l.op(OfServer)
		l.op(OfLeader)
		require.True(t, l.Done(touch) && l.Done(sync))
		time.Sleep(l.untilSync())
		l.bringUp()
		require.Equal(t, Nothing, l.next(false).Step, "another comes in time")
		until := leaseValid - leaseTerm/16 - 2*l.replies.slow
		time.Sleep(leaseTerm/3 - time.Since(l.run.sender.begun))
		for range 2 { // another begins, and its answers stay away
			require.Equal(t, Touch, l.next(false).Step)
		}
		time.Sleep(until - l.now().Since(l.run.heard) - 1)
		l.run.sender.begun = time.Now()
		d, wait := l.Next(false)
		require.Equal(t, Nothing, d.Step)
		require.Equal(t, time.Duration(1), wait)
		time.Sleep(time.Nanosecond)
		d = l.next(false)
		require.Equal(t, []Step{Sync, Nothing}, []Step{d.Step, l.next(false).Step})
		l.op(OfLeader)
		require.True(t, l.Done(d))
	})
}

// No additional sync is sent for a touch that another request has shown to be heard.
func TestATouchThatWasHeardNeedsNoSyncOfItsOwn(t *testing.T) {
	leaseAt(t, 2*time.Second, func(l *session) {
		touch := l.touches()
		time.Sleep(l.untilSync())
		l.bringUp()
		l.op(OfLeader)
		require.Equal(t, touch, l.run.heard)
		time.Sleep(leaseTerm/3 - time.Since(l.run.sender.begun))
		for range 2 { // the replies to the next heartbeat stay away
			require.Equal(t, Touch, l.next(false).Step)
		}
		time.Sleep(leaseValid - leaseTerm/16 - 2*l.replies.slow - l.now().Since(touch))
		l.run.sender.begun = time.Now()
		require.Equal(t, Nothing, l.next(false).Step)
	})
}

func TestALeaseReportsHowLongRepliesTake(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		most := (leaseTerm*825/1000 - l.lag() - l.pause()) / 4
		l.opFor(OfServer, 1200*time.Millisecond)
		require.Equal(t, "replies take 1.2s", l.Replies())
		l.opFor(OfServer, most-1)
		require.NotContains(t, l.Replies(), "less")
		l.opFor(OfServer, most)
		require.Equal(t, "replies take 1.371s, and must take less than 1.371s", l.Replies())
	})
}
