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
			assert.Equal(t, codeNotAcquired, code, "%v: %s", args, err)
			assert.Empty(t, out)
			code, _, _ = run(t, srv.Addr(), append(append(args, "-E", "7"), "--", "echo", "ran")...)
			assert.Equal(t, 7, code)
		}
	}
	code, _, text := run(t, srv.Addr(), "elect", "--wait", "100ms", "/e", "--", "true")
	assert.Equal(t, codeNotAcquired, code, text)
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

// took runs the command and returns how long that took besides its code and error.
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
		{shortConnectTimeout, []string{"run", "--no-wait", "/l", "--", "true"}},
	} {
		for name, servers := range map[string]string{"one": hole, "three": hole + "," + hole + "," + hole} {
			t.Run(strings.Join(c.args, " ")+" "+name, func(t *testing.T) {
				t.Parallel()
				d, code, err := took(t, servers, c.args...)
				t.Logf("%v took %v", c.args, d)
				assert.Equal(t, codeUnavailable, code, "%v: %s", c.args, err)
				assert.GreaterOrEqual(t, d, c.most)
			})
		}
	}
}

func TestWithoutWaitingAServerThatRefusesEndsItAtOnce(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	go func() { // the bound is the test's own: nothing here waits for as long as that
		select {
		case <-began:
		case <-time.After(shortConnectTimeout):
			panic("zklock --no-wait waits for servers that refuse")
		}
	}()
	_, code, err := took(t, "127.0.0.1:1,127.0.0.1:2", "run", "--no-wait", "/l", "--", "true")
	close(began)
	assert.Equal(t, codeUnavailable, code)
	for _, address := range []string{"127.0.0.1:1", "127.0.0.1:2"} {
		assert.Equal(t, 1, strings.Count(err, "dial tcp "+address+": connect: connection refused"), err)
	}
	assert.Equal(t, 1, strings.Count(err, "\n"), err)
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
	assert.Equal(t, codeNotAcquired, code, "another host, some moments late")
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), "a signal ends the keeping: %s", i.err.String())
	assert.Zero(t, queued(srv, "/l"))

	i = zklockCommand(t, srv.Addr(), "run", "--at-least", "600s", "/l", "--", "echo", "ran").start()
	eventually(t, "the command has ended", func() bool { return i.out.String() != "" })
	code, _, errs := run(t, srv.Addr(), "revoke", "/l")
	assert.Zero(t, code, errs)
	assert.Zero(t, i.code(), "so does a request to let go: %s", i.err.String())

	begin := time.Now()
	code, _, _ = run(t, srv.Addr(), "run", "--at-least", "300ms", "/l", "--", "sh", "-c", "exit 3")
	assert.Equal(t, 3, code)
	assert.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond)
}

func TestASlotIsRunOnce(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{TickTime: tickTime, Servers: 3})
	servers := strings.Join(srv.Addrs(), ",")
	file := filepath.Join(t.TempDir(), "runs")
	job := func(slot string, flags ...string) *invocation {
		args := append([]string{"run", "--quiet", "--once", slot}, flags...)
		return zklockCommand(t, servers, append(args, "/l", "--", "sh", "-c", `echo >>"$0"`, file)...)
	}
	runs := func() int {
		data, _ := os.ReadFile(file)
		return len(data)
	}
	var fleet []*invocation
	for range 4 {
		fleet = append(fleet, job("nightly").start())
	}
	for _, i := range fleet {
		assert.Zero(t, i.code(), i.err.String())
		assert.Empty(t, i.err.String(), "cron mails what is printed")
	}
	require.Equal(t, 1, runs())
	srv.ElectLeader(1)
	assert.Zero(t, job("nightly").start().code())
	assert.Zero(t, job("nightly", "--no-wait").start().code())
	require.Equal(t, 1, runs(), "also after a leader change")
	assert.Zero(t, job("other").start().code())
	require.Equal(t, 2, runs())
	for range 3 {
		assert.Zero(t, job("10000h").start().code())
	}
	require.Equal(t, 3, runs(), "a slot of time")
}

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

// A name is a slot for ever: who means a period and is not understood would have a job that runs once and never again.
func TestANameIsNoMistakenPeriod(t *testing.T) {
	t.Parallel()
	for name, advice := range map[string]string{
		"1d": "write 24h", "1w": "write 168h", "5min": "write 5m", "90sec": "write 1m30s", "1h30": "looks like a period", "0.5d": "write 12h", "5": "write 5s",
		"300": "write 5m", "3600": "write 1h", "86400": "write 24h", "1440min": "write 24h", "5 m": "write 5m", "1h 30m": "write 1h30m", "1d12h": "write 36h",
		"1,5h": "write 1h30m", "5m/host": "looks like a period", "every 5m": "write 5m", "2 months": "looks like a period", "@reboot": "looks like a period",
		"5/7": "begins with a letter", "_x": "begins with a letter", "": "wants a slot", " ": "wants a slot", "-5m": "not a period", "0s": "not a period",
		"5m@Nowhere": "no such time zone", "daily@": "",
	} {
		_, err := parseSlot(name, time.Now())
		if advice == "" {
			assert.NoError(t, err, name)
			continue
		}
		assert.ErrorContains(t, err, advice, name)
	}
	for _, name := range []string{"nightly", "2026-11-22", "20261122", "20261122T0500", "2026w47", "2026", "1795286400", "v1.2", "report-5", "a", "die Nacht", "ärger", "job@host", "everything"} {
		choice, err := parseSlot(" "+name+"\n", time.Now())
		require.NoError(t, err, name)
		assert.Equal(t, slotChoice{name: name}, choice)
	}
}

// Go reads names of zones and takes UTC for what the C library also reads.
func TestADayIsNotCountedInAnotherZoneThanTheHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zone")
	require.NoError(t, os.WriteFile(file, []byte("no zone"), 0o600))
	for _, tz := range []string{"CET-1CEST,M3.5.0,M10.5.0/3", "Nowhere/Town", file, file + "none"} {
		t.Setenv("TZ", tz)
		for _, text := range []string{"24h", "daily", "@weekly", "monthly"} {
			_, err := parseSlot(text, time.Now())
			assert.ErrorContains(t, err, "is not known here", "%s %s", tz, text)
		}
		for _, text := range []string{"1h", "hourly", "daily@Europe/Berlin", "monthly@UTC", "2026-11-22", "nightly"} {
			_, err := parseSlot(text, time.Now())
			assert.NoError(t, err, "%s %s", tz, text)
		}
	}
	for _, tz := range []string{"", "UTC", "Europe/Berlin", ":Europe/Berlin"} {
		t.Setenv("TZ", tz)
		_, err := parseSlot("daily", time.Now())
		assert.NoError(t, err, tz)
	}
}

func TestAPeriodMeansWhatCronMeans(t *testing.T) {
	t.Parallel()
	client := connect(t, startServer(t))
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	// The day on which clocks are put back has 25 hours, of which two are called 2:30.
	now := time.Date(2026, 10, 24, 22, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"5m":                    "2026-10-24T22:30:00.000000000Z",
		" 5m ":                  "2026-10-24T22:30:00.000000000Z",
		"@every 5m":             "2026-10-24T22:30:00.000000000Z",
		"hourly":                "2026-10-24T22:00:00.000000000Z",
		"24h":                   "2026-10-24T00:00:00",
		"daily":                 "2026-10-24T00:00:00",
		"24h@Europe/Berlin":     "2026-10-25T00:00:00",
		"@Daily@Europe/Berlin":  "2026-10-25T00:00:00",
		"weekly @Europe/Berlin": "2026-10-19T00:00:00",
		"@monthly":              "2026-10",
		"yearly":                "2026",
	} {
		choice, err := parseSlot(text, now)
		require.NoError(t, err, text)
		assert.Equal(t, want, choice.slot(client, "/l").String(), text)
	}
	days := map[string]int{}
	for at := time.Date(2026, 10, 24, 12, 0, 0, 0, berlin); at.Before(time.Date(2026, 10, 27, 0, 0, 0, 0, berlin)); at = at.Add(time.Hour) {
		choice, err := parseSlot("24h@Europe/Berlin", at.UTC())
		require.NoError(t, err)
		days[choice.slot(client, "/l").String()]++
	}
	assert.Equal(t, map[string]int{"2026-10-24T00:00:00": 12, "2026-10-25T00:00:00": 25, "2026-10-26T00:00:00": 24}, days)
}

func TestASlotThatIsDoneIsToldOf(t *testing.T) {
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

// The reply to the transaction that marks the slot is lost: it is found to have been done.
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
		assert.Equal(t, codeNoPerm, code, "%v: %s", args, err)
		assert.Contains(t, err, "not authenticated", args)
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

func TestLabelsTellJobsApartAndNoSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want string
		argv []string
	}{
		{"backup", []string{"/usr/local/bin/backup"}},
		{"backup orders", []string{"backup", "orders", "--password", "secret"}},
		{"mysqldump", []string{"mysqldump", "-psecret"}},
		{"curl", []string{"curl", "https://user:secret@host/"}},
		{"sh pg_dump", []string{"sh", "-c", "pg_dump -W secret | gzip"}},
		{"sh", []string{"sh", "-c", "PGPASSWORD=secret pg_dump"}},
		{"bash mysql", []string{"bash", "-lc", "mysql -psecret orders"}},
		{"sh", []string{"sh", "-euc", "PGPASSWORD=secret pg_dump"}},
		{"bash", []string{"bash", "-l", "-c"}},
		{"ssh host", []string{"ssh", "host", "mysql -psecret orders"}},
		{"watch", []string{"watch", "login\tsecret"}},
		{"ruby", []string{"ruby", "-e", "login secret"}},
		{"bash report.sh weekly", []string{"/bin/bash", "-e", "/opt/jobs/report.sh", "weekly"}},
		{"python3 job.py", []string{"python3", "-u", "/opt/job.py", "--key=secret"}},
		{"sh", []string{"sh", "-c", ""}},
		{"sh", []string{"sh"}},
		{strings.Repeat("x", 40), []string{strings.Repeat("x", 50)}},
	} {
		assert.Equal(t, c.want, labelOf(c.argv), "%q", c.argv)
	}
}

func TestVerboseSaysWhatTheConnectionDoes(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	code, _, err := run(t, "127.0.0.1:1,"+srv.Addr(), "run", "--verbose", "/l", "--", "true")
	require.Zero(t, code, err)
	for _, want := range []string{"connecting", "connected", "acquired", "released"} {
		assert.Contains(t, err, want)
	}
	code, _, err = run(t, "127.0.0.1:1", "ls", "--verbose", "--connect-timeout", "100ms", "/l")
	assert.Equal(t, codeUnavailable, code)
	assert.Contains(t, err, `msg="no connection" server=127.0.0.1:1`)
}

func TestAnonymousKeepsHostProcessAndCommandToItself(t *testing.T) {
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
