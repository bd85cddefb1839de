// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// reason is a line of reasons.txt.
type reason struct {
	name string // a pattern of path.Match
	used bool
}

// reasons returns the lines of each package.
func reasons(t *testing.T) map[string][]*reason {
	file, err := os.Open("reasons.txt")
	require.NoError(t, err)
	defer file.Close()
	all, pkg := map[string][]*reason{}, ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			pkg = strings.Trim(line, "[]")
			require.Empty(t, all[pkg], "%s stands there twice", pkg)
			continue
		}
		name, why, _ := strings.Cut(line, ": ")
		require.Regexp(t, `^\S.*\.$`, why, "%s: a sentence", name)
		require.Less(t, len(strings.Fields(why)), 30, name)
		all[pkg] = append(all[pkg], &reason{name: name})
	}
	return all
}

// names returns the exported names of a package, without the declarations.
func names(t *testing.T, pkg string) (all []string) {
	lines, err := surface(filepath.Join(root, filepath.FromSlash(pkg)))
	require.NoError(t, err)
	for _, line := range lines {
		all = append(all, nameOf(line))
	}
	return all
}

// nameOf returns the name that a line of the surface declares: "Hold.Check" of "func (h *Hold) Check() error".
func nameOf(line string) string {
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '(' || r == '[' })
	if method, ok := strings.CutPrefix(line, "func ("); ok {
		receiver, rest, _ := strings.Cut(method, ") ")
		receiver, _, _ = strings.Cut(receiver, "[") // the parameters of a generic type
		name, _, _ := strings.Cut(rest, "(")
		return receiver[strings.LastIndexAny(receiver, " *")+1:] + "." + name
	}
	return words[1]
}

// has reports whether the name has a reason: its own, or otherwise that of a pattern.
func has(t *testing.T, lines []*reason, name string) bool {
	var found *reason
	for _, r := range lines {
		fits, err := path.Match(r.name, name)
		require.NoError(t, err)
		if fits && (found == nil || r.name == name) {
			found = r
		}
	}
	if found != nil {
		found.used = true
	}
	return found != nil
}

// TestNoKeyOfJSONAndNoMetricChangesUnseen compares names.txt with the code. A change of a name also changes names.txt, and
// CHANGELOG.md tells users what to do.
func TestNoKeyOfJSONAndNoMetricChangesUnseen(t *testing.T) {
	accepted, err := os.ReadFile("names.txt")
	require.NoError(t, err)
	now, err := outsideNames(root)
	require.NoError(t, err)
	require.Equal(t, strings.Split(strings.TrimSpace(string(accepted)), "\n"), now, "see docs/compatibility.md; tools/apidiff accept")
	require.Contains(t, now, "json contenderJSON session")
	require.Contains(t, now, "metric adapters/prometheus zklock_holds")
	require.Contains(t, now, "metric adapters/otel zklock.recipe")
}

// TestEveryExportedNameHasAReason compares reasons.txt with the exported names of the packages.
func TestEveryExportedNameHasAReason(t *testing.T) {
	all := reasons(t)
	for pkg, lines := range all {
		for _, name := range names(t, pkg) {
			assert.True(t, has(t, lines, name), "%s: %s needs a reason in reasons.txt, or is to be folded into another name", pkg, name)
		}
		for _, r := range lines {
			assert.True(t, r.used, "%s: there is no %s", pkg, r.name)
		}
	}
	for _, pattern := range []string{"*.go", "*/*.go", "adapters/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for _, file := range files {
			pkg, err := filepath.Rel(root, filepath.Dir(file))
			require.NoError(t, err)
			if pkg != "compare" && pkg != "integration" { // programs and tests
				assert.NotEmpty(t, all[filepath.ToSlash(pkg)], "the package %s", pkg)
			}
		}
	}
}
