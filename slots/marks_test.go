// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
)

//zklock:promise P10.2
func TestAMarkIsPrintedWithItsTimeAndAuthor(t *testing.T) {
	at := time.Date(2026, 11, 22, 3, 4, 5, 0, time.Local)
	when := " at " + at.Format("2006-01-02 15:04:05 -0700")
	require.Empty(t, mark{}.String())
	require.Equal(t, when, mark{At: at.UnixMilli()}.String())
	require.Equal(t, " by web-1", mark{Who: "web-1"}.String())
	require.Equal(t, when+" by web-1", mark{At: at.UnixMilli(), Who: "web-1"}.String())
}

//zklock:promise P10.3
func TestSlotsLongerThanAnHourFollowTheCalendar(t *testing.T) {
	place := time.FixedZone("", 90*60)
	at := time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
	require.Equal(t, "2026-11-22T03:00:00.000000000Z", calendar{time.Hour, place}.slotOf(at))
	require.Equal(t, "2026-11-22T04:00:00", calendar{2 * time.Hour, place}.slotOf(at))
}

// When clocks are put back, an hour of local time comes twice. A slot that came again would be done already, or too old.
//
//zklock:promise P10.4
func TestNoSlotComesAgainWhenClocksArePutBack(t *testing.T) {
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "America/Havana", "America/Santiago"} {
		place, err := time.LoadLocation(name)
		require.NoError(t, err)
		for _, period := range []time.Duration{61 * time.Minute, 90 * time.Minute, 100 * time.Minute, 2 * time.Hour, 5 * time.Hour, 24 * time.Hour, 36 * time.Hour} {
			last := ""
			for _, changed := time.Date(2026, 1, 1, 0, 0, 0, 0, place).ZoneBounds(); changed.Year() == 2026; _, changed = changed.ZoneBounds() {
				for at := changed.Add(-3 * time.Hour); at.Before(changed.Add(3 * time.Hour)); at = at.Add(time.Minute) {
					slot := calendar{period, place}.slotOf(at)
					require.LessOrEqual(t, last, slot, "%s, %v at %v", name, period, at)
					last = slot
				}
			}
			require.NotEmpty(t, last)
		}
	}
}

//zklock:promise P10.2
func TestAMarkStoresTheBeginningOfALongLabel(t *testing.T) {
	who := func(o node.Owner) string {
		o.PID = 7
		return markOf(slotKey{}, 1, o.Encode(), time.Now()).Who
	}
	require.Equal(t, "web", who(node.Owner{Label: "web"}))
	require.Equal(t, "web here:7", who(node.Owner{Label: "web", Host: "here"}))
	require.Equal(t, "here:7", who(node.Owner{Host: "here"}))
	require.Equal(t, strings.Repeat("x", maxWho), who(node.Owner{Label: strings.Repeat("x", maxWho+1)}))
	require.Equal(t, strings.Repeat("x", maxWho-1), who(node.Owner{Label: strings.Repeat("x", maxWho-1) + "\u00e9"}), "not half a letter")
	require.Empty(t, markOf(slotKey{}, 1, nil, time.Now()).Who)
}

//zklock:promise P10.8
func TestMarksAreKeptWithinTheirBounds(t *testing.T) {
	minutes := calendar{time.Minute, time.UTC}
	at := func(i int) slotKey { return slotKey{cut: minutes, name: fmt.Sprintf("%03d", i)} }
	var m marks
	for i := range maxTimed - 1 {
		m = m.with(at(i), mark{Slot: at(i).name}, "999")
	}
	_, err := m.find(slotKey{cut: minutes}, "999")
	require.NoError(t, err, "fewer marks than are kept: none is forgotten")
	m = m.with(at(99), mark{Slot: "099"}, "999")
	_, err = m.find(slotKey{cut: minutes}, "999")
	require.ErrorIs(t, err, ErrForgotten)
	_, err = m.find(slotKey{cut: minutes}, "098")
	require.NoError(t, err, "a mark from ahead of the leader's clock pushes none out")
	_, err = m.find(slotKey{cut: minutes, name: "0000"}, "999")
	require.NoError(t, err, "after the oldest")

	for i := range 2 * maxTimed {
		m = m.with(at(100+i), mark{Slot: at(100 + i).name}, "099")
	}
	require.Len(t, m.Periods[0].Done, 2*maxTimed, "as many that are ahead")
	require.Equal(t, "000", m.Periods[0].Done[0].Slot)
	require.Equal(t, at(100+maxTimed).name, m.Periods[0].Done[maxTimed].Slot)

	for i := range maxNamed + 1 {
		m = m.with(slotKey{name: fmt.Sprint(i)}, mark{Slot: fmt.Sprint(i)}, "")
	}
	require.Len(t, m.Periods, 2)
	require.Len(t, m.Periods[1].Done, maxNamed)
	require.Equal(t, "1", m.Periods[1].Done[0].Slot)

	for i := range maxPeriods {
		m = m.with(slotKey{cut: calendar{time.Duration(i+2) * time.Minute, time.UTC}, name: "x"}, mark{Slot: "x"}, "999")
	}
	require.Len(t, m.Periods, maxPeriods)
	require.Equal(t, "2m0s", m.Periods[0].Every, "the two that were written before")
}

//zklock:promise P10.8
func TestMarksOfDueTimesAreKeptWithinTheirBound(t *testing.T) {
	at := func(i int) slotKey { return slotKey{due: true, name: fmt.Sprintf("%03d", i)} }
	var m marks
	for i := range maxDue + 5 {
		m = m.with(at(i+1), mark{Slot: at(i + 1).name}, "999")
	}
	require.Equal(t, "due", m.Periods[0].Every)
	require.Len(t, m.Periods[0].Done, maxDue)
	_, err := m.find(at(0), "999")
	require.ErrorIs(t, err, ErrForgotten)
	_, err = m.find(at(maxDue+5), "999")
	require.ErrorIs(t, err, ErrDone)
	_, err = m.find(at(maxDue+6), "999")
	require.NoError(t, err)
}
