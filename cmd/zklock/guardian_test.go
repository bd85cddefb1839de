// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
	"github.com/zklock-go/zklock/internal/evidence/family"
	"github.com/zklock-go/zklock/zktest"
)

// inGroup stays in the process group.
const inGroup = `
sh "$0/worker" "$0/background" &
(sh "$0/worker" "$0/orphan" &)
exec sh "$0/worker" "$0/itself"`

// awaitWork waits until all are at work.
func awaitWork(t *testing.T, f *family.Family) {
	t.Helper()
	eventually(t, "all are at work", f.Works)
}

// nextHolder queues behind the command and returns when it has the lock.
func nextHolder(t *testing.T, srv *zktest.Server) <-chan time.Time {
	granted := make(chan time.Time, 1)
	next := connect(t, srv)
	// Owned by the test; ends when the lock is granted or the client is closed.
	go func() {
		if _, err := next.Mutex("/l").Lock(t.Context()); err == nil {
			granted <- time.Now()
		}
	}()
	eventually(t, "another queues", func() bool { return queued(srv, "/l") == 2 })
	return granted
}

// guardianOf returns the second process of a running command.
func guardianOf(t *testing.T, i *invocation) int {
	for _, p := range proc.Descendants(i.Process.Pid) {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID)); string(comm) == "lock-guardian\n" {
			return p.PID
		}
	}
	t.Fatal("no guardian")
	return 0
}

//zklock:promise P2.9
func TestRunKilledByForceLeavesNoProcess(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	f := family.Whole(t)
	i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", "4s", "/l", "--", "sh", "-c", family.Everywhere, f.Dir).start()
	awaitWork(t, f)
	next := nextHolder(t, srv)
	i.Process.Kill()
	f.AssertEnded(<-next)
	eventually(t, "the guardian tells", func() bool { return strings.Contains(i.err.String(), "zklock has ended") })
}

//zklock:promise P2.9
func TestRunStoppedLeavesNoProcess(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short: waits for a session")
	}
	srv := startServer(t)
	f := family.Whole(t)
	i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", "4s", "/l", "--", "sh", "-c", family.Everywhere, f.Dir).start()
	awaitWork(t, f)
	next := nextHolder(t, srv)
	require.NoError(t, i.Process.Signal(syscall.SIGSTOP))
	f.AssertEnded(<-next)
	eventually(t, "the guardian tells, as zklock itself cannot", func() bool { return strings.Contains(i.err.String(), "zklock does not respond") })
	require.NoError(t, i.Process.Signal(syscall.SIGCONT))
	assert.EqualValues(t, outcome.Lost, i.code())
}

// startPatientServer starts a server whose sessions last so long that a busy machine loses no lock.
func startPatientServer(t *testing.T) *zktest.Server {
	return zktest.Run(t, zktest.Options{TickTime: 2 * time.Second})
}

// Every process of the command ignores TERM.
func TestRunEndsACommandThatTakesTooLong(t *testing.T) {
	t.Parallel()
	srv := startPatientServer(t)
	f := family.Whole(t)
	i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", "40s", "--grace", "100ms", "--max-run", "5s", "/l", "--", "sh", "-c", family.Everywhere, f.Dir).start()
	awaitWork(t, f)
	_, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	f.AssertEnded(time.Now())
	assert.EqualValues(t, outcome.TimedOut, i.code())
	assert.Equal(t, "zklock: the command has run for 5s (--max-run): ending it\nzklock: the command was ended after 5s (--max-run)\n", i.err.String())
}

// The guardian counts the time, so a zklock that is stopped does not have to.
func TestRunStoppedEndsACommandThatTakesTooLong(t *testing.T) {
	t.Parallel()
	srv := startPatientServer(t)
	f := family.Whole(t)
	i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", "40s", "--grace", "100ms", "--max-run", "5s", "/l", "--", "sh", "-c", family.Everywhere, f.Dir).start()
	awaitWork(t, f)
	require.NoError(t, i.Process.Signal(syscall.SIGSTOP))
	for _, member := range f.Members {
		eventually(t, "it has ended", func() bool { return !family.Alive(f.Pid(member)) })
	}
	require.NoError(t, i.Process.Signal(syscall.SIGCONT))
	assert.EqualValues(t, outcome.TimedOut, i.code())
	assert.Zero(t, queued(srv, "/l"))
}

// A command that has exited in time is not done while its processes run: the exit code was its own, and a slot was marked.
func TestRunEndsTheProcessesLeftRunningForTooLong(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	for range 2 {
		code, _, err := run(t, srv.Addr(), "run", "--once", "x", "--max-run", "1s", "/l", "--", "sh", "-c", "sleep 1000 & exit 0")
		assert.EqualValues(t, outcome.TimedOut, code)
		assert.Contains(t, err, "zklock: processes that the command left running were ended after 1s (--max-run)\n")
	}
	code, _, err := run(t, srv.Addr(), "run", "--max-run", "1s", "/l", "--", "sh", "-c", "sleep 1000 & exit 3")
	assert.EqualValues(t, outcome.TimedOut, code)
	assert.Contains(t, err, "zklock: the command has run for 1s (--max-run): ending the processes it left running\n")
	assert.Zero(t, queued(srv, "/l"))
}

// Whoever reads that zklock keeps a lock wants to know for which process.
func TestTheProcessesLeftRunningAreNamed(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", "sleep 1000 & sleep 1000 & exit 0").start()
	eventually(t, "it says so", func() bool { return strings.Contains(i.err.String(), "\n") })
	assert.Regexp(t, `^zklock: the command exited and left running: process \d+ \("sleep"\), \d+ \("sleep"\); keeping the lock until they exit \(`, i.err.String())
	require.NoError(t, i.Process.Signal(syscall.SIGTERM))
	assert.Zero(t, i.code())
}

// zklock took five seconds more to close a client whose servers were silent.
func TestALossEndsZklockThoughNoServerAnswers(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", "10s", "--grace", "0s", "/l", "--", "sleep", "1000").start()
	eventually(t, "the command runs", func() bool { return named(proc.Descendants(i.Process.Pid), "sleep") == 1 })
	goSilent(t, srv)
	eventually(t, "the command is ended", func() bool { return named(proc.Descendants(i.Process.Pid), "sleep") == 0 })
	ended := time.Now()
	assert.EqualValues(t, outcome.Lost, i.code())
	assert.Less(t, time.Since(ended), 4*time.Second, "closing may take a second")
}

// The lock is kept for a slot that is not marked: another host may run it.
func TestASlotOfACommandThatTakesTooLongStaysOpen(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	for range 2 {
		code, _, _ := run(t, srv.Addr(), "run", "--once", "x", "--max-run", "100ms", "/l", "--", "sleep", "1000")
		assert.EqualValues(t, outcome.TimedOut, code)
	}
}

//zklock:promise P2.9
func TestRunOnATerminalKilledByForceLeavesNoProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: waits for a session, as it does without a terminal")
	}
	srv := startServer(t)
	f := family.Whole(t)
	tty := openTerminal(t)
	i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", "4s", "/l", "--", "sh", "-c", family.Everywhere, f.Dir)
	tty.attach(i)
	awaitWork(t, f)
	next := nextHolder(t, srv)
	i.Process.Kill()
	f.AssertEnded(<-next)
}

//zklock:promise P2.9
func TestRunFindsTheProcessGroupIfNothingElseIsKnown(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: waits for sessions")
	}
	srv := startServer(t)
	for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			f := family.New(t, "background", "orphan", "itself")
			i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", "4s", "/l", "--", "sh", "-c", inGroup, f.Dir)
			i.Env = append(i.Env, beGroupOnly+"=1")
			i.start()
			awaitWork(t, f)
			next := nextHolder(t, srv)
			i.Process.Signal(end)
			f.AssertEnded(<-next)
			for _, c := range srv.Children("/l") {
				require.NoError(t, srv.DeleteNode("/l/"+c))
			}
		})
	}
}

//zklock:promise P2.9
func TestRunEndsTheCommandWithItsGuardian(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"", beGroupOnly + "=1"} {
		t.Run(system, func(t *testing.T) {
			srv := startServer(t)
			f, script := family.Whole(t), family.Everywhere
			if system != "" {
				f, script = family.New(t, "background", "orphan", "itself"), inGroup
			}
			i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", script, f.Dir)
			i.Env = append(i.Env, system)
			i.start()
			awaitWork(t, f)
			next := nextHolder(t, srv)
			require.NoError(t, syscall.Kill(guardianOf(t, i), syscall.SIGKILL))
			f.AssertEnded(<-next)
			assert.EqualValues(t, outcome.Unguarded, i.code())
			assert.Contains(t, i.err.String(), "the guardian process died")
		})
	}
}

//zklock:promise P2.9
func TestRunEndsTheCommandThoughItsGuardianIsStopped(t *testing.T) {
	srv := startServer(t)
	f := family.Whole(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", family.Everywhere, f.Dir).start()
	awaitWork(t, f)
	guardian := guardianOf(t, i)
	// A tracer keeps it stopped, whatever zklock sends.
	standing := make(chan error, 1)
	// Owned by the test; ends with the command.
	go holdStill(guardian, standing, i.done)
	require.NoError(t, <-standing)
	require.NoError(t, srv.DeleteNode("/l/"+srv.Children("/l")[0]))
	assert.EqualValues(t, outcome.Lost, i.code(), i.err.String())
	for _, m := range f.Members {
		assert.False(t, family.Alive(f.Pid(m)), m)
	}
}

//zklock:promise P2.9
func TestRunWakesAGuardianThatWasStopped(t *testing.T) {
	srv := startServer(t)
	gate := filepath.Join(t.TempDir(), "gate")
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `: >"$0"; while [ -e "$0" ]; do sleep 0.01; done; exit 3`, gate).start()
	eventually(t, "the command runs", func() bool { return exists(gate) })
	require.NoError(t, syscall.Kill(guardianOf(t, i), syscall.SIGSTOP))
	require.NoError(t, os.Remove(gate))
	assert.Equal(t, 3, i.code(), i.err.String())
}

//zklock:promise P2.10
func TestRunKeepsTheLockUntilAllProcessesHaveEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, system string }{
		"background":    {`(while [ ! -e "$0/go" ]; do sleep 0.01; done; : >"$0/done") & exit 3`, ""},
		"daemon":        {`setsid sh -c 'while [ ! -e "$0/go" ]; do sleep 0.01; done; : >"$0/done"' "$0" & exit 3`, ""},
		"only a group":  {`(while [ ! -e "$0/go" ]; do sleep 0.01; done; : >"$0/done") & exit 3`, beGroupOnly + "=1"},
		"two in a line": {`(while [ ! -e "$0/go" ]; do sleep 0.01; done; (sleep 0.05; : >"$0/done") & ) & exit 3`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t)
			dir := t.TempDir()
			i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", c.script, dir)
			i.Env = append(i.Env, c.system)
			i.start()
			eventually(t, "it says what it waits for", func() bool { return strings.Contains(i.err.String(), "keeping the lock") })
			assert.Equal(t, 1, queued(srv, "/l"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
			assert.Equal(t, 3, i.code(), "the code is the command's")
			assert.True(t, exists(filepath.Join(dir, "done")), "the rest must have ended before zklock")
			assert.Zero(t, queued(srv, "/l"))
		})
	}
}

//zklock:promise P2.10
func TestRunEndsTheProcessesLeftWithEndRest(t *testing.T) {
	srv := startServer(t)
	f := family.New(t, "daemon")
	i := zklockCommand(t, srv.Addr(), "run", "--end-rest", "--grace", "100ms", "/l", "--", "sh", "-c",
		`setsid sh "$0/worker" "$0/daemon" & while [ ! -e "$0/daemon" ]; do sleep 0.01; done; exit 3`, f.Dir).start()
	assert.Equal(t, 3, i.code(), i.err.String())
	assert.False(t, family.Alive(f.Pid("daemon")))
	assert.Contains(t, i.err.String(), "ending the processes it left running")
	assert.Zero(t, queued(srv, "/l"))
}

//zklock:promise P2.10
func TestRunEndsTheProcessesLeftOnASignal(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*testing.T, *zktest.Server, *invocation){
		"by a signal": func(_ *testing.T, _ *zktest.Server, i *invocation) { i.Process.Signal(syscall.SIGINT) },
		"by revoke": func(t *testing.T, srv *zktest.Server, _ *invocation) {
			code, _, err := run(t, srv.Addr(), "revoke", "/l")
			require.Zero(t, code, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := startServer(t)
			f := family.New(t, "daemon")
			i := zklockCommand(t, srv.Addr(), "run", "--grace", "100ms", "/l", "--", "sh", "-c",
				`setsid sh "$0/worker" "$0/daemon" & exit 3`, f.Dir).start()
			awaitWork(t, f)
			eventually(t, "it says what it waits for", func() bool { return strings.Contains(i.err.String(), "keeping the lock") })
			tell(t, srv, i)
			assert.Equal(t, 3, i.code())
			assert.False(t, family.Alive(f.Pid("daemon")))
		})
	}
}

// startWithRoot starts the command as a plain user, with a child that has become root.
func startWithRoot(t *testing.T, srv *zktest.Server, env string) (i *invocation, root int) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a program that becomes root")
	}
	dir, err := os.MkdirTemp("", "zklock")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	self, becomesRoot, ready := filepath.Join(dir, "zklock"), filepath.Join(dir, "becomes-root"), filepath.Join(dir, "ready")
	copyProgram(t, self, 0o755)
	copyProgram(t, becomesRoot, 0o755|os.ModeSetuid)
	i = zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `sleep 600 & `+beRoot+`="$1" "$0" >/dev/null 2>&1`, becomesRoot, ready)
	i.Env = append(i.Env, env)
	i.Path, i.Dir = self, dir
	i.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	i.start()
	eventually(t, "the command has become root", func() bool { return exists(ready) })
	for _, p := range proc.Descendants(i.Process.Pid) {
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID)); exe == becomesRoot {
			root = p.PID
		}
	}
	require.NotZero(t, root)
	t.Cleanup(func() { syscall.Kill(root, syscall.SIGKILL) })
	return i, root
}

//zklock:promise P2.9
func TestRunReportsAProcessThatItCannotEnd(t *testing.T) {
	srv := startServer(t)
	i, root := startWithRoot(t, srv, "")
	i.Process.Signal(syscall.SIGTERM)
	eventually(t, "it says so", func() bool {
		return strings.Contains(i.err.String(), fmt.Sprintf("DANGER: process %d (\"becomes-root\") cannot be signaled", root))
	})
	require.NoError(t, srv.DeleteNode("/l/"+srv.Children("/l")[0]))
	assert.EqualValues(t, outcome.AtLarge, i.code())
	assert.True(t, family.Alive(root))
	assert.Contains(t, i.err.String(), fmt.Sprintf("DANGER: process %d (\"becomes-root\") cannot be ended and is still running WITHOUT the lock", root))
}

func TestRunReportsAGroupThatItCannotEnd(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	i, root := startWithRoot(t, srv, beGroupOnly+"=1")
	require.NoError(t, srv.DeleteNode("/l/"+srv.Children("/l")[0]))
	assert.EqualValues(t, outcome.AtLarge, i.code())
	assert.True(t, family.Alive(root))
	assert.Regexp(t, `DANGER: process group \d+ cannot be ended and is still running WITHOUT the lock`, i.err.String())
}

func TestRunKilledByForceReportsAProcessThatItCannotEnd(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	i, root := startWithRoot(t, srv, "")
	i.Process.Kill()
	eventually(t, "the guardian says so", func() bool {
		return strings.Contains(i.err.String(), fmt.Sprintf("DANGER: process %d (\"becomes-root\") cannot be ended", root))
	})
}

// copyProgram copies this binary.
func copyProgram(t *testing.T, path string, mode os.FileMode) {
	from, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer from.Close()
	to, err := os.Create(path)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.NoError(t, os.Chmod(path, mode))
}

// ignored is what a process says that ignores nothing but what it has inherited.
const ignored = `exec grep SigIgn /proc/self/status`

func TestRunKeepsIgnoredSignalsIgnored(t *testing.T) {
	srv := startServer(t)
	for name, starter := range map[string]string{
		"nohup":              `trap '' HUP; exec "$@"`,
		"background job":     `"$@" & wait`,
		"nothing is ignored": `exec "$@"`,
	} {
		direct, err := exec.Command("sh", "-c", starter, "sh", "sh", "-c", ignored).Output()
		require.NoError(t, err)
		i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", ignored)
		i.Args = append([]string{"sh", "-c", starter, "sh"}, i.Args...)
		i.Path = "/bin/sh"
		i.start()
		require.Zero(t, i.code(), i.err.String())
		assert.Equal(t, string(direct), i.out.String(), name)
	}
}

func TestRunSurvivesHangUpUnderNohup(t *testing.T) {
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	gate := filepath.Join(t.TempDir(), "gate")
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c",
		`trap 'echo USR1; exit 4' USR1; : >"$0"; while :; do sleep 0.01; done`, gate)
	i.Args = append([]string{"sh", "-c", `trap '' HUP; exec "$@"`, "sh"}, i.Args...)
	i.Path = "/bin/sh"
	i.start()
	eventually(t, "the command queues", func() bool { return queued(srv, "/l") == 2 })
	i.Process.Signal(syscall.SIGHUP)
	require.NoError(t, hold.Unlock(t.Context()))
	eventually(t, "the command runs", func() bool { return exists(gate) })
	i.Process.Signal(syscall.SIGHUP)
	i.Process.Signal(syscall.SIGUSR1)
	assert.Equal(t, 4, i.code(), i.err.String())
}

func TestRunContinuesAStoppedCommandThatIsToEnd(t *testing.T) {
	for _, system := range []string{"", beGroupOnly + "=1"} {
		srv := startServer(t)
		i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `trap 'echo TERM; exit 5' TERM; kill -STOP $$; sleep 600`)
		i.Env = append(i.Env, system)
		i.start()
		eventually(t, "zklock says that it was stopped", func() bool { return strings.Contains(i.err.String(), "the command was stopped") })
		i.Process.Signal(syscall.SIGTERM)
		assert.Equal(t, 5, i.code(), system)
		assert.Equal(t, "TERM\n", i.out.String())
	}
}

func TestRunLeavesTheCommandItsFiles(t *testing.T) {
	srv := startServer(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	const script = `echo three >&3; echo four >&4; exec ls /proc/self/fd`
	direct := exec.Command("sh", "-c", script)
	direct.ExtraFiles = []*os.File{w, w}
	want, err := direct.Output()
	require.NoError(t, err)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", script)
	i.ExtraFiles = []*os.File{w, w}
	i.start()
	require.NoError(t, w.Close())
	require.Zero(t, i.code(), i.err.String())
	assert.Equal(t, string(want), i.out.String(), "no pipe of zklock's own must be open in the command")
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "three\nfour\nthree\nfour\n", string(got))
}

func TestRunEndsTheCommandThoughItsOutputIsNotRead(t *testing.T) {
	srv := startServer(t)
	f := family.Whole(t)
	_, full := fullPipe(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `exec 2>/dev/null; `+family.Everywhere, f.Dir)
	i.Stderr = full
	i.start()
	awaitWork(t, f)
	require.NoError(t, srv.DeleteNode("/l/"+srv.Children("/l")[0]))
	for _, m := range f.Members {
		eventually(t, m+" ends", func() bool { return !family.Alive(f.Pid(m)) })
	}
}

// The log is written by those who connect and renew: they must not wait for a reader.
func TestRunHoldsThoughItsLogIsNotRead(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	_, full := fullPipe(t)
	ready := filepath.Join(t.TempDir(), "ready")
	i := zklockCommand(t, srv.Addr(), "run", "--verbose", "--session-timeout", "2s", "--grace", "0s", "/l", "--", "sh", "-c",
		`exec 2>/dev/null; : >"$0"; while [ -e "$0" ]; do sleep 0.01; done; exit 3`, ready)
	i.Stderr = full
	i.start()
	eventually(t, "the command runs", func() bool { return exists(ready) })
	srv.DropConnections()
	before := srv.Requests()[zktest.OpMulti]
	eventually(t, "heartbeats continue", func() bool { return srv.Requests()[zktest.OpMulti] >= before+3 })
	require.NoError(t, os.Remove(ready))
	assert.Equal(t, 3, i.code())
	assert.Zero(t, queued(srv, "/l"))
}

func fullPipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	for err == nil {
		_, err = w.Write(make([]byte, 512))
	}
	return r, w
}

// ownGroup returns the directory of this process's control group. It skips a test if no group can be made in it.
func ownGroup(t *testing.T) string {
	membership, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	_, path, _ := strings.Cut("\n"+string(membership), "\n0::")
	path, _, _ = strings.Cut(path, "\n")
	own := filepath.Join("/sys/fs/cgroup", path)
	probe := filepath.Join(own, "zklock-test")
	if os.Mkdir(probe, 0o755) != nil || !exists(filepath.Join(probe, "cgroup.procs")) {
		os.Remove(probe)
		t.Skip("no control group can be made here")
	}
	require.NoError(t, os.Remove(probe))
	return own
}

func TestRunPutsTheCommandIntoAControlGroupIfPossible(t *testing.T) {
	own := ownGroup(t)
	srv := startServer(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `grep ^0:: /proc/self/cgroup; echo $PPID`).start()
	require.Zero(t, i.code(), i.err.String())
	lines := strings.Fields(i.out.String())
	require.Len(t, lines, 2)
	assert.True(t, strings.HasSuffix(lines[0], "/zklock-"+lines[1]), lines)
	assert.False(t, exists(filepath.Join(own, "zklock-"+lines[1])), "it must be removed")
}

// In a container zklock is often the first process, to which those come whose parent has ended.
func TestRunAsTheFirstProcessReapsOrphans(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a namespace")
	}
	srv := startServer(t)
	gate := filepath.Join(t.TempDir(), "gate")
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `: >"$0"; while [ -e "$0" ]; do sleep 0.01; done; exit 3`, gate)
	i.Args = append([]string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}, i.Args...)
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("no unshare here")
	}
	i.Path = unshare
	i.start()
	eventually(t, "the command runs", func() bool { return exists(gate) })
	first := proc.Descendants(i.Process.Pid)[0].PID
	enter := []string{"--target", strconv.Itoa(first), "--pid", "--mount", "sh", "-c"}
	for range 3 {
		out, err := exec.Command("nsenter", append(enter, "(sleep 0.05 &)")...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	eventually(t, "nothing dead is left", func() bool {
		out, err := exec.Command("nsenter", append(enter, "cat /proc/[0-9]*/stat")...).CombinedOutput()
		return err == nil && !strings.Contains(string(out), "(sleep) Z 1 ")
	})
	require.NoError(t, os.Remove(gate))
	assert.Equal(t, 3, i.code(), i.err.String())
}

func TestTheGuardianHasItsThreadsBeforeTheCommandStarts(t *testing.T) {
	i := zklockCommand(t, startServer(t).Addr(), "run", "/l", "--", "sh", "-c", `grep ^Threads: /proc/$PPID/status`).start()
	require.Zero(t, i.code(), i.err.String())
	threads, err := strconv.Atoi(strings.Fields(i.out.String())[1])
	require.NoError(t, err)
	assert.GreaterOrEqual(t, threads, 10)
}
