// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// heldByAnother starts a server with a lock at /l and a leader of /e.
func heldByAnother(t *testing.T) *zktest.Server {
	srv := startServer(t)
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Label: "backup orders"})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	_, err = client.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	_, err = client.Election("/e", nil).Campaign(t.Context(), []byte("host-a"))
	require.NoError(t, err)
	return srv
}

// goSilent has the servers take everything and answer nothing.
func goSilent(t *testing.T, srv *zktest.Server) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	srv.Intercept(func(*zktest.Request) zktest.Verdict { return zktest.Hold(never) })
}

// A job that no host runs must not look like one that another host runs.
func TestWaitingForServersThatDoNotAnswerIsNoOtherHolder(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "/l"}, {"run", "--shared", "/l"}, {"elect", "/e"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			srv := heldByAnother(t)
			begin := time.Now()
			i := zklockCommand(t, srv.Addr(), append(append([]string{args[0], "--wait", "4s", "-E", "0"}, args[1:]...), "--", "true")...).start()
			eventually(t, "it queues", func() bool { return queued(srv, args[len(args)-1]) == 2 })
			goSilent(t, srv)
			assert.EqualValues(t, outcome.Unavailable, i.code())
			assert.Regexp(t, `^zklock: not (acquired|elected) within 4s: no server has answered for [0-9.]+m?s\n$`, i.err.String())
			assert.Less(t, time.Since(begin), 8*time.Second, "closing may not take five seconds more")
		})
	}
}

func TestASignalEndsWaitingThoughNoServerAnswers(t *testing.T) {
	t.Parallel()
	srv := heldByAnother(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "true").start()
	eventually(t, "it queues", func() bool { return queued(srv, "/l") == 2 })
	goSilent(t, srv)
	begin := time.Now()
	require.NoError(t, i.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, outcome.SignalBase+int(syscall.SIGTERM), i.code())
	assert.Less(t, time.Since(begin), 4*time.Second, "closing may take a second")
}

func TestGivingUpNamesTheHolder(t *testing.T) {
	t.Parallel()
	srv := heldByAnother(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--wait", "3s", "/l"}, `not acquired within 3s: /l is held by "backup orders" \(host \S+, process \d+\)`},
		{[]string{"run", "--no-wait", "/l"}, `not acquired: /l is held by "backup orders" \(host \S+, process \d+\)`},
		{[]string{"run", "--shared", "--no-wait", "/l"}, `not acquired: /l is held by "backup orders" \(host \S+, process \d+\)`},
		{[]string{"elect", "--wait", "3s", "/e"}, `not elected within 3s: /e is led by "host-a"`},
		{[]string{"elect", "--no-wait", "/e"}, `not elected: /e is led by "host-a"`},
	} {
		code, out, err := run(t, srv.Addr(), append(append([]string{}, c.args...), "--", "echo", "ran")...)
		assert.EqualValues(t, outcome.NotAcquired, code, "%v: %s", c.args, err)
		assert.Regexp(t, `^zklock: `+c.want+`\n$`, err)
		assert.Empty(t, out)
	}
}
