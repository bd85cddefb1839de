package docs

import (
	"regexp"
	"strings"
)

var (
	code     = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?`)
	newPart  = regexp.MustCompile(`^\s*([-*]|\d+\.|#+|>|\|)\s`)
	abbrev   = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs)\.`)
	sentence = regexp.MustCompile(`[.!?:;]["')*]*(\s|$)`)
)

// Sentences returns the sentences of a text in Markdown or of a Go comment, those with a colon or a semicolon as two. Blocks
// of code are left out; a heading, an item of a list and a cell of a table begin a sentence.
func Sentences(text string) (all []string) {
	for _, part := range parts(text) {
		part = abbrev.ReplaceAllString(link.ReplaceAllString(code.ReplaceAllString(part, "code"), "$1"), "$1")
		for _, s := range sentence.Split(part, -1) {
			if s = strings.TrimSpace(s); s != "" {
				all = append(all, s)
			}
		}
	}
	return all
}

// parts splits a text into paragraphs, items, headings and cells.
func parts(text string) (all []string) {
	part, fenced := "", false
	end := func() {
		all, part = append(all, part), ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
			end()
		case fenced:
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "\t") || part == "" && strings.HasPrefix(line, "    "): // code is indented
			end()
		case strings.HasPrefix(line, "|"):
			end()
			all = append(all, strings.Split(line, "|")...)
		case newPart.MatchString(line):
			end()
			part = newPart.ReplaceAllString(line, "")
		default:
			part += " " + line
		}
	}
	end()
	return all
}
