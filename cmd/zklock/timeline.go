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
	Class string
	X, Y  float64
	Text  string
	Title string
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
	tracks := make([]track, workers)
	for _, e := range events {
		tracks[e.worker] = append(tracks[e.worker], e)
	}
	for i, tr := range tracks {
		t.drawTrack(tr, float64(laneTop+i*laneHeight+8), end, scale)
	}
	return t
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
		t.addMark(e, y, scale)
		class, ok := classes[e.kind]
		if !ok {
			continue
		}
		until := tr.endOf(i, end)
		b := bar{Class: class, X: scale(e.at), Y: y, W: max(1, scale(until)-scale(e.at)), H: barHeight}
		b.Title = fmt.Sprintf("%s, %.3f s to %.3f s", e.kind, e.at.Seconds(), until.Seconds())
		if e.token != 0 {
			b.Title += fmt.Sprintf(", token %d, node %s", e.token, e.node)
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

func (t *timeline) addMark(e event, y float64, scale func(time.Duration) float64) {
	texts := map[kind]string{crashes: "crashes", isCutOff: "cut off", isTold: "told", isBack: "back", sells: ""}
	text, ok := texts[e.kind]
	if !ok {
		return
	}
	class := "fault"
	if e.kind == sells {
		class = "sold"
	}
	t.Marks = append(t.Marks, mark{class, scale(e.at), y, text, fmt.Sprintf("%s at %.3f s", e.kind, e.at.Seconds())})
}
