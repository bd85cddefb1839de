// SPDX-License-Identifier: Apache-2.0

package demo

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
)

// page is the demo's report: a self-contained HTML file.
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
	laneWidth  = 780 // a README is about as wide, so its texts are not made smaller
)

// timeline is a drawing of a sale with one lane for each worker.
type timeline struct {
	Width, Height int
	Left, Right   int
	Bottom        int
	Scale         string // description of the axis
	Lanes         []lane
	Bars          []bar
	Marks         []mark
	Ticks         []float64
	Texts         []text
}

type lane struct{ Y int }

// bar is a period in which a worker was in one state.
type bar struct {
	Class      string
	X, Y, W, H float64
	Title      string // tooltip
}

// mark marks a moment.
type mark struct {
	X, Y  float64
	Fault bool // a line, not the circle of a sale
	Next  bool // a triangle: the grant that a loss is reported before
	Title string
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
	texts := newTexts(laneLeft, laneLeft+laneWidth)
	for i := range workers {
		t.Lanes = append(t.Lanes, lane{laneTop + i*laneHeight})
		texts.name(top(i), fmt.Sprintf("worker %d", i+1))
	}
	t.drawAxis(end, scale, texts)
	t.Scale = fmt.Sprintf("The axis shows the time since the start of the sale, in seconds; the full width is %.2f s.", end.Seconds())
	tracks := make([]track, workers)
	for _, e := range events {
		tracks[e.worker] = append(tracks[e.worker], e)
	}
	for i, tr := range tracks {
		t.drawTrack(tr, top(i), end, scale)
	}
	for _, e := range events {
		t.addMark(e, scale)
		if next, ok := grantAfter(events, e); ok && e.kind == isTold {
			t.Marks = append(t.Marks, mark{X: scale(next.at), Y: top(next.worker), Next: true, Title: fmt.Sprintf("the next holder, at %.3f s", next.at.Seconds())})
		}
	}
	for _, m := range t.Marks {
		if m.Fault {
			texts.keepClear(m.X, m.Y)
		}
	}
	for _, e := range events {
		full, shorter := markText(events, e)
		texts.explain(scale(e.at), top(e.worker), full, shorter)
	}
	for _, e := range events { // the tokens get the room that the faults leave
		if e.token != 0 {
			texts.number(scale(e.at), top(e.worker), e.token)
		}
	}
	t.Texts = texts.placed
	return t
}

// top returns the top of a worker's bars.
func top(worker int) float64 { return float64(laneTop + worker*laneHeight + 8) }

// markText returns the text of a mark, and a shorter one to use if there is little room. The text is empty for events that
// need none.
func markText(events []event, e event) (text, shorter string) {
	switch e.kind {
	case crashes:
		return "crashes", ""
	case isCutOff:
		return "partitioned", "cut"
	case isBack:
		return "back", ""
	case isTold:
		if next, ok := grantAfter(events, e); ok {
			return fmt.Sprintf("notified %.2f s before the next holder", (next.at - e.at).Seconds()), "notified"
		}
		return "notified", ""
	}
	return "", ""
}

// grantAfter returns the first grant after an event.
func grantAfter(events []event, e event) (event, bool) {
	for _, next := range events {
		if next.at > e.at && next.kind == begins {
			return next, true
		}
	}
	return event{}, false
}

// drawAxis draws about a dozen ticks at round times.
func (t *timeline) drawAxis(end time.Duration, scale func(time.Duration) float64, texts *texts) {
	step := 50 * time.Millisecond
	for _, s := range []time.Duration{100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000} {
		if end/step > 12 {
			step = s * time.Millisecond
		}
	}
	for at := time.Duration(0); at <= end; at += step {
		t.Ticks = append(t.Ticks, scale(at))
		texts.time(scale(at), fmt.Sprintf("%g s", at.Seconds()))
	}
}

// classes maps the events that begin a state to the CSS class of its bar. Other states are not drawn.
var classes = map[kind]string{asks: "waits", begins: "holds", isCutOff: "cut", isTold: "lost", crashes: "dead"}

func (t *timeline) drawTrack(tr track, y float64, end time.Duration, scale func(time.Duration) float64) {
	for i, e := range tr {
		class, ok := classes[e.kind]
		if !ok {
			continue
		}
		until := tr.endOf(i, end)
		b := bar{Class: class, X: scale(e.at), Y: y, W: max(1, scale(until)-scale(e.at)), H: barHeight}
		b.Title = fmt.Sprintf("%s, %.3f s to %.3f s", e.kind, e.at.Seconds(), until.Seconds())
		if e.token != 0 {
			b.Title += fmt.Sprintf(", token %d, node %s", e.token, show.Text(e.node))
		}
		t.Bars = append(t.Bars, b)
	}
}

// endOf returns when the state that the i-th event began ended. Selling an item does not end the work.
func (tr track) endOf(i int, end time.Duration) time.Duration {
	for _, e := range tr[i+1:] {
		if e.kind != sells && e.kind != soldOut {
			return e.at
		}
	}
	return end
}

func (t *timeline) addMark(e event, scale func(time.Duration) float64) {
	switch e.kind {
	case sells, crashes, isCutOff, isTold, isBack:
		t.Marks = append(t.Marks, mark{X: scale(e.at), Y: top(e.worker), Fault: e.kind != sells,
			Title: fmt.Sprintf("%s at %.3f s", e.kind, e.at.Seconds())})
	}
}
