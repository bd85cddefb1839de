// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLsWatchReportsThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	leader, err := connect(t, srv).Election("/e", nil).Campaign(t.Context(), []byte("a"))
	require.NoError(t, err)
	var all []*invocation
	for _, args := range [][]string{{"ls", "--watch", "/l"}, {"ls", "-r", "--watch", "/"}, {"top", "/"}, {"elect", "--watch", "/e"}} {
		i := zklockCommand(t, srv.Addr(), args...).start()
		eventually(t, "it shows", func() bool { return i.out.String() != "" })
		all = append(all, i)
	}
	_, _ = hold, leader
	srv.Close()
	for _, i := range all {
		eventually(t, "it says so", func() bool { return strings.Contains(i.err.String(), "zklock: no server has answered since ") })
	}
}
