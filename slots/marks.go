package slots

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/node"
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
	By   int64  `json:"by"`            // the token of the hold that has marked it
	At   int64  `json:"at,omitempty"`  // when, in milliseconds, by the clock of its client
	Who  string `json:"who,omitempty"` // which client
}

// maxWho is how much of what a client says of itself a mark stores, in bytes.
const maxWho = 64

// markOf returns the mark of a hold with a token, whose client has that identity.
func markOf(s slotKey, token int64, identity []byte, now time.Time) mark {
	o, _ := node.ReadOwner(identity)
	who := o.Label
	if o.Host != "" {
		who = strings.TrimSpace(fmt.Sprintf("%s %s:%d", who, o.Host, o.PID))
	}
	return mark{s.name, token, now.UnixMilli(), strings.ToValidUTF8(who[:min(len(who), maxWho)], "")}
}

// String says when and by whom a slot was marked, as far as the mark tells that.
func (m mark) String() string {
	var b strings.Builder
	if m.At != 0 {
		b.WriteString(" at " + time.UnixMilli(m.At).Format("2006-01-02 15:04:05 -0700"))
	}
	if m.Who != "" {
		b.WriteString(" by " + node.Printable(m.Who))
	}
	return b.String()
}

func parseMarks(data []byte) (m marks, err error) {
	err = json.Unmarshal(data, &m)
	return m, err
}

func (m marks) encode() []byte {
	data, _ := json.Marshal(m) // cannot fail
	return data
}

// find returns ErrDone with the mark of s, ErrForgotten if it is not known any more whether there was one, and nil if there
// is none. latest is the last slot that may have been marked.
func (m marks) find(s slotKey, latest string) (found mark, err error) {
	i := slices.IndexFunc(m.Periods, func(p period) bool { return p.Every == s.cut.String() })
	if i < 0 {
		return mark{}, nil
	}
	p := m.Periods[i]
	if i := slices.IndexFunc(p.Done, func(d mark) bool { return d.Slot == s.name }); i >= 0 {
		return p.Done[i], ErrDone
	}
	if past, _ := p.split(latest); s.cut.period != 0 && len(past) >= maxTimed && s.name < past[0].Slot {
		return mark{}, ErrForgotten
	}
	return mark{}, nil
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

// with returns the marks with own, that of s, added, and the oldest removed that exceed the bounds.
func (m marks) with(s slotKey, own mark, latest string) marks {
	p := period{Every: s.cut.String()}
	var others []period
	for _, o := range m.Periods {
		if o.Every == p.Every {
			p = o
			continue
		}
		others = append(others, o)
	}
	p.Done = append(slices.Clone(p.Done), own)
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
