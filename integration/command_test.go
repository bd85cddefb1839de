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

// shell is where the command is typed: its binary, and the servers that it is told of.
type shell struct{ binary, servers string }

// invocation is one run of the command.
type invocation struct {
	*exec.Cmd
	out, err family.Output
	ended    chan struct{}
}

// start runs the command in the background, until the test's end at the latest.
func (s shell) start(t *testing.T, args ...string) *invocation {
	i := &invocation{Cmd: exec.Command(s.binary, args...), ended: make(chan struct{})}
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

// run runs the command to its end.
func (s shell) run(t *testing.T, args ...string) (code int, out, err string) {
	i := s.start(t, args...)
	return i.code(), i.out.String(), i.err.String()
}

// until waits for something that the command or its processes do. One that has ended does nothing more.
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

func (i *invocation) code() int {
	<-i.ended
	return i.ProcessState.ExitCode()
}

// eventually waits for something that a process does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for bound := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(bound) {
			require.FailNow(t, "never: "+what)
		}
	}
}

// nextHolder queues behind the command and tells when it has the lock.
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

// TestCommand runs the built command as people do, with child processes that do not want to end. What can only be seen on
// a server that tests rule over is tested beside the command.
func TestCommand(t *testing.T) {
	part(t)
	addrs := servers(t)
	cmd := shell{buildCommand(t), strings.Join(addrs, ",")}
	conn, _ := dial(t, 10*time.Second, addrs...)
	ours := connect(t, nil, addrs...)
	// Those that wait for a session's end wait beside each other. It is long enough for a machine that stands still for seconds.
	t.Run("at once", func(t *testing.T) {
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
			assert.Equal(t, 75, code, "another host, some moments late")
			require.NoError(t, i.Process.Signal(os.Interrupt))
			assert.Zero(t, i.code(), i.err.String())
			untilChildren(t, conn, path, 0)
		})
		t.Run("once", func(t *testing.T) {
			t.Parallel()
			path, file := root(t), filepath.Join(t.TempDir(), "runs")
			var fleet []*invocation
			for range 6 {
				fleet = append(fleet, cmd.start(t, "run", "--quiet", "--once", "nightly", path, "--", "sh", "-c", `echo >>"$0"`, file))
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
		for _, flags := range [][]string{{"--no-wait"}, {"--wait", "0"}, {"--wait", "300ms"}, {"--shared", "--no-wait"}} {
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
		assert.Equal(t, 5, leader.code(), "it was asked to let go")
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

// lookAround checks what the command shows of two locks that ours holds.
func lookAround(t *testing.T, cmd shell, ours *zklock.Client) {
	path := root(t)
	first, err := ours.Mutex(path + "/a").Lock(soon(t))
	require.NoError(t, err)
	second, err := ours.RWMutex(path + "/b/deep").RLock(soon(t))
	require.NoError(t, err)
	code, out, text := cmd.run(t, "ls", path)
	assert.Zero(t, code, text)
	assert.Contains(t, out, "nobody holds or waits here, but at 2 locks below it")
	code, out, text = cmd.run(t, "ls", "-r", path)
	assert.Zero(t, code, text)
	assert.Contains(t, out, path+"/a: 1 held, 0 waiting")
	assert.Contains(t, out, path+"/b/deep: 1 held, 0 waiting")

	// An entry a line and a change, in the order of the changes.
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

// TestHealthyJobs has jobs queue whose time goes badly with the heartbeats of their sessions, one of which is as short as
// the server lets it be. Nothing fails, so none may be told to end. It cannot show that where the machine or the server
// stands still. Within one session that is this process for a twentieth of it, the margin of the command, or another client
// for a fifth, what a command can spare. Jobs are then ended rightly or wrongly, and the run says so under NOT TESTED.
func TestHealthyJobs(t *testing.T) {
	part(t)
	const jobs = 12
	addrs := start(t, zkcontainer.Options{TickTime: 2 * time.Second, Config: []string{"dataLogDir=/dev/shm"}}).Addrs() // no disk keeps it waiting
	cmd := shell{binary: buildCommand(t), servers: strings.Join(addrs, ",")}
	conn, _ := dial(t, time.Minute, addrs...)
	for _, c := range []struct{ work, session string }{{"2", "4s"}, {"2.7", "10s"}} {
		t.Run(c.session, func(t *testing.T) {
			t.Parallel()
			session, err := time.ParseDuration(c.session)
			require.NoError(t, err)
			log := filepath.Join(t.TempDir(), "log")
			slowest := witness(t, session, func() {}) // by how much this process oversleeps
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
			t.Logf("within a session this machine has kept a process waiting for %v at most, and the server another client for %v", slowest(), stood())
			if late := slowest(); ended > 0 && late > session/20 {
				t.Skipf("this machine has kept a process waiting for %v: %d jobs were ended", late, ended)
			}
			if late := stood(); ended > 0 && late > session/5 {
				t.Skipf("the server has kept another client waiting for %v: %d jobs were ended", late, ended)
			}
			assert.Zero(t, ended)
			done, err := os.ReadFile(log)
			require.NoError(t, err)
			assert.Equal(t, strings.Repeat("begin\nend\n", jobs), string(done))
		})
	}
}

// witness does something again and again, and returns what tells for how long it was kept waiting within any such time, at
// most. What takes less than a five-hundredth of that is no waiting.
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
		var waits []wait // those of late
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

// TestASlotOutlivesTheLeader marks a slot, ends the leader of the ensemble, and asks again under the next one.
func TestASlotOutlivesTheLeader(t *testing.T) {
	part(t)
	ensemble := three(t)
	cmd := shell{buildCommand(t), strings.Join(ensemble.Addrs(), ",")}
	once := func() string {
		code, out, text := cmd.run(t, "run", "--once", "nightly", "--connect-timeout", patience.String(), root(t), "--", "echo", "ran")
		assert.Zero(t, code, text)
		return out
	}
	require.Equal(t, "ran\n", once())
	leader, err := ensemble.Leader(t.Context())
	require.NoError(t, err)
	require.NoError(t, leader.Kill(t.Context()))
	_, err = ensemble.Leader(soon(t), leader)
	require.NoError(t, err)
	assert.Empty(t, once(), "it is done")
	require.NoError(t, leader.Restart(t.Context()))
	require.NoError(t, ensemble.Healthy(soon(t)))
	assert.Empty(t, once())
}
