package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// liveView draws a sale again and again on a terminal.
type liveView struct {
	display *display
	sale    *sale
	workers int
	items   int
	quit    chan struct{}
	done    chan struct{}
}

const frameTime = 80 * time.Millisecond

func watchLive(out *os.File, s *sale, workers, items int) *liveView {
	v := &liveView{display: newDisplay(out), sale: s, workers: workers, items: items, quit: make(chan struct{}), done: make(chan struct{})}
	// Owned by the view; ends with stop, which waits for it.
	go v.loop()
	return v
}

func (v *liveView) stop() {
	close(v.quit)
	<-v.done
}

func (v *liveView) loop() {
	defer close(v.done)
	defer v.display.close()
	ticker := time.NewTicker(frameTime)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			v.draw()
		case <-v.quit:
			v.draw()
			return
		}
	}
}

func (v *liveView) draw() {
	columns, _ := v.display.size()
	v.display.draw(frame(v.sale.log.soFar(), time.Since(v.sale.log.start), v.workers, v.items, columns, v.display.paint))
}

// look is how a worker's state shows: as a glyph in its track, in words, and in colour.
type look struct {
	glyph rune
	words string
	color int // of the terminal's
}

var looks = map[kind]look{
	0:        {' ', "", 0},
	asks:     {'·', "waits", 90},
	begins:   {'█', "WORKS", 32},
	sells:    {'█', "WORKS", 32},
	ends:     {' ', "", 0},
	soldOut:  {' ', "sees that all is sold", 0},
	crashes:  {'x', "CRASHED", 31},
	isCutOff: {'▒', "CUT OFF, still believes that it holds", 33},
	isTold:   {'-', "cut off, knows that its lock is lost", 33},
	isBack:   {' ', "is back", 0},
}

// painter returns text in a colour of the terminal's, or as it is.
type painter func(text string, color int) string

// narrowest is the least width that a frame is made for.
const narrowest = 30

// frame is what the live view shows at a time: a line on the stock, one for each worker
// and a legend. On a narrow terminal the words go first, then the length of the tracks.
func frame(events []event, now time.Duration, workers, items, columns int, paint painter) []string {
	columns = max(columns, narrowest)
	sold := 0
	tracks := make([]track, workers)
	for _, e := range events {
		if e.kind == sells {
			sold++
		}
		tracks[e.worker] = append(tracks[e.worker], e)
	}
	lines := []string{stockLine(sold, items, now, columns, paint)}
	const name = len("worker 123 ")
	words := min(40, max(0, columns-name-12))
	if words < 16 {
		words = 0
	}
	width := columns - name - words - 1
	for i, t := range tracks {
		state := looks[t.at(now)]
		text := fmt.Sprintf("%-*s", words, shorten(t.words(), words))
		lines = append(lines, fmt.Sprintf("worker %-3d %s %s", i+1, t.draw(now, width, paint), paint(text, state.color)))
	}
	return append(lines, shorten(legend, columns))
}

const legend = "· waits  █ works  ▒ cut off, believes it holds  - knows it lost  x crashed"

func stockLine(sold, items int, now time.Duration, columns int, paint painter) string {
	text := fmt.Sprintf("%5.1f s  %d of %d sold", now.Seconds(), sold, items)
	over := ""
	if sold > items {
		over = fmt.Sprintf("  OVERSOLD by %d", sold-items)
	}
	bar := "  " + strings.Repeat("■", min(sold, items)) + strings.Repeat("□", max(0, items-sold))
	if width(text+over+bar) > columns {
		bar = ""
	}
	return text + paint(over, 31) + bar
}

// track is one worker's events.
type track []event

// at is the worker's state at a time: its last event before.
func (t track) at(when time.Duration) kind {
	var k kind
	for _, e := range t {
		if e.at > when {
			break
		}
		k = e.kind
	}
	return k
}

func (t track) words() string {
	if len(t) == 0 {
		return ""
	}
	last := t[len(t)-1]
	if last.kind == begins && last.token != 0 {
		return fmt.Sprintf("HOLDS, token %d", last.token)
	}
	return looks[last.kind].words
}

// draw shows the past as width glyphs, each for the same time.
func (t track) draw(now time.Duration, width int, paint painter) string {
	var b strings.Builder
	for i := range width {
		k := t.busiest(now*time.Duration(i)/time.Duration(width), now*time.Duration(i+1)/time.Duration(width))
		b.WriteString(paint(string(looks[k].glyph), looks[k].color))
	}
	return b.String()
}

// busiest is what to show for a stretch of time: work, however short, is worth showing.
func (t track) busiest(from, to time.Duration) kind {
	state := t.at(from)
	for _, e := range t {
		if from < e.at && e.at <= to && (e.kind == begins || e.kind == crashes || e.kind == isCutOff) {
			state = e.kind
		}
	}
	return state
}
