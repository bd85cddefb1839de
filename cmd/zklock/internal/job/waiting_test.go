// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
)

// A job that may wait for 20 s gave up connecting after 10 s.
func TestConnectingMayTakeAsLongAsWaiting(t *testing.T) {
	for _, c := range []struct {
		args []string
		want time.Duration
	}{
		{nil, 10 * time.Second},
		{[]string{"--wait", "20s"}, 20 * time.Second},
		{[]string{"--wait", "5s"}, 10 * time.Second}, // --wait ends it
		{[]string{"--wait", "20s", "--connect-timeout", "3s"}, 3 * time.Second},
		{[]string{"--wait", "0"}, 2 * time.Second},
		{[]string{"--no-wait"}, 2 * time.Second},
	} {
		f := cli.NewFlags(cli.Streams{}, "run", "", "")
		j := New(f)
		require.NoError(t, j.Parse(f, append(c.args, "/l", "--", "true")))
		require.Equal(t, c.want, j.Server.Patience, "%q", c.args)
	}
}
