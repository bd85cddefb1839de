// SPDX-License-Identifier: Apache-2.0

//go:build unix

package zkcontainer

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARunIsClaimedOnlyOnItsHostAndAfterItHasEnded(t *testing.T) {
	const run = "u0-1-1"
	here := t.TempDir()
	t.Setenv("TMPDIR", here)
	life, err := begin(run)
	require.NoError(t, err)
	_, err = claim(run)
	require.Error(t, err, "it lives")

	t.Setenv("TMPDIR", t.TempDir())
	_, err = claim(run)
	require.ErrorIs(t, err, os.ErrNotExist, "it may live elsewhere")

	require.NoError(t, life.Close())
	t.Setenv("TMPDIR", here)
	ended, err := claim(run)
	require.NoError(t, err)
	require.NoError(t, ended.Close())
}
