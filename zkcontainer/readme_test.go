// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example/orders_test.go")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(example), "\n\n") // after the license's line
	require.True(t, ok)
	require.Contains(t, string(readme), "```go\n"+code+"```\n")
}
