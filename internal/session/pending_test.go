// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnEpochCountsAfterAReconnectOnly lets a server's count of its writes increase without a reconnect.
func TestAnEpochCountsAfterAReconnectOnly(t *testing.T) {
	moved, here, there := make(chan struct{}), new(Session), new(Session)
	lost := &PendingCreate{Sess: here, Epoch: 1, Moved: moved}
	unknown := &PendingCreate{Sess: here, Moved: moved}
	require.False(t, lost.isOutdated(here, 2), "no reconnect")
	close(moved)
	require.True(t, lost.isOutdated(here, 2))
	require.False(t, lost.isOutdated(there, 2), "another session")
	require.False(t, lost.isOutdated(here, 1), "the same leader")
	require.False(t, unknown.isOutdated(here, 2), "no write was answered")
}
