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

	for i := range maxPeriods - 1 {
		m = m.with(slotKey{cut: calendar{time.Duration(i+2) * time.Minute, time.UTC}, name: "x"}, mark{Slot: "x"}, "999")
	}
	require.Len(t, m.Periods, maxPeriods)
	_, err = m.find(slotKey{cut: calendar{time.Hour, time.UTC}, name: "x"}, "999")
	require.ErrorIs(t, err, ErrFull, "no period is forgotten for another one")
	_, err = m.find(slotKey{name: "x"}, "")
	require.ErrorIs(t, err, ErrFull)
}

// No name is forgotten for another one: the first version did so after 128.
//
//zklock:promise P10.8
func TestANameThatHasNoRoomIsRefused(t *testing.T) {
	named := func(m marks, name string) marks { return m.with(slotKey{name: name}, mark{Slot: name}, "") }
	var m marks
	for i := range maxNamed {
		_, err := m.find(slotKey{name: fmt.Sprint("migration-", i)}, "")
		require.NoError(t, err)
		m = named(m, fmt.Sprint("migration-", i))
	}
	for i := range maxNamed {
		_, err := m.find(slotKey{name: fmt.Sprint("migration-", i)}, "")
		require.ErrorIs(t, err, ErrDone)
	}
	for _, name := range []string{fmt.Sprint("migration-", maxNamed), "2026-11-22"} {
		_, err := m.find(slotKey{name: name}, "")
		require.ErrorIs(t, err, ErrFull)
		require.ErrorContains(t, err, "record of slots is full: it has marks of 1000 names")
	}
	few := named(marks{}, "x")
	few.size = maxSize + 1
	_, err := few.find(slotKey{name: "y"}, "")
	require.ErrorIs(t, err, ErrFull, "there is no room in the node")
	_, err = few.find(slotKey{name: "x"}, "")
	require.ErrorIs(t, err, ErrDone)
}

// Names with a date or a long number tell which of them is older.
//
//zklock:promise P10.4 P10.8
func TestTheLastNamesOfASeriesAreKept(t *testing.T) {
	begin := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for what, name := range map[string]func(i int) string{
		"a date": func(i int) string { return begin.AddDate(0, 0, i).Format(time.DateOnly) },
		"a date and a time": func(i int) string {
			return "report " + begin.Add(time.Duration(i)*time.Hour).Format("2006-01-02T15:04")
		},
		"a job": func(i int) string { return fmt.Sprint("report-", 29384790+5*i) },
	} {
		var m marks
		for i := range 3 * maxSeries {
			s := slotKey{name: name(i)}
			_, err := m.find(s, "")
			require.NoError(t, err, what)
			m = m.with(s, mark{Slot: s.name}, "")
		}
		for i := range 3 * maxSeries {
			_, err := m.find(slotKey{name: name(i)}, "")
			if i < 2*maxSeries {
				require.ErrorIs(t, err, ErrForgotten, "%s: %s", what, name(i))
			} else {
				require.ErrorIs(t, err, ErrDone, "%s: %s", what, name(i))
			}
		}
		_, err := m.find(slotKey{name: "migration-7"}, "")
		require.NoError(t, err)
	}
	for _, name := range []string{"", "x", "migration-7", "2026-11", "22.11.2026", "v1.2.3", "1234567", "2026-11-22-final"} {
		require.Empty(t, seriesOf(name), name)
	}
	require.NotEqual(t, seriesOf("a-99999999"), seriesOf("a-100000000"), "they do not sort by their texts")
}

//zklock:promise P10.8
func TestOldMarksMakeRoom(t *testing.T) {
	at := func(minute int) int64 { return time.Unix(0, 0).Add(time.Duration(minute) * time.Minute).UnixMilli() }
	m := marks{Periods: []period{
		{"1m0s", []mark{{Slot: "old", At: at(1)}}},
		{"2m0s", []mark{{Slot: "old", At: at(1)}, {Slot: "new", At: at(5)}}},
		{"", []mark{{Slot: "a"}, {Slot: "b", At: at(5)}, {Slot: "c", At: at(4)}, {Slot: "d", At: at(6)}}},
	}}
	kept, old := m.since(time.UnixMilli(at(5)))
	require.Equal(t, []period{m.Periods[1], {"", []mark{{Slot: "b", At: at(5)}, {Slot: "d", At: at(6)}}}}, kept.Periods)
	require.Equal(t, []Mark{{Period: "1m0s", Slot: "old", At: time.UnixMilli(at(1))}, {Slot: "a"}, {Slot: "c", At: time.UnixMilli(at(4))}}, old)
	kept, old = m.since(time.Time{})
	require.Equal(t, m, kept)
	require.Empty(t, old)
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
