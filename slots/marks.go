package slots

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// The bounds of what the node of marks stores.
const (
	maxSlotName = 128 // bytes
	maxPeriods  = 32
	maxNamed    = 128
	maxTimed    = 16
)

// A calendar cuts time into slots. Up to an hour they are pieces of time as it passes, the same
// everywhere. Longer ones begin by the clocks of a place, at midnight there, and so are an hour
// shorter or longer when those clocks change.
type calendar struct {
	period time.Duration
	place  *time.Location
}

// Texts of a fixed width, which sort as their times do.
const (
	slotTime = "2006-01-02T15:04:05.000000000Z"
	wallTime = "2006-01-02T15:04:05"
)

// slotOf returns the name of the slot that t falls into.
func (c calendar) slotOf(t time.Time) string {
	if c.period <= time.Hour {
		return t.Truncate(c.period).UTC().Format(slotTime)
	}
	t = t.In(c.place)
	wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	return wall.Truncate(c.period).Format(wallTime)
}

// String returns what the slots of the calendar have in common in the node of marks.
func (c calendar) String() string {
	if c.period == 0 {
		return ""
	}
	return c.period.String()
}

// slotKey tells a slot from the others at its path.
type slotKey struct {
	cut  calendar // of a slot that has a time, else zero
	name string
}

// marks is the content of the node beside a lock. Slots without a time have the period "".
type marks struct {
	Periods []period `json:"periods"` // in the order of their last writing
}

type period struct {
	Every string `json:"every,omitempty"`
	Done  []mark `json:"done"` // in the order of their times, or without a time in that of marking
}

type mark struct {
	Slot string `json:"slot"`
	By   int64  `json:"by"` // the token of the hold that has marked it
}

func parseMarks(data []byte) (m marks, err error) {
	err = json.Unmarshal(data, &m)
	return m, err
}

func (m marks) encode() []byte {
	data, _ := json.Marshal(m) // cannot fail
	return data
}

// find returns ErrDone with the token of the hold that has marked s, ErrForgotten if that is not
// known any more, and nil if nobody has. latest is the last slot that may have been marked.
func (m marks) find(s slotKey, latest string) (by int64, err error) {
	i := slices.IndexFunc(m.Periods, func(p period) bool { return p.Every == s.cut.String() })
	if i < 0 {
		return 0, nil
	}
	p := m.Periods[i]
	if i := slices.IndexFunc(p.Done, func(d mark) bool { return d.Slot == s.name }); i >= 0 {
		return p.Done[i].By, ErrDone
	}
	if past, _ := p.split(latest); s.cut.period != 0 && len(past) >= maxTimed && s.name < past[0].Slot {
		return 0, ErrForgotten
	}
	return 0, nil
}

// split returns the marks up to the latest slot that may have been marked, and those beyond:
// they were made while the servers' clock was ahead.
func (p period) split(latest string) (past, beyond []mark) {
	i := slices.IndexFunc(p.Done, func(d mark) bool { return d.Slot > latest })
	if i < 0 {
		i = len(p.Done)
	}
	return p.Done[:i], p.Done[i:]
}

// with returns the marks with that of s added, and the oldest removed that exceed the bounds.
func (m marks) with(s slotKey, by int64, latest string) marks {
	p := period{Every: s.cut.String()}
	var others []period
	for _, o := range m.Periods {
		if o.Every == p.Every {
			p = o
			continue
		}
		others = append(others, o)
	}
	p.Done = append(slices.Clone(p.Done), mark{s.name, by})
	if s.cut.period == 0 {
		p.Done = last(p.Done, maxNamed)
	} else {
		slices.SortFunc(p.Done, func(a, b mark) int { return strings.Compare(a.Slot, b.Slot) })
		past, beyond := p.split(latest)
		p.Done = append(slices.Clone(last(past, maxTimed)), last(beyond, maxTimed)...)
	}
	return marks{append(last(others, maxPeriods-1), p)}
}

// last returns the last n of all.
func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }
