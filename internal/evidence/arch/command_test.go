// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commandPackages are the packages below cmd/zklock/internal, from top to bottom: a package imports only those after it.
var commandPackages = []string{
	"command", "demo", "web", "fleet", "job", "show", "servers", "guardian", "proc", "signals", "cli", "outcome", "locks", "period", "spell", "terminal",
}

// TestPackagesOfTheCommandUseOnlyLowerOnes also fails if a package is missing from the list.
func TestPackagesOfTheCommandUseOnlyLowerOnes(t *testing.T) {
	const command = module + "/cmd/zklock/internal/"
	dirs, err := os.ReadDir(filepath.Join(root, "cmd", "zklock", "internal"))
	require.NoError(t, err)
	for _, dir := range dirs {
		assert.Contains(t, commandPackages, dir.Name())
	}
	all := deps(t)
	for i, name := range commandPackages {
		imported := all[command+name]
		assert.NotEmpty(t, imported, "%s does not exist", name)
		for _, higher := range commandPackages[:i] {
			assert.False(t, slices.Contains(imported, command+higher), "%s must not import %s", name, higher)
		}
	}
}
