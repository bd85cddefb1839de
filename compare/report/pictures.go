// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/zklock-go/zklock/compare/ways"
	"github.com/zklock-go/zklock/compare/work"
)

// pictures returns all pictures for which there are samples, by file name without extension.
func (r *Results) pictures() map[string]string {
	all := map[string]string{}
	add := func(name, picture string) {
		if picture != "" {
			all[name] = picture
		}
	}
	add("uncontended", r.bars("uncontended", 0, work.OpsPerSecond, "One client, no contention", "lock+unlock per second"))
	add("many", r.bars("many", 64, work.OpsPerSecond, "64 goroutines on 64 locks with one client", "lock+unlock per second"))
	add("crash", r.bars("crash", 0, work.Recovery, "The holder's process is killed", "seconds until the next holder"))
	add("contended", r.tiles("contended", work.OpsPerSecond, "Workers, each with its own session, on one lock: grants per second", "workers", true))
	add("fairness", r.tiles("contended", work.Overtaking, "Share of grants that overtook a contender already in the queue", "workers", false))
	add("queue", r.panels("queue", work.P50, "A standing queue: time from unlock to the next grant (median)", "length of the queue", "ms"))
	add("herd", r.panels("queue", work.Requests, "A standing queue: requests that the server counted for each grant", "length of the queue", "requests"))
	add("sale", r.saleTiles())
	return all
}

func (r *Results) color(way string) string { return familyColor[r.info(way).Family] }

func (r *Results) info(way string) ways.Info {
	for _, w := range r.Ways {
		if w.Name == way {
			return w
		}
	}
	return ways.Info{}
}

func (r *Results) bars(name string, size int, value, title, unit string) string {
	var bars []bar
	for _, w := range r.present(name) {
		bars = append(bars, bar{label: w, color: r.color(w), value: r.figure(cell{work: name, way: w, size: size}, value), note: "no figure", strong: w == ours})
	}
	if bars == nil {
		return ""
	}
	return barChart(title, unit, bars)
}

// measuredLocks returns the ways of a work without the floor of hand-offs.
func (r *Results) measuredLocks(name string) []string {
	return slices.DeleteFunc(r.present(name), func(way string) bool { return way == work.HandOffFloor })
}

// tiles draws a table of ways by sizes. If moreIsBetter is false, the value is a share.
func (r *Results) tiles(name, value, title, unit string, moreIsBetter bool) string {
	sizes, rows := r.sizes(name), r.measuredLocks(name)
	if len(rows) == 0 {
		return ""
	}
	var columns []string
	for _, s := range sizes {
		columns = append(columns, fmt.Sprintf("%d\n%s", s, unit))
	}
	tiles := make([][]tile, len(rows))
	for _, size := range sizes {
		low, high := math.Inf(1), 0.0
		for _, w := range rows {
			if v := r.figure(cell{work: name, way: w, size: size}, value).median; v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
		for i, w := range rows {
			f := r.figure(cell{work: name, way: w, size: size}, value)
			t := tile{text: plain(f), color: "#eee"}
			switch {
			case f.n == 0:
			case moreIsBetter:
				t.color = shade(f.median, high, low)
			default:
				t.text = percent(f)
				t.color = shade(f.median+0.02, 0.02, 1.02)
			}
			tiles[i] = append(tiles[i], t)
		}
	}
	return tileChart(title, columns, rows, ours, tiles, "medians of the rounds; green is better, each column on its own scale")
}

// panelFamilies are the families in each chart of a line picture.
var panelFamilies = [][]string{{"PostgreSQL"}, {"memcached", "Redis", "Redlock"}, {"etcd"}, {"ZooKeeper"}}

var lineColors = []string{"#3b76b5", "#c4473d", "#2a9d8f", "#e08a3c", "#7b8b4f", "#444444", "#b07aa1", "#17a2b8"}

func (r *Results) panels(name, value, title, xUnit, yUnit string) string {
	xs := r.sizes(name)
	if len(xs) == 0 {
		return ""
	}
	var panels []panel
	for _, families := range panelFamilies {
		var p panel
		for i, family := range families {
			if i > 0 {
				p.title += ", "
			}
			p.title += family
			for _, w := range r.present(name) {
				if r.info(w).Family == family {
					p.lines = append(p.lines, r.series(name, w, value, xs, len(p.lines)))
				}
			}
		}
		panels = append(panels, p)
	}
	return linePanels(title, xUnit, yUnit, xs, panels)
}

func (r *Results) series(name, way, value string, xs []int, n int) series {
	s := series{label: way, color: lineColors[n%len(lineColors)]}
	if way == ours {
		s.color = familyColor["ZooKeeper"]
	}
	for _, x := range xs {
		s.points = append(s.points, r.figure(cell{work: name, way: way, size: x}, value))
	}
	return s
}

func (r *Results) saleTiles() string {
	faults, rows := r.faults(), r.present("sale")
	if len(rows) == 0 {
		return ""
	}
	tiles := make([][]tile, len(rows))
	for i, w := range rows {
		for _, f := range faults {
			c := cell{work: "sale", fault: f, way: w}
			t := tile{text: r.sold(c), color: "#eee"}
			if t.text != "" && t.text != "failed" {
				t.color = r.saleColor(c)
			}
			tiles[i] = append(tiles[i], t)
		}
	}
	return tileChart("Items oversold out of ten: plain / asking the library / token", faults, rows, ours, tiles,
		"green: none even when plain; yellow: none when asking or with the token; red: neither helps; gray: cannot happen")
}

func (r *Results) saleColor(c cell) string {
	none := func(value string) bool {
		s := r.figure(c, value)
		return s.n > 0 && s.high == 0
	}
	switch {
	case none(work.Oversold):
		return "#bee2bc"
	case none(work.OversoldAsk), none(work.OversoldTok):
		return "#faf0be"
	}
	return "#ee9e8c"
}
