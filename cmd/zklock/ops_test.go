// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/locks"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
	"github.com/zklock-go/zklock/shards"
	"github.com/zklock-go/zklock/zktest"
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

func TestLsShowsHoldersAndWaiters(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	holder, _ := holderAndWaiter(t, connect(t, srv))
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })

	code, out, errs := run(t, srv.Addr(), "ls", "/l")
	require.Zero(t, code, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 4, out)
	assert.Contains(t, lines[0], "/l: 1 held, 1 waiting")
	assert.Regexp(t, `^STATE +KIND +AGE +OWNER +TOKEN +NODE$`, lines[1])
	assert.Regexp(t, `^HOLDS +lock +\d+s +\S+ +\d+ +lock-0000000000$`, lines[2])
	assert.Regexp(t, `^waits `, lines[3])
	_, out, _ = run(t, srv.Addr(), "ls", "--wide", "/l")
	host, _ := os.Hostname()
	assert.Regexp(t, `(?m)^HOLDS +lock +\d+s +`+host+`:\d+ +\d+ +0x[0-9a-f]+ +`+path.Base(holder.Node())+`$`, out)

	code, out, errs = run(t, srv.Addr(), "ls", "--json", "/l")
	require.Zero(t, code, errs)
	var q show.QueueJSON
	require.NoError(t, json.Unmarshal([]byte(out), &q))
	require.Len(t, q.Contenders, 2)
	assert.Equal(t, holder.Node(), q.Contenders[0].Node)
	assert.Equal(t, holder.Token(), q.Contenders[0].Token)
	assert.True(t, q.Contenders[0].Holds)
	assert.False(t, q.Contenders[1].Holds)
	assert.Equal(t, os.Getpid(), q.Contenders[0].PID)
	assert.Equal(t, int64(2), q.Issued)
}

// A fleet of package shards is one thing, and not as many locks as it has shards.
func TestLsShowsAFleetOfShards(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	member := shards.New(connect(t, srv), "/fleet/orders", 12, &shards.Options{Label: "east"})
	// Owned by the test; ends with its context.
	go member.Run(t.Context(), func(ctx context.Context, _ int) error {
		<-ctx.Done()
		return nil
	})
	eventually(t, "it holds all", func() bool { return len(member.Held()) == 12 })
	holder, err := connect(t, srv).Mutex("/fleet/other").Lock(t.Context())
	require.NoError(t, err)

	code, out, errs := run(t, srv.Addr(), "ls", "/fleet/orders")
	require.Zero(t, code, errs)
	assert.Regexp(t, `^\S+  /fleet/orders: 1 member, 12 of 12 shards held, 0 waiting\n`, out)
	assert.Regexp(t, `(?m)^MEMBER +AGE +WEIGHT +SHARDS +HOLDS *$`, out)
	assert.Regexp(t, `(?m)^east \S+ +\d+s +1 +12 +0-11 *$`, out)
	_, out, _ = run(t, srv.Addr(), "ls", "-r", "/fleet")
	assert.Contains(t, out, "/fleet/orders: 1 member")
	assert.Contains(t, out, "/fleet/other: 1 held")
	assert.NotContains(t, out, "/fleet/orders/")

	var f show.ShardsJSON
	_, out, _ = run(t, srv.Addr(), "ls", "--json", "/fleet/orders")
	require.NoError(t, json.Unmarshal([]byte(out), &f))
	assert.Equal(t, 12, f.Shards)
	assert.Empty(t, f.Free)
	require.Len(t, f.Members, 1)
	assert.Len(t, f.Members[0].Held, 12)
	assert.Equal(t, "east", f.Members[0].Label)
	_, out, _ = run(t, srv.Addr(), "ls", "-r", "--json", "/fleet")
	assert.Equal(t, 2, strings.Count(out, "\n"), out)
	_, out, _ = run(t, srv.Addr(), "ls", "/fleet/orders/0007")
	assert.Contains(t, out, "/fleet/orders/0007: 1 held", "each of its locks can be shown")
	require.NoError(t, holder.Check())
}

func TestLsSaysThatAPathDoesNotExist(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	code, out, _ := run(t, srv.Addr(), "ls", "/nobody/was/here")
	assert.Zero(t, code)
	assert.Contains(t, out, "/nobody/was/here does not exist")
	code, out, _ = run(t, srv.Addr(), "ls", "--json", "/nobody")
	assert.Zero(t, code)
	assert.Contains(t, out, `"contenders": []`)
	code, out, _ = run(t, srv.Addr(), "ls", "-r", "/nobody")
	assert.Zero(t, code)
	assert.Contains(t, out, "/nobody does not exist")
	code, out, _ = run(t, srv.Addr(), "ls", "-r", "--json", "/nobody")
	assert.Zero(t, code)
	assert.Empty(t, out)
	code, _, err := run(t, srv.Addr(), "ls", "relative")
	assert.EqualValues(t, outcome.Usage, code)
	assert.Contains(t, err, "does not start with /")
}

func TestLsFindsTheLocksBelowAPath(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	client := connect(t, srv)
	for _, path := range []string{"/locks/a", "/locks/b/deep"} {
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		defer hold.Unlock(t.Context())
	}
	code, out, _ := run(t, srv.Addr(), "ls", "/locks")
	assert.Zero(t, code)
	assert.Contains(t, out, "not in use, but 2 locks are below it")
	code, out, _ = run(t, srv.Addr(), "ls", "-r", "/locks")
	assert.Zero(t, code)
	assert.Contains(t, out, "/locks/a: 1 held, 0 waiting")
	assert.Contains(t, out, "/locks/b/deep: 1 held, 0 waiting")
	code, out, _ = run(t, srv.Addr(), "ls", "-r", "--json", "/")
	assert.Zero(t, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	for i, path := range []string{"/locks/a", "/locks/b/deep"} {
		var q show.QueueJSON
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &q))
		assert.Equal(t, path, q.Path)
	}
}

// hostile is what a contender may say of itself to mislead those who look.
const hostile = "\x1b]0;x\a\u009b2J\u202egnp\nHOLDS\r\u2028\x7f\xff"

func assertHarmless(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && (r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u202e' || r == '\u2028') {
			t.Fatalf("%.300q has %U", text, r)
		}
	}
	if !utf8.ValidString(text) {
		t.Fatalf("%.300q is not UTF-8", text)
	}
}

//zklock:promise P8.3
func TestTextOfContendersCannotActOnTheTerminal(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	name := "_c_7a6b6c0123456789abcdef01234567ab-lock-0000000000"
	data, err := json.Marshal(map[string]any{"host": hostile, "pid": 7, "label": strings.Repeat(hostile, 30)})
	require.NoError(t, err)
	require.NoError(t, srv.PutNode("/l/"+name, data))
	require.NoError(t, srv.PutNode("/e/_c_\u202e-lock-0000000000", []byte(hostile)))
	for _, args := range [][]string{
		{"ls", "/l"}, {"ls", "--wide", "/l"}, {"ls", "--json", "/l"}, {"ls", "-r", "/"}, {"elect", "--no-wait", "/e", "--", "true"},
		{"revoke", "/l"}, {"evict", "--node", "x\u009b", "/l"}, {"evict", "--all", "/e"}, {"evict", "--all", "/l"}, {"ls", "/\u009b2J"},
	} {
		_, out, errs := run(t, srv.Addr(), args...)
		assert.NotEmpty(t, out+errs)
		assertHarmless(t, out+errs)
		if args[0] != "ls" {
			assert.LessOrEqual(t, strings.Count(out+errs, "\n"), 1, "%v: %q", args, out+errs)
		}
	}
}

func TestTopPrintsALineForEachChange(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	srv := startServer(t)
	client := connect(t, srv)
	holder, granted := holderAndWaiter(t, client)
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	out, w := pipe(t)
	i := zklockCommand(t, srv.Addr(), "top")
	i.Stdout = w
	i.start()
	next := json.NewDecoder(out)
	var line show.TopJSON
	require.NoError(t, next.Decode(&line))
	assert.Equal(t, "/l", line.Path)
	assert.Equal(t, 1, line.Held)
	assert.Equal(t, 1, line.Waiting)
	assert.True(t, line.AtLeast, "it held before we came")
	require.NotNil(t, line.Next)
	assert.Equal(t, holder.Node(), line.Holders[0].Node)
	time.Sleep(locks.Settling)
	require.NoError(t, holder.Unlock(t.Context()))
	second := <-granted
	line = show.TopJSON{}
	require.NoError(t, next.Decode(&line))
	assert.Equal(t, second.Node(), line.Holders[0].Node)
	assert.False(t, line.AtLeast, "the grant was seen")
	assert.Zero(t, line.Waiting)
	require.NoError(t, second.Unlock(t.Context()))
	line = show.TopJSON{}
	require.NoError(t, next.Decode(&line))
	assert.Zero(t, line.Held)
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), i.err.String())
}

func TestLsWatchPrintsEachChange(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	srv := startServer(t)
	client := connect(t, srv)
	out, w := pipe(t)
	i := zklockCommand(t, srv.Addr(), "ls", "--watch", "--json", "/l")
	i.Stdout = w
	i.start()
	next := json.NewDecoder(out)
	var q show.QueueJSON
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

func TestRevokeSendsARequestToTheHolder(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	holder, _ := holderAndWaiter(t, connect(t, srv))
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	code, out, errs := run(t, srv.Addr(), "revoke", "/l")
	require.Zero(t, code, errs)
	assert.Equal(t, 1, strings.Count(out, "asked to release"))
	assert.Contains(t, out, holder.Node())
	<-holder.Revoked()
	assert.NoError(t, holder.Check(), "it is a request only")
	_, out, _ = run(t, srv.Addr(), "ls", "/l")
	assert.Contains(t, out, "HOLDS, asked")
}

//zklock:promise P19.5
func TestRevokeEndsACommand(t *testing.T) {
	t.Parallel()
	needsSignals(t)
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

//zklock:promise P19.3
func TestEvictRemovesTheHolderAndTheNextOneHolds(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	holder, granted := holderAndWaiter(t, connect(t, srv))
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	code, _, err := run(t, srv.Addr(), "evict", "/l")
	assert.EqualValues(t, outcome.Usage, code)
	assert.Contains(t, err, "choose contenders")
	code, out, err := run(t, srv.Addr(), "evict", "--node", show.Ending(path.Base(holder.Node())), "/l")
	require.Zero(t, code, err)
	assert.Contains(t, out, holder.Node())
	<-holder.Context().Done()
	assert.ErrorIs(t, holder.Check(), zklock.ErrLost)
	assert.NoError(t, (<-granted).Check())
}

// A holder and a waiter under zklock run say that they were evicted, by whom and why, and not that a node was deleted.
//
//zklock:promise P19.3
func TestAnEvictedRunSaysByWhomAndWhy(t *testing.T) {
	t.Parallel()
	needsShell(t)
	srv := startServer(t)
	holder := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sleep", "1000").start()
	eventually(t, "it holds", func() bool { return queued(srv, "/l") == 1 })
	waiter := zklockCommand(t, srv.Addr(), "run", "/l", "--", "true").start()
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	code, _, errs := run(t, srv.Addr(), "evict", "--all", "--reason", strings.Repeat("x", 201), "/l")
	assert.EqualValues(t, outcome.Usage, code)
	assert.Contains(t, errs, "--reason has 201 bytes, the limit is 200")
	code, _, errs = run(t, srv.Addr(), "evict", "--all", "--reason", "its disk\nis full", "/l")
	require.Zero(t, code, errs)
	host, _ := os.Hostname()
	for _, i := range []*invocation{holder, waiter} {
		assert.EqualValues(t, outcome.Lost, i.code())
		assert.Contains(t, i.err.String(), "evicted by "+host+`: its disk\nis full`)
		assert.NotContains(t, i.err.String(), "deleted")
	}
}

// A variable of a script can be empty, and --holders can be meant as "the one that holds".
func TestRevokeAndEvictAffectOnlyTheNamedContenders(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	holder, _ := holderAndWaiter(t, connect(t, srv))
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	for _, args := range [][]string{
		{"revoke", "--node", "", "/l"}, {"evict", "--node", "", "--all", "/l"}, {"evict", "--node", "", "/l"},
		{"evict", "--node", "x", "--holders", "/l"}, {"evict", "--node", "x", "--all", "/l"},
	} {
		code, out, err := run(t, srv.Addr(), args...)
		assert.EqualValues(t, outcome.Usage, code, "%v: %s", args, out)
		assert.Regexp(t, "--node (needs a name|cannot be combined with --holders or --all)", err, args)
	}
	assert.Equal(t, 2, queued(srv, "/l"))
	require.NoError(t, holder.Check())
	_, out, _ := run(t, srv.Addr(), "ls", "/l")
	assert.NotContains(t, out, "asked")
}

func TestRevokeAndEvictReportAFreeLock(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	for _, args := range [][]string{{"revoke", "/l"}, {"evict", "--all", "/l"}, {"evict", "--node", "x", "/l"}} {
		code, _, err := run(t, srv.Addr(), args...)
		assert.EqualValues(t, outcome.Failure, code)
		assert.Regexp(t, "there are no holders|no contender is named", err)
	}
}

func TestElectRunsTheCommandAsLeaderAndOthersSeeIt(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	srv := startServer(t)
	code, _, err := run(t, srv.Addr(), "elect", "/leader")
	assert.EqualValues(t, outcome.NotAcquired, code)
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
	assert.Equal(t, outcome.SignalBase+int(syscall.SIGTERM), first.code())
	n, _ = out.Read(line)
	assert.Equal(t, "two\n", string(line[:n]))
	second.Process.Signal(syscall.SIGTERM)
	assert.Equal(t, outcome.SignalBase+int(syscall.SIGTERM), second.code())
	watcher.Process.Signal(os.Interrupt)
	assert.Zero(t, watcher.code(), watcher.err.String())
}

// A script gets the value as it is; a person's terminal gets what cannot act on it.
func TestAValueIsPrintedUnchangedToAPipe(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	const value = "host\ta \\ \x1b[31m\n\xff"
	leader, err := connect(t, srv).Election("/e", nil).Campaign(t.Context(), []byte(value))
	require.NoError(t, err)
	code, out, errs := run(t, srv.Addr(), "elect", "/e")
	assert.Zero(t, code, errs)
	assert.Equal(t, value+"\n", out)
	require.NoError(t, leader.Unlock(t.Context()))
}

func TestEvictReportsTheResultForEachContender(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	client := connect(t, srv)
	permits, err := client.Semaphore("/s", 3).Acquire(t.Context(), 3)
	require.NoError(t, err)
	code, out, errs := run(t, srv.Addr(), "evict", "--all", "/s")
	require.Zero(t, code, errs)
	assert.Equal(t, 3, strings.Count(out, "evicted holder: ")+strings.Count(out, "already gone: "), out)
	assert.ErrorIs(t, permits.Check(), zklock.ErrLost)

	holder, _ := holderAndWaiter(t, client)
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	code, out, errs = run(t, srv.Addr(), "evict", "--all", "/l")
	require.Zero(t, code, errs)
	assert.Regexp(t, "(?s)^evicted waiter: .*\nevicted holder: ", out)
	<-holder.Context().Done()
}

func TestReadingCommandsEndThoughNoServerAnswers(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetChildren2 {
			return zktest.DropBefore
		}
		return zktest.Pass
	})
	for _, args := range [][]string{{"ls"}, {"ls", "-r"}, {"ls", "--cycles"}, {"evict", "--all"}, {"revoke"}, {"elect"}} {
		code, _, err := run(t, srv.Addr(), append(args, "--connect-timeout", "2s", "/l")...)
		assert.EqualValues(t, outcome.Unavailable, code, "%v: %s", args, err)
		assert.Contains(t, err, "no answer within 2s (--connect-timeout)", args)
	}
}

// The servers show the queue, and then answer to nothing that changes it.
func TestAChangeWithoutAReplyEnds(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	holderAndWaiter(t, connect(t, srv))
	eventually(t, "both are there", func() bool { return queued(srv, "/l") == 2 })
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		below := slices.ContainsFunc(append(r.Paths, r.Path), func(p string) bool { return strings.HasPrefix(p, "/l") })
		if below && slices.Contains([]zktest.Op{zktest.OpCreate, zktest.OpSetData, zktest.OpDelete, zktest.OpMulti}, r.Op) {
			return zktest.Hold(never)
		}
		return zktest.Pass
	})
	for _, args := range [][]string{{"revoke"}, {"evict", "--all"}} {
		code, out, err := run(t, srv.Addr(), append(args, "--connect-timeout", "2s", "/l")...)
		assert.EqualValues(t, outcome.Unavailable, code, "%v: %s", args, err)
		assert.Equal(t, 1, strings.Count(err, "no answer within 2s (--connect-timeout)"), "%v: %s", args, err)
		assert.Empty(t, out)
	}
}

// A crontab takes the code for "another host has it" as success (-E 0).
func TestWithoutWaitingServersThatDoNotAnswerAreNoOtherHolder(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if slices.ContainsFunc(append(r.Paths, r.Path), func(p string) bool { return strings.HasPrefix(p, "/l") }) {
			return zktest.Hold(never)
		}
		return zktest.Pass
	})
	for _, args := range [][]string{{"run"}, {"run", "--once", "report-1"}, {"run", "--shared"}, {"run", "--semaphore", "2"}, {"elect"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			code, out, err := run(t, srv.Addr(), append(args, "--no-wait", "-E", "0", "--connect-timeout", "2s", "/l", "--", "echo", "ran")...)
			assert.EqualValues(t, outcome.Unavailable, code, err)
			// The client may notice first that its connection is of no use, on a busy machine.
			assert.Regexp(t, `no answer within 2s \(--connect-timeout\)|no connection to a server`, err)
			assert.Empty(t, out)
		})
	}
}
