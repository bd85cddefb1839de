// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// What people type who know flock(1), getopt, consul, etcdctl or kubectl, or whose editor makes dashes of hyphens, is accepted or
// answered with what to type instead. The words in env are variables of the environment.
func TestWhatUsersOfOtherToolsTypeIsAnswered(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	holder, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Label: "nightly backup"})
	require.NoError(t, err)
	t.Cleanup(func() { holder.Close() })
	for _, path := range []string{"/held", "/locks/a", "/locks/b", "/one/a"} {
		_, err = holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
	}
	const none = outcome.Verdict(0)
	for _, c := range []struct {
		env  string
		args []string
		code outcome.Verdict
		want string // in the message; or what the command prints
	}{
		{args: []string{"run", "--timeout", "60s", "/l", "--", "true"}, code: outcome.Usage, want: "unknown flag --timeout: use --max-run to end a command that runs too long, or --wait to limit"},
		{args: []string{"run", "--every", "1ms", "/l", "--", "true"}, code: outcome.Usage, want: "--every 1ms is shorter than 1s"},
		{args: []string{"run", "--wait", "1ms", "/free", "--", "true"}, code: outcome.Unavailable, want: " within 1ms: "},
		{args: []string{"evict", "--holders", "--all", "/held"}, code: outcome.Usage, want: "--holders and --all cannot be combined"},
		{args: []string{"run", "--servers", "", "/l", "--", "true"}, code: outcome.Usage, want: "--servers is empty"},
		{env: "ZKLOCK_SERVER=zk1", args: []string{"run", "/l", "--", "true"}, code: outcome.Usage, want: `unknown variable ZKLOCK_SERVER, did you mean "ZKLOCK_SERVERS"?`},
		{args: []string{"--servers", "h", "run", "/l", "--", "true"}, code: outcome.Usage, want: "--servers: flags go after the command"},
		{args: []string{"-E", "0", "run", "/l", "--", "true"}, code: outcome.Usage, want: "-E: flags go after the command"},
		{args: []string{"run", "-s", "/l", "--", "true"}, code: outcome.Usage, want: "unknown flag -s: use --shared"},
		{args: []string{"run", "-e", "/l", "--", "true"}, code: outcome.Usage, want: "unknown flag -e: exclusive is the default"},
		{args: []string{"run", "-x", "/l", "--", "true"}, code: outcome.Usage, want: "unknown flag -x: exclusive is the default"},
		{args: []string{"run", "-c", "echo hi", "/l"}, code: outcome.Usage, want: "zklock run PATH -- sh -c"},
		{args: []string{"run", "--nonblock", "/l", "--", "true"}, code: outcome.Usage, want: "unknown flag --nonblock: use --no-wait"},
		{args: []string{"run", "--nb", "/l", "--", "true"}, code: outcome.Usage, want: "use --no-wait"},
		{args: []string{"run", "-n", "/l", "--", "true"}, code: outcome.Usage, want: "use --no-wait"},
		{args: []string{"run", "-E3", "--no-wait", "/held", "--", "true"}, code: 3, want: "is held by"},
		{args: []string{"run", "-w5", "/l", "--", "true"}, code: outcome.Usage, want: "unknown flag -w5: use --wait with a unit, as in --wait 5s"},
		{args: []string{"run", "--n", "2", "/l", "--", "true"}, code: outcome.Usage, want: "--semaphore for several holders"},
		{args: []string{"run", "/l", "--", "sleep 5"}, code: outcome.NotFound, want: "sleep 5: command not found: that is for a shell: use sh -c 'sleep 5'"},
		{args: []string{"run", "/l", "--", "cd", "/tmp"}, code: outcome.NotFound, want: "use sh -c 'cd /tmp'"},
		{args: []string{"run", "/l", "--", "FOO=1", "env"}, code: outcome.NotFound, want: "use sh -c 'FOO=1 env'"},
		{args: []string{"run", "\u2013-wait", "5s", "/l", "--", "true"}, code: outcome.Usage, want: "\u2013-wait begins with a dash, which is not the hyphen of flags"},
		{args: []string{"run", "/l", "\u2014", "echo"}, code: outcome.Usage, want: "\u2014 begins with a dash, which is not the hyphen of flags"},
		{args: []string{"ls", "/"}, code: outcome.Usage, want: "/ is no lock: use ls -r / to list all locks"},
		{args: []string{"revoke", "/locks"}, code: outcome.Failure, want: "/locks: there are no holders, but 2 locks are below it: name one of them (see ls -r)"},
		{args: []string{"evict", "--all", "/one"}, code: outcome.Failure, want: "/one: there are no holders or waiters, but 1 lock is below it"},
		{args: []string{"elect", "--no-wait", "/held", "--", "true"}, code: outcome.NotAcquired, want: `/held is held by "nightly backup" (host `},
		{args: []string{"lock"}, code: outcome.Usage, want: `did you mean "run"?`},
		{args: []string{"status"}, code: outcome.Usage, want: `did you mean "ls"?`},
		{args: []string{"list"}, code: outcome.Usage, want: `did you mean "ls"?`},
		{args: []string{"unlock"}, code: outcome.Usage, want: `did you mean "revoke"?`},
		{args: []string{"-v"}, code: outcome.Usage, want: `did you mean "--version"?`},
		{args: []string{"--verison"}, code: outcome.Usage, want: `did you mean "--version"?`},
		{args: []string{"help", "connect"}, code: outcome.Usage, want: `did you mean "connection"?`},
		{args: []string{"help", "flags"}, code: outcome.Usage, want: `did you mean "connection"?`},
		{env: `ZKLOCK_SERVERS="h:1"`, args: []string{"run", "/l", "--", "true"}, code: outcome.Usage, want: `ZKLOCK_SERVERS has quotes in it: "h:1"`},
		{env: "ZKLOCK_SERVERS=a;b", args: []string{"run", "/l", "--", "true"}, code: outcome.Usage, want: "ZKLOCK_SERVERS: separate servers with commas: a;b"},
		{env: "ZKLOCK_SERVERS=a b", args: []string{"run", "/l", "--", "true"}, code: outcome.Usage, want: "separate servers with commas"},
		{args: []string{"run", "--root", "x", "/l", "--", "true"}, code: outcome.Usage, want: `--root: path "x" does not start with /`},
		{env: "ZKLOCK_ROOT=/x/", args: []string{"run", "/l", "--", "true"}, code: outcome.Usage, want: `ZKLOCK_ROOT: path "/x/" ends with /`},
		{args: []string{"web", "a"}, code: outcome.Usage, want: `web: path "a" does not start with /`},
		{args: []string{"demo", "--path", "x"}, code: outcome.Usage, want: `demo: --path: path "x" does not start with /`},
		{args: []string{"serve", "--members", "1000000"}, code: outcome.Usage, want: "serve: --members 1000000 is not between 1 and 200"},
		{args: []string{"run", "/l", "--", ""}, code: outcome.Usage, want: "run: the command after -- is empty"},
		{args: []string{"run", "--once", "1.2.3", "/l", "--", "true"}, code: outcome.Usage, want: "--once 1.2.3 is no name: begin with a letter (job-1.2.3)"},
		{args: []string{"run", "--once", "42", "/l", "--", "true"}, code: outcome.Usage, want: "--once 42 is no name: begin with a letter (job-42)"},
		{args: []string{"run", "/l"}, code: outcome.Usage, want: "(to hold the lock until Ctrl-C: -- sleep infinity)"},
		{args: []string{"run", "-E=3", "/l", "--", "echo", "ran"}, code: none, want: "ran\n"},
	} {
		t.Run(strings.Join(append([]string{c.env}, c.args...), " "), func(t *testing.T) {
			t.Parallel()
			i := zklockCommand(t, srv.Addr(), c.args...)
			if c.env != "" {
				i.Env = append(i.Env, c.env)
			}
			code := i.start().code()
			out, text := i.out.String(), i.err.String()
			assert.EqualValues(t, c.code, code, text)
			if c.code == none {
				assert.Equal(t, c.want, out)
				assert.Empty(t, text)
				return
			}
			assert.Contains(t, text, c.want)
			assert.Equal(t, 1, strings.Count(text, "\n"), text)
			assert.Empty(t, out, "nothing was begun")
		})
	}
}
