// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// macroOfAssumption matches an assumption in the head of the lease's model, with the macro that takes it away.
var macroOfAssumption = regexp.MustCompile(`(?m)^ \*   - (A\d+): (?:[^\n]|\n \*     )*? ([A-Z]{5,})$`)

func register(t *testing.T) string {
	text, err := Register(root)
	require.NoError(t, err)
	return text
}

// TestEachPromiseHasATestAndEachDirectiveAPromise compares the register with the directives of all tests.
func TestEachPromiseHasATestAndEachDirectiveAPromise(t *testing.T) {
	claims := Claims(register(t))
	backings, err := Backings(root)
	require.NoError(t, err)
	require.Greater(t, len(claims), 150)
	require.Greater(t, len(backings), 600)
	backed, known := map[string]bool{}, map[string]bool{}
	for _, b := range backings {
		for _, id := range b.IDs {
			backed[id] = backed[id] || b.Runs()
		}
	}
	for _, m := range macroOfAssumption.FindAllStringSubmatch(readModel(t, "lease.pml"), -1) {
		backed[m[1]] = true
	}
	for _, c := range claims {
		assert.False(t, known[c.ID], "%s is given twice", c.ID)
		known[c.ID] = true
		assert.Equal(t, c.Tested, backed[c.ID], "%s: a claim has a test (or an assumption a macro of the model), or its row says *not tested*", c.ID)
	}
	for id := range backed {
		assert.True(t, known[id], "the register has no %s", id)
	}
}

// TestFilesOfPromisesAreNamedForThem wants each test in a file of a promise to back something, and more of them to back
// that promise than any other.
func TestFilesOfPromisesAreNamedForThem(t *testing.T) {
	all, err := Backings(path.Join(root, "internal/evidence/promises"))
	require.NoError(t, err)
	counts, names := map[string]map[string]int{}, map[string][]string{}
	for _, b := range all {
		if counts[b.File] == nil {
			counts[b.File] = map[string]int{}
		}
		names[b.File] = append(names[b.File], b.Name)
		for _, id := range b.IDs {
			section, _, _ := strings.Cut(id, ".")
			counts[b.File][section]++
		}
	}
	page := register(t)
	named := regexp.MustCompile(`^p(\d+)_\w+_test\.go$`)
	for file, sections := range counts {
		m := named.FindStringSubmatch(file)
		if !assert.NotNil(t, m, "%s has tests of promises, so its name begins with one", file) {
			continue
		}
		assert.Regexp(t, `(?m)^## P`+m[1]+` `, page, file)
		for section, n := range sections {
			assert.True(t, section[0] == 'A' || n <= sections["P"+m[1]], "%s: more tests back %s", file, section)
		}
		text := read(t, "internal/evidence/promises/"+file)
		for _, test := range found(text, `(?m)^func ((?:Test|Fuzz)\w+)\(`) {
			assert.True(t, slices.Contains(names[file], test), "%s: %s backs no promise", file, test)
		}
	}
}

func TestClaimsAreTheRowsOfAPage(t *testing.T) {
	page := "| | guarantee | depends on |\n|---|---|---|\n| P2.1 | It ends. | A1 |\n| P5.6 | It leaves (*not tested*). | |\ntext P9.9\n"
	assert.Equal(t, []Claim{{"P2.1", "It ends.", true}, {"P5.6", "It leaves (*not tested*).", false}}, Claims(page))
}

func TestBackingsAreReadFromDocComments(t *testing.T) {
	head := "package a\n\n"
	found, err := BackingsIn("a_test.go", []byte(head+"// It ends.\n//\n"+promiseDirective+"P2.1 A1\nfunc TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) {}\n"))
	require.NoError(t, err)
	assert.Equal(t, []Backing{{"TestA", "a_test.go", []string{"P2.1", "A1"}}}, found)
	for _, wrong := range []string{promiseDirective + "P2.1\n\nfunc TestA(t *testing.T) {}\n", promiseDirective + "P2.1\nfunc helper() {}\n"} {
		_, err = BackingsIn("a_test.go", []byte(head+wrong))
		assert.ErrorIs(t, err, errNoDoc)
	}
}
