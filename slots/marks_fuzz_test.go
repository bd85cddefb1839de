// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/session"
)

// FuzzMarks reads what anybody may have written into the node of marks, and marks a slot
// in it: the slot is never open from then on, and what is stored stays within its bounds.
//
//zklock:promise P10.8
func FuzzMarks(f *testing.F) {
	for _, data := range []string{
		"", "null", "[]", "{}", `{"periods":null}`, `{"periods":[{"done":[{"slot":"x","by":1}]}]}`, `{"periods":[{"every":"5m0s","done":null},{"every":"5m0s","done":[]}]}`,
		`{"periods":[{"every":"5m0s","done":[` + strings.Repeat(`{"slot":"9"},`, 40) + `{"slot":"1"}]}]}`, `{"periods":[` + strings.Repeat(`{"every":"x"},`, 99) + `{}]}`, "zklock: last held by x",
	} {
		f.Add([]byte(data), "x", int64(5*time.Minute), int64(7))
		f.Add([]byte(data), "", int64(0), int64(-1))
	}
	c := new(zklock.Client)
	f.Fuzz(func(t *testing.T, data []byte, name string, every, token int64) {
		slot := Named(c, "/l", name)
		if name == "" {
			slot = At(c, "/l", time.Unix(token%1e10, 0), time.Duration(every))
		}
		if every == 0 {
			slot = Due(c, "/l", time.Unix(token%1e10, 0))
		}
		if slot.err != nil {
			return
		}
		m, err := slot.parse(session.Node{Data: data, Stat: &zk.Stat{}})
		if err != nil {
			require.ErrorIs(t, err, zklock.ErrMismatch)
			return
		}
		if _, err := m.find(slot.slotKey, slot.name); err != nil {
			return
		}
		own, before, had := mark{Slot: slot.name, By: token}, len(m.Periods), len(m.list())
		m = m.with(slot.slotKey, own, slot.name)
		found, outcome := m.find(slot.slotKey, slot.name)
		if !errors.Is(outcome, ErrForgotten) || !slot.isTimed() {
			require.ErrorIs(t, outcome, ErrDone)
			require.Equal(t, own, found)
		}
		require.LessOrEqual(t, len(m.Periods), max(maxPeriods, before))
		last := m.Periods[len(m.Periods)-1]
		require.LessOrEqual(t, len(last.Done), max(maxNamed, 2*maxTimed, 2*maxDue, had))
		again, err := slot.parse(session.Node{Data: m.encode(), Stat: &zk.Stat{}})
		require.NoError(t, err)
		same, err := again.find(slot.slotKey, slot.name)
		require.True(t, errors.Is(err, outcome) && same == found, "it is another when it is read again")
	})
}
