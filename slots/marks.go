// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/node"
)

// Limits of the data in the node that stores the marks.
const (
	maxSlotName = 128 // bytes
	maxPeriods  = 32
	maxNamed    = 1000
	maxSeries   = 128 // names of a series
	maxDue      = 128
	maxTimed    = 16
	maxSize     = 512 << 10 // bytes after which no name is added; a node has room for about twice as many
)

// A calendar divides time into slots. Slots of up to an hour divide elapsed time and are the same
// everywhere. Longer slots follow the local time of a place and are counted from midnight there, so
// they are an hour shorter or longer when the clocks there change. No slot comes again when clocks
// are put back: the hour that is repeated belongs to the slot that had begun last.
type calendar struct {
	period time.Duration
	place  *time.Location
}

// Fixed-width formats that sort in the order of their times.
const (
	slotTime = "2006-01-02T15:04:05.000000000Z"
	wallTime = "2006-01-02T15:04:05"
)

// slotOf returns the name of the slot that contains t.
func (c calendar) slotOf(t time.Time) string {
	if c.period <= time.Hour {
		return t.Truncate(c.period).UTC().Format(slotTime)
	}
	t = t.In(c.place)
	wall := wallClock(t)
	if changed, _ := t.ZoneBounds(); !changed.IsZero() {
		before := wallClock(changed.Add(-1).In(c.place)) // what the clocks showed last before they were changed
		if before.After(wall) {
			wall = before
		}
	}
	return wall.Truncate(c.period).Format(wallTime)
}

// wallClock returns what a clock shows at t in t's location, as a time in UTC.
func wallClock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// slotKey identifies a slot among the others at its path.
type slotKey struct {
	cut  calendar // for a slot of a period; otherwise zero
	due  bool     // the slot is a due time
	name string
}

// isTimed reports whether the slot has a time, not just a name.
func (k slotKey) isTimed() bool { return k.due || k.cut.period != 0 }

// every returns the period under which the slot's mark is stored.
func (k slotKey) every() string {
	switch {
	case k.due:
		return "due"
	case k.cut.period != 0:
		return k.cut.period.String()
	}
	return ""
}

// limit returns how many marks of a timed slot's period are stored.
func (k slotKey) limit() int {
	switch {
	case k.due:
		return maxDue
	}
	return maxTimed
}

// ordered matches the end of a name that tells which of two names is older: a date, which may be
// followed by a time, or a number of at least eight digits.
var ordered = regexp.MustCompile(`(\d{4}-\d\d-\d\d[-_T:0-9]*|\d{8,})$`)

// seriesOf returns the series of a name: the names that differ from it only in the digits of the date
// or number at their end. It returns "" if the name belongs to none.
func seriesOf(name string) string {
	i := ordered.FindStringIndex(name)
	if i == nil {
		return ""
	}
	return name[:i[0]] + strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return '0'
		}
		return r
	}, name[i[0]:])
}

// slotOf returns the name of the slot of the same kind that contains t.
func (k slotKey) slotOf(t time.Time) string {
	if k.due {
		return t.UTC().Format(slotTime)
	}
	return k.cut.slotOf(t)
}

// allowance returns how far after the leader's time a slot may be.
func (k slotKey) allowance() time.Duration {
	if k.due {
		return time.Hour
	}
	return k.cut.period
}

// marks is the content of the node next to a lock.
type marks struct {
	Periods []period `json:"periods"` // in the order in which they were last written
	size    int      // of the data that was read
}

type period struct {
	Every string `json:"every,omitempty"` // "due" for due times; empty for names
	Done  []mark `json:"done"`            // in the order of their times; names in the order of marking
}

type mark struct {
	Slot string `json:"slot"`
	By   int64  `json:"by"`            // the token of the hold that marked it
	At   int64  `json:"at,omitempty"`  // when, in milliseconds, by its client's clock
	Who  string `json:"who,omitempty"` // which client
}

// maxWho is how many bytes of a client's description a mark stores.
const maxWho = 64

// markOf returns the mark for a hold with the given token, whose client has that identity.
func markOf(s slotKey, token int64, identity []byte, now time.Time) mark {
	o, _ := node.ReadOwner(identity)
	client := o.Label
	if o.Host != "" {
		client = strings.TrimSpace(fmt.Sprintf("%s %s:%d", client, o.Host, o.PID))
	}
	return mark{s.name, token, now.UnixMilli(), strings.ToValidUTF8(client[:min(len(client), maxWho)], "")}
}

// String returns when and by whom a slot was marked, as far as the mark records it.
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
	m.size = len(data)
	return m, err
}

func (m marks) encode() []byte {
	data, _ := json.Marshal(m) // cannot fail
	return data
}

// find returns ErrDone with the mark of s, or nil if s is open. It returns ErrForgotten if it is no
// longer recorded whether s was marked, and ErrFull if s is not marked and its mark has no room. latest
// is the last slot that may have been marked.
func (m marks) find(s slotKey, latest string) (found mark, err error) {
	i := slices.IndexFunc(m.Periods, func(p period) bool { return p.Every == s.every() })
	if i < 0 {
		if len(m.Periods) >= maxPeriods {
			return mark{}, fmt.Errorf("%w: it has marks of %d periods", ErrFull, len(m.Periods))
		}
		return mark{}, nil
	}
	p := m.Periods[i]
	if i := slices.IndexFunc(p.Done, func(d mark) bool { return d.Slot == s.name }); i >= 0 {
		return p.Done[i], ErrDone
	}
	if !s.isTimed() {
		return mark{}, p.room(s.name, m.size)
	}
	if past, _ := p.split(latest); len(past) >= s.limit() && s.name < past[0].Slot {
		return mark{}, ErrForgotten
	}
	return mark{}, nil
}

// room returns nil if a name that is not marked can be: if there are few names, or if its mark replaces
// that of an older name of its series. size is the size of all marks.
func (p period) room(name string, size int) error {
	series := p.series(name)
	switch {
	case len(series) >= maxSeries && name < slices.Min(series):
		return ErrForgotten
	case len(series) < maxSeries && (len(p.Done) >= maxNamed || size > maxSize):
		return fmt.Errorf("%w: it has marks of %d names", ErrFull, len(p.Done))
	}
	return nil
}

// series returns the names of the series to which name belongs.
func (p period) series(name string) (names []string) {
	of := seriesOf(name)
	for _, d := range p.Done {
		if of != "" && seriesOf(d.Slot) == of {
			names = append(names, d.Slot)
		}
	}
	return names
}

// isPassed reports whether a slot after s is done. latest is the last slot that may have been marked.
func (m marks) isPassed(s slotKey, latest string) bool {
	for _, p := range m.Periods {
		if past, _ := p.split(latest); p.Every == s.every() && len(past) > 0 {
			return past[len(past)-1].Slot > s.name
		}
	}
	return false
}

// split returns the marks up to the latest slot that may have been marked, and the marks after it,
// which were written while the leader's clock was ahead.
func (p period) split(latest string) (past, beyond []mark) {
	i := slices.IndexFunc(p.Done, func(d mark) bool { return d.Slot > latest })
	if i < 0 {
		i = len(p.Done)
	}
	return p.Done[:i], p.Done[i:]
}

// with returns the marks with the mark own for s added, and without the marks that find then reports
// as forgotten. find must have returned nil for s.
func (m marks) with(s slotKey, own mark, latest string) marks {
	p := period{Every: s.every()}
	var others []period
	for _, o := range m.Periods {
		if o.Every == p.Every {
			p = o
			continue
		}
		others = append(others, o)
	}
	p.Done = append(slices.Clone(p.Done), own)
	if s.isTimed() {
		slices.SortFunc(p.Done, func(a, b mark) int { return strings.Compare(a.Slot, b.Slot) })
		past, beyond := p.split(latest)
		p.Done = append(slices.Clone(last(past, s.limit())), last(beyond, s.limit())...)
	} else if series := p.series(s.name); len(series) > maxSeries {
		oldest := slices.Min(series)
		p.Done = slices.DeleteFunc(p.Done, func(d mark) bool { return d.Slot == oldest })
	}
	return marks{Periods: append(others, p)}
}

// last returns the last n of all.
func last[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }
