// SPDX-License-Identifier: Apache-2.0

// Package spell finds the word that was probably meant.
package spell

import "fmt"

// Suggest returns a question that suggests the word that was probably meant, to append to an error, or "" if none is similar.
func Suggest(word string, known []string) string {
	if meant := Nearest(word, known); meant != "" {
		return fmt.Sprintf(", did you mean %q?", meant)
	}
	return ""
}

// Nearest returns the known word that is most similar to word, or "" if none is similar.
func Nearest(word string, known []string) string {
	best, least := "", 3
	for _, n := range known {
		d := Distance(word, n)
		if len(word) > 1 && len(n) > len(word) && n[:len(word)] == word {
			d = 1
		}
		if d < least && d <= max(1, len(n)/3) && d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// Distance returns the edit distance of a and b: the number of characters to insert, delete or replace, where swapping two
// neighbors counts once.
func Distance(a, b string) int {
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
