// SPDX-License-Identifier: Apache-2.0

// Package mutants lists deliberate defects that the simulator or a specific test must find. Most are bugs that other lock libraries
// have or had. A mutant is a change of the library's source text that is compiled with go test's -overlay, so the library itself
// needs no code for it.
package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zklock-go/zklock/internal/evidence/yields"
)

// Mutant is one defect.
type Mutant struct {
	Name    string
	Origin  string // the library that has or had it, or why someone would write it
	Edits   []Edit
	Seeds   int    // the simulator must find it within this many short runs; 0 means 160
	Focus   string // the recipe of all locks in the runs, or "" to draw them
	Trouble string // kinds of faults in addition to the usual ones
	Faults  string // a pattern of the faults that happen; "" means all
	Test    Test   // the test that finds it, if the simulator does not or only rarely finds it
	Yields  int    // the test must find it within this many seeds of yields; 0 means without yields
}

// Test is a test of the library. Dir is the package's directory, relative to the module's root.
type Test struct{ Dir, Name string }

// Edit replaces a text that occurs once in a file. File is relative to the module's root.
type Edit struct{ File, Old, New string }

// Bound returns the number of seeds within which the simulator must find the mutant.
func (m Mutant) Bound() int {
	if m.Seeds == 0 {
		return 160
	}
	return m.Seeds
}

// Apply returns the mutated files of the module in root, by name.
func (m Mutant) Apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.Edits {
		text, ok := files[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("mutant %q: its text occurs %d times in %s, not once: %q", m.Name, n, e.File, e.Old)
		}
		files[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return files, nil
}

// Overlay writes the mutated files to dir, together with a file for go's -overlay flag, and returns the name of that file.
func (m Mutant) Overlay(root, dir string) (string, error) {
	files, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	if m.Yields > 0 {
		return yields.Overlay(root, dir, files)
	}
	return yields.WriteOverlay(root, dir, files)
}
