package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// liveView draws a sale again and again on a terminal.
type liveView struct {
	out     *os.File
	sale    *sale
	workers int
	items   int
	drawn   int // lines, to go up by
	quit    chan struct{}
	done    chan struct{}
}

const frameTime = 80 * time.Millisecond

func watchLive(out *os.File, s *sale, workers, items int) *liveView {
	v := &liveView{out: out, sale: s, workers: workers, items: items, quit: make(chan struct{}), done: make(chan struct{})}
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
	io.WriteString(v.out, "\x1b[?25l")       // hide the cursor
	defer io.WriteString(v.out, "\x1b[?25h") // show it
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
	columns, _, ok := windowSize(v.out)
	if !ok || columns < 40 {
		columns = 80
	}
	events := v.sale.log.soFar()
	lines := frame(events, time.Since(v.sale.log.start), v.workers, v.items, columns)
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	v.drawn = len(lines)
	io.WriteString(v.out, b.String())
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

// frame is what the live view shows at a time: a line on the stock and one for each worker.
func frame(events []event, now time.Duration, workers, items, columns int) []string {
	sold := 0
	tracks := make([]track, workers)
	for _, e := range events {
		if e.kind == sells {
			sold++
		}
		tracks[e.worker] = append(tracks[e.worker], e)
	}
	lines := []string{stockLine(sold, items, now)}
	const name = 11
	const words = 40
	width := max(10, columns-name-words-1)
	for i, t := range tracks {
		state := looks[t.at(now)]
		words := fmt.Sprintf("%-*s", words, t.words())
		lines = append(lines, fmt.Sprintf("worker %-3d %s %s", i+1, t.draw(now, width), paint(words, state.color)))
	}
	return lines
}

func stockLine(sold, items int, now time.Duration) string {
	bar := strings.Repeat("■", min(sold, items)) + strings.Repeat("□", max(0, items-sold))
	over := ""
	if sold > items {
		over = paint(fmt.Sprintf("  OVERSOLD by %d", sold-items), 31)
	}
	return fmt.Sprintf("%5.1f s    %s  %d of %d sold%s", now.Seconds(), bar, sold, items, over)
}

func paint(text string, color int) string {
	if color == 0 {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, text)
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
func (t track) draw(now time.Duration, width int) string {
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
