// SPDX-License-Identifier: Apache-2.0

// Package terminal draws on terminals, and asks the system about them.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Display is a terminal on which each drawing replaces the previous one.
type Display struct {
	out   *os.File
	plain bool   // no colors
	stop  func() // ends the handling of suspensions

	mu    sync.Mutex
	drawn int // guarded by mu: number of lines to move up before the next drawing
}

// IsDisplay reports whether f is a terminal that can overwrite lines.
func IsDisplay(f *os.File) bool {
	_, _, terminal := Size(f)
	return terminal && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

func New(f *os.File) *Display {
	s := &Display{out: f, plain: os.Getenv("NO_COLOR") != ""}
	s.hideCursor()
	s.stop = aroundSuspension(s.suspend, s.resume)
	return s
}

// Close shows the cursor again, below the drawing.
func (s *Display) Close() {
	s.stop()
	s.showCursor()
}

func (s *Display) hideCursor() { io.WriteString(s.out, "\x1b[?25l") }

func (s *Display) showCursor() { io.WriteString(s.out, "\x1b[?25h") }

// suspend leaves the terminal to others. No drawing is made until resume.
func (s *Display) suspend() {
	s.mu.Lock()
	s.showCursor()
}

// resume takes the terminal back. The next drawing begins below what others have written.
func (s *Display) resume() {
	s.drawn = 0
	s.hideCursor()
	s.mu.Unlock()
}

// Size returns the terminal's columns and rows.
func (s *Display) Size() (columns, rows int) {
	columns, rows, ok := Size(s.out)
	if !ok || columns < 1 || rows < 1 {
		return 80, 24
	}
	return columns, rows
}

// Draw replaces the previous drawing. Lines that do not fit are left out.
func (s *Display) Draw(lines []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, rows := s.Size()
	lines = lines[:min(len(lines), max(1, rows-1))]
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	for range s.drawn - len(lines) { // clear the rest of a longer drawing
		b.WriteString("\r\x1b[K\n")
	}
	s.drawn = max(s.drawn, len(lines))
	_, err := io.WriteString(s.out, b.String())
	return err
}

// Paint returns text in a color, unless NO_COLOR is set.
func (s *Display) Paint(text string, color int) string {
	if color == 0 || s.plain {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, text)
}

// Columns returns the width for a table: the terminal's width, or 80 if f is not a terminal or is narrower than 40.
func Columns(f *os.File) int {
	columns, _, ok := Size(f)
	if !ok || columns < 40 {
		return 80
	}
	return columns
}
