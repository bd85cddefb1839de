package mutants

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// foundFile lists what has found each mutant, and when. A hunt writes it: see note.
const foundFile = "found.md"

const foundHead = `# What has found each mutant

Written by ` + "`make mutants`" + `, which hunts each mutant with its test, or with the simulator if it has none. With ` + "`ARGS=-simulator`" + ` the simulator
looks for those that have a test, with all made plans and a few drawn seeds. The times are of the processor.

| mutant | from | its test | the simulator | on |
|---|---|---|---|---|
`

// A finding is a line of the list: what has found a mutant.
type finding struct{ Name, After, Test, Simulator, Day string }

func (f finding) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", f.Name, f.After, f.Test, f.Simulator, f.Day)
}

// failure says why a finding is none, and is "" for one.
func (f finding) failure(m Mutant) string {
	by := f.Test
	if m.Test.Name == "" {
		by = f.Simulator
	}
	for _, bad := range []string{survived, "does not", "failed", "never ends"} {
		if strings.HasPrefix(by, bad) {
			return by
		}
	}
	return ""
}

// found reads the list, by the mutants' names.
func found() (map[string]finding, error) {
	text, err := os.ReadFile(foundFile)
	if err != nil {
		return nil, err
	}
	all := map[string]finding{}
	lines := strings.Split(strings.TrimPrefix(string(text), foundHead), "\n")
	for _, line := range lines {
		if c := strings.Split(strings.Trim(line, "| "), " | "); len(c) == 5 {
			all[c[0]] = finding{c[0], c[1], strings.TrimSpace(c[2]), strings.TrimSpace(c[3]), c[4]}
		}
	}
	return all, nil
}

// note writes a finding into the list, which keeps what it has of others that are still in the table.
func note(f finding) error {
	all, err := found()
	if err != nil {
		return err
	}
	before := all[f.Name]
	f.Test, f.Simulator = oneLine(cmp.Or(f.Test, before.Test)), oneLine(cmp.Or(f.Simulator, before.Simulator))
	all[f.Name] = f
	return os.WriteFile(foundFile, []byte(listed(all)), 0o644)
}

func oneLine(text string) string {
	return strings.ReplaceAll(strings.SplitN(text, "\n", 2)[0], "|", "/")
}

func listed(all map[string]finding) string {
	var text strings.Builder
	text.WriteString(foundHead)
	for _, m := range Table {
		if f, ok := all[m.Name]; ok {
			fmt.Fprintln(&text, f)
		}
	}
	return text.String()
}

// TestTheListIsOfTheTable keeps the list of what was found to the mutants that there are.
func TestTheListIsOfTheTable(t *testing.T) {
	all, err := found()
	require.NoError(t, err)
	text, err := os.ReadFile(foundFile)
	require.NoError(t, err)
	require.Equal(t, listed(all), string(text), "%s is out of order, or names mutants that are none", foundFile)
	for _, m := range Table {
		f, ok := all[m.Name]
		require.True(t, ok, "%s is not in the list: make mutants ARGS=\"-only '%s'\"", m.Name, m.Name)
		require.Equal(t, m.After, f.After, m.Name)
		require.Empty(t, f.failure(m), m.Name)
		require.False(t, m.Test.Name == "" && f.Simulator == "" || m.Test.Name != "" && f.Test == "", "%s: nothing has found it", m.Name)
	}
}
