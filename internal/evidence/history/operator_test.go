// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// looked returns a correct history in which an operator inspects the queue while a holds and b waits, after c has left.
func looked() (h *History, look *Op) {
	h = handOff()
	h.Ops = append(h.Ops, Op{
		ID: 9, Kind: Inspect, Recipe: Mutex, Path: "/l", Client: "o", Outcome: Granted, Call: 22 * ms, Return: 25 * ms,
		Nodes: []string{node("a", 0), node("b", 1)}, Holders: []string{node("a", 0)}, Token: 10,
	})
	return h, &h.Ops[3]
}

func TestViewsOfOperatorsAreChecked(t *testing.T) {
	h, _ := looked()
	require.Empty(t, Check(h, bounds))
	for name, hurt := range map[string]func(look *Op){
		"one who had left":             func(look *Op) { look.Nodes = append(look.Nodes, node("c", 2)) },
		"one who was never there":      func(look *Op) { look.Nodes = append(look.Nodes, node("d", 3)) },
		"a queue without a waiter":     func(look *Op) { look.Nodes = look.Nodes[:1] },
		"a holder as one who waits":    func(look *Op) { look.Holders = nil },
		"a waiter as one who holds":    func(look *Op) { look.Holders = look.Nodes },
		"a holder with another token":  func(look *Op) { look.Token = 11 },
		"a holder before it held, too": func(look *Op) { look.Holders = look.Nodes[1:] },
	} {
		h, look := looked()
		hurt(look)
		require.Equal(t, "inspect", rules(Check(h, bounds)), name)
		look.Call = 11 * ms // the contender that leaves is still there, and no one holds during the call
		look.Return = 35 * ms
		if name != "one who was never there" {
			require.Empty(t, Check(h, bounds), name)
		}
	}
}

func TestAnEvictionThatBeginsInFrontIsReported(t *testing.T) {
	h := handOff()
	b, c := node("b", 1), node("c", 2)
	h.Txns[3].Client, h.Txns[3].Session = "o", session("o")
	h.Txns[5].Client, h.Txns[5].Session = "o", session("o")
	h.Ops[1].Clean = false
	h.Ops = append(h.Ops, Op{ID: 9, Kind: Evict, Recipe: Mutex, Path: "/l", Client: "o", Outcome: Granted, Call: 15 * ms, Return: 60 * ms, Nodes: []string{b, c}})
	require.Empty(t, Check(h, bounds))
	slices.Reverse(h.Ops[3].Nodes)
	require.Equal(t, "evict", rules(Check(h, bounds)), "the first in front was removed first")
	h.Ops[3].Client = "p"
	require.Empty(t, Check(h, bounds), "it was somebody else")
}

func TestAnIncompleteEvictionIsReported(t *testing.T) {
	const own, other = "_c_7a6b6c0123456789abcd", "_c_7a6b6c0123456789abce"
	gate := "/s/locks/" + own + "000000000000-lock-0000000000"
	for name, c := range map[string]struct {
		lease   string
		removed time.Duration
		rules   string
	}{
		"permits that are taken back":      {own, 29 * ms, ""},
		"permits that are left":            {own, 31 * ms, "evict"},
		"permits of another one":           {other, 31 * ms, ""},
		"permits that nobody ever removes": {own, 0, "evict"},
	} {
		t.Run(name, func(t *testing.T) {
			lease := "/s/leases/" + c.lease + "111111110000-lease-0000000000"
			h := &History{End: 50 * ms, Txns: []Txn{{Zxid: 10, Time: 10 * ms, Kind: Create, Client: "a", Session: session("a"), Path: lease, Lock: "/s"}}}
			if c.removed > 0 {
				h.Txns = append(h.Txns, Txn{Zxid: 11, Time: c.removed, Kind: Delete, Client: "o", Session: session("o"), Path: lease, Lock: "/s"})
			}
			h.Ops = []Op{{ID: 1, Kind: Evict, Recipe: Semaphore, Path: "/s", Client: "o", Outcome: Granted, Call: 20 * ms, Return: 30 * ms, Nodes: []string{gate}}}
			require.Equal(t, c.rules, rules(Check(h, bounds)))
			h.Ops[0].Error = "no longer there"
			require.Empty(t, Check(h, bounds), "it says so")
		})
	}
}

// Curator's names of one process have the same prefix.
func TestTwoNodesOfAnotherLibraryAreNotOneAcquire(t *testing.T) {
	const name = "/l/_c_01234567-89ab-cdef-0123-456789abcdef-lock-000000000"
	h := &History{End: 50 * ms}
	for i, number := range []string{"0", "1"} {
		h.Txns = append(h.Txns, Txn{Zxid: 10 + int64(i), Time: 10 * ms, Kind: Create, Client: "a", Session: session("a"), Path: name + number, Lock: "/l"})
	}
	h.Txns = append(h.Txns, Txn{Zxid: 12, Time: 25 * ms, Kind: Delete, Client: "o", Session: session("o"), Path: name + "1", Lock: "/l"})
	h.Ops = []Op{{ID: 1, Kind: Evict, Recipe: Mutex, Path: "/l", Client: "o", Outcome: Granted, Call: 20 * ms, Return: 30 * ms, Nodes: []string{name + "1"}}}
	require.Empty(t, Check(h, bounds))
}

func TestValuesOfLeadersAreChecked(t *testing.T) {
	type look struct {
		client    string
		fresh     bool
		call, ret int
		value     string
	}
	for name, c := range map[string]struct {
		looks []look
		rules string
	}{
		"as they were":            {[]look{{"o", true, 11, 12, "one"}, {"o", false, 16, 16, "two"}, {"p", true, 16, 17, "two"}}, ""},
		"late in a view":          {[]look{{"o", true, 11, 12, "one"}, {"o", false, 25, 25, "one"}}, ""},
		"one while it is written": {[]look{{"o", true, 14, 16, "one"}}, ""},
		"what was":                {[]look{{"o", true, 16, 17, "one"}}, "election"},
		"back in a view":          {[]look{{"o", true, 16, 17, "two"}, {"o", false, 18, 18, "one"}}, "election"},
		"what will be":            {[]look{{"o", true, 11, 12, "two"}}, "election"},
		"what never was":          {[]look{{"o", true, 11, 12, "three"}}, "election"},
	} {
		h := as(Election, handOff())
		h.Txns[0].Value = "one"
		h.Txns = slices.Insert(h.Txns, 3, Txn{Zxid: 12, Time: 15 * ms, Kind: Write, Path: node("a", 0), Value: "two"})
		for i, l := range c.looks {
			op := held(int64(10+i), l.client, node("a", 0), 10, l.call, l.ret, 0, 0)
			op.Kind, op.Recipe, op.Value, op.Fresh = Observe, Election, l.value, l.fresh
			h.Ops = append(h.Ops, op)
		}
		require.Equal(t, c.rules, rules(Check(h, bounds)), name)
	}
}

func TestAnObserverThatIsNotShownALeaderIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		call, ret int
		shown     string
		rules     string
	}{
		"who looks on for a short time":     {20, 40, "", ""},
		"who was shown nothing":             {20, 400, "", "P7"},
		"who was shown the value before":    {20, 400, "one", "P7"},
		"who was shown what is so":          {20, 400, "two", ""},
		"who looked before anybody has led": {1, 9, "", ""},
	} {
		a := node("a", 0)
		h := as(Election, &History{
			End:  1000 * ms,
			Txns: []Txn{created(10, 10, "a", a), {Zxid: 11, Time: 15 * ms, Kind: Write, Path: a, Value: "two"}, deleted(12, 500, "a", a)},
			Ops:  []Op{held(1, "a", a, 10, 9, 11, 499, 501)},
		})
		h.Txns[0].Value = "one"
		view := Op{ID: 2, Kind: Observe, Recipe: Election, Path: "/l", Client: "o", View: true}
		if c.shown != "" {
			seen := view
			seen.Outcome, seen.Node, seen.Token, seen.Value, seen.Call, seen.Return = Granted, a, 10, c.shown, 11*ms, 16*ms
			h.Ops = append(h.Ops, seen)
		}
		view.ID, view.Outcome, view.Call, view.Return = 3, Failed, time.Duration(c.call)*ms, time.Duration(c.ret)*ms
		h.Ops = append(h.Ops, view)
		require.Equal(t, c.rules, rules(Check(h, bounds)), name)
	}
}

// A downgraded writer is lost while another reader holds. During the lock-delay, the servers' data does not show the other reader
// as a holder.
func TestReadersBehindALostWriterMayBeShownAsWaiting(t *testing.T) {
	h := downgradeInPlace()
	h.Txns[5] = deleted(15, 34, "z", h.Txns[0].Path)
	h.Txns[4] = deleted(14, 37, "c", h.Txns[1].Path)
	h.Txns[4], h.Txns[5] = h.Txns[5], h.Txns[4]
	h.Ops[1].End, h.Ops[1].Freed, h.Ops[1].Clean = 33*ms, 0, false
	h.Ops[2].End, h.Ops[2].Freed = 37*ms, 38*ms
	h.Ops[3].Return = 50 * ms
	h.Ops = append(h.Ops, Op{ID: 9, Kind: Inspect, Recipe: RW, Path: "/l", Client: "o", Outcome: Granted, Call: 35 * ms, Return: 36 * ms, Nodes: []string{h.Txns[1].Path, h.Txns[2].Path}})
	require.Equal(t, "inspect", rules(Check(h, bounds)))
	delayed := bounds
	delayed.Delay = 5 * ms
	require.Empty(t, Check(h, delayed))
	h.Ops[4].Holders = []string{h.Txns[2].Path}
	require.Equal(t, "inspect", rules(Check(h, delayed)), "but nobody else as the holder")
}

// The number of permits is reduced before a granted acquire has left the queue.
func TestAHolderOfPermitsMayBeShownAsWaitingAfterAResizeToFewer(t *testing.T) {
	a := node("a", 0)
	h := as(Semaphore, &History{
		End:  1000 * ms,
		Txns: []Txn{created(10, 10, "a", a), deleted(11, 50, "a", a)},
		Ops:  []Op{held(1, "a", a, 10, 9, 12, 49, 51)},
	})
	resize := func(id int64, at, n int) {
		t := time.Duration(at) * ms
		h.Ops = append(h.Ops, Op{ID: id, Kind: Resize, Recipe: Semaphore, Path: "/l", Outcome: Granted, Weight: n, Call: t, Return: t})
	}
	resize(2, 0, 2)
	h.Ops = append(h.Ops, Op{ID: 3, Kind: Inspect, Recipe: Semaphore, Path: "/l", Client: "o", Outcome: Granted, Call: 35 * ms, Return: 36 * ms})
	require.Equal(t, "inspect", rules(Check(h, bounds)))
	resize(4, 30, 1)
	require.Empty(t, Check(h, bounds))

	h.Ops = slices.DeleteFunc(h.Ops, func(op Op) bool { return op.Kind == Resize })
	resize(2, 0, 1)
	resize(4, 30, 1)
	require.Equal(t, "inspect", rules(Check(h, bounds)), "the same number")
	resize(5, 11, 2)
	require.Empty(t, Check(h, bounds), "it was granted while there were more for a moment")
}

// An operator asks a, which holds, and later b, which waits, to release.
func TestRequestsToReleaseAreChecked(t *testing.T) {
	strict := bounds
	strict.Notice = 5 * ms
	asked := func() (h *History, holder, waiter *Op) {
		h = handOff()
		h.Ops = append(h.Ops,
			Op{ID: 9, Kind: Ask, Recipe: Mutex, Path: "/l", Client: "o", Outcome: Granted, Call: 14 * ms, Return: 15 * ms, Node: node("a", 0)},
			Op{ID: 10, Kind: Ask, Recipe: Mutex, Path: "/l", Client: "o", Outcome: Granted, Call: 16 * ms, Return: 17 * ms, Node: node("b", 1)})
		holder, waiter = &h.Ops[0], &h.Ops[1]
		require.Equal(t, holder.Node, node("a", 0))
		require.Equal(t, waiter.Node, node("b", 1))
		holder.Asked, holder.Heeds = 16*ms, 16*ms
		waiter.Asked, waiter.Heeds = waiter.Return+1*ms, waiter.Return+1*ms
		return h, holder, waiter
	}
	h, holder, _ := asked()
	require.Empty(t, Check(h, strict))
	holder.Asked, holder.Heeds = 22*ms, 22*ms
	h.Faults = []Window{{From: 15 * ms, To: 16 * ms}}
	require.Equal(t, "ask", rules(Check(h, strict)), "6 ms after the fault")
	dials := strict
	dials.Redial = 1 * ms
	require.Empty(t, Check(h, dials))
	for name, hurt := range map[string]func(h *History, holder, waiter *Op){
		"told before anybody asked":   func(_ *History, holder, _ *Op) { holder.Asked = 13 * ms },
		"told what another was asked": func(h *History, _, _ *Op) { h.Ops[len(h.Ops)-1].Node = node("a", 0) },
		"told late":                   func(_ *History, holder, _ *Op) { holder.Asked, holder.Heeds = 22*ms, 22*ms },
		"never told":                  func(_ *History, holder, _ *Op) { holder.Asked, holder.Heeds = 0, holder.End },
		"the waiter is never told":    func(_ *History, _, waiter *Op) { waiter.Asked, waiter.Heeds = 0, waiter.End },
	} {
		h, holder, waiter := asked()
		hurt(h, holder, waiter)
		require.Equal(t, "ask", rules(Check(h, strict)), name)
	}
	h, holder, _ = asked()
	holder.Asked, holder.Heeds = 0, 18*ms
	require.Empty(t, Check(h, strict), "it was not noted for long enough")
	holder.Heeds = holder.End
	h.Faults = []Window{{From: 18 * ms, To: holder.End}}
	require.Empty(t, Check(h, strict), "nothing comes through")
	h.Faults = nil
	h.Ops[len(h.Ops)-2].Outcome = Refused
	require.Empty(t, Check(h, strict), "the operator was told that it was not asked")
}
