// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

// recipes returns the methods of Client that acquire a lock or return a handle that does.
func recipes() (names []string) {
	acquires := func(f reflect.Type) bool {
		return f.NumOut() == 2 && f.Out(0) == reflect.TypeFor[*zklock.Hold]() && f.Out(1) == reflect.TypeFor[error]()
	}
	client := reflect.TypeFor[*zklock.Client]()
	for i := range client.NumMethod() {
		m := client.Method(i)
		found := acquires(m.Type)
		if m.Type.NumOut() == 1 {
			handle := m.Type.Out(0)
			for j := range handle.NumMethod() {
				found = found || acquires(handle.Method(j).Type)
			}
		}
		if found {
			names = append(names, m.Name)
		}
	}
	return names
}

// texts returns the contents of the files that a pattern names, from the root of the repository.
func texts(t *testing.T, pattern string) string {
	files, err := filepath.Glob(filepath.Join("../../..", filepath.FromSlash(pattern)))
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

// TestEveryRecipeIsCompletelyDocumentedAndTested fails for a recipe that lacks one of the parts that CONTRIBUTING.md lists
// under "Adding a recipe".
func TestEveryRecipeIsCompletelyDocumentedAndTested(t *testing.T) {
	all := recipes()
	require.Contains(t, all, "Mutex")
	require.Contains(t, all, "LockAll")
	readme, guarantees, capacity, comment := texts(t, "README.md"), texts(t, "docs/promises.md"), texts(t, "docs/capacity.md"), texts(t, "zklock.go")
	examples, simulator, cost := texts(t, "example*_test.go"), texts(t, "internal/evidence/sim/*.go"), texts(t, "internal/evidence/promises/p9_recipe_cost_test.go")
	for _, name := range all {
		link := regexp.MustCompile(`\[` + name + `\]\((docs/recipes/\w+\.md)(#` + strings.ToLower(name) + `)?\)`).FindStringSubmatch(readme)
		if !assert.NotNil(t, link, "README.md does not link to the page of %s", name) {
			continue
		}
		page := link[1]
		call := regexp.MustCompile(`\.` + name + `\(`)
		word := regexp.MustCompile(`\b` + name + `\b`)
		text, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(page)))
		if assert.NoError(t, err, "%s needs a page", name) {
			for _, part := range []string{"\n## Use\n", "\n## Guarantees\n", "](../troubleshooting.md#errors)", "](../moving.md#libraries-on-zookeeper)", "](../capacity.md#acquiring-and-releasing)"} {
				assert.True(t, strings.Contains(string(text), part), "%s has no %q", page, part)
			}
			first, _, _ := strings.Cut(string(text), "\n## Guarantees\n")
			assert.Regexp(t, `(?s)\n## Use\n.*\.Do\(ctx, `, first, "%s begins with Do", page)
			assert.Regexp(t, `(?m)^##? `+name+`$`, string(text), "%s has no heading for %s", page, name)
		}
		assert.True(t, word.MatchString(guarantees), "docs/promises.md does not name %s", name)
		assert.True(t, regexp.MustCompile("(?m)^\\| `"+name+"`:|^\\| `"+name+"` ").MatchString(capacity), "docs/capacity.md does not say what %s costs", name)
		assert.True(t, regexp.MustCompile(`(?m)^//   - \[(Client\.)?`+name+`\] `).MatchString(comment), "the comment of package zklock does not explain %s", name)
		assert.True(t, regexp.MustCompile(`(?m)^func Example(Client_)?`+name+`(_\w+)?\(`).MatchString(examples), "%s has no example", name)
		assert.True(t, call.MatchString(simulator), "the simulator does not use %s", name)
		assert.True(t, call.MatchString(cost), "p9_recipe_cost_test.go does not count the requests of %s", name)
		assert.True(t, slices.ContainsFunc(excluding, func(x exclusion) bool { return x.recipe == name }), "%s is not in the exclusion table of harness_test.go", name)
	}
	for _, x := range excluding {
		assert.Contains(t, all, x.recipe, fmt.Sprint("the exclusion table names ", x.recipe))
	}
}
