// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// Whatever time a job takes and however long it has queued: where nothing fails, none is
// told to end. The sessions are as short as the servers' ticks let them be, and usual ones.
//
//zklock:promise P2.10
func TestRunEndsNoHealthyJob(t *testing.T) {
	for _, c := range []struct{ tick, session, work string }{
		{"2s", "4s", "2"},
		{"2s", "10s", "2.7"},
	} {
		t.Run(c.session, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("it takes half a minute")
			}
			tick, err := time.ParseDuration(c.tick)
			require.NoError(t, err)
			srv := zktest.Run(t, zktest.Options{TickTime: tick})
			log := filepath.Join(t.TempDir(), "log")
			jobs := make([]*invocation, 12)
			for n := range jobs {
				jobs[n] = zklockCommand(t, srv.Addr(), "run", "--session-timeout", c.session, "/l", "--",
					"sh", "-c", `echo begin >>"$0"; sleep $1; echo end >>"$0"`, log, c.work).start()
			}
			for _, j := range jobs {
				assert.Zero(t, j.code(), j.err.String())
				assert.Empty(t, j.err.String())
			}
			done, err := os.ReadFile(log)
			require.NoError(t, err)
			assert.Equal(t, strings.Repeat("begin\nend\n", len(jobs)), string(done))
		})
	}
}

// The lock survives the failure of the server that zklock talks to, because zklock moves to another one in time. The command survives, too,
// whenever the server stops answering.
//
//zklock:promise P2.10
func TestRunOutlivesTheFailureOfItsServer(t *testing.T) {
	t.Parallel()
	const session = 4 * time.Second
	srv := zktest.Run(t, zktest.Options{TickTime: session / 4, Servers: 3})
	srv.ElectLeader(0)
	followers := srv.Addrs()[1:]
	goOn := filepath.Join(t.TempDir(), "continue")
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	jobs := make([]*invocation, 16)
	for n := range jobs {
		jobs[n] = zklockCommand(t, strings.Join(followers, ","), "run", "--session-timeout", session.String(), fmt.Sprint("/l", n), "--",
			"sh", "-c", `while [ -e "$0" ]; do sleep 0.05; done`, goOn).start()
		time.Sleep(session / 16 / 4) // the heartbeats of the jobs spread over their period
	}
	for n := range jobs {
		eventually(t, "all hold", func() bool { return queued(srv, fmt.Sprint("/l", n)) == 1 })
	}
	before := srv.Requests()[zktest.OpMulti]
	eventually(t, "they have held for a while", func() bool { return srv.Requests()[zktest.OpMulti] >= before+6*len(jobs) })
	on := func(member int) int {
		n := 0
		for _, s := range srv.Sessions() {
			if s.Member == member {
				n++
			}
		}
		return n
	}
	require.NotZero(t, on(1), "the client library draws its server")
	srv.Member(1).Freeze()
	eventually(t, "all have left it", func() bool { return on(1) == 0 })
	require.NoError(t, os.Remove(goOn))
	for n, j := range jobs {
		assert.Zero(t, j.code(), "job %d: %s", n, j.err.String())
	}
}
