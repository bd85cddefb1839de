// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
)

// liveView redraws a sale on a terminal until it is stopped.
type liveView struct {
	display *terminal.Display
	sale    *sale
	workers int
	items   int
	quit    chan struct{}
	done    chan struct{}
}

const frameTime = 80 * time.Millisecond

func watchLive(out *os.File, s *sale, workers, items int) *liveView {
	v := &liveView{display: terminal.New(out), sale: s, workers: workers, items: items, quit: make(chan struct{}), done: make(chan struct{})}
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
	defer v.display.Close()
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
	columns, _ := v.display.Size()
	v.display.Draw(frame(v.sale.log.soFar(), time.Since(v.sale.log.start), v.workers, v.items, columns, v.display.Paint))
}

// look is the appearance of a worker's state: a glyph in its track, words, and a color.
type look struct {
	glyph rune
	words string
	color int // a terminal color code; zero means none
}

var looks = map[kind]look{
	0:        {' ', "", 0},
	asks:     {'·', "waits", 90},
	begins:   {'█', "WORKS", 32},
	sells:    {'█', "WORKS", 32},
	ends:     {' ', "", 0},
	soldOut:  {' ', "finds it sold out", 0},
	crashes:  {'x', "CRASHED", 31},
	isCutOff: {'▒', "CUT OFF, believes it holds", 33},
	isTold:   {'-', "cut off, knows its lock is lost", 33},
	isBack:   {' ', "reconnects", 0},
}

// painter returns text in a terminal color, or unchanged.
type painter func(text string, color int) string

// narrowest is the least width of a frame.
const narrowest = 30

// frame returns the lines of the live view: one for the stock, one for each worker, and a legend. On a narrow terminal it
// leaves out the words first, and then shortens the tracks.
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
		text := fmt.Sprintf("%-*s", words, terminal.Shorten(t.words(), words))
		lines = append(lines, fmt.Sprintf("worker %-3d %s %s", i+1, t.draw(now, width, paint), paint(text, state.color)))
	}
	return append(lines, terminal.Shorten(legend, columns))
}

const legend = "· waits  █ works  ▒ cut off, believes it holds  - lock lost  x crashed"

func stockLine(sold, items int, now time.Duration, columns int, paint painter) string {
	text := fmt.Sprintf("%5.1f s  %d of %d sold", now.Seconds(), sold, items)
	over := ""
	if sold > items {
		over = fmt.Sprintf("  OVERSOLD by %d", sold-items)
	}
	bar := "  " + strings.Repeat("■", min(sold, items)) + strings.Repeat("□", max(0, items-sold))
	if terminal.Width(text+over+bar) > columns {
		bar = ""
	}
	return text + paint(over, 31) + bar
}

// track is one worker's events.
type track []event

// at returns the worker's state at a time: the kind of the last event up to then.
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

// draw returns the time from the start to now as width glyphs, each for an equal part of it.
func (t track) draw(now time.Duration, width int, paint painter) string {
	var b strings.Builder
	for i := range width {
		k := t.busiest(now*time.Duration(i)/time.Duration(width), now*time.Duration(i+1)/time.Duration(width))
		b.WriteString(paint(string(looks[k].glyph), looks[k].color))
	}
	return b.String()
}

// busiest returns the state to show for a period. Work, a crash or a cut is shown even if it is shorter than the period.
func (t track) busiest(from, to time.Duration) kind {
	state := t.at(from)
	for _, e := range t {
		if from < e.at && e.at <= to && (e.kind == begins || e.kind == crashes || e.kind == isCutOff) {
			state = e.kind
		}
	}
	return state
}
