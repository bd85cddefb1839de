// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/operate"
)

// Limits on what the list shows. The rest is counted.
const (
	mostLocks  = 200
	mostCycles = 5
)

// overview returns the view of the busiest locks that match text.
func (b *board) overview(text string, now time.Time) view {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, again := b.cycles(now)
	head := overview{common: b.common(found, nil), Locks: b.table.Len(), Waiting: b.table.Waiting()}
	cyclic := pathsIn(found)
	var rows []row
	hidden := map[string]bool{} // the locks of fleets that are shown as one
	busiest := b.table.Busiest()
	for _, f := range b.fleets(busiest, text) {
		for path := range f.paths {
			hidden[path] = true
		}
		head.Found++
		if len(rows) < mostLocks {
			rows = append(rows, row{f.Path, f.row()})
		}
	}
	for _, l := range busiest {
		head.Holding += l.Holding()
		if hidden[l.Queue.Path] || !lockMatches(l, text) {
			continue
		}
		head.Found++
		if len(rows) < mostLocks {
			rows = append(rows, row{l.Queue.Path, b.lockRow(l, cyclic[l.Queue.Path])})
		}
	}
	return view{head, map[string][]row{"locks": rows}, again}
}

// fleet is a fleet of package shards that is shown as one lock.
type fleet struct {
	*operate.Shards
	paths map[string]bool // of its locks
}

// fleets returns the fleets that match text. If text names what is below a fleet's path, its locks are shown one by one. It must be
// called with mu held.
func (b *board) fleets(busiest []*locks.Lock, text string) (found []fleet) {
	if !slices.ContainsFunc(busiest, func(l *locks.Lock) bool { return strings.HasSuffix(l.Queue.Path, node.MembersDir) }) {
		return nil
	}
	queues := b.queues()
	all, others := operate.GroupShards(queues)
	alone := map[string]bool{}
	for _, q := range others {
		alone[q.Path] = true
	}
	for _, f := range all {
		below := strings.ToLower(f.Path) + "/"
		if strings.HasPrefix(text, below) {
			continue
		}
		shown, matched := fleet{f, map[string]bool{}}, strings.Contains(below, text)
		for _, q := range queues {
			if !alone[q.Path] && strings.HasPrefix(q.Path, f.Path+"/") {
				shown.paths[q.Path] = true
				matched = matched || lockMatches(b.table.Lock(q.Path), text)
			}
		}
		if matched {
			found = append(found, shown)
		}
	}
	return found
}

// row returns the row of a fleet. It leads to the members.
func (f fleet) row() lockRow {
	return lockRow{
		Path: shownPath(f.Path), Link: linkOf(f.Path + node.MembersDir), Kind: fmt.Sprintf("shards of %s", show.Count(len(f.Members), "member", "members")),
		Held: f.Number - len(f.Free), Waits: f.Waiting, Permits: f.Number,
	}
}

// common returns the top part of every view. It includes the cycles for which want returns true, or all if want is nil. It
// must be called with mu held.
func (b *board) common(found []locks.Cycle, want func(locks.Cycle) bool) common {
	c := common{Below: shownPath(b.path), Begun: millis(b.begun), Away: millis(b.silent), Changes: b.changes}
	if b.gaps != (operate.Incomplete{}) {
		c.Gaps = b.gaps.Error()
	}
	for _, f := range found {
		if want != nil && !want(f) {
			continue
		}
		c.Cycled++
		if len(c.Cycles) < mostCycles {
			c.Cycles = append(c.Cycles, newCycle(f))
		}
	}
	return c
}

func newCycle(c locks.Cycle) (steps cycle) {
	for _, s := range c {
		steps = append(steps, step{
			Owner: ownerOf(s.Waits), Session: sessionOf(s.Waits), Path: shownPath(s.Path), Link: linkOf(s.Path),
			By: ownerOf(s.Blocked), Holds: s.Blocked.Holds, Parallel: s.Parallel,
		})
	}
	return steps
}

// pathsIn returns the paths at which sessions wait in cycles.
func pathsIn(found []locks.Cycle) map[string]bool {
	paths := map[string]bool{}
	for _, c := range found {
		for _, s := range c {
			paths[s.Path] = true
		}
	}
	return paths
}

// lockMatches reports whether a lock's path or one of its contenders matches text.
func lockMatches(l *locks.Lock, text string) bool {
	return text == "" || strings.Contains(strings.ToLower(l.Queue.Path), text) ||
		slices.ContainsFunc(l.Queue.Contenders, func(who zklock.Contender) bool { return matches(who, text) })
}

// lockRow must be called with mu held.
func (b *board) lockRow(l *locks.Lock, isCyclic bool) lockRow {
	g := l.Longest()
	r := lockRow{
		Path: shownPath(l.Queue.Path), Link: linkOf(l.Queue.Path), Kind: kindOf(l.Queue), Held: l.Holding(), Waits: l.Waiting(),
		Permits: l.Queue.Permits, Since: millis(g.At), AtLeast: g.AtLeast, Delayed: l.IsDelayed(), Cyclic: isCyclic,
	}
	if who, ok := l.Holder(); ok {
		o := ownerOf(who)
		r.Owner, r.Asked = &o, b.isAsked(l.Queue.Path, who)
	}
	return r
}

// isAsked reports whether a contender was asked to release its lock. It must be called with mu held.
func (b *board) isAsked(path string, who zklock.Contender) bool {
	s := b.past[path].live[who.Node]
	return who.Revoked || s != nil && s.asked
}
