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
	for _, p := range below(i.Process.Pid) {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid)); string(comm) == guardianName+"\n" {
			return p.pid
		}
	}
	t.Fatal("no guardian")
	return 0
}

func TestRunKilledByForceLeavesNobodyAtWork(t *testing.T) {
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

func TestRunStoppedLeavesNobodyAtWork(t *testing.T) {
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
	eventually(t, "the guardian tells, as zklock itself cannot", func() bool { return strings.Contains(i.err.String(), "zklock does not answer") })
	require.NoError(t, i.Process.Signal(syscall.SIGCONT))
	assert.Equal(t, codeLost, i.code())
}

func TestRunOnATerminalKilledByForceLeavesNobodyAtWork(t *testing.T) {
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

func TestRunFindsTheProcessGroupWhereNothingElseIsKnown(t *testing.T) {
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
			assert.Equal(t, codeUnguarded, i.code())
			assert.Contains(t, i.err.String(), "its guardian was ended")
		})
	}
}

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
	assert.Equal(t, codeLost, i.code(), i.err.String())
	for _, m := range f.Members {
		assert.False(t, family.Alive(f.Pid(m)), m)
	}
}

func TestRunWakesAGuardianThatWasStopped(t *testing.T) {
	srv := startServer(t)
	gate := filepath.Join(t.TempDir(), "gate")
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `: >"$0"; while [ -e "$0" ]; do sleep 0.01; done; exit 3`, gate).start()
	eventually(t, "the command runs", func() bool { return exists(gate) })
	require.NoError(t, syscall.Kill(guardianOf(t, i), syscall.SIGSTOP))
	require.NoError(t, os.Remove(gate))
	assert.Equal(t, 3, i.code(), i.err.String())
}

func TestRunKeepsTheLockUntilTheRestHasEnded(t *testing.T) {
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
			eventually(t, "it says what it waits for", func() bool { return strings.Contains(i.err.String(), "the lock is kept") })
			assert.Equal(t, 1, queued(srv, "/l"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
			assert.Equal(t, 3, i.code(), "the code is the command's")
			assert.True(t, exists(filepath.Join(dir, "done")), "the rest must have ended before zklock")
			assert.Zero(t, queued(srv, "/l"))
		})
	}
}

func TestRunEndsTheRestIfAsked(t *testing.T) {
	srv := startServer(t)
	f := family.New(t, "daemon")
	i := zklockCommand(t, srv.Addr(), "run", "--end-rest", "--grace", "100ms", "/l", "--", "sh", "-c",
		`setsid sh "$0/worker" "$0/daemon" & while [ ! -e "$0/daemon" ]; do sleep 0.01; done; exit 3`, f.Dir).start()
	assert.Equal(t, 3, i.code(), i.err.String())
	assert.False(t, family.Alive(f.Pid("daemon")))
	assert.Contains(t, i.err.String(), "ending what it has left behind")
	assert.Zero(t, queued(srv, "/l"))
}

func TestRunEndsTheRestWhenToldToEnd(t *testing.T) {
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
			eventually(t, "it says what it waits for", func() bool { return strings.Contains(i.err.String(), "the lock is kept") })
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
	for _, p := range below(i.Process.Pid) {
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid)); exe == becomesRoot {
			root = p.pid
		}
	}
	require.NotZero(t, root)
	t.Cleanup(func() { syscall.Kill(root, syscall.SIGKILL) })
	return i, root
}

func TestRunTellsOfAProcessThatItCannotEnd(t *testing.T) {
	srv := startServer(t)
	i, root := startWithRoot(t, srv, "")
	i.Process.Signal(syscall.SIGTERM)
	eventually(t, "it says so", func() bool {
		return strings.Contains(i.err.String(), fmt.Sprintf("DANGER: process %d (\"becomes-root\") cannot be signalled", root))
	})
	require.NoError(t, srv.DeleteNode("/l/"+srv.Children("/l")[0]))
	assert.Equal(t, codeAtLarge, i.code())
	assert.True(t, family.Alive(root))
	assert.Contains(t, i.err.String(), fmt.Sprintf("DANGER: process %d (\"becomes-root\") cannot be ended and goes on WITHOUT the lock", root))
}

func TestRunTellsOfAGroupThatItCannotEnd(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	i, root := startWithRoot(t, srv, beGroupOnly+"=1")
	require.NoError(t, srv.DeleteNode("/l/"+srv.Children("/l")[0]))
	assert.Equal(t, codeAtLarge, i.code())
	assert.True(t, family.Alive(root))
	assert.Regexp(t, `DANGER: process group \d+ cannot be ended and goes on WITHOUT the lock`, i.err.String())
}

func TestRunKilledByForceTellsOfAProcessThatItCannotEnd(t *testing.T) {
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

func TestRunLeavesSignalsIgnoredThatWere(t *testing.T) {
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

func TestRunEndsTheCommandThoughNobodyReadsWhatItSays(t *testing.T) {
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
func TestRunHoldsThoughNobodyReadsItsLog(t *testing.T) {
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
	eventually(t, "heartbeats go on", func() bool { return srv.Requests()[zktest.OpMulti] >= before+3 })
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

func TestRunPutsTheCommandIntoAControlGroupWhereItCan(t *testing.T) {
	probe := newCgroup()
	if probe == "" {
		t.Skip("no control group can be made here")
	}
	probe.remove()
	srv := startServer(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `grep ^0:: /proc/self/cgroup; echo $PPID`).start()
	require.Zero(t, i.code(), i.err.String())
	lines := strings.Fields(i.out.String())
	require.Len(t, lines, 2)
	assert.True(t, strings.HasSuffix(lines[0], "/zklock-"+lines[1]), lines)
	assert.False(t, exists(filepath.Join(filepath.Dir(string(probe)), "zklock-"+lines[1])), "it must be removed")
}

// In a container zklock is often the first process, to which those come whose parent has ended.
func TestRunAsTheFirstProcessReapsWhatComesToIt(t *testing.T) {
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
	first := below(i.Process.Pid)[0].pid
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

func TestTheControlGroupIsFoundInMountinfo(t *testing.T) {
	const (
		unified = "25 20 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
		hybrid  = "30 25 0:25 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n31 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		inside  = "40 30 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
	)
	for _, c := range []struct{ membership, mounts, want string }{
		{"0::/system.slice/cron.service\n", unified, "/sys/fs/cgroup/system.slice/cron.service"},
		{"9:freezer:/x\n0::/\n", hybrid, "/sys/fs/cgroup/unified"},
		{"0::/docker/abc/job\n", inside, "/sys/fs/cgroup/job"},
		{"0::/docker/abcd\n", inside, ""},
		{"0::/../other\n", unified, ""},
		{"9:freezer:/x\n", hybrid, ""},
		{"0::/\n", "30 25 0:25 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw\n", ""},
	} {
		got, ok := cgroupDirectory(c.membership, c.mounts)
		assert.Equal(t, c.want, got, c.membership)
		assert.Equal(t, c.want != "", ok)
	}
}

func TestADeadlineComesByTheClockThatSaysLess(t *testing.T) {
	require.NotZero(t, sinceBoot())
	n := now()
	assert.Positive(t, n.plus(time.Hour).left())
	assert.Negative(t, deadline{Wall: n.Wall + int64(time.Hour), Boot: n.Boot - 1}.left(), "the machine has slept, and its wall clock was set back")
	assert.Negative(t, deadline{Wall: n.Wall - 1, Boot: n.Boot + int64(time.Hour)}.left(), "the machine stood still, and its wall clock was put right")
	assert.Positive(t, deadline{Wall: n.Wall + int64(time.Hour)}.left(), "there may be no clock but the wall's")
}

// slowTree is a tree whose command takes until go to be started.
type slowTree struct {
	start chan struct{}
	got   chan syscall.Signal
}

func (s *slowTree) run(_ assignment, tell func(report)) {
	<-s.start
	tell(report{Started: 1})
}

func (s *slowTree) signal(sig syscall.Signal, _ reach) (denied []int) {
	s.got <- sig
	return nil
}

func (s *slowTree) kill() (ending int, denied []int) { return 0, nil }

func TestASignalThatComesBeforeTheCommandIsNotLost(t *testing.T) {
	slow := &slowTree{make(chan struct{}), make(chan syscall.Signal, 1)}
	orders, heard := make(chan order), make(chan struct{}, 8)
	g := guard{tree: slow, notice: func(string) {}, answer: func(r report) {
		if r.Heard {
			heard <- struct{}{}
		}
	}}
	// Owned by the test; ends when the orders do, after patience.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.keep(orders)
	}()
	until := now().plus(time.Hour)
	orders <- order{Until: until, Assignment: &assignment{Session: time.Second}}
	orders <- order{Until: until, Signal: int(syscall.SIGUSR1)}
	<-heard
	close(slow.start)
	assert.Equal(t, syscall.SIGUSR1, <-slow.got)
	close(orders)
	assert.Equal(t, terminate, <-slow.got)
	<-ended
}

// A hold may be certain for so short a time when zklock is stopped that it was heard of just before the end begins.
func TestTheGuardianTellsOfASilenceThatBeginsLate(t *testing.T) {
	stubborn := &slowTree{make(chan struct{}), make(chan syscall.Signal, 1)}
	close(stubborn.start)
	orders, told := make(chan order), make(chan string, 8)
	g := guard{tree: stubborn, notice: func(text string) { told <- text }, answer: func(report) {}}
	ended := make(chan struct{})
	// Owned by the test; ends after the deadline.
	go func() {
		defer close(ended)
		g.keep(orders)
	}()
	const session = time.Second
	orders <- order{Until: now().plus(session / 4), Assignment: &assignment{Session: session, Grace: session / 5}}
	assert.Equal(t, terminate, <-stubborn.got, "it is warned at once")
	assert.Contains(t, <-told, "zklock does not answer")
	<-ended
}

func TestAControlGroupIsKilledAtOnceAndRemoved(t *testing.T) {
	c := newCgroup()
	if c == "" {
		t.Skip("no control group can be made here")
	}
	dir, err := os.Open(string(c))
	require.NoError(t, err)
	defer dir.Close()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	require.NoError(t, cmd.Start())
	c.kill()
	cmd.Wait()
	assert.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	c.remove()
	assert.False(t, exists(string(c)))
}

func TestTheGuardianHasItsThreadsBeforeTheCommandStarts(t *testing.T) {
	i := zklockCommand(t, startServer(t).Addr(), "run", "/l", "--", "sh", "-c", `grep ^Threads: /proc/$PPID/status`).start()
	require.Zero(t, i.code(), i.err.String())
	threads, err := strconv.Atoi(strings.Fields(i.out.String())[1])
	require.NoError(t, err)
	assert.GreaterOrEqual(t, threads, enoughThreads)
}

func TestDescendantsAreToldFromOthers(t *testing.T) {
	all := []process{
		{pid: 1}, {pid: 4, parent: 9}, {pid: 7, parent: 1}, {pid: 8, parent: 7}, {pid: 9, parent: 8, dead: true},
		{pid: 10, parent: 7, since: "before"}, {pid: 11, parent: 10}, {pid: 12, parent: 13}, {pid: 13, parent: 12}, {pid: 14, parent: 99},
	}
	markBelow(all, 7, []process{{pid: 10, since: "before"}, {pid: 8, since: "of another"}})
	var found []int
	for _, p := range living(all) {
		found = append(found, p.pid)
	}
	assert.Equal(t, []int{4, 8}, found)
}

func TestAProcessIsReadWhateverItsName(t *testing.T) {
	p, ok := parseProcess([]byte("42 (a) Z 1 (b) T 7 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0\n"))
	assert.True(t, ok)
	assert.Equal(t, process{pid: 42, parent: 7, group: 5, stopped: true, since: "12345"}, p)
	_, ok = parseProcess(nil)
	assert.False(t, ok)
}
