package web

import (
	"bytes"
	"slices"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// span is the time of one contender in a queue, as it was seen.
type span struct {
	round int              // the last one in which it was seen
	key   string           // the first node of what is one to a person
	who   zklock.Contender // with the beginning of its data
	from  time.Time        // when it came
	held  time.Time        // when it was seen to have become a holder; zero: it waits, or has left without
	until time.Time        // when it has left; zero: it is there
	early bool             // it was there when we came
	asked bool             // it was asked to let go, here
}

// history is what was seen of one lock.
type history struct {
	round   int
	live    map[string]*span // by node
	ended   []*span          // the last ones, in the order of their ends
	entered int              // how many have come since we look
	kept    time.Time        // when the last one ended that is kept no longer; zero: all are
}

// maxValue is how much of a contender's data is kept, in bytes.
const maxValue = 64

// keptOfLock is how many contenders that have left are kept of one lock.
const keptOfLock = 200

func newHistory() *history { return &history{live: map[string]*span{}} }

// note takes a state of the queue in.
func (h *history) note(q *operate.Queue, now time.Time, early bool) {
	h.round++
	for _, who := range q.Contenders {
		h.see(who, now, early)
	}
	var gone []*span
	for node, s := range h.live {
		if s.round != h.round {
			s.until = now
			gone = append(gone, s)
			delete(h.live, node)
		}
	}
	slices.SortFunc(gone, func(x, y *span) int { return x.from.Compare(y.from) })
	gone = slices.DeleteFunc(gone, func(s *span) bool { return h.goesOn(s, now) })
	h.ended = append(h.ended, gone...)
	h.keep(keptOfLock)
}

// keep drops all but the last n that have ended.
func (h *history) keep(n int) {
	if drop := len(h.ended) - n; drop > 0 {
		h.kept = h.ended[drop-1].until
		h.ended = slices.Clone(h.ended[drop:])
	}
}

// goesOn reports whether a place in the queue for permits has left because its permits were made. One of these is the same
// to a person, and takes its time over.
func (h *history) goesOn(place *span, now time.Time) bool {
	if place.who.Kind != operate.KindPermit || !place.held.IsZero() {
		return false
	}
	for _, s := range h.live {
		if s.who.Kind == operate.KindPermit && s.who.Session == place.who.Session && s.from.Equal(now) && s.held.Equal(now) && s.key == s.who.Node {
			s.key, s.from, s.early = place.key, place.from, place.early
			h.entered--
			return true
		}
	}
	return false
}

func (h *history) see(who zklock.Contender, now time.Time, early bool) {
	s := h.live[who.Node]
	if s == nil {
		s = &span{key: who.Node, from: now, early: early}
		h.live[who.Node] = s
		if !early {
			h.entered++
		}
	}
	s.round = h.round
	if data := who.Data[:min(len(who.Data), maxValue)]; s.who.Node == "" || !bytes.Equal(data, s.who.Data) {
		s.who = who
		s.who.Data = bytes.Clone(data)
	}
	if who.Holds && s.held.IsZero() {
		s.held = now
	}
}

// forgetHalf drops the older half of what has ended, and reports whether nothing is left.
func (h *history) forgetHalf() bool {
	h.keep(len(h.ended) / 2)
	return len(h.ended)+len(h.live) == 0
}
