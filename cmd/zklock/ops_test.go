package main

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

// holderAndWaiter puts two contenders of the test's own process into the queue of /l.
func holderAndWaiter(t *testing.T, client *zklock.Client) (holder *zklock.Hold, granted chan *zklock.Hold) {
	holder, err := client.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	granted = make(chan *zklock.Hold, 1)
	// Owned by the test; ends when the lock is granted or the client is closed.
	go func() {
		if hold, err := client.Mutex("/l").Lock(t.Context()); err == nil {
			granted <- hold
		}
	}()
	return holder, granted
}

func TestLsShowsWhoHoldsAndWhoWaits(t *testing.T) {
	srv := startServer(t)
	holder, _ := holderAndWaiter(t, connect(t, srv))
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })

	code, out, errs := run(t, srv.Addr(), "ls", "/l")
	require.Zero(t, code, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4, out)
	assert.Contains(t, lines[0], "/l: 1 held, 1 waiting")
	assert.Regexp(t, `^STATE +KIND +SINCE +OWNER +SESSION +TOKEN +NODE$`, lines[1])
	host, _ := os.Hostname()
	assert.Regexp(t, `^HOLDS +lock +0s +`+host+`:\d+ +0x[0-9a-f]+ +\d+ +`+path.Base(holder.Node()), lines[2])
	assert.Regexp(t, `^waits `, lines[3])

	code, out, errs = run(t, srv.Addr(), "ls", "--json", "/l")
	require.Zero(t, code, errs)
	var q queueJSON
	require.NoError(t, json.Unmarshal([]byte(out), &q))
	require.Len(t, q.Contenders, 2)
	assert.Equal(t, holder.Node(), q.Contenders[0].Node)
	assert.Equal(t, holder.Token(), q.Contenders[0].Token)
	assert.True(t, q.Contenders[0].Holds)
	assert.False(t, q.Contenders[1].Holds)
	assert.Equal(t, os.Getpid(), q.Contenders[0].PID)
	assert.Equal(t, int64(2), q.Issued)
}

func TestLsOfAnUnknownPathIsEmptyAndOfABadOneAnError(t *testing.T) {
	srv := startServer(t)
	code, out, _ := run(t, srv.Addr(), "ls", "/nobody/was/here")
	assert.Zero(t, code)
	assert.Contains(t, out, "0 held, 0 waiting")
	code, out, _ = run(t, srv.Addr(), "ls", "--json", "/nobody")
	assert.Zero(t, code)
	assert.Contains(t, out, `"contenders": []`)
	code, _, err := run(t, srv.Addr(), "ls", "relative")
	assert.Equal(t, codeUsage, code)
	assert.Contains(t, err, "does not start with /")
}

func TestLsWatchPrintsEachChange(t *testing.T) {
	srv := startServer(t)
	client := connect(t, srv)
	out, w := pipe(t)
	i := zklockCommand(t, srv.Addr(), "ls", "--watch", "--json", "--every", "10ms", "/l")
	i.Stdout = w
	i.start()
	next := json.NewDecoder(out)
	var q queueJSON
	require.NoError(t, next.Decode(&q))
	assert.Empty(t, q.Contenders)
	hold, err := client.Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, next.Decode(&q))
	require.Len(t, q.Contenders, 1)
	assert.Equal(t, hold.Token(), q.Contenders[0].Token)
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, next.Decode(&q))
	assert.Empty(t, q.Contenders)
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), i.err.String())
}

// pipe is one whose writing end is a file, for a command.
func pipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestRevokeAsksTheHolder(t *testing.T) {
	srv := startServer(t)
	holder, _ := holderAndWaiter(t, connect(t, srv))
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	code, out, errs := run(t, srv.Addr(), "revoke", "/l")
	require.Zero(t, code, errs)
	assert.Equal(t, 1, strings.Count(out, "asked to let go"))
	assert.Contains(t, out, holder.Node())
	<-holder.Revoked()
	assert.NoError(t, holder.Check(), "it is a request only")
	_, out, _ = run(t, srv.Addr(), "ls", "/l")
	assert.Contains(t, out, "HOLDS, asked to let go")
}

func TestRevokeTellsACommandToEnd(t *testing.T) {
	srv := startServer(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `trap 'exit 5' TERM; echo; while :; do sleep 0.01; done`)
	out, w := pipe(t)
	i.Stdout = w
	i.start()
	out.Read(make([]byte, 1)) // the trap is set
	code, _, errs := run(t, srv.Addr(), "revoke", "/l")
	require.Zero(t, code, errs)
	assert.Equal(t, 5, i.code(), "the command's own code: nothing was lost")
	assert.Zero(t, queued(srv, "/l"))
}

func TestEvictTakesTheHolderOutAndTheNextOneHolds(t *testing.T) {
	srv := startServer(t)
	holder, granted := holderAndWaiter(t, connect(t, srv))
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	code, _, err := run(t, srv.Addr(), "evict", "/l")
	assert.Equal(t, codeUsage, code)
	assert.Contains(t, err, "say whom")
	code, out, err := run(t, srv.Addr(), "evict", "--node", path.Base(holder.Node()), "/l")
	require.Zero(t, code, err)
	assert.Contains(t, out, holder.Node())
	<-holder.Context().Done()
	assert.ErrorIs(t, holder.Check(), zklock.ErrLost)
	assert.NoError(t, (<-granted).Check())
}

func TestRevokeAndEvictSayThatNobodyIsThere(t *testing.T) {
	srv := startServer(t)
	for _, args := range [][]string{{"revoke", "/l"}, {"evict", "--all", "/l"}, {"evict", "--node", "x", "/l"}} {
		code, _, err := run(t, srv.Addr(), args...)
		assert.Equal(t, codeFailure, code)
		assert.Contains(t, err, "nobody there")
	}
}

func TestElectRunsTheCommandAsLeaderAndOthersSeeIt(t *testing.T) {
	srv := startServer(t)
	code, _, err := run(t, srv.Addr(), "elect", "/leader")
	assert.Equal(t, codeNotAcquired, code)
	assert.Contains(t, err, "no leader")

	first := zklockCommand(t, srv.Addr(), "elect", "--value", "one", "/leader", "--", "sleep", "600").start()
	eventually(t, "the first leads", func() bool { return queued(srv, "/leader") == 1 })
	out, w := pipe(t)
	watcher := zklockCommand(t, srv.Addr(), "elect", "--watch", "/leader")
	watcher.Stdout = w
	watcher.start()
	line := make([]byte, 100)
	n, _ := out.Read(line)
	assert.Equal(t, "one\n", string(line[:n]))

	second := zklockCommand(t, srv.Addr(), "elect", "--value", "two", "/leader", "--", "sleep", "600").start()
	eventually(t, "the second queues", func() bool { return queued(srv, "/leader") == 2 })
	_, seen, _ := run(t, srv.Addr(), "elect", "/leader")
	assert.Equal(t, "one\n", seen)
	first.Process.Signal(syscall.SIGTERM)
	assert.Equal(t, codeSignal+int(syscall.SIGTERM), first.code())
	n, _ = out.Read(line)
	assert.Equal(t, "two\n", string(line[:n]))
	second.Process.Signal(syscall.SIGTERM)
	assert.Equal(t, codeSignal+int(syscall.SIGTERM), second.code())
	watcher.Process.Signal(os.Interrupt)
	assert.Zero(t, watcher.code(), watcher.err.String())
}

func TestValuesOfLeadersAreOneLine(t *testing.T) {
	assert.Equal(t, "host:80", valueOf(zklock.Contender{Data: []byte("host:80")}))
	assert.Equal(t, `"a\nb"`, valueOf(zklock.Contender{Data: []byte("a\nb")}))
	assert.Equal(t, `"\x1b[2J"`, valueOf(zklock.Contender{Data: []byte("\x1b[2J")}))
}
