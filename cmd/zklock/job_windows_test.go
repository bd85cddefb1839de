// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// beWorker is what this binary is told to be a worker by: `work DIR NAME...` starts a worker with the second of the
// names and those behind it. Then it writes down the time, as the first of the names, again and again until DIR has a
// file "stop". A worker that is called "leaves" exits with 3 instead.
const beWorker = "work"

func prepare() {
	if len(os.Args) > 3 && os.Args[1] == beWorker {
		os.Exit(work(os.Args[2], os.Args[3], os.Args[4:]))
	}
}

func work(dir, name string, behind []string) int {
	if len(behind) > 0 {
		if err := exec.Command(os.Args[0], append([]string{beWorker, dir}, behind...)...).Start(); err != nil {
			return int(outcome.Failure)
		}
	}
	if name == "leaves" {
		return 3
	}
	for !exists(filepath.Join(dir, "stop")) {
		sign := filepath.Join(dir, name)
		os.WriteFile(sign+".new", []byte(strconv.FormatInt(time.Now().UnixNano(), 10)), 0o600)
		os.Rename(sign+".new", sign)
		time.Sleep(10 * time.Millisecond)
	}
	return 0
}

// startWorkers runs a worker under the lock, which starts another one, and waits for the last of them.
func startWorkers(t *testing.T, srv *zktest.Server, session string, names ...string) (i *invocation, dir string) {
	dir = t.TempDir()
	args := append([]string{"run", "--session-timeout", session, "/l", "--", os.Args[0], beWorker, dir}, names...)
	i = zklockCommand(t, srv.Addr(), args...).start()
	eventually(t, "all are at work", func() bool { return exists(filepath.Join(dir, names[len(names)-1])) })
	return i, dir
}

// lastAtWork returns when a worker that has ended was last at work.
func lastAtWork(t *testing.T, dir, name string) time.Time {
	nanos, err := strconv.ParseInt(content(t, filepath.Join(dir, name)), 10, 64)
	require.NoError(t, err)
	return time.Unix(0, nanos)
}

//zklock:promise P2.9
func TestRunKilledByForceLeavesNoProcessOfItsJob(t *testing.T) {
	srv := startServer(t)
	i, dir := startWorkers(t, srv, "2s", "itself", "child", "grandchild")
	next := connect(t, srv)
	granted := make(chan time.Time, 1)
	// Owned by the test; ends when the lock is granted or the client is closed.
	go func() {
		if _, err := next.Mutex("/l").Lock(t.Context()); err == nil {
			granted <- time.Now()
		}
	}()
	eventually(t, "another queues", func() bool { return queued(srv, "/l") == 2 })
	require.NoError(t, i.Process.Kill())
	at := <-granted
	for _, name := range []string{"itself", "child", "grandchild"} {
		last := lastAtWork(t, dir, name)
		t.Logf("%s was last at work %v before", name, at.Sub(last))
		assert.True(t, last.Before(at), name)
	}
}

//zklock:promise P2.9
func TestRunEndsItsJobWhenItsNodeIsDeleted(t *testing.T) {
	srv := startServer(t)
	i, dir := startWorkers(t, srv, "2s", "itself", "child")
	require.NoError(t, srv.DeleteNode("/l/"+srv.Children("/l")[0]))
	assert.EqualValues(t, outcome.Lost, i.code(), i.err.String())
	ended := time.Now()
	for _, name := range []string{"itself", "child"} {
		assert.True(t, lastAtWork(t, dir, name).Before(ended), name)
	}
}

//zklock:promise P2.10
func TestRunKeepsTheLockUntilItsJobIsEmpty(t *testing.T) {
	srv := startServer(t)
	i, dir := startWorkers(t, srv, "10s", "leaves", "child")
	eventually(t, "it says what it waits for", func() bool { return strings.Contains(i.err.String(), "keeping the lock") })
	assert.Equal(t, 1, queued(srv, "/l"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600))
	assert.Equal(t, 3, i.code(), "the code is the command's")
	assert.Zero(t, queued(srv, "/l"))
}
