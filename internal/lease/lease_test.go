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

// apart is by how much the wall clock of these tests differs from the monotonic one, so that the one that is taken for the
// other is noticed.
var apart = []time.Duration{-1000 * time.Hour, 1000 * time.Hour}

// leaseAt runs a test of a lease of a session that was made just now, with a wall clock that is far behind and with one that is
// far ahead.
func leaseAt(t *testing.T, tick time.Duration, fn func(l *session)) {
	for _, by := range apart {
		synctest.Test(t, func(*testing.T) {
			l := &session{Lease: New(Clock(func() time.Time { return time.Now().Add(by) }), leaseTerm, tick)}
			l.run = l.Created(l.now())
			fn(l)
		})
	}
}

// op is an operation that takes a while.
func (l *session) op(of Evidence) {
	sent := l.now()
	time.Sleep(takes)
	l.run.Witness(sent, of)
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
			time.Sleep(l.lag())
			l.run.Witness(sent, OfLeader)
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
			l.run.Witness(sent, OfLeader)
			l.op(OfQuorum)
		},
		"the quorum operation was sent before the second sync was answered": func(l *session) {
			l.touches()
			time.Sleep(l.lag())
			l.op(OfLeader)
			time.Sleep(l.pause())
			sent := l.now()
			l.op(OfLeader)
			l.run.Witness(sent, OfQuorum)
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

// What was heard last may run out while the next answer is on its way: the leader may have handled the request after that.
func TestATouchWhoseAnswerComesWhenTheLastRanOutBeginsARun(t *testing.T) {
	for _, late := range []time.Duration{0, takes - 1} {
		leaseAt(t, 0, func(l *session) {
			time.Sleep(3 * time.Second)
			l.touches()
			time.Sleep(l.lag())
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
		time.Sleep(l.lag())
		l.bringUp()
		time.Sleep(l.Remaining() - 1 - takes)
		l.op(OfLeader)
		l.op(OfQuorum)
		require.Positive(t, l.Remaining(), "it was in time")
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

func TestATickThatIsNotKnownIsTakenForHalfTheTimeout(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Equal(t, leaseTerm/4*105/100+40*time.Millisecond, l.lag())
		require.Equal(t, leaseTerm/4, l.settling())
	})
}

func TestALeaseGoesByTheTickThatWasSet(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.Zero(t, l.Tick())
		l.SetTick(6 * time.Second)
		require.Equal(t, 6*time.Second, l.Tick())
		require.Equal(t, 3*time.Second, l.halfTick())
		require.Equal(t, 3*time.Second, l.settling())
		l.SetTick(time.Second)
		require.Equal(t, time.Second, l.settling())
		require.Equal(t, leaseTerm, l.Term())
	})
}

func TestALeaseIsFreshUntilAnEighthIsLeft(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		until := l.FreshUntil()
		require.Equal(t, leaseValid-leaseTerm/8, until.Since(l.now()))
		time.Sleep(leaseValid - leaseTerm/8 - 1)
		require.True(t, l.Fresh())
		time.Sleep(time.Nanosecond)
		require.False(t, l.Fresh())
		require.Equal(t, l.now(), until)
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
	const longest = (leaseTerm*3/4 - 140*time.Millisecond) * 200 / 105 // half of it may be 1/20 longer, and there are 140 ms besides
	leaseAt(t, longest, func(l *session) { require.True(t, l.CanProve()) })
	leaseAt(t, longest+2*time.Microsecond, func(l *session) { require.False(t, l.CanProve()) })
	leaseAt(t, 0, func(l *session) {
		require.True(t, l.CanProve())
		l.SetTick(2 * time.Second)
		require.True(t, l.CanProve())
	})
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
						run.Witness(sent, of)
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

// dueAt returns when a heartbeat is due after one that began now, all in milliseconds from now: heard and upstream are when
// touches were sent, of pairs when they were sent and answered.
func dueAt(heard int, upstream []int, pairs ...[2]int) (at int, ok bool) {
	now := time.Unix(1000, 0)
	from := func(ms int) Instant {
		return Instant{now.Add(time.Duration(ms) * time.Millisecond), time.Unix(1, 0)}
	}
	l := New(func() Instant { return from(0) }, leaseTerm, 2*time.Second)
	l.run = &Run{l: l, heard: from(heard)}
	for _, ms := range upstream {
		l.run.upstream = append(l.run.upstream, claim{sent: from(ms)})
	}
	for _, p := range pairs {
		l.run.pairs = append(l.run.pairs, claim{from(p[0]), from(p[1]).Mono})
	}
	due, ok := l.due(now)
	return int(due.Sub(now).Milliseconds()), ok
}

// With a tick of two seconds touches are ripe after 1,090 ms, and one that is proven may be 5,380 ms old.
func TestAHeartbeatIsDueWhenFurtherTouchesAreRipe(t *testing.T) {
	const ripe, old, grain = 1090, 5380, 10_000 / 64
	for _, c := range []struct {
		name     string
		heard    int
		upstream []int
		pairs    [][2]int
		at       int
		none     bool
	}{
		{name: "nothing is on its way", heard: -3000, none: true},
		{name: "all that is on its way was ripe", heard: -3000, pairs: [][2]int{{-1200, -1100}, {-1191, -ripe}}, none: true},
		{name: "it is not old yet", heard: -3000, pairs: [][2]int{{-100, -50}}, at: old - 3000},
		{name: "it is old when it is ripe", heard: -6000, pairs: [][2]int{{-100, -50}}, at: ripe - 50 + 1},
		{name: "it ripens a moment later", heard: -6000, pairs: [][2]int{{-1190, -ripe + 1}}, at: 2},
		{name: "the ripe one is what comes up", heard: -6000, pairs: [][2]int{{-2000, -1500}, {-100, -50}}, at: old - 2000},
		{name: "what is upstream is known", heard: -6000, upstream: []int{-5000, -2500}, pairs: [][2]int{{-100, -50}}, at: old - 2500},
		{name: "it is hardly newer", heard: -3000, pairs: [][2]int{{-3000 + grain, -50}}, none: true},
		{name: "it is a little newer", heard: -3000, pairs: [][2]int{{-3000 + grain + 1, -50}}, at: old - 3000},
		{name: "the first that is newer counts", heard: -6000, pairs: [][2]int{{-6000, -500}, {-400, -300}, {-100, -50}}, at: ripe - 300 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, ok := dueAt(c.heard, c.upstream, c.pairs...)
			require.Equal(t, !c.none, ok)
			if ok {
				require.Equal(t, c.at, at)
			}
		})
	}
	at, ok := New(Clock(nil), leaseTerm, 0).due(time.Now())
	require.False(t, ok, "%v without a connection", at)
}

func TestATouchThatIsJustNewerByAGrainCounts(t *testing.T) {
	now := time.Unix(1000, 0)
	l := New(Clock(nil), 6400*time.Millisecond, 0)
	l.run = &Run{l: l, heard: Instant{Mono: now.Add(-time.Second)}}
	l.run.pairs = claims{{Instant{Mono: now.Add(-900 * time.Millisecond)}, now}}
	_, ok := l.due(now)
	require.True(t, ok)
}

// The rhythm is as slow as it can be: one heartbeat brings up what the one before has touched, or one of two or three.
func TestHeartbeatsFollowFromHowLongProofsTake(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ rtt, reach, want time.Duration }{
		{0, ms, 2500 * ms},                         // a quarter of the timeout at the most
		{0, 2499 * ms, 2500 * ms},                  // the same
		{100 * ms, 2490 * ms, 2490 * ms},           // half of 4,980 ms, which is how old a touch may be
		{200 * ms, 2290 * ms, 2290 * ms},           // the same
		{200 * ms, 2200 * ms, 2290 * ms},           // and no sooner
		{200 * ms, 2400 * ms, 2400 * ms},           // a touch must be ripe
		{200 * ms, 2500 * ms, 2500 * ms},           // it may just be so old
		{0, 2690 * ms, 2690 * ms},                  // each brings up the one before
		{0, 2690*ms + 1, (2690*ms + 39062501) / 2}, // the second to the one before
		{0, 3547604166, (3547604166 + 39062500) / 2},
		{0, 3547604168, (3547604168 + 39062500) / 3}, // the third
		{0, 3547604167, (3547604167 + 39062500) / 2}, // just the second
	} {
		l := New(Clock(nil), leaseTerm, 0)
		l.rtt = c.rtt
		require.Equal(t, c.want, l.period(c.reach), "%+v", c)
	}
}

// Where a tick is too long for four tenths to remain, heartbeats are a twelfth of the timeout apart, or less where little remains.
func TestHeartbeatsOfAShortSessionAreFew(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		tick, rtt, spacing time.Duration
		short              bool
	}{
		{0, time.Second, leaseTerm / 64, false}, // however slow answers are
		{5000 * ms, time.Second, leaseTerm / 64, false},
		{5001 * ms, time.Second, 742237500 * time.Nanosecond, true},
		{8000 * ms, 165500 * time.Microsecond, leaseTerm / 64, false}, // what is proven may be as old as it is
		{8000 * ms, 165501 * time.Microsecond, leaseTerm / 12, true},
		{10000 * ms, 0, leaseTerm / 12, true},
		{10000 * ms, 500 * ms, 430 * ms, true}, // a half of 860 ms
		{10000 * ms, time.Second, leaseTerm / 64, true},
	} {
		l := New(Clock(nil), leaseTerm, c.tick)
		l.rtt = c.rtt
		require.Equal(t, c.short, l.isShort(), "%+v", c)
		require.Equal(t, c.spacing, l.spacing(), "%+v", c)
	}
	l := New(Clock(nil), leaseTerm, 10*time.Second)
	require.Equal(t, (5300*ms+39062500)/7, l.period(5300*ms), "the seventh brings up what one has touched")
}

// A heartbeat whose touches took longer than usual is followed by one that comes when they are ripe, unless it took so long
// that this says nothing of the next.
func TestAHeartbeatWaitsForTouchesThatTookLonger(t *testing.T) {
	const usual, most = 2667 * time.Millisecond, leaseTerm / 32
	last := time.Unix(1000, 0)
	l := New(Clock(nil), leaseTerm, 0)
	l.rtt = time.Millisecond
	next := func(touched time.Duration) time.Duration {
		return l.NextBeat(last, last.Add(touched)).Sub(last)
	}
	require.Equal(t, usual, next(0))
	require.Equal(t, usual, next(time.Millisecond))
	require.Equal(t, (usual+200*time.Millisecond-time.Millisecond+leaseTerm/256)/2, next(200*time.Millisecond))
	require.Equal(t, (usual+most-1+leaseTerm/256)/2, next(most+time.Millisecond-1))
	require.Equal(t, usual, next(most+time.Millisecond))
	require.Equal(t, usual, next(3*time.Second))
}

// A waiter that is granted waits for more if more can be had at once.
func TestWhatIsAmple(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		time.Sleep(leaseValid - leaseTerm*41/100 - 1)
		require.True(t, l.IsAmple())
		l.touches()
		time.Sleep(l.lag())
		l.op(OfLeader)
		require.Less(t, l.Remaining(), leaseTerm*41/100)
		require.True(t, l.IsAmple(), "nothing further is upstream")
		time.Sleep(l.pause())
		l.op(OfLeader)
		require.True(t, l.Fresh())
		require.False(t, l.IsAmple(), "the quorum need only be asked")
		l.op(OfQuorum)
		require.True(t, l.IsAmple())
		time.Sleep(leaseValid)
		require.False(t, l.IsAmple(), "it has run out")
	})
}

// A touch from while the wall clock was an hour behind looks an hour old: to prove it would end the lease.
func TestWhatTheWallClockMakesTooOldIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set time.Duration
		l := &session{Lease: New(Clock(func() time.Time { return time.Now().Add(set) }), leaseTerm, 0)}
		l.run = l.Created(l.now())
		set = -time.Hour
		time.Sleep(time.Second)
		l.touches()
		time.Sleep(l.lag())
		l.bringUp()
		_, ok := l.NextQuorum()
		require.True(t, ok)
		set = 0
		require.Positive(t, l.Remaining())
		_, ok = l.NextQuorum()
		require.False(t, ok)
	})
}

// Where answers take long, another server is no faster.
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

// It is remembered for a timeout from the answer on, and each that takes as long begins that anew.
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

// The rhythm counts on answers that take as long as the slower ones of late.
func TestWhereAnswersTakeLongHeartbeatsFollowSooner(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.op(OfServer)
		now := l.now().Mono
		usual := l.NextBeat(now, now)
		sent := l.now()
		time.Sleep(leaseTerm / 20)
		l.run.Witness(sent, OfServer)
		now = l.now().Mono
		require.Less(t, l.NextBeat(now, now).Sub(now), usual.Sub(sent.Mono))
	})
}

// Each server that is left in vain gives the next one twice as long.
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

func TestARunFadesWhenTheNextHeartbeatWouldCloseItTooLate(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		require.False(t, l.IsFading())
		period := l.period(l.lag() + time.Millisecond)
		time.Sleep(leaseValid - period - leaseTerm/16 - 1)
		require.False(t, l.IsFading())
		time.Sleep(time.Nanosecond)
		require.True(t, l.IsFading())
	})
	require.False(t, New(Clock(nil), leaseTerm, 0).IsFading(), "there is no run yet")
}

// Before the first answer on a new connection, an answer of the quorum begins the run, if the last proof still stands.
func TestTheQuorumIsAskedOnANewConnectionWhileTheLastProofStands(t *testing.T) {
	for left, ask := range map[time.Duration]bool{1: true, 0: false} {
		leaseAt(t, 0, func(l *session) {
			time.Sleep(leaseValid - left - takes)
			l.takenBack()
			require.Equal(t, left, l.Remaining())
			wait, ok := l.NextQuorum()
			require.Equal(t, ask, ok)
			require.Zero(t, wait)
		})
	}
}

// What gains less than a part in 64 is not asked for.
func TestTheQuorumIsAskedForAPartOfTheTimeout(t *testing.T) {
	leaseAt(t, 0, func(l *session) {
		l.run.upstream.add(l.now().Add(leaseTerm/64-1), l.now().Mono, 1)
		_, ok := l.NextQuorum()
		require.False(t, ok)
		l.run.upstream.add(l.now().Add(leaseTerm/64), l.now().Mono, 1)
		_, ok = l.NextQuorum()
		require.True(t, ok)
	})
}

func TestAnInstantIsBeforeAnotherByBothClocks(t *testing.T) {
	at := func(mono, wall int64) Instant { return Instant{time.Unix(mono, 0), time.Unix(wall, 0)} }
	require.True(t, at(1, 100).Before(at(2, 101)))
	require.False(t, at(2, 100).Before(at(2, 101)))
	require.False(t, at(1, 101).Before(at(2, 101)))
}

func TestClaimsKeepTheNewest(t *testing.T) {
	at := func(n int) Instant { return Instant{Mono: time.Unix(0, int64(n))} }
	var c claims
	c.add(at(0), at(0).Mono, 10)
	c.add(at(9), at(9).Mono, 10)
	c.add(at(10), at(10).Mono, 10)
	require.Len(t, c, 2, "what is a grain apart counts, what is closer does not")
	for n := 2; n < 2*maxClaims; n++ {
		c.add(at(10*n), at(10*n).Mono, 10)
	}
	require.Len(t, c, maxClaims)
	newest, ok := c.peek(at(20 * maxClaims).Mono)
	require.True(t, ok)
	require.Equal(t, at(10*(2*maxClaims-1)), newest)
	_, ok = c.peek(at(5).Mono)
	require.False(t, ok, "that one is forgotten")
	_, ok = c.newest(at(5).Mono)
	require.False(t, ok)
}

func TestWithoutAConnectionThereIsNothingToAsk(t *testing.T) {
	l := New(Clock(nil), leaseTerm, 0)
	_, ok := l.NextQuorum()
	require.False(t, ok)
	require.Zero(t, l.Remaining())
	require.Equal(t, "lease=0s of 10s", l.String())
}

// Answers can be told in another order than they came in.
func TestAnAnswerThatIsToldLateTakesNothingBack(t *testing.T) {
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
