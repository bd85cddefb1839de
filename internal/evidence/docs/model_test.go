// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readModel returns a file in the models' directory.
func readModel(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("..", "model", name))
	require.NoError(t, err)
	return string(text)
}

// found returns what the pattern's group finds, each once and in order.
func found(text, pattern string) []string {
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// What a macro takes away is missed, or the macro says nothing.
func TestEachMacroOfTheLeaseIsTaken(t *testing.T) {
	model, check := readModel(t, "lease.pml"), readModel(t, "check")
	_, check, cut := strings.Cut(check, "lease.pml: the lease")
	require.True(t, cut)
	macros := found(model, `(?:#ifdef |defined\()([A-Z]+)`)
	require.Greater(t, len(macros), 30)
	for _, m := range macros {
		if m != "SEE" {
			require.True(t, regexp.MustCompile(`(?:\b|-D)`+m+`\b`).MatchString(check), "the check leaves %s out", m)
		}
	}
	for _, m := range found(check, `(?m)^(?:terms=4 )?(?:without|told) +([A-Z]+)`) {
		require.Contains(t, macros, m, "the model does not know it")
	}
}

// The head of the model says what is assumed, and names the macro that takes it away.
func TestEachAssumptionHasItsMacro(t *testing.T) {
	head, model, cut := strings.Cut(readModel(t, "lease.pml"), "*/")
	require.True(t, cut)
	macros := found(head, `(?m) ([A-Z]{5,})$`)
	require.Len(t, macros, 12)
	for _, m := range macros {
		require.Regexp(t, `(?:#ifdef |defined\()`+m+`\b`, model)
		require.Regexp(t, `without +`+m+` +'assumed:`, readModel(t, "check"))
	}
}
