// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

func TestRunGivesTheCommandItsLockAndReleasesIt(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	code, out, err := run(t, srv.Addr(), "run", "/locks/nightly", "--",
		"sh", "-c", `echo "$ZKLOCK_PATH $ZKLOCK_NODE $ZKLOCK_TOKEN"`)
	require.Zero(t, code, err)
	fields := strings.Fields(out)
	require.Len(t, fields, 3)
	assert.Equal(t, "/locks/nightly", fields[0])
	assert.Regexp(t, `^/locks/nightly/_c_[0-9a-f]{32}-lock-0000000000$`, fields[1])
	token, err2 := strconv.ParseInt(fields[2], 10, 64)
	require.NoError(t, err2)
	assert.Positive(t, token)
	assert.Zero(t, queued(srv, "/locks/nightly"))
	assert.Empty(t, srv.Sessions(), "the session must be closed, not left to expire")
}

func TestRunExitsAsTheCommandDoes(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -9 $$": 128 + 9, "kill -TERM $$": 128 + 15} {
		code, _, err := run(t, srv.Addr(), "run", "/l", "--", "sh", "-c", script)
		assert.Equal(t, want, code, script)
		assert.Empty(t, err, script)
	}
}

func TestRunRefusesCommandsThatCannotBeRun(t *testing.T) {
	t.Parallel()
	lost := filepath.Join(t.TempDir(), "lost")
	require.NoError(t, os.WriteFile(lost, []byte("#!/no/such/interpreter"), 0o755))
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("#!/bin/sh"), 0o644))
	srv := startServer(t)
	for _, c := range []struct {
		args []string
		code outcome.Verdict
		text string
	}{
		{[]string{"/l", "--", "zklock-no-such-command"}, outcome.NotFound, "not found"},
		{[]string{"/l", "--", secret}, outcome.CannotRun, "permission denied"},
		{[]string{"/l", "--", t.TempDir()}, outcome.CannotRun, "is a directory"},
		{[]string{"/l", "--", lost}, outcome.CannotRun, "its interpreter does not exist"},
		{[]string{"/l"}, outcome.Usage, "run: no command: zklock run [flags] PATH -- COMMAND"},
		{[]string{"/l", "--"}, outcome.Usage, "run: no command after --"},
		{[]string{"--", "true"}, outcome.Usage, "run: PATH is missing"},
		{[]string{"/l", "/m", "--", "true"}, outcome.Usage, `run: unexpected argument "/m"`},
		{[]string{"l", "--", "true"}, outcome.Usage, "does not start with /"},
		{[]string{"--wait", "x", "/l", "--", "true"}, outcome.Usage, "--wait x: not a duration"},
		{[]string{"--wait", "1s", "--no-wait", "/l", "--", "true"}, outcome.Usage, "cannot be combined"},
		{[]string{"--wait", "-1s", "/l", "--", "true"}, outcome.Usage, "--wait -1s is negative"},
		{[]string{"--max-run", "0", "/l", "--", "true"}, outcome.Usage, "--max-run 0s is not positive"},
		{[]string{"--max-run", "-1s", "/l", "--", "true"}, outcome.Usage, "--max-run -1s is not positive"},
		{[]string{"--shared", "--semaphore", "2", "/l", "--", "true"}, outcome.Usage, "cannot be combined"},
		{[]string{"--semaphore", "0", "/l", "--", "true"}, outcome.Usage, "--semaphore 0 is not positive"},
		{[]string{"--semaphore", "-2", "/l", "--", "true"}, outcome.Usage, "--semaphore -2 is not positive"},
		{[]string{"--lock-delay", "-1s", "/l", "--", "true"}, outcome.Usage, "--lock-delay -1s is negative"},
		{[]string{"--lock-delay", "1s", "--semaphore", "2", "/l", "--", "true"}, outcome.Usage, "--lock-delay has no effect with --semaphore"},
		{[]string{"-E", "256", "/l", "--", "true"}, outcome.Usage, "not between 0 and 255"},
		{[]string{"--connect-timeout", "0", "/l", "--", "true"}, outcome.Usage, "--connect-timeout 0s is not positive"},
		{[]string{"--connect-timeout", "-1s", "/l", "--", "true"}, outcome.Usage, "not positive"},
		{[]string{"--at-least", "-1s", "/l", "--", "true"}, outcome.Usage, "--at-least -1s is negative"},
		{[]string{"--once", "", "/l", "--", "true"}, outcome.Usage, "--once needs a name"},
		{[]string{"--once", "daily", "/l", "--", "true"}, outcome.Usage, "--once daily looks like a period"},
		{[]string{"--every", "", "/l", "--", "true"}, outcome.Usage, "--every needs a period"},
		{[]string{"--every", "nightly", "/l", "--", "true"}, outcome.Usage, "--every nightly is not a period"},
		{[]string{"--every", "300", "/l", "--", "true"}, outcome.Usage, "did you mean 5m?"},
		{[]string{"--every", "5m", "--once", "x", "/l", "--", "true"}, outcome.Usage, "--every and --once cannot be combined"},
		{[]string{"--wait", "10", "/l", "--", "true"}, outcome.Usage, "--wait 10: not a duration; write 10s"},
		{[]string{"--wait", "", "/l", "--", "true"}, outcome.Usage, `--wait "": not a duration; write 10s or 10m`},
		{[]string{"/l", "true", "x"}, outcome.Usage, "run: put -- before the command: zklock run /l -- true ..."},
		{[]string{"/l", "ls", "-la"}, outcome.Usage, "(put the command after --)"},
		{[]string{"--at-most-once", "/l", "--", "true"}, outcome.Usage, "--at-most-once requires --every or --once"},
		{[]string{"--quiet", "/l", "--", "true"}, outcome.Usage, "--quiet requires --every or --once"},
		{[]string{"--once", "x", "--shared", "/l", "--", "true"}, outcome.Usage, "cannot be combined with --shared"},
		{[]string{"--servers", "zk://127.0.0.1:2181", "/l", "--", "true"}, outcome.Usage, "without \"zk://\""},
		{[]string{"--servers", "127.0.0.1:99999", "/l", "--", "true"}, outcome.Usage, "port outside 1 to 65535"},
		{[]string{"/zookeeper/l", "--", "true"}, outcome.Usage, "is reserved for ZooKeeper"},
		{[]string{"--grace", "-1s", "/l", "--", "true"}, outcome.Usage, "negative"},
		{[]string{"--grace", "5s", "--session-timeout", "1s", "/l", "--", "true"}, outcome.Usage, "too long for the session timeout of 1s"},
		{[]string{"--auth", "secret", "/l", "--", "true"}, outcome.Usage, "needs the form scheme:credential"},
		{[]string{"--acl", "world:anyone:x", "/l", "--", "true"}, outcome.Usage, "other than c, d, r, w, a"},
		{[]string{"--tls-ca", "/nowhere", "/l", "--", "true"}, outcome.Usage, "--tls-ca"},
	} {
		code, out, err := run(t, srv.Addr(), append([]string{"run"}, c.args...)...)
		assert.EqualValues(t, c.code, code, "%v: %s", c.args, err)
		assert.Contains(t, err, c.text, "%v", c.args)
		assert.True(t, strings.HasPrefix(err, "zklock: ") && strings.Count(err, "\n") == 1, "one line: %q", err)
		assert.Empty(t, out)
	}
	assert.Zero(t, queued(srv, "/l"))
}

func TestRunReportsThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	code, _, err := run(t, "127.0.0.1:1", "run", "--connect-timeout", "2s", "/l", "--", "true")
	assert.EqualValues(t, outcome.Unavailable, code)
	assert.Contains(t, err, "connection refused")
	assert.Equal(t, 1, strings.Count(err, "\n"), err)
}

func TestRunGivesUpInTimeAndLeavesNothing(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	for _, flag := range [][]string{{"--no-wait"}, {"--wait", "2s"}} {
		code, out, err := run(t, srv.Addr(), append(append([]string{"run"}, flag...), "/l", "--", "echo", "ran")...)
		assert.EqualValues(t, outcome.NotAcquired, code, "%v: %s", flag, err)
		assert.Empty(t, out)
		assert.Equal(t, 1, queued(srv, "/l"), flag)
	}
	require.NoError(t, hold.Unlock(t.Context()))
}

func TestRunSharesWithOtherReaders(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	reader, err := connect(t, srv).RWMutex("/l").RLock(t.Context())
	require.NoError(t, err)
	code, out, text := run(t, srv.Addr(), "run", "--shared", "--no-wait", "/l", "--", "echo", "ran")
	assert.Zero(t, code, text)
	assert.Equal(t, "ran\n", out)
	code, _, _ = run(t, srv.Addr(), "run", "--no-wait", "/l", "--", "echo", "ran")
	assert.EqualValues(t, outcome.NotAcquired, code, "alone it cannot")
	require.NoError(t, reader.Unlock(t.Context()))
	writer, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	code, _, _ = run(t, srv.Addr(), "run", "--shared", "--wait", "2s", "/l", "--", "echo", "ran")
	assert.EqualValues(t, outcome.NotAcquired, code)
	require.NoError(t, writer.Unlock(t.Context()))
}

func TestRunTakesOnePermit(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	sem := connect(t, srv).Semaphore("/l", 2)
	first, err := sem.Acquire(t.Context(), 1)
	require.NoError(t, err)
	code, out, text := run(t, srv.Addr(), "run", "--semaphore", "2", "/l", "--", "sh", "-c", "echo $ZKLOCK_NODE")
	assert.Zero(t, code, text)
	assert.Regexp(t, `^/l/leases/_c_[0-9a-f]{32}-lease-\d{10}\n$`, out)
	second, err := sem.Acquire(t.Context(), 1)
	require.NoError(t, err)
	for _, flag := range [][]string{{"--no-wait"}, {"--wait", "2s"}} {
		code, _, text = run(t, srv.Addr(), append(append([]string{"run", "--semaphore", "2"}, flag...), "/l", "--", "true")...)
		assert.EqualValues(t, outcome.NotAcquired, code, text)
	}
	code, _, text = run(t, srv.Addr(), "run", "--semaphore", "3", "/l", "--", "true")
	assert.EqualValues(t, outcome.Usage, code)
	assert.Contains(t, text, "semaphore has 2 permits, not 3")
	code, out, _ = run(t, srv.Addr(), "ls", "--json", "/l")
	assert.Zero(t, code)
	assert.Contains(t, out, `"permits": 2`)
	for _, h := range []*zklock.Hold{first, second} {
		require.NoError(t, h.Unlock(t.Context()))
	}
}

func TestRunWaitsForTheHolder(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "echo", "ran").start()
	eventually(t, "the command queues", func() bool { return queued(srv, "/l") == 2 })
	assert.Empty(t, i.out.String())
	require.NoError(t, hold.Unlock(t.Context()))
	assert.Zero(t, i.code())
	assert.Equal(t, "ran\n", i.out.String())
}

// The commands after a holder that crashed run when the lock-delay has passed, and ls says why the lock is free.
//
//zklock:promise P11.11
func TestRunWaitsForTheLockDelay(t *testing.T) {
	t.Parallel()
	const delay = 6 * time.Second // three commands run in it, on a busy machine too
	srv := startServer(t)
	crashes, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{LockDelay: delay})
	require.NoError(t, err)
	t.Cleanup(func() { crashes.Close() })
	hold, err := crashes.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	code, _, errs := run(t, srv.Addr(), "run", "/l", "--", "true")
	assert.EqualValues(t, outcome.Usage, code)
	assert.Contains(t, errs, "lock-delay", "a command without the delay must not run")

	gone := time.Now()
	srv.ExpireSession(srv.Sessions()[0].ID)
	<-hold.Context().Done()
	code, _, errs = run(t, srv.Addr(), "run", "--lock-delay", "6s", "--no-wait", "/l", "--", "true")
	assert.EqualValues(t, outcome.NotAcquired, code, errs)
	code, _, errs = run(t, srv.Addr(), "elect", "--lock-delay", "6s", "--no-wait", "/l", "--", "true")
	assert.EqualValues(t, outcome.NotAcquired, code, errs)
	waits := zklockCommand(t, srv.Addr(), "run", "--lock-delay", "6s", "/l", "--", "echo", "ran").start()
	eventually(t, "ls shows the delay", func() bool {
		_, out, _ := run(t, srv.Addr(), "ls", "/l")
		return strings.Contains(out, "/l: 0 held, 1 waiting (lock delay)")
	})
	assert.Zero(t, waits.code())
	assert.GreaterOrEqual(t, time.Since(gone), delay)
	assert.Equal(t, "ran\n", waits.out.String())
	code, _, errs = run(t, srv.Addr(), "run", "--lock-delay", "6s", "--no-wait", "/l", "--", "true")
	assert.Zero(t, code, "it was released: %s", errs)
}

func TestRunStopsWaitingOnASignal(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	defer hold.Unlock(t.Context())
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "echo", "ran").start()
	eventually(t, "the command queues", func() bool { return queued(srv, "/l") == 2 })
	i.Process.Signal(syscall.SIGINT)
	assert.Equal(t, outcome.SignalBase+int(syscall.SIGINT), i.code())
	assert.Empty(t, i.out.String()+i.err.String())
	assert.Equal(t, 1, queued(srv, "/l"))
}

func TestRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	ready := filepath.Join(t.TempDir(), "ready")
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c",
		`trap 'echo got USR1; exit 7' USR1; : >"$0"; while :; do sleep 0.01; done`, ready).start()
	eventually(t, "the command runs", func() bool { return exists(ready) })
	i.Process.Signal(syscall.SIGUSR1)
	assert.Equal(t, 7, i.code())
	assert.Equal(t, "got USR1\n", i.out.String())
	assert.Zero(t, queued(srv, "/l"))
}

// Programs give meanings to many signals: a container's STOPSIGNAL can be one of the real-time signals, timeout(1) can send ALRM.
func TestRunPassesOnAllSignalsThatProgramsUse(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	signals := []syscall.Signal{syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGIO}
	if runtime.GOOS == "linux" {
		signals = append(signals, 37)
	}
	for _, sig := range signals {
		t.Run(fmt.Sprint(int(sig)), func(t *testing.T) {
			t.Parallel()
			ready := filepath.Join(t.TempDir(), "ready")
			i := zklockCommand(t, srv.Addr(), "run", "--shared", "/l", "--", "sh", "-c",
				`trap 'exit 7' "$1"; : >"$0"; while :; do sleep 0.01; done`, ready, fmt.Sprint(int(sig)))
			i.start()
			eventually(t, "the command runs", func() bool { return exists(ready) })
			eventually(t, "it gets the signal", func() bool {
				i.Process.Signal(sig)
				select {
				case <-i.done:
					return true
				default:
					return false
				}
			})
			assert.Equal(t, 7, i.code())
		})
	}
}

// A job that tells its parent to end means the program that runs it, as under flock(1).
func TestASignalToTheParentReachesTheCommand(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	code, out, err := run(t, srv.Addr(), "run", "/l", "--", "sh", "-c",
		`trap 'echo told; kill -TERM $PPID' USR1; trap 'exit 7' TERM; kill -USR1 $PPID; i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done`)
	assert.Equal(t, 7, code, err)
	assert.Equal(t, "told\n", out, "once")
	assert.Empty(t, err)
}

// stubborn ignores TERM, has a child that does too, and writes down the time again and again.
const stubborn = `
trap 'echo TERM' TERM
(trap '' TERM; while :; do date +%s%N >>"$0.grandchild"; sleep 0.01; done) &
while :; do date +%s%N >>"$0.child"; sleep 0.01; done`

// lastSign is when a stubborn process was last alive.
func lastSign(t *testing.T, file string) time.Time {
	lines := strings.Fields(content(t, file))
	nanos, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	require.NoError(t, err)
	return time.Unix(0, nanos)
}

//zklock:promise P2.9
func TestRunEndsTheCommandBeforeAnotherCanHold(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	file := filepath.Join(t.TempDir(), "alive")
	remove := passNothingFrom(t, srv)
	i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", "2s", "--grace", "400ms", "/l", "--", "sh", "-c", stubborn, file).start()
	eventually(t, "the command runs", func() bool { return exists(file+".child") && exists(file+".grandchild") })
	granted := make(chan time.Time, 1)
	next := connect(t, srv)
	go func() {
		if _, err := next.Mutex("/l").Lock(t.Context()); err == nil {
			granted <- time.Now()
		}
	}()
	eventually(t, "another queues", func() bool { return queued(srv, "/l") == 2 })
	remove.cut()
	at := <-granted
	assert.EqualValues(t, outcome.Lost, i.code())
	assert.Contains(t, i.out.String(), "TERM", "the command must be warned first")
	assert.Contains(t, i.err.String(), "lock was lost")
	for _, who := range []string{".child", ".grandchild"} {
		left := at.Sub(lastSign(t, file+who))
		t.Logf("%s was last alive %v before the next one held", who, left)
		assert.Positive(t, left, "%s was alive when the next one held", who)
	}
}

//zklock:promise P2.9
func TestRunEndsTheCommandWhenItsNodeIsDeleted(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	file := filepath.Join(t.TempDir(), "alive")
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", stubborn, file).start()
	eventually(t, "the command runs", func() bool { return exists(file+".child") && exists(file+".grandchild") })
	require.NoError(t, srv.DeleteNode("/l/"+srv.Children("/l")[0]))
	assert.EqualValues(t, outcome.Lost, i.code())
	assert.Contains(t, i.err.String(), "deleted")
	stays := content(t, file+".grandchild")
	time.Sleep(100 * time.Millisecond) // ten times what it takes to write again
	assert.Equal(t, stays, content(t, file+".grandchild"), "the command's child lives on")
}

func TestRunSurvivesBrokenConnectionsWithoutOutput(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{TickTime: tickTime, Servers: 3})
	ready := filepath.Join(t.TempDir(), "ready")
	i := zklockCommand(t, strings.Join(srv.Addrs(), ","), "run", "--session-timeout", "2s", "--grace", "0s", "/l", "--",
		"sh", "-c", `: >"$0"; while [ -e "$0" ]; do sleep 0.01; done`, ready).start()
	eventually(t, "the command runs", func() bool { return exists(ready) })
	srv.DropConnections()
	before := srv.Requests()[zktest.OpMulti]
	eventually(t, "heartbeats continue", func() bool { return srv.Requests()[zktest.OpMulti] >= before+3 })
	require.NoError(t, os.Remove(ready))
	assert.Zero(t, i.code(), i.err.String())
	assert.Empty(t, i.err.String())
}

// silence loses all that the command's session sends after cut.
type silence struct{ on chan struct{} }

func (s silence) cut() { close(s.on) }

// passNothingFrom drops the packets of the first session that takes /l, and passes those of later ones.
func passNothingFrom(t *testing.T, srv *zktest.Server) silence {
	s := silence{make(chan struct{})}
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	var first atomic.Int64
	remove := srv.OnTxn(func(txn zktest.Txn) {
		if first.Load() == 0 && txn.Op == zktest.OpCreate && strings.HasPrefix(txn.Path, "/l/") {
			first.Store(txn.Session)
		}
	})
	t.Cleanup(remove)
	t.Cleanup(srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		select {
		case <-s.on:
			if r.Session == first.Load() {
				return zktest.Hold(never)
			}
		default:
		}
		return zktest.Pass
	}))
	return s
}

func TestTheCommandGetsItsArgumentsByteByByte(t *testing.T) {
	t.Parallel()
	const odd = "caf\xe9 \xff\x01\\\"\n\xc3"
	program := filepath.Join(t.TempDir(), "caf\xe9")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s|' \"$0\" \"$@\""), 0o700); err != nil {
		t.Skipf("file names are text here: %v", err)
	}
	for _, verb := range []string{"run", "elect"} {
		code, out, text := run(t, startServer(t).Addr(), verb, "/l", "--", program, odd, "", "plain")
		assert.Zero(t, code, text)
		assert.Equal(t, program+"|"+odd+"||plain|", out, verb)
	}
}

func TestAScriptThatNamesNoShellIsRunByOne(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte(`echo "$0" "$@"; exit 3`), 0o755))
	code, out, err := run(t, startServer(t).Addr(), "run", "/l", "--", script, "a b", "c")
	assert.Equal(t, 3, code, err)
	assert.Equal(t, script+" a b c\n", out, "as under flock(1)")
}
