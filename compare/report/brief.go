package report

import (
	"fmt"
	"strings"

	"github.com/zklock-go/zklock/compare/work"
)

// question is one for which the page names the fastest way at its top.
type question struct {
	asked string
	work  string
	size  int
}

// questions are those of a reader who has one minute.
var questions = []question{
	{"nobody else wants the lock", "uncontended", 0},
	{"8 workers want it, each with a client of its own", "contended", 8},
	{"8 goroutines of one client want it", "goroutines", 1},
	{"4 clients want it, with 8 goroutines each", "goroutines", 4},
	{"nobody else wants it, 1 ms away from the servers", "latency", 1},
	{"8 workers want it, 1 ms away from the servers", "latency", 8},
	{"8 workers want it, and three servers keep it", "ensemble", 8},
}

// overtakes is the share of overtaking grants from which on a way does not keep the order.
const overtakes = 0.05

// unfenced keeps its place in the queue between grants, which share its token. Alone it asks no server: it is compared with none
// that does.
const unfenced = "zklock-unfenced"

// brief says in a table and a short list which way is best at what.
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
	head := []string{"lock+unlock per second when", "fastest", "fastest that keeps the order of asking", "fastest with a fencing token for each grant", "fastest of this library", "a place that is kept between grants"}
	return table(head, rows) + r.warnings()
}

// fastest answers one question, or returns nil if nothing was measured for it.
func (r *Results) fastest(q question) []string {
	all := r.best(q, asks)
	if all == none {
		return nil
	}
	return []string{q.asked, all,
		r.best(q, func(way string) bool {
			s := r.figure(cell{work: q.work, way: way, size: q.size}, work.Overtaking)
			return asks(way) && s.n > 0 && s.median < overtakes
		}),
		r.best(q, func(way string) bool { return asks(way) && r.info(way).Token }),
		r.best(q, func(way string) bool { return asks(way) && strings.HasPrefix(way, ours) }),
		r.best(q, func(way string) bool { return !asks(way) })}
}

// asks reports whether a way asks a server for each grant.
func asks(way string) bool { return way != unfenced }

// best names the fastest way that counts, with its figure.
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

// warnings lists what the fastest ways do not promise.
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
	say("With 8 workers, more than one grant in twenty overtakes somebody who stood in the queue before it asked", "contended", func(way string) bool {
		return r.figure(cell{work: "contended", way: way, size: 8}, work.Overtaking).median >= overtakes
	})
	sells := func(value string) func(string) bool {
		return func(way string) bool {
			return r.figure(cell{work: "sale", fault: work.Paused, way: way}, value).high > 0
		}
	}
	say("The same item is sold twice when the holder's process stands still for two leases and then writes", "sale", sells(work.Oversold))
	say("Even if the holder asks its library right before it writes", "sale", sells(work.OversoldAsk))
	say("Not if the shop refuses old tokens, which these have", "sale", func(way string) bool {
		s := r.figure(cell{work: "sale", fault: work.Paused, way: way}, work.OversoldTok)
		return s.n > 0 && s.high == 0
	})
	if out.Len() == 0 {
		return ""
	}
	return "\n" + out.String()
}
