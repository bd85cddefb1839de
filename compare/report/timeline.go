// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/zklock-go/zklock/compare/faults"
)

const (
	lineHeight = 19
	timeWide   = 640
	timeLeft   = 150
)

// pictures returns a timeline for each fault, by file name. For each client it shows the round with the longest overlap of the
// holder and another one.
func (r *FaultRun) pictures() map[string]string {
	all := map[string]string{}
	for _, f := range faults.All {
		var worst []faults.Trial
		for _, c := range faults.Clients {
			run, _ := r.rounds(r.leases()[0], c.Name, f.Name)
			if len(run) == 0 {
				continue
			}
			one := run[0]
			for _, t := range run[1:] {
				if t.Together(faults.Careful) > one.Together(faults.Careful) {
					one = t
				}
			}
			worst = append(worst, one)
		}
		if worst != nil {
			all[pictureName(f.Name)] = timeline(f.Name, worst)
		}
	}
	return all
}

// timeline draws two rows for each trial: the state of the holder, and the grants to contenders.
func timeline(fault string, trials []faults.Trial) string {
	const top, from = 66, -2.0
	to := 0.0
	for _, t := range trials {
		to = max(to, t.Released+2)
	}
	x := func(at float64) float64 { return timeLeft + (min(max(at, from), to)-from)/(to-from)*timeWide }
	height := top + len(trials)*(2*lineHeight+8)
	d := newDrawing(timeLeft+timeWide+20, height+48, fault+": the holder, and later grants")
	d.text(12, 42, "green: relies on its lock; yellow: in doubt; gray: notified of the loss; blue: other holders; red: other holders while this one relies on its lock", "fill='#666' font-size='11'")
	for s := 0.0; s <= to; s += 2 {
		d.line(x(s), top-4, x(s), float64(height), "stroke='#e4e4e4'")
		d.text(x(s), float64(height)+14, fmt.Sprintf("%g s", s), "text-anchor='middle' fill='#666'")
	}
	d.line(x(0), top-8, x(0), float64(height), "stroke='#c4473d' stroke-width='1.5'")
	d.text(x(0), top-10, "fault", "text-anchor='middle' fill='#c4473d'")
	for i, t := range trials {
		d.trial(t, float64(top+i*(2*lineHeight+8)), x)
	}
	d.text(timeLeft, float64(height)+36, "seconds since the fault; a small black mark: the servers are healthy again", "fill='#666'")
	return d.svg()
}

func (d *drawing) trial(t faults.Trial, y float64, x func(float64) float64) {
	weight := ""
	if t.Client == ours {
		weight = "font-weight='700'"
	}
	d.text(timeLeft-8, y+13, t.Client, "text-anchor='end' "+weight)
	d.text(timeLeft-8, y+lineHeight+11, "others", "text-anchor='end' fill='#888' font-size='10'")
	doubt, _ := t.Stopped(faults.Careful)
	loss, _ := t.Stopped(faults.Confident)
	bar := func(from, to, top float64, style string) {
		d.rect(x(from), top, max(x(to)-x(from), 1.2), lineHeight-7, style)
	}
	bar(t.Held, min(doubt, t.Released), y+3, "fill='#5aa469'")
	if doubt < loss {
		bar(doubt, loss, y+3, "fill='#e8c547'")
	}
	if loss < t.Released {
		bar(loss, t.Released, y+3, "fill='#ddd'")
	}
	for _, g := range t.Grants {
		style := "fill='#3b76b5'"
		if g.Who != 0 && g.From < doubt {
			style = "fill='#c4473d'"
		}
		bar(g.From, g.To, y+lineHeight+2, style)
	}
	d.line(x(t.Healed), y, x(t.Healed), y+2*lineHeight-4, "stroke='#222' stroke-width='1.5'")
}
