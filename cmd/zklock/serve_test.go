// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

func TestServeServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	i := zklockCommand(t, "", "serve", "--listen", "127.0.0.1:0", "--members", "3")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	i.Stdout = w
	i.start()
	w.Close()
	banner := make([]byte, 4096)
	n, _ := r.Read(banner)
	text := string(banner[:n])
	assert.Contains(t, text, "FOR DEVELOPMENT")
	_, servers, _ := strings.Cut(text, "ZKLOCK_SERVERS=")
	servers = strings.TrimSpace(servers)
	assert.Equal(t, 2, strings.Count(servers, ","), servers)
	code, out, errs := run(t, servers, "run", "/l", "--", "echo", "served")
	assert.Zero(t, code, errs)
	assert.Equal(t, "served\n", out)
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), i.err.String())
}

// serveAt starts the server and returns when it listens.
func serveAt(t *testing.T, address string, flags ...string) *invocation {
	i := zklockCommand(t, "", append([]string{"serve", "--listen", address, "--tick", "100ms"}, flags...)...).start()
	eventually(t, "it listens", func() bool { return strings.Contains(i.out.String(), "ZKLOCK_SERVERS=") })
	return i
}

func TestARestartedServeHasItsClientsBackAndGreaterTokens(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	first := serveAt(t, "127.0.0.1:0")
	_, text, _ := strings.Cut(first.out.String(), "ZKLOCK_SERVERS=")
	address := strings.TrimSpace(text)
	client, err := zklock.Connect(t.Context(), []string{address}, &zklock.Options{SessionTimeout: time.Second})
	require.NoError(t, err)
	defer client.Close()
	hold, err := client.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	token := hold.Token()
	first.Process.Signal(os.Interrupt)
	assert.Zero(t, first.code(), first.err.String())

	second := serveAt(t, address)
	hold, err = client.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	assert.Greater(t, hold.Token(), token)
	second.Process.Signal(os.Interrupt)
	assert.Zero(t, second.code())
}

func TestServeSaysThatThePortIsTaken(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	code, _, err := run(t, "", "serve", "--listen", srv.Addr())
	assert.EqualValues(t, outcome.Failure, code)
	assert.Contains(t, err, srv.Addr()+": address already in use")
}
