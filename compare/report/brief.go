// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/zklock-go/zklock/compare/work"
)

// question is a situation for which the top of the page names the fastest way.
type question struct {
	text string
	work string
	size int
}

// questions are the rows of the page's first table.
var questions = []question{
	{"nobody else wants the lock", "uncontended", 0},
	{"8 workers want it, each with a client of its own", "contended", 8},
	{"8 goroutines of one client want it", "goroutines", 1},
	{"4 clients want it, with 8 goroutines each", "goroutines", 4},
	{"nobody else wants it, 1 ms away from the servers", "latency", 1},
	{"8 workers want it, 1 ms away from the servers", "latency", 8},
	{"8 workers want it, and three servers keep it", "ensemble", 8},
}

// overtakes is the share of overtaking grants from which a way counts as not keeping the order.
const overtakes = 0.05

// brief returns a table of the fastest ways and a list of warnings.
func (r *Results) brief() string {
	var rows [][]string
	for _, q := range questions {
		if row := r.fastest(q); row != nil {
			rows = append(rows, row)
		}
	}
	if rows == nil {
		return ""
	}
	head := []string{"lock+unlock per second when", "fastest", "fastest that keeps the order of asking", "fastest with a fencing token for each grant", "fastest of this library"}
	return table(head, rows) + r.warnings()
}

// fastest returns the row of a question, or nil if it was not measured.
func (r *Results) fastest(q question) []string {
	all := r.best(q, func(string) bool { return true })
	if all == none {
		return nil
	}
	return []string{q.text, all,
		r.best(q, func(way string) bool {
			s := r.figure(cell{work: q.work, way: way, size: q.size}, work.Overtaking)
			return s.n > 0 && s.median < overtakes
		}),
		r.best(q, func(way string) bool { return r.info(way).Token }),
		r.best(q, func(way string) bool { return strings.HasPrefix(way, ours) })}
}

// best returns the name and the figure of the fastest way for which counts returns true.
func (r *Results) best(q question, counts func(way string) bool) string {
	text, highest := none, 0.0
	for _, w := range r.present(q.work) {
		s := r.figure(cell{work: q.work, way: w, size: q.size}, work.OpsPerSecond)
		if w != work.Floor && s.median > highest && counts(w) {
			text, highest = fmt.Sprintf("`%s` %s", w, number(s.median)), s.median
		}
	}
	return text
}

// warnings lists the ways that overtake or oversell.
func (r *Results) warnings() string {
	var out strings.Builder
	say := func(what, work string, does func(way string) bool) {
		var names []string
		for _, w := range r.present(work) {
			if does(w) {
				names = append(names, "`"+w+"`")
			}
		}
		if names != nil {
			fmt.Fprintf(&out, "- %s: %s.\n", what, strings.Join(names, ", "))
		}
	}
	say("With 8 workers, more than one grant in twenty overtakes a contender that was already in the queue", "contended", func(way string) bool {
		return r.figure(cell{work: "contended", way: way, size: 8}, work.Overtaking).median >= overtakes
	})
	sells := func(value string) func(string) bool {
		return func(way string) bool {
			return r.figure(cell{work: "sale", fault: work.Paused, way: way}, value).high > 0
		}
	}
	say("The same item is sold twice if the holder's process is paused for two leases and then writes", "sale", sells(work.Oversold))
	say("This happens even if the holder asks its library right before it writes", "sale", sells(work.OversoldAsk))
	say("It does not happen with these, which have tokens, if the shop refuses old tokens", "sale", func(way string) bool {
		s := r.figure(cell{work: "sale", fault: work.Paused, way: way}, work.OversoldTok)
		return s.n > 0 && s.high == 0
	})
	if out.Len() == 0 {
		return ""
	}
	return "\n" + out.String()
}
