// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"slices"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
)

// Limits on what the view of a lock shows. The rest is counted.
const (
	mostHolders = 24
	mostWaiters = 60
	mostDrawn   = 12 // current waiters in the timeline
)

// oneLock returns the view of a lock: the holders and waiters that match text, and the timeline.
func (b *board) oneLock(path, text string, now time.Time) view {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, again := b.cycles(now)
	head := oneLock{common: b.common(found, passes(path)), Path: shownPath(path), Kind: "lock"}
	sections := map[string][]row{"holders": nil, "queue": nil, "spans": nil}
	h := b.past[path]
	if h == nil {
		head.Unseen = true
		return view{head, sections, again}
	}
	head.Entered, head.Kept = h.entered, millis(h.kept)
	l := b.table.Lock(path)
	if l == nil {
		sections["spans"] = drawn(h, nil)
		return view{head, sections, again}
	}
	q := l.Queue
	head.Kind, head.Held, head.Waits, head.Permits, head.Delayed = kindOf(q), l.Holding(), l.Waiting(), q.Permits, l.IsDelayed()
	head.Libraries = libraries(q.Contenders)
	sections["holders"], sections["queue"] = b.line(l, text, sessionsIn(found), &head)
	sections["spans"] = drawn(h, q.Contenders)
	return view{head, sections, again}
}

// passes returns a function that reports whether a cycle has a step at path.
func passes(path string) func(locks.Cycle) bool {
	return func(c locks.Cycle) bool {
		return slices.ContainsFunc(c, func(s locks.Step) bool { return s.Path == path })
	}
}

// sessionsIn returns the nodes in cycles: those of the waiters, and those that they wait for.
func sessionsIn(found []locks.Cycle) map[string]bool {
	nodes := map[string]bool{}
	for _, c := range found {
		for _, s := range c {
			nodes[s.Waits.Node], nodes[s.Blocked.Node] = true, true
		}
	}
	return nodes
}

// libraries counts contenders by the client library that created them.
func libraries(queue []zklock.Contender) map[string]int {
	n := map[string]int{}
	for _, who := range queue {
		n[who.Client]++
	}
	return n
}

// line returns the holders and the waiters of a lock that match text, up to the limits, and counts the others in head. It must
// be called with mu held.
func (b *board) line(l *locks.Lock, text string, cyclic map[string]bool, head *oneLock) (holders, queue []row) {
	place := 0
	for _, who := range l.Queue.Contenders {
		if !who.Holds {
			place++
		}
		if text != "" && !matches(who, text) {
			continue
		}
		head.Found++
		into, most, more := &queue, mostWaiters, &head.MoreWait
		if who.Holds {
			into, most, more = &holders, mostHolders, &head.MoreHold
		}
		if len(*into) == most {
			*more++
			continue
		}
		c := b.contenderRow(l, who, cyclic[who.Node])
		if text != "" && !who.Holds {
			c.Place = place
		}
		*into = append(*into, row{b.past[l.Queue.Path].live[who.Node].key, c})
	}
	return holders, queue
}

// contenderRow must be called with mu held.
func (b *board) contenderRow(l *locks.Lock, who zklock.Contender, isCyclic bool) contender {
	s := b.past[l.Queue.Path].live[who.Node]
	c := contender{
		owner: ownerOf(who), Name: nameOf(who), Kind: who.Kind, Session: sessionOf(who), Token: tokenOf(who),
		From: millis(s.from), AtLeast: s.early, Asked: b.isAsked(l.Queue.Path, who), Cyclic: isCyclic,
	}
	if b.changes {
		c.Node = who.Node
	}
	if s.early { // its arrival was not seen: use the creation time by the leader's clock
		c.From = millis(earliest(who.Since, s.from))
	}
	if g, ok := l.Held[who.Node]; ok {
		c.Held, c.AtLeast = millis(g.At), g.AtLeast
	}
	return c
}

// drawn returns the rows of the timeline: the contenders that have left, the holders, and the first waiters.
func drawn(h *history, queue []zklock.Contender) (rows []row) {
	for _, s := range h.ended {
		rows = append(rows, spanRow(s))
	}
	holders, waiters := 0, 0
	for _, who := range queue {
		n, most := &waiters, mostDrawn
		if who.Holds {
			n, most = &holders, mostHolders
		}
		*n++
		if *n <= most {
			rows = append(rows, spanRow(h.live[who.Node]))
		}
	}
	return rows
}

func spanRow(s *span) row {
	return row{fmt.Sprintf("%s %d", s.key, s.from.UnixNano()), stretch{
		Session: sessionOf(s.who), Owner: ownerOf(s.who), Token: tokenOf(s.who), From: millis(s.from), Held: millis(s.held), Until: millis(s.until), Early: s.early,
	}}
}
