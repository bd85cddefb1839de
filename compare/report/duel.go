// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/zklock-go/zklock/compare/work"
)

// duelWorks are the rows of the duel: works, with the text for one contender and for several.
var duelWorks = []struct{ work, one, several string }{
	{"uncontended", "nobody else wants the lock", ""},
	{"contended", "", "%d workers"},
	{"queue", "", "a queue of %d"},
	{"many", "", "%d goroutines of a client, each with its own lock"},
	{"latency", "nobody else wants it, 1 ms away", "%d workers, 1 ms away"},
	{"tls", "nobody else wants it, over TLS", "%d workers, over TLS"},
	{"ensemble", "nobody else wants it, three servers", "%d workers, three servers"},
}

// Duel returns the table of a run of work.Duel.
func (r *Results) Duel() string {
	var rows [][]string
	for _, d := range duelWorks {
		for _, size := range r.sizes(d.work) {
			text := d.one
			if size > alone {
				text = fmt.Sprintf(d.several, size)
			}
			for _, way := range work.DuelWays {
				c := cell{work: d.work, way: way, size: size}
				if !r.tried(c) {
					continue
				}
				rows = append(rows, []string{text, "`" + way + "`", withRange(r.figure(c, work.OpsPerSecond)), ratioWithRange(r.ratio(c, work.OpsPerSecond, work.Reference)),
					plain(r.figure(c, work.P50)), plain(r.figure(c, work.Requests)), r.toReference(c, work.ClientCPU), r.toReference(c, work.ServerCPU), plain(r.figure(c, work.Allocations))})
				text = ""
			}
		}
	}
	return tableOfKnown([]string{"work", "way", "grants/s (lowest–highest round)", "to " + work.Reference + " (lowest–highest)", "p50 ms", "requests", "client µs", "servers µs", "allocations"}, rows)
}

// RenderDuel replaces the generated parts of a page.
func (r *Results) RenderDuel(page string) error {
	return render("", nil, page, map[string]string{"about": r.about("duel"), "duel": r.Duel()})
}

// toReference returns a figure and its ratio to the reference's, which is taken within a round like all ratios.
func (r *Results) toReference(c cell, metric string) string {
	text, ratio := plain(r.figure(c, metric)), r.ratio(c, metric, work.Reference)
	if c.way == work.Reference || ratio.n == 0 {
		return text
	}
	return fmt.Sprintf("%s (%.2f×)", text, ratio.median)
}

// ratioWithRange returns a ratio with its extremes.
func ratioWithRange(s spread) string {
	if s.n == 0 {
		return none
	}
	return fmt.Sprintf("%.2f× (%.2f–%.2f)", s.median, s.low, s.high)
}
