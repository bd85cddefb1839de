// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"strconv"
	"strings"
)

// text is a text of the drawing. Width is how wide it is in a wide font.
type text struct {
	Class       string
	X, Y, Width float64 // the left end of its baseline
	Text        string
}

// box is what a text or a mark takes up.
type box struct{ left, right, top, bottom float64 }

func (b box) meets(other box) bool {
	return b.left < other.right && other.left < b.right && b.top < other.bottom && other.top < b.bottom
}

func (t text) box() box { return box{t.X, t.X + t.Width, t.Y - 9, t.Y + 3} }

// Geometry of the texts, in pixels.
const (
	fontSize   = 11
	textShift  = 4  // between a mark and its text
	onBar      = 13 // from the top of a bar to the baseline of a text on it
	aboveBar   = -8 // of a text above it, and above the line of a mark
	aboveHold  = -2 // of a token above the bar of its hold
	faultWidth = 2
)

// texts places texts so that no two overlap.
type texts struct {
	left, right float64 // the lanes' ends
	placed      []text
	taken       []box
}

func newTexts(left, right float64) *texts { return &texts{left: left, right: right} }

// keepClear keeps texts off the line of a mark at x on the bar whose top is y.
func (t *texts) keepClear(x, y float64) {
	t.taken = append(t.taken, box{x - faultWidth/2, x + faultWidth/2, y - 4, y + 22})
}

// place places the first of the texts that has room. If none has, the tooltip of the bar or mark
// must do.
func (t *texts) place(from, to float64, candidates ...text) {
	for _, c := range candidates {
		if c.X >= from && c.X+c.Width <= to && t.isFree(c.box()) {
			t.placed, t.taken = append(t.placed, c), append(t.taken, c.box())
			return
		}
	}
}

func (t *texts) isFree(b box) bool {
	for _, other := range t.taken {
		if b.meets(other) {
			return false
		}
	}
	return true
}

// name writes a worker's name to the left of the bars whose top is y.
func (t *texts) name(y float64, s string) {
	t.place(0, t.left, text{"", 8, y + 14, widthOf(s), s})
}

// time writes a time above the axis.
func (t *texts) time(x float64, s string) {
	w := widthOf(s)
	t.place(0, t.right+20, text{"time", x - w/2, 14, w, s})
}

// explain says what a mark at x on the bar whose top is y means: after it or before it, on the bar or
// above it, in full or shortened.
func (t *texts) explain(x, y float64, full, shorter string) {
	var candidates []text
	for _, s := range []string{full, shorter} {
		if s == "" {
			continue
		}
		w := widthOf(s)
		for _, row := range []float64{onBar, aboveBar} {
			for _, left := range []float64{x + textShift, x - textShift - w} {
				candidates = append(candidates, text{"explains", left, y + row, w, s})
			}
		}
	}
	t.place(t.left, t.right, candidates...)
}

// number writes the last digits of the token of a hold above its bar, which begins at x and whose top is y. The bar's tooltip has
// all digits.
func (t *texts) number(x, y float64, token int64) {
	s := strconv.FormatInt(token, 10)
	if n := len(s); n > 4 {
		s = "…" + s[n-3:]
	}
	t.place(t.left, t.right, text{"token", x, y + aboveHold, widthOf(s), s})
}

// widths are the widths of letters in thousandths of the font's size, in DejaVu Sans Bold, one of the
// widest fonts that browsers use.
var widths = map[string]float64{
	"ijl": 343, " ": 348, ".": 380, "f": 435, "t": 478, "r": 493, "z": 582, "cs": 594, "vxy": 650, "aek": 675, "o0123456789": 696,
	"bdghnpqu": 716, "w": 924,
}

// widthOf measures a text.
func widthOf(s string) float64 {
	sum := 0.0
	for _, r := range s {
		sum += widthOfLetter(r)
	}
	return math.Ceil(sum * fontSize / 1000)
}

func widthOfLetter(r rune) float64 {
	for letters, w := range widths {
		if strings.ContainsRune(letters, r) {
			return w
		}
	}
	return 1050
}
