// SPDX-License-Identifier: Apache-2.0

//go:build linux

package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/family"
	"github.com/zklock-go/zklock/zkcontainer"
)

// shell runs the command: binary is its path, servers the servers that it uses.
type shell struct{ binary, servers string }

// invocation is one run of the command.
type invocation struct {
	*exec.Cmd
	t        *testing.T
	out, err family.Output
	ended    chan struct{}
}

// start starts the command in the background. The end of the test kills it.
func (s shell) start(t *testing.T, args ...string) *invocation {
	i := &invocation{Cmd: exec.Command(s.binary, args...), t: t, ended: make(chan struct{})}
	i.Env = append(os.Environ(), "ZKLOCK_SERVERS="+s.servers)
	i.Stdout, i.Stderr = &i.out, &i.err
	require.NoError(t, i.Start())
	// Owned by the test, which waits for it; ends with the process.
	go func() {
		defer close(i.ended)
		i.Wait()
	}()
	t.Cleanup(func() {
		i.Process.Kill()
		<-i.ended
	})
	return i
}

// run runs the command and waits for its end.
func (s shell) run(t *testing.T, args ...string) (code int, out, err string) {
	i := s.start(t, args...)
	return i.code(), i.out.String(), i.err.String()
}

// until waits until is returns true. It fails the test if the command ends before that.
func (i *invocation) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		select {
		case <-i.ended:
			require.True(t, is(), "%s: the command has ended: %s", what, i.err.String())
		default:
		}
		return is()
	})
}

// code waits for the end of the command and returns its exit code.
func (i *invocation) code() int {
	i.t.Helper()
	select {
	case <-i.ended:
	case <-time.After(patience):
		assert.Fail(i.t, "the command did not end", "%v: %s", i.Args[1:], i.err.String())
		i.Process.Kill()
		<-i.ended
	}
	return i.ProcessState.ExitCode()
}

// eventually waits until is returns true, and fails the test if it does not within patience.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for bound := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(bound) {
			require.FailNow(t, "did not happen: "+what)
		}
	}
}

// nextHolder queues behind the command, and sends the time of its grant on the returned channel.
func nextHolder(t *testing.T, conn *zk.Conn, path string) <-chan time.Time {
	granted := make(chan time.Time, 1)
	next, ctx := connect(t, nil, servers(t)...), soon(t)
	// Owned by the test, which waits for the grant; ends with it or with ctx.
	go func() {
		if _, err := next.Mutex(path).Lock(ctx); err == nil {
			granted <- time.Now()
		}
	}()
	untilChildren(t, conn, path, 2)
	return granted
}

// TestCommand runs the built command, with child processes that ignore signals. Tests that need a server under the test's
// control are in the command's package.
//
//zklock:promise P2.9
func TestCommand(t *testing.T) {
	part(t)
	addrs := servers(t)
	cmd := shell{buildCommand(t), strings.Join(addrs, ",")}
	conn, _ := dial(t, 10*time.Second, addrs...)
	ours := connect(t, nil, addrs...)
	// Tests that wait for the end of a session run in parallel. The session timeout tolerates a machine that pauses for seconds.
	t.Run("parallel", func(t *testing.T) {
		for name, end := range map[string]syscall.Signal{"killed by force": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path, workers := root(t), family.Whole(t)
				i := cmd.start(t, "run", "--session-timeout", "6s", path, "--", "sh", "-c", family.Everywhere, workers.Dir)
				i.until(t, "all are at work", workers.Works)
				next := nextHolder(t, conn, path)
				require.NoError(t, i.Process.Signal(end))
				workers.AssertEnded(await(t, next, "the next holder"))
			})
		}
		t.Run("at least", func(t *testing.T) {
			t.Parallel()
			path := root(t)
			i := cmd.start(t, "run", "--at-least", "600s", path, "--", "echo", "ran")
			eventually(t, "the command has ended", func() bool { return i.out.String() == "ran\n" })
			code, _, _ := cmd.run(t, "run", "--no-wait", path, "--", "echo", "ran")
			assert.Equal(t, 75, code, "another host, a moment later")
			require.NoError(t, i.Process.Signal(os.Interrupt))
			assert.Zero(t, i.code(), i.err.String())
			untilChildren(t, conn, path, 0)
		})
		t.Run("once", func(t *testing.T) {
			t.Parallel()
			path, file := root(t), filepath.Join(t.TempDir(), "runs")
			var fleet []*invocation
			for range 6 {
				fleet = append(fleet, cmd.start(t, "run", "--quiet", "--once", "report-1", path, "--", "sh", "-c", `echo >>"$0"`, file))
			}
			for _, i := range fleet {
				assert.Zero(t, i.code(), i.err.String())
				assert.Empty(t, i.err.String())
			}
			runs, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Len(t, runs, 1)
		})
	})
	t.Run("wait", func(t *testing.T) {
		path := root(t)
		hold, err := ours.Mutex(path).Lock(soon(t))
		require.NoError(t, err)
		for _, flags := range [][]string{{"--no-wait"}, {"--wait", "0"}, {"--wait", "5s"}, {"--shared", "--no-wait"}} {
			code, out, text := cmd.run(t, append(append([]string{"run"}, flags...), path, "--", "echo", "ran")...)
			assert.Equal(t, 75, code, "%v: %s", flags, text)
			assert.Empty(t, out)
		}
		untilChildren(t, conn, path, 1)
		require.NoError(t, hold.Unlock(soon(t)))
		code, out, text := cmd.run(t, "run", "--no-wait", path, "--", "sh", "-c", "echo $ZKLOCK_TOKEN; exit 3")
		assert.Equal(t, 3, code, text)
		assert.Regexp(t, `^\d+\n$`, out)
	})
	t.Run("chroot", func(t *testing.T) {
		inside := shell{cmd.binary, cmd.servers + root(t)}
		code, out, text := inside.run(t, "run", "--root", "/app", "/l", "--", "sh", "-c", "echo $ZKLOCK_PATH $ZKLOCK_NODE")
		require.Zero(t, code, text)
		assert.Regexp(t, `^/l `+root(t)+`/app/l/_c_`, out)
	})
	t.Run("ls and top", func(t *testing.T) { lookAround(t, cmd, ours) })
	t.Run("elect", func(t *testing.T) {
		path := root(t)
		leader := cmd.start(t, "elect", "--value", "one", path, "--", "sh", "-c", "trap 'exit 5' TERM; echo led; while :; do sleep 0.01; done")
		leader.until(t, "it leads", func() bool { return leader.out.String() != "" })
		code, out, text := cmd.run(t, "elect", path)
		assert.Zero(t, code, text)
		assert.Equal(t, "one\n", out)
		code, _, text = cmd.run(t, "revoke", path)
		assert.Zero(t, code, text)
		assert.Equal(t, 5, leader.code(), "the lock was revoked")
	})
	t.Run("evicted", func(t *testing.T) {
		path, workers := root(t), family.Whole(t)
		i := cmd.start(t, "run", path, "--", "sh", "-c", family.Everywhere, workers.Dir)
		i.until(t, "all are at work", workers.Works)
		code, _, text := cmd.run(t, "evict", "--holders", path)
		assert.Zero(t, code, text)
		assert.Equal(t, 79, i.code(), i.err.String())
		for _, m := range workers.Members {
			assert.False(t, family.Alive(workers.Pid(m)), m)
		}
	})
}

// lookAround checks the output of ls and top for two locks that ours holds.
func lookAround(t *testing.T, cmd shell, ours *zklock.Client) {
	path := root(t)
	first, err := ours.Mutex(path + "/a").Lock(soon(t))
	require.NoError(t, err)
	second, err := ours.RWMutex(path + "/b/deep").RLock(soon(t))
	require.NoError(t, err)
	code, out, text := cmd.run(t, "ls", path)
	assert.Zero(t, code, text)
	assert.Contains(t, out, "not in use, but 2 locks are below it")
	code, out, text = cmd.run(t, "ls", "-r", path)
	assert.Zero(t, code, text)
	assert.Contains(t, out, path+"/a: 1 held, 0 waiting")
	assert.Contains(t, out, path+"/b/deep: 1 held, 0 waiting")

	// top prints a line with an entry for each change, in the order of the changes.
	top := cmd.start(t, "top", "--json", path)
	type entry struct {
		Path    string
		Held    int
		Holders []struct{ Token int64 }
	}
	shows := func(n int, want string, held int, token int64) {
		top.until(t, "top shows "+want, func() bool { return strings.Count(top.out.String(), "\n") >= n })
		var last entry
		for line := range strings.Lines(top.out.String()) {
			var e entry
			require.NoError(t, json.Unmarshal([]byte(line), &e))
			if e.Path == want {
				last = e
			}
		}
		require.Equal(t, held, last.Held, top.out.String())
		if held > 0 {
			assert.Equal(t, token, last.Holders[0].Token)
		}
	}
	shows(2, path+"/a", 1, first.Token())
	shows(2, path+"/b/deep", 1, second.Token())
	require.NoError(t, first.Unlock(soon(t)))
	shows(3, path+"/a", 0, 0)
	require.NoError(t, top.Process.Signal(os.Interrupt))
	assert.Zero(t, top.code(), top.err.String())
	require.NoError(t, second.Unlock(soon(t)))
}

// TestHealthyJobs runs jobs whose duration fits badly with the heartbeats of their sessions. One session timeout is the
// shortest that the server grants. Nothing fails, so no job may be ended. This cannot be tested if the machine or the server
// pauses: if this process is delayed for a twentieth of a session timeout (the command's margin), or another client for a
// fifth (the time that a command can spare), ended jobs are not a failure. Then the test is skipped, and the run lists it
// under NOT TESTED.
//
//zklock:promise P2.10
func TestHealthyJobs(t *testing.T) {
	part(t)
	const jobs = 12
	addrs := start(t, zkcontainer.Options{TickTime: 2 * time.Second, Config: []string{"dataLogDir=/dev/shm"}}).Addrs() // so that no disk delays the server
	cmd := shell{binary: buildCommand(t), servers: strings.Join(addrs, ",")}
	conn, _ := dial(t, time.Minute, addrs...)
	for _, c := range []struct{ work, session string }{{"2", "4s"}, {"2.7", "10s"}} {
		t.Run(c.session, func(t *testing.T) {
			t.Parallel()
			session, err := time.ParseDuration(c.session)
			require.NoError(t, err)
			log := filepath.Join(t.TempDir(), "log")
			slowest := witness(t, session, func() {}) // measures how long this process oversleeps
			stood := witness(t, session, func() { _, _, _ = conn.Exists("/") })
			var fleet []*invocation
			for range jobs {
				fleet = append(fleet, cmd.start(t, "run", "--session-timeout", c.session, root(t), "--",
					"sh", "-c", `echo begin >>"$0"; sleep $1; echo end >>"$0"`, log, c.work))
			}
			ended := 0
			for _, i := range fleet {
				if i.code() != 0 || i.err.String() != "" {
					ended++
					t.Log(i.err.String())
				}
			}
			t.Logf("within a session timeout, this machine delayed a process by at most %v, and the server another client by at most %v", slowest(), stood())
			if late := slowest(); ended > 0 && late > session/20 {
				t.Skipf("this machine delayed a process by %v: %d jobs were ended", late, ended)
			}
			if late := stood(); ended > 0 && late > session/5 {
				t.Skipf("the server delayed another client by %v: %d jobs were ended", late, ended)
			}
			assert.Zero(t, ended)
			done, err := os.ReadFile(log)
			require.NoError(t, err)
			assert.Equal(t, strings.Repeat("begin\nend\n", jobs), string(done))
		})
	}
}

// witness calls do repeatedly, and returns a function that returns the largest total delay within any period of the given
// length. Delays shorter than a five-hundredth of this length do not count.
func witness(t *testing.T, within time.Duration, do func()) (slowest func() time.Duration) {
	const pause = 5 * time.Millisecond
	var most atomic.Int64
	var sampling sync.WaitGroup
	// Owned by the test, whose end stops it and waits for it.
	sampling.Go(func() {
		type wait struct {
			began time.Time
			long  time.Duration
		}
		var waits []wait // the most recent ones
		for t.Context().Err() == nil {
			began := time.Now()
			do()
			time.Sleep(pause)
			long := time.Since(began) - pause
			if long < within/500 {
				continue
			}
			waits = append(slices.DeleteFunc(waits, func(w wait) bool { return began.Sub(w.began) > within }), wait{began, long})
			var sum time.Duration
			for _, w := range waits {
				sum += w.long
			}
			most.Store(max(most.Load(), int64(sum)))
		}
	})
	t.Cleanup(sampling.Wait)
	return func() time.Duration { return time.Duration(most.Load()) }
}

// TestASlotOutlivesTheLeader marks a slot, kills the leader of the ensemble, and checks the slot under the next leader.
//
//zklock:promise P10.1 A21
func TestASlotOutlivesTheLeader(t *testing.T) {
	part(t)
	ensemble := three(t)
	cmd := shell{buildCommand(t), strings.Join(ensemble.Addrs(), ",")}
	once := func() string {
		code, out, text := cmd.run(t, "run", "--once", "report-1", "--connect-timeout", patience.String(), root(t), "--", "echo", "ran")
		assert.Zero(t, code, text)
		return out
	}
	require.Equal(t, "ran\n", once())
	leader, err := ensemble.Leader(t.Context())
	require.NoError(t, err)
	require.NoError(t, leader.Stop(t.Context()))
	_, err = ensemble.Leader(soon(t), leader)
	require.NoError(t, err)
	assert.Empty(t, once(), "it is done")
	require.NoError(t, leader.Start(t.Context()))
	require.NoError(t, ensemble.WaitHealthy(soon(t)))
	assert.Empty(t, once())
}
