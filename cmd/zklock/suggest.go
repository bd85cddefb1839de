package main

import (
	"fmt"
	"strings"
)

// suggestion proposes the one of names that was probably meant, if there is one.
func suggestion(name string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		d := distance(name, n)
		if len(name) > 1 && strings.HasPrefix(n, name) {
			d = 1
		}
		if d < least && d <= max(1, len(n)/3) && d < len(n) {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance returns how many letters have to be put in, left out or replaced to make b of
// a; two neighbours that have changed places count once.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
