// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"slices"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// span is the time that one contender was seen in a queue.
type span struct {
	round int              // the last round in which it was seen
	key   string           // the first node of a contender; a semaphore's contender has several nodes
	who   zklock.Contender // with only the beginning of its data
	from  time.Time        // when it arrived
	held  time.Time        // when it was first seen holding; zero if it is waiting or left without being seen holding
	until time.Time        // when it left; zero if it is there
	early bool             // it was there when watching began
	asked bool             // it was asked to release its lock through this page
}

// history holds the contenders that were seen at one lock.
type history struct {
	round   int
	live    map[string]*span // by node
	ended   []*span          // the last contenders that left, in the order in which they did
	entered int              // number of contenders that arrived since watching began
	kept    time.Time        // when the last contender left that is no longer kept; zero if all are kept
}

// maxValue is the number of bytes of a contender's data that are kept.
const maxValue = 64

// keptOfLock is how many contenders that have left are kept for one lock.
const keptOfLock = 200

func newHistory() *history { return &history{live: map[string]*span{}} }

// note records the state of the queue.
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
	gone = slices.DeleteFunc(gone, func(s *span) bool { return h.continues(s, now) })
	h.ended = append(h.ended, gone...)
	h.keep(keptOfLock)
}

// keep drops all but the last n contenders that have left.
func (h *history) keep(n int) {
	if drop := len(h.ended) - n; drop > 0 {
		h.kept = h.ended[drop-1].until
		h.ended = slices.Clone(h.ended[drop:])
	}
}

// continues reports whether a queue node for permits disappeared because its permit nodes were created. To a user these are the
// same contender, so the span of one of the permits takes over the key and the arrival time.
func (h *history) continues(place *span, now time.Time) bool {
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

// forgetHalf drops the older half of the contenders that have left. It reports whether the history is empty.
func (h *history) forgetHalf() bool {
	h.keep(len(h.ended) / 2)
	return len(h.ended)+len(h.live) == 0
}
