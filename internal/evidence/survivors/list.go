package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// listName is where the list stands.
const listName = "internal/evidence/survivors/survivors.md"

// A survivor is a line of the list.
type survivor struct{ what, how, why string }

// survivorList has the survivors by file, as survivors.md has them.
type survivorList struct {
	files map[string][]survivor
	tried map[string]int
}

var (
	headLine = regexp.MustCompile(`^## ([a-z/]+\.go): \d+ of (\d+)$`)
	bodyLine = regexp.MustCompile(`^- (.*) \((not noticed|not reached)\)(?:: (.*))?$`)
)

func readList(name string) (*survivorList, error) {
	l := &survivorList{files: map[string][]survivor{}, tried: map[string]int{}}
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return l, nil
	}
	file := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if m := headLine.FindStringSubmatch(line); m != nil {
			file = m[1]
			l.tried[file], _ = strconv.Atoi(m[2]) // digits, as the pattern has it
		} else if m := bodyLine.FindStringSubmatch(line); m != nil {
			l.files[file] = append(l.files[file], survivor{m[1], m[2], m[3]})
		}
	}
	return l, err
}

// replace puts what was found of a file in the place of what was known, and keeps the words on it.
func (l *survivorList) replace(file string, tried int, found []survivor) {
	why := map[string]string{}
	for _, s := range l.files[file] {
		why[s.what] = s.why
	}
	for i := range found {
		found[i].why = why[found[i].what]
	}
	l.files[file], l.tried[file] = found, tried
}

const preface = "# What the tests do not notice\n\n`make survivors` writes this list: mutations of the files that the promises rest on, after which the tests of the package still pass, and the root's with `-short`; `internal/lease` has the former only. What takes ten seconds more than four times as long as without a mutation counts as noticed.\n" +
	"What stands behind a colon says why a mutation makes no difference. The others want a test.\n"

func (l *survivorList) write(name string) error {
	var b bytes.Buffer
	b.WriteString(preface)
	files := make([]string, 0, len(l.tried))
	for file := range l.tried {
		files = append(files, file)
	}
	slices.Sort(files)
	for _, file := range files {
		fmt.Fprintf(&b, "\n## %s: %d of %d\n\n", file, len(l.files[file]), l.tried[file])
		for _, s := range l.files[file] {
			fmt.Fprintf(&b, "- %s (%s)", s.what, s.how)
			if s.why != "" {
				fmt.Fprintf(&b, ": %s", s.why)
			}
			b.WriteByte('\n')
		}
	}
	return os.WriteFile(name, b.Bytes(), 0o600)
}
