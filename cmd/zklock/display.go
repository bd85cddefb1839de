package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// display is a terminal that is drawn on again and again.
type display struct {
	out   *os.File
	plain bool // no colours
	drawn int  // lines, to go up by
}

// isDisplay reports whether f is a terminal on which lines can be drawn over.
func isDisplay(f *os.File) bool {
	_, _, terminal := windowSize(f)
	return terminal && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

func newDisplay(f *os.File) *display {
	s := &display{out: f, plain: os.Getenv("NO_COLOR") != ""}
	io.WriteString(f, "\x1b[?25l") // hide the cursor
	return s
}

// close shows the cursor again, below what was drawn.
func (s *display) close() { io.WriteString(s.out, "\x1b[?25h") }

// size returns the terminal's columns and rows.
func (s *display) size() (columns, rows int) {
	columns, rows, ok := windowSize(s.out)
	if !ok || columns < 1 || rows < 1 {
		return 80, 24
	}
	return columns, rows
}

// draw replaces what was drawn before. Lines that do not fit are left out.
func (s *display) draw(lines []string) error {
	_, rows := s.size()
	lines = lines[:min(len(lines), max(1, rows-1))]
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	for range s.drawn - len(lines) { // there were more before
		b.WriteString("\r\x1b[K\n")
	}
	s.drawn = max(s.drawn, len(lines))
	_, err := io.WriteString(s.out, b.String())
	return err
}

// paint returns text in a colour, if colours are wanted.
func (s *display) paint(text string, color int) string {
	if color == 0 || s.plain {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, text)
}

// columnsOf returns how wide a table may be: a terminal's width, 80 for anything else.
func columnsOf(f *os.File) int {
	columns, _, ok := windowSize(f)
	if !ok || columns < 40 {
		return 80
	}
	return columns
}
