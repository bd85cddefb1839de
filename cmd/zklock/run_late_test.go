// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// A job of a crontab that waits behind a job that hangs is given up when its slot is over. Otherwise all that were started
// meanwhile would run one after another.
//
//zklock:promise P10.12
func TestAJobWhoseSlotIsOverIsGivenUp(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/cron/report").Lock(t.Context())
	require.NoError(t, err)
	code, out, text := run(t, srv.Addr(), "run", "--every", "1s", "/cron/report", "--", "echo", "ran")
	assert.EqualValues(t, outcome.NotAcquired, code)
	assert.Empty(t, out)
	assert.Regexp(t, `^zklock: not acquired: slot \S+ of /cron/report is over, and was not begun by this host\n$`, text)
	code, _, _ = run(t, srv.Addr(), "run", "-E", "0", "--every", "1s", "/cron/report", "--", "echo", "ran")
	assert.Zero(t, code)
	require.NoError(t, hold.Unlock(t.Context()))
	code, out, _ = run(t, srv.Addr(), "run", "--every", "1h", "/cron/report", "--", "echo", "ran")
	assert.Zero(t, code)
	assert.Equal(t, "ran\n", out)
}
