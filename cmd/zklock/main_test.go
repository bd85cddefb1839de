// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/family"
	"github.com/zklock-go/zklock/zktest"
)

var update = flag.Bool("update", false, "write the files in testdata")

// The tests run the real command: this binary, told to be it.
const beCommand = "ZKLOCK_TEST_BE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(beCommand) != "" {
		prepare()
		main()
		return
	}
	atOnce()
	family.DefaultSignals()
	os.Exit(m.Run())
}

// atOnce lets sixteen tests run at a time, unless the command line says how many: those that may do little but wait.
func atOnce() {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("16")
	}
}

// tickTime lets sessions have 1 s to 10 s. Tests that wait for the end of one ask for a short one, for they wait in real
// time; all others have 10 s, which a busy machine does not end.
const tickTime = 500 * time.Millisecond

func startServer(t *testing.T) *zktest.Server {
	return zktest.Run(t, zktest.Options{TickTime: tickTime})
}

// invocation is one run of the command.
type invocation struct {
	*exec.Cmd
	t        *testing.T
	out, err family.Output
	done     chan struct{}
}

// zklockCommand prepares the command; an empty address leaves it without a server.
func zklockCommand(t *testing.T, servers string, args ...string) *invocation {
	i := &invocation{Cmd: exec.Command(os.Args[0], args...), t: t, done: make(chan struct{})}
	i.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=", beCommand+"=1", "ZKLOCK_SERVERS="+servers)
	i.Stdout, i.Stderr = &i.out, &i.err
	return i
}

// start runs it in the background, until the test's end at the latest.
func (i *invocation) start() *invocation {
	require.NoError(i.t, i.Start())
	go func() {
		i.Wait()
		close(i.done)
	}()
	i.t.Cleanup(func() {
		i.Process.Kill()
		<-i.done
	})
	return i
}

// endsWithin bounds the wait for the end of a command; nothing is concluded from how long it took.
const endsWithin = 2 * time.Minute

// code waits for the end and returns the exit code.
func (i *invocation) code() int {
	i.t.Helper()
	select {
	case <-i.done:
	case <-time.After(endsWithin):
		assert.Fail(i.t, "the command does not end", "%v: %s", i.Args[1:], i.err.String())
		i.Process.Kill()
		<-i.done
	}
	return i.ProcessState.ExitCode()
}

// zk runs the command to its end.
func run(t *testing.T, servers string, args ...string) (code int, out, err string) {
	i := zklockCommand(t, servers, args...).start()
	code = i.code()
	return code, i.out.String(), i.err.String()
}

func connect(t *testing.T, srv *zktest.Server) *zklock.Client {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := zklock.Connect(ctx, srv.Addrs(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// needsSignals skips a test that tells a process to end in the usual way.
func needsSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("another process can be killed here, but not told to end")
	}
}

// needsShell skips a test whose command is a usual one where there are none.
func needsShell(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here")
	}
}

// eventually waits for something that a process does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// queued counts the nodes in a queue.
func queued(srv *zktest.Server, path string) int { return len(srv.Children(path)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func content(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.TrimSpace(string(data))
}
