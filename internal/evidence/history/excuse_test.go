// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A fault that affects one client does not excuse a delay of another.
func TestAFaultExcusesOnlyTheClientsThatItAffects(t *testing.T) {
	late := func(faults ...Window) string { // b has its turn at 30 ms, and is granted at 300 ms
		h := handOff()
		h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Freed = 300*ms, 400*ms, 401*ms
		h.Txns[5].Time = 400 * ms
		h.Faults = faults
		return rules(Check(h, bounds))
	}
	require.Empty(t, late(Window{From: 40 * ms, To: 290 * ms}))
	require.Empty(t, late(Window{From: 40 * ms, To: 290 * ms, Clients: []string{"a", "b"}}))
	require.Equal(t, "P7", late(Window{From: 40 * ms, To: 290 * ms, Clients: []string{"a"}}))
	require.Empty(t, late(Window{From: 40 * ms, To: 290 * ms, Clients: []string{"a"}, First: 210 * ms}), "until then it affects all clients")
	require.Equal(t, "P7", late(Window{From: 40 * ms, To: 290 * ms, Clients: []string{"a"}, First: 190 * ms}))
	require.Empty(t, late(
		Window{From: 40 * ms, To: 200 * ms, Clients: []string{"b"}}, Window{From: 50 * ms, To: 60 * ms, Clients: []string{"a"}}))
}

// Frequent faults excuse a delay only until the time without a fault adds up to one and a half times the limit.
func TestFrequentFaultsExcuseALimitedDelay(t *testing.T) {
	late := func(by time.Duration) string { // after 30 ms, with a fault every 10 ms, each half as long
		h := handOff()
		h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Freed = 30*ms+by, 800*ms, 801*ms
		h.Txns[5].Time = 800 * ms
		for at := 30 * ms; at < 900*ms; at += 10 * ms {
			h.Faults = append(h.Faults, Window{From: at, To: at + 5*ms})
		}
		return rules(Check(h, bounds))
	}
	require.Empty(t, late(300*ms))
	require.Equal(t, "P7", late(310*ms))
}

// A waiter whose process ended must have had a place until then.
func TestAVanishedWaiterWithoutAPlaceIsReported(t *testing.T) {
	h := handOff()
	h.Ops = append(h.Ops, Op{ID: 4, Recipe: Mutex, Path: "/l", Client: "e", Outcome: Unknown, Call: 199 * ms, Return: 290 * ms})
	require.Empty(t, Check(h, bounds))
	h.Ops[3].Return = 300 * ms
	require.Equal(t, "P7", rules(Check(h, bounds)))
}

// An acquire of several locks has a place in at least one queue while it waits.
func TestAWaitForSeveralLocksWithoutAPlaceIsReported(t *testing.T) {
	both := func(at int) *History { // b enters one of the queues then
		h := handOff()
		b := node("b", 3)
		h.Txns = append(h.Txns, created(20, at, "b", b), deleted(21, 400, "b", b))
		h.Ops = append(h.Ops,
			Op{ID: 4, Recipe: Mutex, Path: "/l", Client: "b", Outcome: Failed, Group: -1, Call: 200 * ms, Return: 399 * ms},
			Op{ID: 5, Recipe: Mutex, Path: "/m", Client: "b", Outcome: Failed, Group: 4, Call: 200 * ms, Return: 399 * ms})
		return h
	}
	require.Empty(t, Check(both(300), bounds))
	require.Equal(t, "P7", rules(Check(both(301), bounds)))
}

func TestAFaultOfAnotherClientExcusesNoLoss(t *testing.T) {
	h := handOff()
	h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Lost, h.Ops[1].Clean, h.Ops[1].Freed = 32*ms, 349*ms, true, false, 351*ms
	h.Txns[5].Time = 350 * ms
	h.Faults = []Window{{From: 300 * ms, To: 349 * ms, Clients: []string{"b"}}}
	require.Empty(t, Check(h, bounds))
	h.Faults[0].Clients[0] = "a"
	require.Equal(t, "P2", rules(Check(h, bounds)))
}

// A client notices a third party's delete within the time of an event, even if it is just being granted.
func TestAGrantOfANodeThatAThirdPartyDeletedIsReported(t *testing.T) {
	strict := bounds
	strict.Notice = 5 * ms
	granted := func(after time.Duration) *History { // b's node goes at 31 ms
		h := handOff()
		h.Txns[5] = deleted(15, 31, "z", node("b", 1))
		h.Ops[1].Return = 31*ms + after
		h.Ops[1].End, h.Ops[1].Freed, h.Ops[1].Clean = h.Ops[1].Return, 60*ms, false
		return h
	}
	require.Empty(t, Check(granted(4*ms), strict))
	require.Equal(t, "P1", rules(Check(granted(6*ms), strict)))
	h := granted(6 * ms)
	h.Faults = []Window{{From: 31 * ms, To: 36 * ms, Clients: []string{"b"}}}
	require.Empty(t, Check(h, strict))
	h.Faults[0].Clients[0] = "a"
	require.Equal(t, "P1", rules(Check(h, strict)))
}

// taken returns a correct history: a acquires two of two permits in one transaction, and b waits for one behind it.
func taken() *History {
	a, b := acquireOfPermits("a"), acquireOfPermits("b")
	gate := func(zxid int64, at int, client string, seq int) Txn {
		txn := created(zxid, at, client, fmt.Sprintf("/l/locks/%s000000000000-lock-%010d", acquireOfPermits(client), seq))
		txn.Lock = "/l/locks"
		return txn
	}
	first, second := "/l/leases/"+a+"000000000001-lease-0000000000", "/l/leases/"+a+"000000000002-lease-0000000001"
	third := "/l/leases/" + b + "000000000001-lease-0000000002"
	h := as(Semaphore, &History{
		End: 1000 * ms,
		Txns: []Txn{
			gate(9, 9, "a", 0), created(10, 10, "a", first), created(10, 10, "a", second), deleted(11, 13, "a", ""),
			gate(12, 14, "b", 1), created(13, 15, "b", third),
			deleted(14, 30, "a", first), deleted(14, 30, "a", second), deleted(15, 33, "b", ""), deleted(16, 50, "b", third),
		},
		Ops: []Op{held(1, "a", second, 10, 8, 12, 29, 31), held(2, "a", first, 10, 8, 12, 29, 31), held(3, "b", third, 13, 13, 32, 49, 51)},
	})
	h.Txns[3].Path, h.Txns[8].Path = h.Txns[0].Path, h.Txns[4].Path
	h.Ops[0].Group, h.Ops[1].Group, h.Ops[1].Outer, h.Ops[2].Group = -1, 1, 1, -1
	h.Ops = append(h.Ops, Op{ID: 4, Kind: Resize, Recipe: Semaphore, Path: "/l", Outcome: Granted, Weight: 2})
	return h
}

// acquireOfPermits returns the prefix of the names of a client's nodes.
func acquireOfPermits(client string) string { return "_c_7a6b6c0000000000000" + client }

func TestEachPermitIsReleased(t *testing.T) {
	require.Empty(t, Check(taken(), bounds))
	for _, i := range []int{6, 7} {
		h := taken()
		h.Txns[i].Time = 32 * ms
		h.Ops[2].Return, h.Ops[2].Weight, h.Txns[5].Weight = 34*ms, 1, 1
		slices.SortStableFunc(h.Txns, func(x, y Txn) int { return int(x.Time - y.Time) })
		require.Equal(t, "P5", rules(Check(h, bounds)), i)
	}
}

// A caller that waits for permits has a place in the queue, or nodes for its permits.
func TestAWaitForPermitsWithoutAPlaceIsReported(t *testing.T) {
	late := func(h *History, at int) *History { // b is granted, and leaves, at
		h.Ops[2].Return, h.Ops[2].End, h.Ops[2].Freed = time.Duration(at)*ms, time.Duration(at+20)*ms, time.Duration(at+22)*ms
		h.Txns[8].Time, h.Txns[9].Time = time.Duration(at+1)*ms, time.Duration(at+21)*ms
		return h
	}
	waiting := func() *History { // a holds until 500 ms
		h := late(taken(), 502)
		for i := range 2 {
			h.Ops[i].End, h.Ops[i].Freed, h.Txns[6+i].Time = 499*ms, 501*ms, 500*ms
		}
		return h
	}
	require.Empty(t, Check(waiting(), bounds))

	asleep := waiting()
	asleep.Txns[4].Time, asleep.Txns[5].Time = 498*ms, 499*ms
	require.Equal(t, "P7", rules(Check(asleep, bounds)), "it queued late")

	before := waiting()
	before.Txns[4].Time, before.Txns[5].Time = 14*ms, 499*ms
	require.Equal(t, "P7", rules(Check(before, bounds)), "it was first in the queue, and created no node for its permit")

	ghost := taken()
	ghost.Txns[3].Time = 300 * ms
	slices.SortStableFunc(ghost.Txns, func(x, y Txn) int { return int(x.Time - y.Time) })
	require.Equal(t, "P5", rules(Check(ghost, bounds)), "its place remains")
}

// A waiter that gives up although its permits were free for long was not woken.
func TestUnusedPermitsAreFound(t *testing.T) {
	h := taken()
	h.Ops[2] = Op{ID: 3, Recipe: Semaphore, Path: "/l", Client: "b", Outcome: Failed, Group: -1, Call: 13 * ms, Return: 200 * ms}
	h.Txns[8].Time, h.Txns[9].Time = 201*ms, 201*ms
	require.Equal(t, "P7", rules(Check(h, bounds)))
	h.Ops[2].Return, h.Txns[8].Time, h.Txns[9].Time = 120*ms, 121*ms, 121*ms
	require.Empty(t, Check(h, bounds))
}

// A restore brings back the record of a hold that was there in the earlier state.
func TestATryAfterARestoreMayBeRefusedForTheLockDelay(t *testing.T) {
	strict := bounds
	strict.Notice = 5 * ms
	h := restored()
	h.Ops = append(h.Ops[:1], Op{ID: 4, Recipe: Mutex, Path: "/l", Client: "d", Outcome: Refused, Call: 60 * ms, Return: 61 * ms})
	h.Txns = h.Txns[:2]
	require.Equal(t, "P7", rules(Check(h, strict)))
	strict.Delay = 30 * ms
	require.Empty(t, Check(h, strict))
	h.Ops[1].Call, h.Ops[1].Return = 600*ms, 601*ms
	require.Empty(t, Check(h, strict), "the delay begins when a contender sees that the hold was lost")

	readers := as(RW, restored())
	readers.Txns[0].Shared, readers.Txns[2].Shared, readers.Txns[3].Time = true, true, 96*ms
	readers.Ops[1] = held(2, "b", node("b", 3), 10, 49, 89, 95, 97)
	readers.Ops[1].Recipe = RW
	readers.Ops = append(readers.Ops, Op{ID: 4, Recipe: RW, Path: "/l", Client: "d", Outcome: Refused, Call: 60 * ms, Return: 61 * ms})
	for i := range readers.Ops {
		readers.Ops[i].Shared = true
	}
	require.Empty(t, refusals(Check(readers, strict)), "another reader still waits for the end of the delay")
	readers.Ops[2].Call, readers.Ops[2].Return = 120*ms, 121*ms
	require.Len(t, refusals(Check(readers, strict)), 1, "the other reader was granted the lock after the delay")
}

func TestATryThatIsRefusedWithoutReasonIsReported(t *testing.T) {
	strict := bounds
	strict.Notice = 5 * ms
	try := func(call int) *History {
		h := handOff()
		at := time.Duration(call) * ms
		h.Ops = append(h.Ops, Op{ID: 4, Recipe: Mutex, Path: "/l", Client: "d", Outcome: Refused, Call: at, Return: at + ms})
		return h
	}
	require.Empty(t, Check(try(40), strict), "b holds")
	require.Empty(t, Check(try(55), strict), "its server may not know yet")
	require.Equal(t, "P7", rules(Check(try(56), strict)))

	own := try(56)
	own.Txns = append(own.Txns, created(16, 56, "d", node("d", 3)), deleted(17, 57, "d", node("d", 3)))
	require.Equal(t, "P7", rules(Check(own, strict)), "its own node is not in its way")
	own.Txns = append(own.Txns[:len(own.Txns)-1], created(16, 56, "d", node("d", 4)), deleted(17, 57, "d", node("d", 3)), deleted(17, 57, "d", node("d", 4)))
	require.Equal(t, "P7", rules(Check(own, strict)), "other nodes that it created in the same request, as for permits, are not excused either")
	beside := *own
	beside.Ops = append(slices.Clone(own.Ops), Op{ID: 5, Recipe: Mutex, Path: "/l", Client: "d", Outcome: Failed, Call: 55 * ms, Return: 56 * ms})
	require.Empty(t, Check(&beside, strict), "they are those of another goroutine")
	beside.Ops[len(beside.Ops)-1].Cohort = true
	require.Empty(t, Check(&beside, strict), "of a cohort's")
	own.Txns[len(own.Txns)-3].Zxid = 18
	require.Empty(t, Check(own, strict), "another of its process may be")

	late := try(56)
	late.Ops = append(late.Ops, Op{ID: 5, Recipe: Mutex, Path: "/l", Client: "d", Outcome: Failed, Call: 50 * ms, Return: 52 * ms})
	require.Equal(t, "P7", rules(Check(late, strict)), "a call that failed before has left no node")
	late.Txns = append(late.Txns, created(16, 56, "d", node("d", 3)), deleted(17, 57, "d", node("d", 3)))
	require.Empty(t, Check(late, strict), "the node may be one that a call before has left: its request was under way")
	late.Ops[4].Call, late.Ops[4].Return = 49*ms, 50*ms
	require.Equal(t, "P7", rules(Check(late, strict)), "its request cannot have been under way for so long")

	permits := &History{End: 99 * ms, Ops: []Op{{ID: 1, Recipe: Semaphore, Path: "/s", Client: "d", Outcome: Refused, Call: 56 * ms, Return: 58 * ms}}}
	asker := created(10, 57, "d", "/s/locks/_c_7a6b6c000000000000000000000000dd-lock-0000000000")
	asker.Lock = "/s/locks"
	permits.Txns = []Txn{asker}
	require.Empty(t, Check(permits, strict), "one that has just asked is in the way, also of its own client")

	cohort := try(56)
	cohort.Ops[3].Cohort = true
	require.Equal(t, "P7", rules(Check(cohort, strict)))
	asks := Op{ID: 5, Recipe: Mutex, Path: "/l", Client: "d", Cohort: true, Outcome: Failed, Call: 55 * ms, Return: 58 * ms}
	cohort.Ops = append(cohort.Ops, asks)
	require.Empty(t, Check(cohort, strict), "another goroutine of its process is before it")

	lag := try(56)
	lag.Faults = []Window{{From: 50 * ms, To: 54 * ms}}
	require.Empty(t, Check(lag, strict))
	lag.Faults[0].Clients = []string{"a"}
	require.Equal(t, "P7", rules(Check(lag, strict)))

	reader := as(RW, try(40))
	reader.Ops[3].Shared, reader.Ops[1].Shared, reader.Txns[1].Shared = true, true, true
	require.Equal(t, "P7", rules(Check(reader, strict)), "a reader is not in its way")
}

// A lock of AtMost is refused behind its number of contenders, and only then.
func TestABoundThatIsIgnoredIsReported(t *testing.T) {
	strict := bounds
	strict.Notice = 5 * ms
	granted := func(behind int) *History {
		h := handOff()
		h.Ops[1].Behind = behind
		return h
	}
	require.Empty(t, Check(granted(2), strict), "a is ahead of b")
	require.Equal(t, "P4", rules(Check(granted(1), strict)))
	soon := granted(1)
	soon.Txns[4].Time = soon.Txns[1].Time + 5*ms
	soon.Txns[3], soon.Txns[4] = soon.Txns[4], soon.Txns[3]
	require.NotContains(t, rules(Check(soon, strict)), "P4", "a may have left before b counted")
	fault := granted(1)
	fault.Faults = []Window{{From: fault.Ops[1].Call, To: fault.Ops[1].Call + 1}}
	require.Empty(t, Check(fault, strict), "b may have queued again")

	refused := func(behind int) *History {
		h := handOff()
		h.Ops = append(h.Ops, Op{ID: 4, Recipe: Mutex, Path: "/l", Client: "d", Behind: behind, Outcome: Refused, Call: 40 * ms, Return: 41 * ms})
		return h
	}
	require.Empty(t, Check(refused(1), strict), "b holds")
	require.Equal(t, "P7", rules(Check(refused(2), strict)), "a has left")

	permits := &History{End: 99 * ms, Ops: []Op{{ID: 1, Recipe: Semaphore, Path: "/s", Client: "d", Behind: 1, Outcome: Refused, Call: 56 * ms, Return: 58 * ms}}}
	holds, waits := created(10, 50, "e", "/s/leases/_c_7a6b6c000000000000000000000000ee-lease-0000000000"), created(11, 50, "f", "/s/locks/_c_7a6b6c000000000000000000000000ff-lock-0000000000")
	holds.Lock, waits.Lock = "/s", "/s/locks"
	permits.Txns = []Txn{holds, waits}
	require.Empty(t, refusals(Check(permits, strict)), "f waits")
	permits.Ops[0].Behind = 2
	require.Len(t, refusals(Check(permits, strict)), 1, "a holder does not count")
}

// refusals returns the violations about refusals.
func refusals(all []Violation) []Violation {
	return slices.DeleteFunc(slices.Clone(all), func(v Violation) bool { return !strings.HasPrefix(v.Text, "refused") })
}

// The lock-delay after a loss starts when a contender first reads the queue.
func TestATryThatIsRefusedAfterTheLockDelayIsReported(t *testing.T) {
	strict := bounds
	strict.Notice, strict.Delay = 5*ms, 20*ms
	tries := func(calls ...int) *History {
		h := handOff()
		for i, call := range calls {
			at := time.Duration(call) * ms
			h.Ops = append(h.Ops, Op{ID: int64(i + 4), Recipe: Mutex, Path: "/l", Client: "d", Outcome: Refused, Call: at, Return: at + ms})
		}
		return h
	}
	require.Equal(t, "P7", rules(Check(tries(56), strict)), "b has released")
	lost := func(calls ...int) *History {
		h := tries(calls...)
		h.Ops[1].Lost, h.Ops[1].Clean = true, false
		return h
	}
	require.Empty(t, Check(lost(80), strict), "no one had read the queue before")
	require.Empty(t, Check(lost(60, 86), strict), "its server may not know yet")
	require.Equal(t, "P7", rules(Check(lost(60, 87), strict)))
	nested := lost(90)
	nested.Ops = append(nested.Ops, Op{ID: 5, Outer: 2, Recipe: Mutex, Path: "/l", Client: "b", Outcome: Granted, Call: 56 * ms, Return: 56 * ms, End: 57 * ms, Node: nested.Ops[1].Node, Token: nested.Ops[1].Token, Lost: true})
	require.Empty(t, refusals(Check(nested, strict)), "a call under the hold that was lost has not read the queue")
	early := lost(40, 87)
	early.Ops[3].Return = 61 * ms
	require.Empty(t, Check(early, strict), "it was refused before, and an observer kept it")

	untold := tries(60, 70)
	untold.Ops[1].Outcome, untold.Ops[1].Node, untold.Ops[1].Freed, untold.Ops[1].Clean = Failed, "", 0, false
	untold.Ops[1].Return = 57 * ms
	require.Equal(t, "P7", rules(Check(untold, strict)), "its acquire was canceled")
	untold.Ops[1].Lost = true
	require.Empty(t, Check(untold, strict), "the lock was lost before its acquire returned")
}

func TestALeaderThatNeverLedIsReported(t *testing.T) {
	h := campaign()
	h.Ops[3].Token = 9
	require.Equal(t, "election", rules(Check(h, bounds)))
	h.Ops[3].Token, h.Ops[3].Node = 10, node("x", 7)
	require.Equal(t, "election", rules(Check(h, bounds)))
}

func TestAFalseReportOfNoLeaderIsReported(t *testing.T) {
	h := campaign()
	h.Ops = append(h.Ops, Op{ID: 8, Kind: Observe, Recipe: Election, Path: "/l", Client: "p", Outcome: Refused, Fresh: true, Call: 52 * ms, Return: 53 * ms})
	require.Empty(t, Check(h, bounds))
	h.Ops[5].Call, h.Ops[5].Return = 49*ms, 51*ms
	require.Empty(t, Check(h, bounds), "the last leaves meanwhile")
	h.Ops[5].Return = 50*ms - 1
	require.Equal(t, "election", rules(Check(h, bounds)))
}

// A writer holds alone, so its token is larger than the tokens of all readers that ended before its grant, not only before its
// call.
func TestAWritersTokenIsLargerThanThoseOfReadersBeforeIt(t *testing.T) {
	h := readers()
	h.Txns = nil
	require.Empty(t, Check(h, bounds))
	h.Ops[2].Token = 9
	require.Equal(t, "P3", rules(Check(h, bounds)))
}

// A release may be uncertain only after a fault that affects its client.
func TestAReleaseThatIsUncertainWithoutAFaultIsReported(t *testing.T) {
	h := handOff()
	h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Freed, h.Ops[1].Clean, h.Ops[1].Uncertain = 32*ms, 349*ms, 351*ms, false, true
	h.Txns[5].Time = 350 * ms
	require.Equal(t, "P5", rules(Check(h, bounds)))
	h.Faults = []Window{{From: 300 * ms, To: 310 * ms, Clients: []string{"b"}}}
	require.Empty(t, Check(h, bounds))
	h.Faults[0].Clients[0] = "a"
	require.Equal(t, "P5", rules(Check(h, bounds)))
}

// A leader that has lost its quorum tells a client that its session has expired before it can commit the end.
func TestANodeMayOutliveItsReleaseIfTheServersCannotEndTheSession(t *testing.T) {
	h := handOff()
	h.Ops[1].End, h.Ops[1].Freed = 349*ms, 351*ms
	h.Txns[5] = Txn{Zxid: 15, Time: 400 * ms, Kind: Ended, Session: h.Txns[1].Session, Client: "b", Gone: []string{node("b", 1)}}
	require.Equal(t, "P5", rules(Check(h, bounds)), "no fault")
	h.Faults = []Window{{From: 330 * ms, To: 340 * ms}}
	require.Empty(t, Check(h, bounds))
	h.Txns[5].Time = 460 * ms
	require.Equal(t, "P5", rules(Check(h, bounds)), "too long after the fault")
	h.Txns[5] = deleted(15, 400, "b", node("b", 1))
	require.Equal(t, "P5", rules(Check(h, bounds)), "it was deleted")
}

// Two readers wait, and a writer of another library between them is lost.
func TestAReaderMayWaitForTheDelayOfAWriterBehindIt(t *testing.T) {
	h := readers()
	h.Ops[3].Return, h.Ops[3].End, h.Ops[3].Freed = 185*ms, 189*ms, 191*ms
	h.Txns[7].Time = 190 * ms
	x := "/l/_c_x-__WRIT__0000000004"
	e := "/l/_c_e-__READ__0000000005"
	behind := created(18, 61, "e", e)
	behind.Shared = true
	h.Txns = append(h.Txns[:7], created(17, 60, "stranger", x), behind, Txn{Zxid: 19, Time: 90 * ms, Kind: Ended, Session: session("stranger"), Client: "stranger", Gone: []string{x}}, deleted(20, 186, "e", e), deleted(21, 190, "d", h.Ops[3].Node))
	h.Ops = append(h.Ops, Op{ID: 5, Recipe: RW, Path: "/l", Client: "e", Shared: true, Outcome: Failed, Call: 60 * ms, Return: 187 * ms})
	lim := bounds
	lim.Delay, lim.Stranger = 50*ms, "stranger"
	require.Empty(t, Check(h, lim))
	lim.Delay = 0
	require.Equal(t, "P7", rules(Check(h, lim)))
	lim.Delay, h.Txns[7].Client = 50*ms, "b"
	require.Equal(t, "P7", rules(Check(h, lim)))
	h.Txns[7].Client, h.Txns[8].Shared = "stranger", false
	require.Equal(t, "P7", rules(Check(h, lim)), "no reader records the loss")
}

// A try that another node has blocked did not read the record, so the lock-delay begins later.
func TestATryThatANodeBlocksDoesNotBeginTheLockDelay(t *testing.T) {
	strict := bounds
	strict.Notice, strict.Delay = 5*ms, 20*ms
	h := handOff()
	h.Txns[4] = Txn{Zxid: 14, Time: 30 * ms, Kind: Ended, Session: session("a"), Client: "a", Gone: []string{node("a", 0)}}
	h.Ops[0].Clean, h.Ops[0].Lost = false, true
	h.Ops[1] = Op{ID: 2, Recipe: Mutex, Path: "/l", Client: "b", Outcome: Failed, Call: 10 * ms, Return: 49 * ms}
	h.Ops = append(h.Ops,
		Op{ID: 4, Recipe: Mutex, Path: "/l", Client: "d", Outcome: Refused, Call: 35 * ms, Return: 36 * ms},
		Op{ID: 5, Recipe: Mutex, Path: "/l", Client: "d", Outcome: Refused, Call: 62 * ms, Return: 63 * ms},
		Op{ID: 6, Recipe: Mutex, Path: "/l", Client: "d", Outcome: Refused, Call: 80 * ms, Return: 81 * ms})
	require.Empty(t, refusals(Check(h, strict)), "b was in the way of the first")
	h.Txns[5].Time = 31 * ms
	require.Len(t, refusals(Check(h, strict)), 2, "nobody was, and the delay began then")
}

func TestAGrantWithoutANodeIsReported(t *testing.T) {
	h := handOff()
	h.Ops[0].Node, h.Ops[0].Clean = "", false
	require.Contains(t, rules(Check(h, bounds)), "P1")
}

// Two nodes of a transaction have the same place. After a smaller limit, one that had its turn is again in order with one that had not.
func TestNodesOfATransactionLeaveTheQueueAfterAResize(t *testing.T) {
	limit := 1
	q := queue{limit: func(time.Duration) int { return limit }, numbers: map[string]int64{}}
	first := &life{path: "/l/b-lease-0000000017", place: 5, czxid: 5, weight: 1}
	second := &life{path: "/l/a-lease-0000000019", place: 5, czxid: 5, weight: 1}
	q.join(first)
	q.advance(0)
	q.join(second)
	limit = 0
	q.resized(0)
	require.Len(t, q.waiting, 2)
	q.leave(first)
	q.leave(second)
	require.Empty(t, q.waiting)
}
