// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

func TestWaitZeroDoesNotWait(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	leader, err := connect(t, srv).Election("/e", nil).Campaign(t.Context(), []byte("them"))
	require.NoError(t, err)
	for _, c := range [][]string{{"run", "/l"}, {"run", "--shared", "/l"}, {"elect", "/e"}} {
		for _, flags := range [][]string{{"--wait", "0"}, {"--no-wait"}, {"--wait", "0", "--no-wait"}} {
			args := append(append([]string{c[0]}, flags...), c[1:]...)
			code, out, err := run(t, srv.Addr(), append(args, "--", "echo", "ran")...)
			assert.EqualValues(t, outcome.NotAcquired, code, "%v: %s", args, err)
			assert.Empty(t, out)
			code, _, _ = run(t, srv.Addr(), append(append(args, "-E", "7"), "--", "echo", "ran")...)
			assert.Equal(t, 7, code)
		}
	}
	code, _, text := run(t, srv.Addr(), "elect", "--wait", "2s", "/e", "--", "true")
	assert.EqualValues(t, outcome.NotAcquired, code, text)
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, leader.Unlock(t.Context()))
	code, out, text := run(t, srv.Addr(), "elect", "--no-wait", "/e", "--", "echo", "ran")
	assert.Zero(t, code, text)
	assert.Equal(t, "ran\n", out)
}

// blackHole returns an address that takes connections and never answers.
func blackHole(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// took runs the command and returns its code, its error, and how long it took.
func took(t *testing.T, servers string, args ...string) (time.Duration, int, string) {
	begin := time.Now()
	code, _, err := run(t, servers, args...)
	return time.Since(begin), code, err
}

func TestWaitingAndConnectingShareOneDeadline(t *testing.T) {
	t.Parallel()
	hole := blackHole(t)
	for _, c := range []struct {
		most time.Duration
		args []string
	}{
		{500 * time.Millisecond, []string{"run", "--wait", "500ms", "/l", "--", "true"}},
		{500 * time.Millisecond, []string{"elect", "--wait", "500ms", "/l", "--", "true"}},
		{500 * time.Millisecond, []string{"run", "--connect-timeout", "500ms", "/l", "--", "true"}},
		{500 * time.Millisecond, []string{"ls", "--connect-timeout", "500ms", "/l"}},
		{500 * time.Millisecond, []string{"ls", "--tls", "--connect-timeout", "500ms", "/l"}},
		{500 * time.Millisecond, []string{"ls", "--auth", "digest:a:b", "--connect-timeout", "500ms", "/l"}},
		{2 * time.Second, []string{"run", "--no-wait", "/l", "--", "true"}},
	} {
		for name, servers := range map[string]string{"one": hole, "three": hole + "," + hole + "," + hole} {
			t.Run(strings.Join(c.args, " ")+" "+name, func(t *testing.T) {
				t.Parallel()
				d, code, err := took(t, servers, c.args...)
				t.Logf("%v took %v", c.args, d)
				assert.EqualValues(t, outcome.Unavailable, code, "%v: %s", c.args, err)
				assert.GreaterOrEqual(t, d, c.most)
			})
		}
	}
}

// A person who asks who holds does not want to know ten seconds later that there is no server.
func TestRefusedConnectionsEndACommandThatDoesNotWaitAtOnce(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "--no-wait", "/l", "--", "true"}, {"elect", "--no-wait", "/l", "--", "true"}, {"ls", "/l"}, {"ls", "--watch", "/l"}, {"top"}, {"revoke", "/l"}, {"evict", "--all", "/l"}, {"elect", "/l"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			// The command would not end in the time of this test if it waited.
			args = append([]string{args[0], "--connect-timeout", "10m"}, args[1:]...)
			_, code, err := took(t, "127.0.0.1:1,127.0.0.1:2", args...)
			assert.EqualValues(t, outcome.Unavailable, code)
			for _, address := range []string{"127.0.0.1:1", "127.0.0.1:2"} {
				assert.Equal(t, 1, strings.Count(err, address), err)
			}
			assert.Contains(t, err, "connection refused")
			assert.Equal(t, 1, strings.Count(err, "\n"), err)
		})
	}
}

func TestAChrootIsUnderstood(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	code, out, err := run(t, srv.Addr()+"/prod", "run", "--root", "/app", "/l", "--", "sh", "-c", "echo $ZKLOCK_PATH $ZKLOCK_NODE")
	require.Zero(t, code, err)
	assert.Regexp(t, `^/l /prod/app/l/_c_`, out)
}

func TestTheLockIsKeptAtLeast(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	i := zklockCommand(t, srv.Addr(), "run", "--at-least", "600s", "/l", "--", "echo", "ran").start()
	eventually(t, "the command has ended", func() bool { return i.out.String() != "" })
	code, _, _ := run(t, srv.Addr(), "run", "--no-wait", "/l", "--", "echo", "ran")
	assert.EqualValues(t, outcome.NotAcquired, code, "another host, some moments late")
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), "a signal ends the keeping: %s", i.err.String())
	assert.Zero(t, queued(srv, "/l"))

	i = zklockCommand(t, srv.Addr(), "run", "--at-least", "600s", "/l", "--", "echo", "ran").start()
	eventually(t, "the command has ended", func() bool { return i.out.String() != "" })
	code, _, errs := run(t, srv.Addr(), "revoke", "/l")
	assert.Zero(t, code, errs)
	assert.Zero(t, i.code(), "a request to release ends it with 0, too: %s", i.err.String())

	begin := time.Now()
	code, _, _ = run(t, srv.Addr(), "run", "--at-least", "300ms", "/l", "--", "sh", "-c", "exit 3")
	assert.Equal(t, 3, code)
	assert.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond)
}

//zklock:promise P10.9
func TestASlotIsRunOnce(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{TickTime: tickTime, Servers: 3})
	servers := strings.Join(srv.Addrs(), ",")
	file := filepath.Join(t.TempDir(), "runs")
	job := func(slot string, flags ...string) *invocation {
		args := append([]string{"run", "--quiet", "--once", slot}, flags...)
		if slot == "9600h" {
			args[2] = "--every"
		}
		return zklockCommand(t, servers, append(args, "/l", "--", "sh", "-c", `echo >>"$0"`, file)...)
	}
	runs := func() int {
		data, _ := os.ReadFile(file)
		return len(data)
	}
	var fleet []*invocation
	for range 4 {
		fleet = append(fleet, job("report-1").start())
	}
	for _, i := range fleet {
		assert.Zero(t, i.code(), i.err.String())
		assert.Empty(t, i.err.String(), "cron mails what is printed")
	}
	require.Equal(t, 1, runs())
	srv.ElectLeader(1)
	assert.Zero(t, job("report-1").start().code())
	assert.Zero(t, job("report-1", "--no-wait").start().code())
	require.Equal(t, 1, runs(), "also after a leader change")
	assert.Zero(t, job("other").start().code())
	require.Equal(t, 2, runs())
	for range 3 {
		assert.Zero(t, job("9600h").start().code())
	}
	require.Equal(t, 3, runs(), "a slot of time")
}

//zklock:promise P10.9
func TestASlotOfACommandThatFailsStaysOpen(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	file := filepath.Join(t.TempDir(), "runs")
	once := func(flags ...string) int {
		args := append([]string{"run", "--once", "x"}, flags...)
		code, _, _ := run(t, srv.Addr(), append(args, "/l", "--", "sh", "-c", `echo >>"$0"; exit 3`, file)...)
		return code
	}
	assert.Equal(t, 3, once())
	assert.Equal(t, 3, once("--at-most-once"))
	assert.Equal(t, 0, once("--at-most-once"), "it began before")
	assert.Equal(t, 0, once())
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Len(t, data, 2)
}

//zklock:promise P10.9
func TestADoneSlotIsReported(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	once := func(flags ...string) (code int, err string) {
		code, _, err = run(t, srv.Addr(), append(append([]string{"run", "--once", "x"}, flags...), "/l", "--", "true")...)
		return code, err
	}
	code, err := once()
	require.Zero(t, code, err)
	require.Empty(t, err)
	code, err = once()
	assert.Zero(t, code)
	host, _ := os.Hostname()
	assert.Regexp(t, `^zklock: nothing to do: slot x of /l: already done at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} by true `+host+`:\d+\n$`, err)
	code, err = once("--quiet")
	assert.Zero(t, code)
	assert.Empty(t, err)
}

// The crontab line of docs/cron.md sent nineteen mails from twenty hosts, each time.
func TestQuietSaysNothingOfALockThatIsHeld(t *testing.T) {
	t.Parallel()
	srv := heldByAnother(t)
	for _, args := range [][]string{{"--no-wait", "-E", "0"}, {"--wait", "2s", "-E", "0"}, {"--no-wait"}} {
		code, out, text := run(t, srv.Addr(), append(append([]string{"run", "--every", "5m", "--quiet"}, args...), "/l", "--", "echo", "ran")...)
		assert.Equal(t, map[bool]int{true: 0, false: int(outcome.NotAcquired)}[len(args) > 1], code)
		assert.Empty(t, out+text)
	}
	code, _, text := run(t, "127.0.0.1:1", "run", "--every", "5m", "--quiet", "--no-wait", "-E", "0", "/l", "--", "echo", "ran")
	assert.EqualValues(t, outcome.Unavailable, code)
	assert.Contains(t, text, "no server reached", "it is not quiet about a failure")
}

// The reply to the transaction that marks the slot is lost: it is found to have been done.
//
//zklock:promise P10.9
func TestASlotIsMarkedThoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	lost := 0
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if lost < 2 && strings.Contains(fmt.Sprint(r.Paths), "zklock-slots") {
			lost++
			return zktest.LoseReply
		}
		return zktest.Pass
	})
	code, _, err := run(t, srv.Addr(), "run", "--once", "x", "/l", "--", "true")
	assert.Zero(t, code, err)
	assert.Positive(t, lost)
	code, out, _ := run(t, srv.Addr(), "run", "--once", "x", "/l", "--", "echo", "ran")
	assert.Zero(t, code)
	assert.Empty(t, out)
}

func TestNoPermissionHasACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	owner, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{
		ACL: zk.DigestACL(zk.PermAll, "u", "p"), Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}},
	})
	require.NoError(t, err)
	defer owner.Close()
	hold, err := owner.Mutex("/mine/l").Lock(t.Context())
	require.NoError(t, err)
	defer hold.Unlock(t.Context())
	for _, args := range [][]string{{"run", "/mine/l", "--", "true"}, {"run", "--no-wait", "/mine/l", "--", "true"}, {"elect", "/mine/l", "--", "true"}, {"ls", "/mine/l"}} {
		code, _, err := run(t, srv.Addr(), args...)
		assert.EqualValues(t, outcome.NoPermission, code, "%v: %s", args, err)
		assert.Contains(t, err, "permission refused", args)
	}
}

func TestTheCommandDoesNotGetTheCredentials(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "env")
	i.Env = append(i.Env, "ZKLOCK_AUTH=digest:u:secret", "ZKLOCK_AUTHOR=me")
	assert.Zero(t, i.start().code(), i.err.String())
	assert.NotContains(t, i.out.String(), "secret")
	assert.Contains(t, i.out.String(), "ZKLOCK_AUTHOR=me")
	assert.Contains(t, i.out.String(), "ZKLOCK_TOKEN=")
}

func TestVerboseLogsTheConnection(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	code, _, err := run(t, "127.0.0.1:1,"+srv.Addr(), "run", "--verbose", "/l", "--", "true")
	require.Zero(t, code, err)
	for _, want := range []string{"connecting", "connected", "acquired", "released"} {
		assert.Contains(t, err, want)
	}
	code, _, err = run(t, "127.0.0.1:1", "ls", "--verbose", "--connect-timeout", "2s", "/l")
	assert.EqualValues(t, outcome.Unavailable, code)
	assert.Contains(t, err, `msg="cannot connect" server=127.0.0.1:1`)
}

//zklock:promise P20.3
func TestAnonymousPublishesNoHostProcessOrCommand(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	i := zklockCommand(t, srv.Addr(), "run", "--anonymous", "/l", "--", "sleep", "60")
	i.start()
	eventually(t, "it holds", func() bool { return queued(srv, "/l") == 1 })
	for path, node := range srv.Tree() {
		assert.NotContains(t, string(node.Data), "sleep", path)
		if strings.Contains(path, "-lock-") {
			assert.NotContains(t, string(node.Data), fmt.Sprintf("%q", host), path)
			assert.NotContains(t, string(node.Data), fmt.Sprint(i.Process.Pid), path)
		}
	}
	code, out, errs := run(t, srv.Addr(), "ls", "/l")
	assert.Zero(t, code, errs)
	assert.NotContains(t, out, host)
	assert.NotContains(t, out, "pid")
	i.Process.Signal(os.Interrupt)
	i.code()
}
