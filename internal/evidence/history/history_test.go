// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

var bounds = Limits{Wake: 100 * ms, Foreign: 20 * ms, Lossless: true}

// node returns the full path of a contender's node of lock /l.
func node(name string, seq int) string { return fmt.Sprintf("/l/_c_%s-lock-%010d", name, seq) }

func created(zxid int64, at int, client, path string) Txn {
	return Txn{Zxid: zxid, Time: time.Duration(at) * ms, Kind: Create, Session: session(client), Client: client, Path: path, Lock: "/l"}
}

func deleted(zxid int64, at int, client, path string) Txn {
	return Txn{Zxid: zxid, Time: time.Duration(at) * ms, Kind: Delete, Session: session(client), Client: client, Path: path}
}

func ended(zxid int64, at int, client string, gone ...string) Txn {
	return Txn{Zxid: zxid, Time: time.Duration(at) * ms, Kind: Ended, Session: session(client), Client: client, Gone: gone}
}

func session(client string) int64 { return int64(client[0]) }

func held(id int64, client, path string, token int64, call, ret, end, freed int) Op {
	return Op{
		ID: id, Recipe: Mutex, Path: "/l", Client: client, Node: path, Token: token, Outcome: Granted, Clean: true,
		Call: time.Duration(call) * ms, Return: time.Duration(ret) * ms, End: time.Duration(end) * ms, Freed: time.Duration(freed) * ms,
	}
}

// handOff returns a correct history: a holds, b waits and holds after it, and c gives up in between.
func handOff() *History {
	a, b, c := node("a", 0), node("b", 1), node("c", 2)
	return &History{
		Meta: map[string]string{"seed": "1"},
		End:  1000 * ms,
		Txns: []Txn{
			created(10, 10, "a", a), created(11, 11, "b", b), created(12, 12, "c", c),
			deleted(13, 20, "c", c), deleted(14, 30, "a", a), deleted(15, 50, "b", b),
		},
		Ops: []Op{
			held(1, "a", a, 10, 9, 12, 29, 31),
			held(2, "b", b, 11, 10, 32, 49, 51),
			{ID: 3, Recipe: Mutex, Path: "/l", Client: "c", Outcome: Failed, Call: 11 * ms, Return: 21 * ms, Error: "context canceled"},
		},
	}
}

// as sets the recipe of every operation in h.
func as(r Recipe, h *History) *History {
	for i := range h.Ops {
		h.Ops[i].Recipe = r
	}
	return h
}

// readers returns a correct history: readers a and b share, writer c waits for both, and reader d waits for the writer.
func readers() *History {
	name := func(client, kind string, seq int) string {
		return fmt.Sprintf("/l/_c_%s-__%s__%010d", client, kind, seq)
	}
	a, b, c, d := name("a", "READ", 0), name("b", "READ", 1), name("c", "WRIT", 2), name("d", "READ", 3)
	h := as(RW, &History{
		End: 1000 * ms,
		Txns: []Txn{
			created(10, 10, "a", a), created(11, 11, "b", b), created(12, 12, "c", c), created(13, 13, "d", d),
			deleted(14, 30, "a", a), deleted(15, 35, "b", b), deleted(16, 50, "c", c), deleted(17, 70, "d", d),
		},
		Ops: []Op{
			held(1, "a", a, 10, 9, 14, 29, 31), held(2, "b", b, 11, 10, 15, 34, 36),
			held(3, "c", c, 12, 11, 37, 49, 51), held(4, "d", d, 13, 12, 52, 69, 71),
		},
	})
	for _, i := range []int{0, 1, 3} {
		h.Txns[i].Shared, h.Ops[i].Shared = true, true
	}
	return h
}

// downgrade returns a correct history: writer a becomes a reader, with a new node of the same number, while writer b and reader c
// wait.
func downgrade() *History {
	name := func(client, kind string, seq int) string {
		return fmt.Sprintf("/l/_c_%s-__%s__%010d", client, kind, seq)
	}
	w, r, b := name("a", "WRIT", 0), name("a", "READ", 0), name("b", "WRIT", 1)
	h := as(RW, &History{
		End: 1000 * ms,
		Txns: []Txn{
			created(10, 10, "a", w), created(11, 11, "b", b), created(12, 20, "a", r),
			deleted(13, 21, "a", w), deleted(14, 40, "a", r), deleted(15, 60, "b", b),
		},
		Ops: []Op{
			held(1, "a", w, 10, 9, 12, 20, 0), held(2, "a", r, 10, 20, 22, 39, 41), held(3, "b", b, 11, 10, 42, 59, 61),
		},
	})
	h.Txns[2].Shared, h.Ops[1].Shared, h.Ops[1].Outer, h.Ops[0].Clean = true, true, 1, false
	return h
}

// downgradeInPlace returns the same history with a writer's node that becomes a reader's. The reader behind it holds as well.
func downgradeInPlace() *History {
	w, r, b := "/l/_c_a-__WRIT__0000000000", "/l/_c_c-__READ__0000000001", "/l/_c_b-__WRIT__0000000002"
	h := as(RW, &History{
		End: 1000 * ms,
		Txns: []Txn{
			created(10, 10, "a", w), created(11, 11, "c", r), created(12, 12, "b", b),
			{Zxid: 13, Time: 20 * ms, Kind: Share, Path: w},
			deleted(14, 35, "c", r), deleted(15, 40, "a", w), deleted(16, 60, "b", b),
		},
		Ops: []Op{
			held(1, "a", w, 10, 9, 12, 19, 0), held(2, "a", w, 10, 19, 22, 39, 41),
			held(3, "c", r, 11, 11, 22, 34, 36), held(4, "b", b, 12, 12, 42, 59, 61),
		},
	})
	h.Ops[0].Clean, h.Ops[1].Outer = false, 1
	h.Txns[1].Shared, h.Ops[1].Shared, h.Ops[2].Shared = true, true, true
	h.Ops[1].Shares = 21 * ms
	return h
}

// permits returns a correct history: of three permits, a acquires two and b one, and c waits for two.
func permits() *History {
	a, b, c := node("a", 0), node("b", 1), node("c", 2)
	h := as(Semaphore, &History{
		End: 1000 * ms,
		Txns: []Txn{
			created(10, 10, "a", a), created(11, 11, "b", b), created(12, 12, "c", c),
			deleted(13, 30, "a", a), deleted(14, 50, "b", b), deleted(15, 60, "c", c),
		},
		Ops: []Op{held(1, "a", a, 10, 9, 12, 29, 31), held(2, "b", b, 11, 10, 13, 49, 51), held(3, "c", c, 12, 11, 32, 59, 61)},
	})
	for _, i := range []int{0, 2} {
		h.Txns[i].Weight, h.Ops[i].Weight = 2, 2
	}
	h.Ops = append(h.Ops, Op{ID: 4, Kind: Resize, Recipe: Semaphore, Path: "/l", Outcome: Granted, Weight: 3})
	return h
}

// nested returns a correct history: a enters twice, and b waits for both levels.
func nested() *History {
	h := as(Reentrant, handOff())
	inner := h.Ops[0]
	inner.ID, inner.Outer, inner.Call, inner.Return, inner.End, inner.Freed = 4, 1, 13*ms, 14*ms, 20*ms, 21*ms
	h.Ops = append(h.Ops, inner)
	return h
}

// campaign returns a correct history: a leads, then b leads, and o observes both.
func campaign() *History {
	h := as(Election, handOff())
	saw := func(id int64, at int, path string, token int64) Op {
		return Op{
			ID: id, Kind: Observe, Recipe: Election, Path: "/l", Client: "o", Outcome: Granted, Node: path, Token: token,
			Call: time.Duration(at-1) * ms, Return: time.Duration(at) * ms,
		}
	}
	h.Ops = append(h.Ops, saw(5, 15, node("a", 0), 10), saw(6, 33, node("b", 1), 11))
	return h
}

func TestCorrectHistoriesHaveNoViolation(t *testing.T) {
	for name, h := range map[string]*History{
		"empty": {}, "mutex": handOff(), "readers": readers(), "downgrade": downgrade(), "downgrade in place": downgradeInPlace(), "permits": permits(),
		"nested": nested(), "campaign": campaign(),
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, Check(h, bounds)) })
	}
}

// Each case breaks a correct history in one way, and exactly the given rules must report it.
func TestEachRuleCatchesItsViolation(t *testing.T) {
	for _, c := range []struct {
		name string
		base func() *History
		hurt func(h *History)
		rule string
	}{
		{"granted a node that was never made", handOff, func(h *History) { h.Ops[1].Node = node("x", 9) }, "P1"},
		{"granted a node of a dead session", handOff, func(h *History) {
			h.Txns[5] = ended(15, 31, "b", node("b", 1))
			h.Ops[1].End, h.Ops[1].Freed = 32*ms, 33*ms
		}, "P1 P2"},
		{"both claim while both nodes are there", handOff, func(h *History) {
			// The first hold has ended, but its node exists: the server has two owners. (b's grant is also early.)
			h.Ops[0].End = 13 * ms
			h.Ops[1].Return = 25 * ms
		}, "P1 P4"},
		{"relied on after the session had expired", handOff, func(h *History) {
			h.Txns[4] = ended(14, 30, "a", node("a", 0))
			h.Ops[0].End, h.Ops[0].Freed = 31*ms, 31*ms
		}, "P2"},
		{"relied on for long after a third party's delete", handOff, func(h *History) {
			h.Txns[4] = deleted(14, 20, "z", node("a", 0))
			h.Ops[0].End, h.Ops[0].Freed = 41*ms, 42*ms
			h.Ops[1].Return = 42 * ms
		}, "P2"},
		{"lost without a fault", handOff, func(h *History) {
			h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Lost, h.Ops[1].Clean, h.Ops[1].Freed = 32*ms, 349*ms, true, false, 351*ms
			h.Txns[5].Time = 350 * ms
		}, "P2"},
		{"two holders, without any log", handOff, func(h *History) {
			h.Txns = nil
			h.Ops[1].Return = 25 * ms
		}, "P2"},
		{"a token that shrinks", handOff, func(h *History) { h.Ops[1].Token = 9 }, "P3"},
		{"a token twice", handOff, func(h *History) { h.Ops[1].Token = 10 }, "P3"},
		{"a token that shrinks, without any log", handOff, func(h *History) { h.Txns, h.Ops[1].Token = nil, 9 }, "P3"},
		{"overtaken", handOff, func(h *History) {
			// c, behind b, is granted first.
			h.Ops[2] = held(3, "c", node("c", 2), 12, 11, 31, 35, 36)
			h.Txns[3], h.Txns[4] = deleted(13, 30, "a", node("a", 0)), deleted(14, 36, "c", node("c", 2))
			h.Ops[1].Return = 38 * ms
			h.Ops[1].Token = 13
		}, "P3 P4"},
		{"overtaken, with tokens that look right", handOff, func(h *History) {
			// b still waits for its turn when it is granted: a, which gave up, is first. No claim overlaps.
			h.Ops[0] = Op{ID: 1, Recipe: Mutex, Path: "/l", Client: "a", Outcome: Failed, Call: 9 * ms, Return: 31 * ms}
			h.Ops[1].Return = 25 * ms
		}, "P4"},
		{"a ghost in the queue", handOff, func(h *History) {
			h.Txns = append(h.Txns, created(20, 300, "c", node("c", 3)), deleted(21, 420, "c", node("c", 3)))
		}, "P5 P7"},
		{"a ghost behind a holder", handOff, func(h *History) {
			h.Ops[1].End, h.Ops[1].Freed, h.Txns[5].Time = 600*ms, 602*ms, 601*ms
			h.Txns[5], h.Txns[3] = deleted(15, 500, "c", node("c", 2)), deleted(13, 30, "a", node("a", 0))
			h.Txns[4] = deleted(14, 31, "a", node("a", 0))
			h.Txns = append(h.Txns, deleted(16, 601, "b", node("b", 1)))
		}, "P5"},
		{"released, but still there", handOff, func(h *History) { h.Ops[0].Freed = 29 * ms }, "P5"},
		{"a turn that nobody takes", handOff, func(h *History) {
			h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Freed = 200*ms, 300*ms, 301*ms
			h.Txns[5].Time = 300 * ms
		}, "P7"},
		{"a waiter without a place", handOff, func(h *History) {
			h.Ops = append(h.Ops, Op{ID: 9, Recipe: Mutex, Path: "/l", Client: "d", Call: 500 * ms})
		}, "P7"},
		{"a writer together with a reader", readers, func(h *History) { h.Ops[2].Return = 32 * ms }, "P1 P2 P4"},
		{"a reader before the writer ahead of it", readers, func(h *History) {
			h.Ops[3].Return, h.Ops[3].End, h.Ops[3].Freed, h.Txns[7].Time = 25*ms, 27*ms, 28*ms, 27*ms
			h.Txns[4], h.Txns[5], h.Txns[6], h.Txns[7] = h.Txns[7], h.Txns[4], h.Txns[5], h.Txns[6]
		}, "P3 P4"},
		{"a downgrade that leaves its place", downgrade, func(h *History) {
			h.Txns[2].Path, h.Ops[1].Node = "/l/_c_a-__READ__0000000002", "/l/_c_a-__READ__0000000002"
			h.Txns[4].Path = h.Ops[1].Node
			h.Ops[2].Return, h.Ops[2].End, h.Ops[2].Freed = 25*ms, 38*ms, 61*ms
		}, "P1 P2"},
		{"a writer together with one that became a reader in place", downgradeInPlace, func(h *History) { h.Ops[3].Return = 38 * ms }, "P1 P2 P4"},
		{"a reader before the writer became one", downgradeInPlace, func(h *History) { h.Ops[2].Return = 18 * ms }, "P1 P2 P4"},
		{"one that is said to be a reader, and is not", downgradeInPlace, func(h *History) { h.Ops[1].Shares = 19 * ms }, "rw"},
		{"one that is said to be a reader, and never is", downgradeInPlace, func(h *History) {
			h.Txns[3].Path, h.Ops[2] = "/l/x", Op{ID: 3, Recipe: RW, Path: "/l", Client: "c", Shared: true, Outcome: Failed, Call: 11 * ms, Return: 36 * ms}
		}, "rw"},
		{"more permits than there are", permits, func(h *History) { h.Ops[2].Return = 20 * ms }, "P1 P2 P4"},
		{"permits given past one who waits for more", permits, func(h *History) {
			// d wants one permit, which is free, but c is ahead of it.
			d := node("d", 3)
			h.Txns[1].Weight, h.Ops[1].Weight = 0, 0
			h.Ops[1].End, h.Ops[1].Freed, h.Txns[4].Time = 14*ms, 16*ms, 15*ms
			h.Txns = []Txn{h.Txns[0], h.Txns[1], h.Txns[2], h.Txns[4], created(16, 16, "d", d), deleted(17, 20, "d", d), h.Txns[3], h.Txns[5]}
			h.Ops = append(h.Ops, as(Semaphore, &History{Ops: []Op{held(7, "d", d, 16, 16, 18, 19, 21)}}).Ops...)
		}, "P4"},
		{"a permit that was taken away by a resize", permits, func(h *History) {
			h.Ops = append(h.Ops, Op{ID: 5, Kind: Resize, Recipe: Semaphore, Path: "/l", Outcome: Granted, Weight: 1, Call: 5 * ms, Return: 6 * ms})
			h.Ops[0].Weight, h.Txns[0].Weight = 1, 1
			h.Ops[2].Weight, h.Txns[2].Weight = 1, 1
			h.Ops[1].Return = 31 * ms // its turn, by the new limit
			h.Ops[2].Return = 40 * ms // not its turn
		}, "P1 P2 P4"},
		{"an inner level with a token of its own", nested, func(h *History) { h.Ops[3].Token = 12 }, "reentrant"},
		{"an inner level with a node of its own", nested, func(h *History) { h.Ops[3].Node = node("b", 1) }, "P1 reentrant"},
		{"entered again after the end", nested, func(h *History) {
			h.Ops[3].Call, h.Ops[3].Return, h.Ops[3].End, h.Ops[3].Freed = 29*ms+1, 29*ms+2, 29*ms+3, 30*ms
		}, "reentrant"},
		{"a leader seen before it was one", campaign, func(h *History) { h.Ops[len(h.Ops)-1].Return = 25 * ms }, "election"},
		{"an observer that goes back", campaign, func(h *History) {
			h.Ops = append(h.Ops, Op{ID: 8, Kind: Observe, Recipe: Election, Path: "/l", Client: "o", Outcome: Granted, Token: 10, Call: 34 * ms, Return: 35 * ms})
		}, "election"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.base()
			require.Empty(t, Check(h, bounds), "the base must be correct")
			c.hurt(h)
			slices.SortStableFunc(h.Txns, func(x, y Txn) int { return int(x.Time - y.Time) })
			require.Equal(t, c.rule, rules(Check(h, bounds)), "%v", Check(h, bounds))
		})
	}
}

// rules returns the names of the broken rules, without duplicates, in order.
func rules(vs []Violation) string {
	var names []string
	for _, v := range vs {
		names = append(names, v.Rule)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

func TestNoProgressIsRequiredUnderFaults(t *testing.T) {
	h := handOff()
	h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Freed = 300*ms, 400*ms, 401*ms
	h.Txns[5].Time = 400 * ms
	require.Equal(t, "P7", rules(Check(h, bounds)))
	h.Faults = []Window{{From: 40 * ms, To: 120 * ms}, {From: 100 * ms, To: 210 * ms}}
	require.Empty(t, Check(h, bounds))
	h.Faults[1].To = 190 * ms
	require.Equal(t, "P7", rules(Check(h, bounds)), "110 ms of calm are left")
}

// If there was no fault for long, the shorter limit Prompt applies.
func TestALongHealthyClientMustBePrompt(t *testing.T) {
	prompt := bounds
	prompt.Prompt = 15 * ms
	late := func(by time.Duration) *History { // b has its turn at 30 ms
		h := handOff()
		h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Freed = 30*ms+by, 80*ms, 81*ms
		h.Txns[5].Time = 80 * ms
		return h
	}
	require.Empty(t, Check(late(15*ms), prompt))
	require.Equal(t, "P7", rules(Check(late(16*ms), prompt)))
	require.Empty(t, Check(late(16*ms), bounds))

	h := late(40 * ms)
	h.Faults = []Window{{From: 0, To: 1 * ms}}
	require.Empty(t, Check(h, prompt), "a fault ended recently")
	h.Faults = []Window{{From: 50 * ms, To: 51 * ms}}
	require.Equal(t, "P7", rules(Check(h, prompt)), "it was late before the fault")
	h.Faults = []Window{{From: 40 * ms, To: 41 * ms}}
	require.Empty(t, Check(h, prompt))
	prompt.Wake = 5 * ms
	require.Equal(t, "P7", rules(Check(h, prompt)), "long enough after that")
}

func TestThirdPartyMayDeleteANodeWithinTheGrace(t *testing.T) {
	h := handOff()
	h.Txns[4] = deleted(14, 25, "z", node("a", 0))
	h.Ops[0].End, h.Ops[0].Freed, h.Ops[0].Clean = 31*ms, 33*ms, false
	h.Ops[1].Return = 29 * ms
	require.Empty(t, Check(h, bounds))
	require.Equal(t, "P2", rules(Check(h, Limits{Wake: 100 * ms})))

	strict := bounds
	strict.Notice = 5 * ms
	require.Equal(t, "P2", rules(Check(h, strict)), "without a fault, it takes no longer than an event")
	h.Faults = []Window{{From: 24 * ms, To: 28 * ms}}
	require.Empty(t, Check(h, strict))
	h.Faults = []Window{{From: 24 * ms, To: 26*ms - 1}}
	require.Equal(t, "P2", rules(Check(h, strict)), "long after the fault")
	strict.Redial = 1 * ms
	require.Empty(t, Check(h, strict))
	h.Faults = nil

	h.Txns[4] = ended(14, 25, "a", node("a", 0))
	require.Equal(t, "P2", rules(Check(h, bounds)), "a timeout is no third party")
	h.Txns[4].Forced = true
	require.Empty(t, Check(h, bounds))
}

func TestWaiterMayLearnLateThatAThirdPartyDeletedItsNode(t *testing.T) {
	h := handOff()
	h.Ops[0].End, h.Ops[0].Freed = 299*ms, 301*ms
	h.Txns = []Txn{
		h.Txns[0], h.Txns[1], h.Txns[2], h.Txns[3], deleted(14, 40, "z", node("b", 1)), deleted(15, 300, "a", node("a", 0)),
		created(16, 310, "b", node("b", 3)), deleted(17, 330, "b", node("b", 3)),
	}
	h.Ops[1] = held(2, "b", node("b", 3), 16, 10, 320, 329, 331)
	require.Empty(t, Check(h, bounds))
	h.Txns[4] = deleted(14, 40, "b", node("b", 1))
	require.Equal(t, "P7", rules(Check(h, bounds)), "a client knows of its own delete")
}

// A process ended during an acquire. Only the log shows that its node was in the queue until its session ended.
func TestUnknownOutcomeIsResolvedFromTheLog(t *testing.T) {
	h := handOff()
	h.Txns = append(h.Txns, created(30, 200, "e", node("e", 3)), created(31, 201, "f", node("f", 4)),
		ended(32, 500, "e", node("e", 3)), deleted(33, 510, "f", node("f", 4)))
	h.Ops = append(h.Ops,
		Op{ID: 4, Recipe: Mutex, Path: "/l", Client: "e", Outcome: Unknown, Call: 199 * ms, Return: 203 * ms},
		held(5, "f", node("f", 4), 31, 200, 502, 509, 511))
	h.Faults = []Window{{From: 200 * ms, To: 500 * ms, Kind: "crash"}}
	require.Empty(t, Check(h, bounds))
	h.Ops[4].Return = 499 * ms
	require.Equal(t, "P4", rules(Check(h, bounds)), "the ghost of the dead process is still first")
}

func TestContendedCountsOnlyCallsThatWaited(t *testing.T) {
	require.Equal(t, 1, Contended(handOff(), 0, time.Second))
	require.Equal(t, 0, Contended(handOff(), 0, 32*ms))
	require.Equal(t, 2, Contended(readers(), 0, time.Second))
}

func TestFileKeepsTheHistory(t *testing.T) {
	h := permits()
	h.Faults = []Window{{From: 1, To: 2, Kind: "cut"}}
	h.Meta = map[string]string{"seed": "7"}
	name := filepath.Join(t.TempDir(), "h.jsonl")
	require.NoError(t, h.SaveFile(name))
	back, err := LoadFile(name)
	require.NoError(t, err)
	require.Equal(t, h, back)

	text, err := os.ReadFile(name)
	require.NoError(t, err)
	_, err = Load(bytes.NewReader(text[:len(text)-5]))
	require.Error(t, err, "a truncated file must not be read as a shorter history")
	_, err = Load(strings.NewReader(`{"op":{"id":1}}`))
	require.ErrorContains(t, err, "not a history")
}

func TestRecorderKeepsItsInput(t *testing.T) {
	r := NewRecorder()
	r.Meta("seed", "3")
	hold := r.Begin(Op{Recipe: Mutex, Path: "/l", Client: "a"})
	hold.Granted("/l/n", 5)
	hold.Downgraded()
	hold.Lost()
	hold.Ended()
	hold.Freed(errors.New("slow"))
	failed := r.Begin(Op{Recipe: Mutex, Path: "/l", Client: "b"})
	failed.Finished(Refused, errors.New("taken"))
	gone := r.Begin(Op{Recipe: Mutex, Path: "/l", Client: "c"})
	gone.Vanished()
	gone.Granted("/l/n", 7) // ignored
	r.Begin(Op{Kind: Observe, Recipe: Election, Path: "/e", Client: "o"}).Seen("/e/n", 5, "v")
	r.Txn(Txn{Zxid: 1, Kind: Ended})
	r.Fault(Window{From: 1, To: 2})
	h := r.History()
	require.Len(t, h.Ops, 4)
	require.Equal(t, Granted, h.Ops[0].Outcome)
	require.Equal(t, "slow", h.Ops[0].Error)
	require.False(t, h.Ops[0].Clean)
	require.True(t, h.Ops[0].Lost)
	require.Equal(t, Refused, h.Ops[1].Outcome)
	require.Equal(t, Unknown, h.Ops[2].Outcome)
	require.Equal(t, int64(5), h.Ops[3].Token)
	require.Len(t, h.Txns, 1)
	require.Len(t, h.Faults, 1)
	require.Equal(t, "3", h.Meta["seed"])
}

// long returns a correct history of n hand-offs with a queue of eight.
func long(n int) *History {
	h := &History{End: time.Duration(n+10) * ms}
	for i := range n {
		client := fmt.Sprintf("c%d", i%8)
		path := fmt.Sprintf("/l/_c_%032x-lock-%010d", i, i)
		call := time.Duration(max(0, i-7)) * ms
		grant := time.Duration(i) * ms
		h.Txns = append(h.Txns,
			Txn{Zxid: int64(2*i + 1), Time: call + 10, Kind: Create, Session: int64(i % 8), Client: client, Path: path, Lock: "/l"},
			Txn{Zxid: int64(2*i + 1), Time: grant + ms - 20, Kind: Delete, Session: int64(i % 8), Client: client, Path: path})
		h.Ops = append(h.Ops, Op{
			ID: int64(i + 1), Recipe: Mutex, Path: "/l", Client: client, Node: path, Token: int64(2*i + 1), Outcome: Granted, Clean: true,
			Call: call, Return: grant + 20, End: grant + ms - 30, Freed: grant + ms - 10,
		})
	}
	slices.SortStableFunc(h.Txns, func(x, y Txn) int { return int(x.Time - y.Time) })
	return h
}

func TestLongHistoryIsCorrect(t *testing.T) {
	require.Empty(t, Check(long(20_000), bounds))
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		h := long(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if vs := Check(h, bounds); len(vs) > 0 {
					b.Fatal(vs[0])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/hold")
		})
	}
}

// restored returns a correct history: a holds, the servers are restored to an earlier state, and b holds with a smaller token.
func restored() *History {
	a, b := node("a", 5), node("b", 3)
	lost := held(1, "a", a, 20, 9, 12, 39, 0)
	lost.Clean = false
	return &History{
		End: 1000 * ms,
		Txns: []Txn{
			created(20, 10, "a", a), {Zxid: 9, Time: 40 * ms, Kind: Restored},
			created(10, 50, "b", b), deleted(11, 70, "b", b),
		},
		Ops: []Op{lost, held(2, "b", b, 10, 49, 52, 69, 71)},
	}
}

func TestSequenceNumbersMayStartAgainAfterARestore(t *testing.T) {
	require.Empty(t, Check(restored(), bounds))

	longer := restored()
	longer.Ops[0].End = 45 * ms
	found := Check(longer, bounds)
	require.NotEmpty(t, found)
	require.Equal(t, "P2", found[0].Rule)
	require.Contains(t, found[0].Text, "restored")

	smaller, c := restored(), node("c", 4)
	smaller.Txns = append(smaller.Txns, created(12, 80, "c", c), deleted(13, 95, "c", c))
	smaller.Ops = append(smaller.Ops, held(3, "c", c, 9, 79, 82, 94, 96))
	found = Check(smaller, bounds)
	require.Len(t, found, 2)
	require.Equal(t, "P3", found[0].Rule)
	require.Contains(t, found[0].Text, "token 9 after token 10")
}

// With a lock-delay, only a released hold can be followed by a grant at once.
//
//zklock:promise P11.9 A1
func TestAGrantWithinTheLockDelayIsReported(t *testing.T) {
	delayed := bounds
	delayed.Delay = 5 * ms
	require.Empty(t, Check(handOff(), delayed))
	for name, hurt := range map[string]func(h *History){
		"its holder crashed":     func(h *History) { h.Txns[4] = ended(14, 30, "a", node("a", 0)) },
		"its holder was evicted": func(h *History) { h.Txns[4] = deleted(14, 30, "z", node("a", 0)) },
		"it was lost":            func(h *History) { h.Ops[0].Lost = true },
	} {
		h := handOff()
		hurt(h)
		h.Ops[0].Clean = false
		require.Equal(t, "delay", rules(Check(h, delayed)), name)
		h.Ops[1].Return = 35 * ms
		require.Empty(t, Check(h, delayed), name)
	}
}

// While a goroutine of a cohort waits, a node of its process is in the queue.
func TestAGoroutineOfACohortThatWaitsWithoutAPlaceIsReported(t *testing.T) {
	first, second := node("a", 0), node("a", 1)
	story := func() *History {
		h := &History{
			Txns: []Txn{created(10, 10, "a", first), deleted(11, 500, "a", first), created(12, 501, "a", second), deleted(13, 520, "a", second)},
			Ops:  []Op{held(1, "a", first, 10, 9, 11, 499, 501), held(2, "a", second, 12, 50, 502, 519, 521)},
			End:  600 * ms,
		}
		for i := range h.Ops {
			h.Ops[i].Cohort = true
		}
		return h
	}
	require.Empty(t, Check(story(), bounds), "behind the goroutine that holds")

	gap := story()
	gap.Ops[0].End, gap.Ops[0].Freed, gap.Txns[1].Time = 99*ms, 101*ms, 100*ms
	require.Equal(t, "P7", rules(Check(gap, bounds)), "behind nobody")
}

// TestNodesOfOneTransactionEndTogether creates two nodes in one transaction, not in the order of their names. A smaller
// number of permits takes their turn away, and then the second of them leaves.
func TestNodesOfOneTransactionEndTogether(t *testing.T) {
	a, z, y, d := node("a", 0), node("z", 1), node("y", 2), node("d", 3)
	h := as(Semaphore, &History{
		End: 1000 * ms,
		Txns: []Txn{
			created(10, 10, "a", a), created(11, 11, "z", z), created(11, 11, "y", y), created(12, 15, "d", d),
			deleted(13, 20, "y", y), deleted(14, 30, "a", a), deleted(15, 50, "z", z), deleted(16, 70, "d", d),
		},
		Ops: []Op{held(1, "a", a, 10, 9, 12, 29, 31), held(2, "z", z, 11, 10, 32, 49, 51), held(3, "d", d, 12, 14, 52, 69, 71)},
	})
	for i, n := range []int{3, 1} {
		at := time.Duration(i) * 13 * ms
		h.Ops = append(h.Ops, Op{ID: int64(4 + i), Kind: Resize, Recipe: Semaphore, Path: "/l", Outcome: Granted, Weight: n, Call: at, Return: at})
	}
	require.Empty(t, Check(h, bounds))
}
