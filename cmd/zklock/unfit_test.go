// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/command"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// checkup is what doctor --json prints.
type checkup struct {
	OK             bool
	SessionTimeout float64 `json:"session_timeout_ms"`
	Flags          string
	Servers        []struct{ Addr string }
	Checks         []struct {
		ID, Status, Summary, Advice string
		Servers                     []string
	}
}

// diagnose runs doctor --json.
func diagnose(t *testing.T, servers string, args ...string) (code int, r checkup) {
	t.Helper()
	code, out, text := run(t, servers, append([]string{"doctor", "--json"}, args...)...)
	assert.Empty(t, text)
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	return code, r
}

// found returns the checks that have found a problem.
func (r checkup) found() (all []string) {
	for _, c := range r.Checks {
		if c.Status != "ok" && c.Status != "skipped" {
			all = append(all, fmt.Sprintf("%s %s: %s: %s", c.Status, c.ID, c.Summary, c.Advice))
		}
	}
	return all
}

// forwarding returns the address of a server that forwards to another one.
func forwarding(t *testing.T, to string) string {
	s := &secured{Listener: must(net.Listen("tcp", "127.0.0.1:0"))}
	t.Cleanup(func() {
		s.Listener.Close()
		s.drop()
	})
	// Owned by the test; ends with the listener.
	go s.serve(to)
	return s.Addr().String()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Each ensemble has one thing that is wrong: doctor names it and what to do, and nothing else that follows from it.
func TestDoctorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	healthy := zktest.Run(t, zktest.Options{Servers: 3, Flavor: zktest.ZooKeeper39})
	three := strings.Join(healthy.Addrs(), ",")
	ensemble := func(o zktest.Options) *zktest.Server {
		o.Servers, o.Flavor, o.TickTime = 3, zktest.ZooKeeper39, 200*time.Millisecond
		return zktest.Run(t, o)
	}
	a := newAuthority(t)
	a.issue("me")
	secure := a.secure(healthy.Addr(), "localhost").Addr().String()
	byName := strings.Replace(secure, "127.0.0.1", "localhost", 1)
	noQuorum, cutOff, hung := ensemble(zktest.Options{}), ensemble(zktest.Options{}), ensemble(zktest.Options{})
	for i := range 3 {
		noQuorum.Member(i).CutOff()
	}
	cutOff.Member(2).CutOff()
	hung.Member(1).Freeze()
	login := zktest.Run(t, zktest.Options{Flavor: zktest.ZooKeeper39, SASL: map[string]string{"joe": "secret"}, RequireSASL: true})
	late := zktest.Run(t, zktest.Options{Flavor: zktest.ZooKeeper39})
	late.FastForward(2 * time.Hour)
	slow := zktest.Run(t, zktest.Options{Servers: 3, Flavor: zktest.ZooKeeper39, TickTimes: []time.Duration{0, 8 * time.Second}})
	for name, c := range map[string]struct {
		servers string
		args    []string
		code    outcome.Verdict
		want    string // the only finding
	}{
		"HTTP": {servers: answering(t, func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }), code: command.CodeUnfit,
			want: `^fail leader: \S+ is not a ZooKeeper server: it answers HTTP: Correct the address: clients use the servers' clientPort, usually 2181\.$`},
		"ssh": {servers: answering(t, func(c net.Conn) { fmt.Fprint(c, "SSH-2.0-OpenSSH_9.6\r\n") }), code: command.CodeUnfit,
			want: `^fail leader: \S+ is not a ZooKeeper server: it answers SSH-2.0-OpenSSH_9.6: Correct the address`},
		"no TLS to a server with TLS": {servers: secure, code: command.CodeUnfit, want: `^fail leader: \S+ (expects TLS|closes connections without an answer: .* or the server expects TLS): .*--tls`},
		"TLS to a server without":     {servers: three, args: []string{"--tls"}, code: command.CodeUnfit, want: `^fail reach: each of \S+ \S+ \S+ cannot be reached over TLS: .*TLS.*: Set --tls, --tls-ca and --tls-cert as the server requires\.$`},
		"an unknown CA":               {servers: byName, args: []string{"--tls"}, code: command.CodeUnfit, want: `^fail reach: .* its certificate was issued by an unknown authority \(see --tls-ca\): Set --tls, --tls-ca and --tls-cert as the server requires\.$`},
		"no client certificate":       {servers: byName, args: []string{"--tls-ca", a.file("ca.pem")}, code: command.CodeUnfit, want: `^fail leader: .* refused the connection: certificate required \(see --tls-cert\): Set --tls, --tls-ca and --tls-cert as the server requires\.$`},
		"a hung server":               {servers: strings.Join(hung.Addrs(), ","), args: []string{"--session-timeout", "4s"}, want: `^warn leader: ` + hung.Addrs()[1] + ` accepts connections and answers nothing: it hangs, or is stopped: Look at the server's process and its log, and restart it\.$`},
		"too many connections":        {servers: answering(t, func(net.Conn) {}), code: command.CodeUnfit, want: `^fail leader: .* as many as maxClientCnxns allows, .*: Close clients on this host, or raise maxClientCnxns`},
		"no quorum":                   {servers: strings.Join(noQuorum.Addrs(), ","), code: command.CodeUnfit, want: `^fail leader: each of .* creates no session: it has no quorum: Start or reconnect servers until a majority`},
		"a follower that is cut off":  {servers: strings.Join(cutOff.Addrs(), ","), args: []string{"--session-timeout", "4s"}, want: `^warn leader: ` + cutOff.Addrs()[2] + ` creates no session: it has no contact with the leader of the others: Look at the server's log, and at the network`},
		"a required login":            {servers: login.Addr(), code: command.CodeUnfit, want: `^fail login: .* server requires a SASL login: Correct --auth \(for SASL: --auth sasl:user:password\)\.$`},
		"clocks that differ":          {servers: late.Addr(), want: `^warn clock: the leader's clock is (1h59m5\d|2h0m\d)s ahead of this host's: Synchronize the clocks`},
		"a long tick":                 {servers: strings.Join(slow.Addrs(), ","), args: []string{"--session-timeout", "20s"}, want: `^warn tick: .* 8s: .*--session-timeout to at least 20s and --tick-time to 8s\.$`},
		"a server three times":        {servers: login.Addr() + "," + login.Addr() + "," + login.Addr(), args: []string{"--auth", "sasl:joe:secret"}, want: `^warn list: .* is in the list 3 times: List each server`},
		"one server of an ensemble":   {servers: healthy.Addr(), want: `^warn list: .* is one server of an ensemble \(a leader\); the others are not in the list: List each`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "no quorum" || name == "a follower that is cut off" {
				eventually(t, "it serves nobody", func() bool { return !slices.Contains(strings.Fields(word(cutOff.Addrs()[2], "srvr")), "Mode:") })
				eventually(t, "it serves nobody", func() bool { return !slices.Contains(strings.Fields(word(noQuorum.Addrs()[0], "srvr")), "Mode:") })
			}
			code, r := diagnose(t, c.servers, c.args...)
			found := r.found()
			require.Len(t, found, 1)
			assert.Regexp(t, c.want, found[0])
			assert.NotRegexp(t, `Options\.|EOF|dial |i/o timeout|unknown error`, found[0])
			assert.EqualValues(t, c.code, code)
			if c.code != 0 && !strings.Contains(name, "login") {
				for _, check := range r.Checks {
					assert.False(t, check.Status == "ok" && check.ID != "reach" && check.ID != "list", "nothing was checked: %v", check)
				}
				assert.Zero(t, r.SessionTimeout)
				assert.Empty(t, r.Flags)
			}
		})
	}
}

// word returns a server's reply to a four-letter word.
func word(address, word string) string {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	conn.Write([]byte(word))
	answer := make([]byte, 4096)
	n, _ := conn.Read(answer)
	return string(answer[:n])
}

// No alarm is raised about healthy ensembles, and each check was made.
func TestDoctorRaisesNoAlarmAboutHealthyServers(t *testing.T) {
	t.Parallel()
	v39 := func(o zktest.Options) *zktest.Server {
		o.Flavor = zktest.ZooKeeper39
		return zktest.Run(t, o)
	}
	all := func(s *zktest.Server) string { return strings.Join(s.Addrs(), ",") }
	a := newAuthority(t)
	a.issue("me")
	secure := strings.Replace(a.secure(v39(zktest.Options{}).Addr(), "localhost").Addr().String(), "127.0.0.1", "localhost", 1)
	mine := v39(zktest.Options{})
	require.NoError(t, mine.Apply(zktest.Step{Op: zktest.OpCreate, Path: "/mine", ACL: []zktest.ACL{{Perms: zktest.PermAll, Scheme: "digest", ID: zk.DigestACL(zk.PermAll, "u", "p")[0].ID}}}))
	far := v39(zktest.Options{Servers: 3, Latency: func(*rand.Rand) time.Duration { return 400 * time.Millisecond }})
	for name, c := range map[string]struct {
		servers string
		args    []string
	}{
		"one server":         {v39(zktest.Options{}).Addr(), nil},
		"three servers":      {all(v39(zktest.Options{Servers: 3})), nil},
		"five servers":       {all(v39(zktest.Options{Servers: 5})), []string{"/locks/app"}},
		"observers":          {all(v39(zktest.Options{Servers: 4, Observers: 1})), nil},
		"TLS":                {secure, []string{"--tls-ca", a.file("ca.pem"), "--tls-cert", a.file("me.pem"), "--tls-key", a.file("me.key")}},
		"a login":            {v39(zktest.Options{SASL: map[string]string{"joe": "secret"}, RequireSASL: true}).Addr(), []string{"--auth", "sasl:joe:secret"}},
		"a restricted node":  {mine.Addr(), []string{"--auth", "digest:u:p", "--acl", "auth::cdrwa", "/mine"}},
		"servers far away":   {all(far), []string{"--session-timeout", "20s"}},
		"a forwarded server": {forwarding(t, v39(zktest.Options{}).Addr()), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name == "servers far away" {
				t.Skip("it takes twenty seconds")
			}
			code, r := diagnose(t, c.servers, append(c.args, "--strict")...)
			assert.Zero(t, code)
			assert.Empty(t, r.found())
			for _, check := range r.Checks {
				assert.Equal(t, "ok", check.Status, check)
			}
		})
	}
}

// One server of three is down: it may have another tickTime, so no options are printed.
func TestDoctorPrintsNoOptionsIfAServerIsDown(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{Servers: 3, Flavor: zktest.ZooKeeper39, TickTimes: []time.Duration{time.Second, time.Second, 8 * time.Second}})
	servers := strings.Join(srv.Addrs(), ",")
	srv.Member(2).Stop()
	code, out, text := run(t, servers, "doctor")
	assert.Zero(t, code, text)
	assert.NotContains(t, out, "--tick-time")
	assert.Contains(t, out, "Options for these servers: unknown, because not every server could be asked")
	assert.Contains(t, out, "OK    tick: tickTime is 1s; not checked at "+srv.Addrs()[2])
	assert.Contains(t, out, "WARN  reach: "+srv.Addrs()[2]+" cannot be reached: connection refused\n")
}

// A report that is not complete is better than none.
func TestDoctorReportsWhatItKnowsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{Servers: 3, Flavor: zktest.ZooKeeper39})
	srv.Member(1).Freeze()
	code, out, text := run(t, strings.Join(srv.Addrs(), ","), "doctor", "--connect-timeout", "2s")
	assert.EqualValues(t, outcome.Unavailable, code)
	assert.Equal(t, "zklock: no answer within 2s (--connect-timeout)\n", text)
	assert.Contains(t, out, "WARN  reach: "+srv.Addrs()[1]+" has not answered everything in time")
	assert.Contains(t, out, "OK    guard: a check of a missing node is refused; not checked at "+srv.Addrs()[1])
}

func TestDoctorEndsAsOtherCommandsOnASignal(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	srv := zktest.Run(t, zktest.Options{})
	srv.Member(0).Freeze()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		i := zklockCommand(t, srv.Addr(), "doctor", "--verbose").start()
		eventually(t, "it has connected", func() bool { return strings.Contains(i.err.String(), "msg=connected") })
		require.NoError(t, i.Process.Signal(sig))
		assert.Equal(t, 130, i.code())
		assert.Contains(t, i.err.String(), "zklock: interrupted\n")
	}
}

// A client that must log in waited forever and printed nothing.
func TestAServerThatRequiresALoginIsNoPermission(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{SASL: map[string]string{"joe": "secret"}, RequireSASL: true})
	for _, args := range [][]string{{"run", "/l", "--", "true"}, {"run", "--no-wait", "/l", "--", "true"}, {"run", "--wait", "1m", "/l", "--", "true"}, {"elect", "/l", "--", "true"}, {"ls", "/l"}, {"top"}, {"evict", "--all", "/l"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			code, out, text := run(t, srv.Addr(), args...)
			assert.EqualValues(t, outcome.NoPermission, code, text)
			assert.Contains(t, text, "zklock: the servers refuse this client: authentication failed (see --auth): server requires")
			assert.Contains(t, text, "SASL")
			assert.Empty(t, out)
		})
	}
	code, _, text := run(t, srv.Addr(), "run", "--auth", "sasl:joe:secret", "/l", "--", "true")
	assert.Zero(t, code, text)
}
