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
	TextY  int // under the top of the bar; above it if negative

	shorter string // in place of Text where there is no room
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
		t.addMark(e, events, float64(laneTop+e.worker*laneHeight+8), scale)
	}
	for i := range workers {
		y := float64(laneTop + i*laneHeight + 8)
		t.placeTexts(y, onBar)
		t.placeTexts(y, aboveBar)
	}
	return t
}

// markText returns what stands at a moment that is worth it, and what stands there if there is little room.
func markText(events []event, e event) (text, shorter string) {
	switch e.kind {
	case crashes:
		return "crashes", ""
	case isCutOff:
		return "cut off", "cut"
	case isBack:
		return "back", ""
	case isTold:
		for _, next := range events {
			if next.at > e.at && next.kind == begins {
				return fmt.Sprintf("told %.2f s before the next one held", (next.at - e.at).Seconds()), "told"
			}
		}
		return "told", ""
	}
	return "", ""
}

// Texts beside marks, in pixels.
const (
	letterWidth = 6
	textShift   = 4
	onBar       = 13
	aboveBar    = -6
)

// placeTexts puts the texts in one row of a lane where they do not meet: behind their marks, before them, or shorter.
func (t *timeline) placeTexts(y float64, row int) {
	free := float64(t.Left) // from here on nothing stands yet
	var lane []*mark
	for i := range t.Marks {
		if m := &t.Marks[i]; m.Y == y && m.TextY == row && m.Text != "" {
			lane = append(lane, m)
		}
	}
	for i, m := range lane {
		limit := float64(t.Right)
		if i+1 < len(lane) {
			limit = lane[i+1].X
		}
		free = m.place(free, limit)
	}
}

// place finds room for the text of a mark between two places, and returns from where on there is room for the next one.
// The marks themselves are told by their titles, too, if there is none.
func (m *mark) place(free, limit float64) float64 {
	for _, text := range []string{m.Text, m.shorter} {
		length := float64(textShift + letterWidth*len(text))
		switch {
		case text == "":
		case m.X+length <= limit:
			m.Text, m.Anchor, m.Shift = text, "start", textShift
			return m.X + length
		case m.X-length >= free:
			m.Text, m.Anchor, m.Shift = text, "end", -textShift
			return m.X
		}
	}
	m.Text = noRoom
	return m.X
}

// noRoom is the text of a mark beside which nothing can stand.
const noRoom = " "

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

func (t *timeline) addMark(e event, events []event, y float64, scale func(time.Duration) float64) {
	m := mark{Class: "fault", X: scale(e.at), Y: y, Title: fmt.Sprintf("%s at %.3f s", e.kind, e.at.Seconds()), TextY: onBar}
	m.Text, m.shorter = markText(events, e)
	switch {
	case e.kind == sells:
		m.Class = "sold"
	case e.kind == isBack:
		m.TextY = aboveBar // what stands before it is long
	case m.Text == "":
		return
	}
	t.Marks = append(t.Marks, m)
}
