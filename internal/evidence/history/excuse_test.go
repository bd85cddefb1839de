package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A fault that hits one client is no reason for another to be late.
func TestAFaultExcusesThoseThatItHits(t *testing.T) {
	late := func(faults ...Window) string { // b, whose turn comes at 30 ms, takes it at 300 ms
		h := handOff()
		h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Freed = 300*ms, 400*ms, 401*ms
		h.Txns[5].Time = 400 * ms
		h.Faults = faults
		return rules(Check(h, bounds))
	}
	require.Empty(t, late(Window{From: 40 * ms, To: 290 * ms}))
	require.Empty(t, late(Window{From: 40 * ms, To: 290 * ms, Clients: []string{"a", "b"}}))
	require.Equal(t, "P7", late(Window{From: 40 * ms, To: 290 * ms, Clients: []string{"a"}}))
	require.Empty(t, late(Window{From: 40 * ms, To: 290 * ms, Clients: []string{"a"}, First: 210 * ms}), "until then it hits all")
	require.Equal(t, "P7", late(Window{From: 40 * ms, To: 290 * ms, Clients: []string{"a"}, First: 190 * ms}))
	require.Empty(t, late(
		Window{From: 40 * ms, To: 200 * ms, Clients: []string{"b"}}, Window{From: 50 * ms, To: 60 * ms, Clients: []string{"a"}}))
}

func TestAFaultOfAnotherExcusesNoLoss(t *testing.T) {
	h := handOff()
	h.Ops[1].Return, h.Ops[1].End, h.Ops[1].Lost, h.Ops[1].Clean, h.Ops[1].Freed = 32*ms, 349*ms, true, false, 351*ms
	h.Txns[5].Time = 350 * ms
	h.Faults = []Window{{From: 300 * ms, To: 349 * ms, Clients: []string{"b"}}}
	require.Empty(t, Check(h, bounds))
	h.Faults[0].Clients[0] = "a"
	require.Equal(t, "P2", rules(Check(h, bounds)))
}
