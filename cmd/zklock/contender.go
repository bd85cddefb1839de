package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/plain"
	"github.com/zklock-go/zklock/operate"
)

// How contenders are written in a terminal. What they say of themselves comes from
// anybody, so none of it is printed as it is.

// shown returns text of others as a terminal may get it.
func shown(text string) string { return plain.Short(text, 512) }

func baseOf(who zklock.Contender) string { return path.Base(who.Node) }

// ending returns a node's name without the part that only makes it unique.
func ending(name string) string {
	for _, infix := range []string{"lock-", "latch-", "lease-", "__WRIT__", "__READ__", "__lock__", "__rlock__"} {
		if i := strings.LastIndex(name, infix); i >= 0 {
			return name[i:]
		}
	}
	return name
}

func holders(q *operate.Queue) int {
	n := 0
	for _, who := range q.Contenders {
		if who.Holds {
			n++
		}
	}
	return n
}

func stateOf(who zklock.Contender) string {
	state := "waits"
	if who.Holds {
		state = "HOLDS"
	}
	if who.Revoked {
		state += ", asked"
	}
	return state
}

// ago is by two clocks, the server's and ours: it is never shown as negative.
func ago(now, since time.Time) string { return duration(now.Sub(since)) }

// duration returns a time as two of its units at most: 3d4h, 5m10s, 12s.
func duration(d time.Duration) string {
	d = max(0, d).Round(time.Second)
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, rest/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

// ownerOf returns a contender's label, host and process, as it says itself.
func ownerOf(who zklock.Contender) string {
	var parts []string
	if who.Label != "" {
		parts = append(parts, plain.Short(who.Label, 60))
	}
	switch {
	case who.Host != "" && who.PID != 0:
		parts = append(parts, fmt.Sprintf("%s:%d", plain.Short(who.Host, 64), who.PID))
	case who.Anonymous:
	case len(who.Data) > 0 && utf8.Valid(who.Data):
		parts = append(parts, plain.Short(string(who.Data), 60))
	}
	if who.Client != "" && who.Client != operate.ClientZklock {
		parts = append(parts, "("+who.Client+")")
	}
	if who.Cohort {
		parts = append(parts, "(cohort)")
	}
	return strings.Join(parts, " ")
}

// grid is a table that fits a screen: one column is cut where it would be wider, and others are left out.
type grid struct {
	head    []string
	rows    [][]string
	cut     string   // the column that is cut
	drop    []string // the columns that are left out, the first one first, if cutting is not enough
	columns int      // of the screen; zero: as wide as it is
}

// leastCut is how narrow a column becomes by being cut, unless nothing else can be left out.
const leastCut = 8

// fit returns the table as it is printed, with the widths of its columns.
func (g grid) fit() (all [][]string, widths []int) {
	all = append([][]string{g.head}, g.rows...)
	for drop := g.drop; ; drop = drop[1:] {
		total := -2
		widths = make([]int, len(all[0]))
		for i := range widths {
			for _, row := range all {
				widths[i] = max(widths[i], width(row[i]))
			}
			total += widths[i] + 2
		}
		cut, over := slices.Index(all[0], g.cut), total-g.columns
		switch {
		case g.columns == 0 || over <= 0:
			return all, widths
		case len(drop) == 0 || widths[cut]-over >= leastCut:
			widths[cut] = max(4, widths[cut]-over)
			return all, widths
		}
		all = without(all, slices.Index(all[0], drop[0]))
	}
}

// without returns a table without one of its columns.
func without(table [][]string, column int) (rest [][]string) {
	for _, row := range table {
		rest = append(rest, slices.Delete(slices.Clone(row), column, column+1))
	}
	return rest
}

func (g grid) print(w io.Writer) {
	all, widths := g.fit()
	for _, row := range all {
		var b strings.Builder
		for i, cell := range row {
			cell = shorten(cell, widths[i])
			b.WriteString(cell + strings.Repeat(" ", widths[i]-width(cell)+2))
		}
		line := strings.TrimRight(b.String(), " ")
		if g.columns > 0 {
			line = shorten(line, g.columns)
		}
		fmt.Fprintln(w, line)
	}
}

// width returns how many columns a text takes on a screen.
func width(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOfRune(r)
	}
	return n
}

// wideRunes are the blocks of characters that take two columns, nearly all of them.
var wideRunes = [][2]rune{
	{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6},
	{0x1f300, 0x1faff}, {0x20000, 0x3fffd},
}

func columnsOfRune(r rune) int {
	if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) {
		return 0
	}
	if slices.ContainsFunc(wideRunes, func(block [2]rune) bool { return block[0] <= r && r <= block[1] }) {
		return 2
	}
	return 1
}

// shorten cuts a text to a width, with a mark where something is missing.
func shorten(text string, most int) string {
	if width(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += columnsOfRune(r); n >= most {
			return text[:i] + strings.Repeat("…", min(1, max(0, most)))
		}
	}
	return text
}

// shortenLeft keeps the end: that is where paths and the names of nodes differ.
func shortenLeft(text string, most int) string {
	n := width(text)
	if n <= most {
		return text
	}
	for i, r := range text {
		if n -= columnsOfRune(r); n < most {
			return "…" + text[i+utf8.RuneLen(r):]
		}
	}
	return ""
}
