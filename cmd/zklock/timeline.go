package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

// page is the demo's report: one HTML file that needs nothing else.
type page struct {
	Items, Workers int
	Session        time.Duration
	Rows           [][3]string
	Free, Locked   timeline
}

//go:embed timeline.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

func writePage(w io.Writer, p page) error { return pageTemplate.Execute(w, p) }

// Geometry of the drawing, in pixels.
const (
	laneTop    = 34
	laneHeight = 34
	barHeight  = 18
	laneLeft   = 84
	laneWidth  = 1040
	labelWidth = 62
)

// timeline is a drawing of a sale, one lane for each worker.
type timeline struct {
	Width, Height int
	Left, Right   int
	Bottom        int
	Scale         string // what the axis shows, in words
	Lanes         []lane
	Bars          []bar
	Marks         []mark
	Ticks         []tick
}

type lane struct {
	Name string
	Y    int
	Text int
}

// bar is a stretch of time in which a worker was in one state.
type bar struct {
	Class      string
	X, Y, W, H float64
	Label      string // beside it
	LabelX     float64
	LabelY     float64
	Title      string // shown under the pointer
}

// mark is a moment.
type mark struct {
	Class  string
	X, Y   float64
	Text   string
	Title  string
	Anchor string // where the text stands: it begins or ends at the moment
	Shift  int
}

type tick struct {
	X    float64
	Text string
}

func newTimeline(events []event, workers int) timeline {
	end := time.Millisecond
	if n := len(events); n > 0 {
		end = max(end, events[n-1].at)
	}
	t := timeline{
		Width: laneLeft + laneWidth + 20, Left: laneLeft, Right: laneLeft + laneWidth,
		Bottom: laneTop + workers*laneHeight, Height: laneTop + workers*laneHeight + 12,
	}
	scale := func(at time.Duration) float64 { return laneLeft + laneWidth*at.Seconds()/end.Seconds() }
	for i := range workers {
		t.Lanes = append(t.Lanes, lane{fmt.Sprintf("worker %d", i+1), laneTop + i*laneHeight, laneTop + i*laneHeight + 22})
	}
	t.Ticks = ticks(end, scale)
	t.Scale = fmt.Sprintf("The axis is time since the sale opened, in seconds; the whole width is %.2f s.", end.Seconds())
	tracks := make([]track, workers)
	for _, e := range events {
		tracks[e.worker] = append(tracks[e.worker], e)
	}
	for i, tr := range tracks {
		t.drawTrack(tr, float64(laneTop+i*laneHeight+8), end, scale)
	}
	for _, e := range events {
		t.addMark(e, markText(events, e), float64(laneTop+e.worker*laneHeight+8), scale)
	}
	return t
}

// markText returns what stands at a moment that is worth it.
func markText(events []event, e event) string {
	switch e.kind {
	case crashes:
		return "crashes"
	case isCutOff:
		return "cut off"
	case isBack:
		return "back"
	case isTold:
		for _, next := range events {
			if next.at > e.at && next.kind == begins {
				return fmt.Sprintf("told %.2f s before the next one held", (next.at - e.at).Seconds())
			}
		}
		return "told"
	}
	return ""
}

// ticks marks round times, about a dozen of them.
func ticks(end time.Duration, scale func(time.Duration) float64) []tick {
	step := 50 * time.Millisecond
	for _, s := range []time.Duration{100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000} {
		if end/step > 12 {
			step = s * time.Millisecond
		}
	}
	var all []tick
	for at := time.Duration(0); at <= end; at += step {
		all = append(all, tick{scale(at), fmt.Sprintf("%g s", at.Seconds())})
	}
	return all
}

// classes are the states that are drawn, by the event that begins them.
var classes = map[kind]string{asks: "waits", begins: "holds", isCutOff: "cut", isTold: "lost", crashes: "dead"}

func (t *timeline) drawTrack(tr track, y float64, end time.Duration, scale func(time.Duration) float64) {
	labelled := float64(-labelWidth)
	for i, e := range tr {
		class, ok := classes[e.kind]
		if !ok {
			continue
		}
		until := tr.endOf(i, end)
		b := bar{Class: class, X: scale(e.at), Y: y, W: max(1, scale(until)-scale(e.at)), H: barHeight}
		b.Title = fmt.Sprintf("%s, %.3f s to %.3f s", e.kind, e.at.Seconds(), until.Seconds())
		if e.token != 0 {
			b.Title += fmt.Sprintf(", token %d, node %s", e.token, shown(e.node))
			if b.X-labelled >= labelWidth && b.X+labelWidth <= float64(t.Right) {
				b.Label, b.LabelX, b.LabelY, labelled = fmt.Sprint(e.token), b.X, y-2, b.X
			}
		}
		t.Bars = append(t.Bars, b)
	}
}

// endOf is when the state ends that the i-th event began: a sale does not end the work.
func (tr track) endOf(i int, end time.Duration) time.Duration {
	for _, e := range tr[i+1:] {
		if e.kind != sells && e.kind != soldOut {
			return e.at
		}
	}
	return end
}

func (t *timeline) addMark(e event, text string, y float64, scale func(time.Duration) float64) {
	m := mark{Class: "fault", X: scale(e.at), Y: y, Text: text, Title: fmt.Sprintf("%s at %.3f s", e.kind, e.at.Seconds()), Anchor: "start", Shift: 4}
	switch {
	case e.kind == sells:
		m.Class = "sold"
	case text == "":
		return
	}
	if m.X+float64(6*len(text)) > float64(t.Right) {
		m.Anchor, m.Shift = "end", -4
	}
	t.Marks = append(t.Marks, m)
}
