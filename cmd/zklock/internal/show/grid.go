// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zklock-go/zklock/cmd/zklock/internal/terminal"
)

// grid is a table that fits a screen: if it is too wide, one column is cut and others are left out.
type grid struct {
	head    []string
	rows    [][]string
	cut     string   // the column that is cut
	drop    []string // the columns that are left out, in this order, if cutting is not enough
	columns int      // width of the screen; zero means no limit
}

// leastCut is the least width of a cut column, unless no other column can be left out.
const leastCut = 8

// fit returns the table to print and the widths of its columns.
func (g grid) fit() (all [][]string, widths []int) {
	all = append([][]string{g.head}, g.rows...)
	for drop := g.drop; ; drop = drop[1:] {
		total := -2
		widths = make([]int, len(all[0]))
		for i := range widths {
			for _, row := range all {
				widths[i] = max(widths[i], terminal.Width(row[i]))
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

// without returns a copy of table without the given column.
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
			cell = terminal.Shorten(cell, widths[i])
			b.WriteString(cell + strings.Repeat(" ", widths[i]-terminal.Width(cell)+2))
		}
		line := strings.TrimRight(b.String(), " ")
		if g.columns > 0 {
			line = terminal.Shorten(line, g.columns)
		}
		fmt.Fprintln(w, line)
	}
}
