// SPDX-License-Identifier: Apache-2.0

package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheDocumentsPicturesShowThePage(t *testing.T) {
	drawn, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "web.sha256"))
	require.NoError(t, err)
	assert.Equal(t, Hash(), strings.TrimSpace(string(drawn)), "docs/web*.png show another version of the page: run make screenshots, and look at them")
}
