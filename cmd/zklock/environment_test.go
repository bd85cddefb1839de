// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// Values that all hosts share need not stand in each line of a crontab.
func TestVariablesSetTheFlagsThatHostsShare(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Options{TickTime: 500 * time.Millisecond})
	with := func(env []string, args ...string) *invocation {
		i := zklockCommand(t, srv.Addr(), args...)
		i.Env = append(i.Env, env...)
		return i.start()
	}
	timeoutOf := func(env []string, args ...string) time.Duration {
		i := with(env, append(append([]string{"run"}, args...), "/l", "--", "sleep", "600")...)
		eventually(t, "it holds", func() bool { return queued(srv, "/l") == 1 })
		granted := srv.Sessions()[0].Timeout
		i.Process.Kill()
		srv.ExpireSession(srv.Sessions()[0].ID)
		eventually(t, "it is gone", func() bool { return queued(srv, "/l") == 0 })
		return granted
	}
	assert.Equal(t, 7*time.Second, timeoutOf([]string{"ZKLOCK_SESSION_TIMEOUT=7s"}))
	assert.Equal(t, 8*time.Second, timeoutOf([]string{"ZKLOCK_SESSION_TIMEOUT=7s"}, "--session-timeout", "8s"), "a flag counts more")

	i := with([]string{"ZKLOCK_ACL=auth::cdrwa", "ZKLOCK_AUTH=digest:u:p"}, "run", "/mine/l", "--", "true")
	require.Zero(t, i.code(), i.err.String())
	node, ok := srv.Node("/mine/l")
	require.True(t, ok)
	require.Len(t, node.ACL, 1)
	assert.Equal(t, "digest", node.ACL[0].Scheme)

	for env, want := range map[string]string{
		"ZKLOCK_SESSION_TIMEOUT=soon": "zklock: ZKLOCK_SESSION_TIMEOUT=soon: not a duration; write 10s or 10m, for example\n",
		"ZKLOCK_TICK_TIME=2":          "zklock: ZKLOCK_TICK_TIME=2: not a duration; write 2s\n",
		"ZKLOCK_LOCK_DELAY=x":         "zklock: ZKLOCK_LOCK_DELAY=x: not a duration; write 10s or 10m, for example\n",
		"ZKLOCK_ACL=x":                "zklock: --acl: \"x\" is not scheme:id:perms\n",
		"ZKLOCK_TLS=x":                "zklock: ZKLOCK_TLS=x: write true or false, or only the flag\n",
		"ZKLOCK_TLS_CA=/nowhere":      "zklock: --tls-ca: /nowhere: no such file or directory\n",
		"ZKLOCK_TICK_TIMES=2s":        "zklock: unknown variable ZKLOCK_TICK_TIMES, did you mean \"ZKLOCK_TICK_TIME\"?\n",
	} {
		i := with([]string{env}, "run", "/l", "--", "true")
		assert.EqualValues(t, outcome.Usage, i.code(), env)
		assert.Equal(t, want, i.err.String())
	}
	i = with([]string{"ZKLOCK_TIMEOUT=5s", "ZKLOCK_SERVICE_HOST=10.0.0.1", "ZKLOCK_PORT=tcp://10.0.0.1:80"}, "run", "/l", "--", "true")
	assert.Zero(t, i.code())
	assert.Equal(t, "zklock: unknown variable ZKLOCK_TIMEOUT in the environment: it has no effect\n", i.err.String())
	_, out, _ := run(t, "", "run", "--help")
	assert.Contains(t, out, "ZKLOCK_SESSION_TIMEOUT")
	_, out, _ = run(t, "", "help", "connection")
	assert.Contains(t, out, "also ZKLOCK_TLS_CA")
}
