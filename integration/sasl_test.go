// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestSecuritySASL uses a real server that requires a login with SASL's DIGEST-MD5.
//
//zklock:promise P8.6
func TestSecuritySASL(t *testing.T) {
	t.Parallel()
	part(t)
	needsOwn(t)
	z := start(t, zkcontainer.Options{
		SASL: map[string]string{"worker": `se"cret`, "other": "pässwörd κ"}, RequireSASL: true, MaxSessionTimeout: 2 * patience,
	})
	acl := []zk.ACL{{Scheme: "sasl", ID: "worker", Perms: zk.PermAll}}
	login := func(credential string, timeout time.Duration) *zklock.Options {
		return &zklock.Options{
			SessionTimeout: timeout, ACL: acl, Auth: []zklock.Auth{{Scheme: "sasl", Data: []byte(credential)}},
		}
	}
	member := login(`worker:se"cret`, 10*time.Second)

	t.Run("an ACL for a user of SASL", func(t *testing.T) {
		path := root(t)
		hold, err := connect(t, member, z.Addrs()...).Mutex(path).Lock(soon(t))
		require.NoError(t, err)
		other := connect(t, login("other:pässwörd κ", 10*time.Second), z.Addrs()...)
		_, err = other.Mutex(path).TryLock(soon(t))
		assert.ErrorIs(t, err, zk.ErrNoAuth)
		second := connect(t, member, z.Addrs()...).Mutex(path)
		_, err = second.TryLock(soon(t))
		assert.ErrorIs(t, err, zklock.ErrLocked)
		require.NoError(t, hold.Check())
		require.NoError(t, hold.Unlock(soon(t)))
		hold, err = second.Lock(soon(t))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(soon(t)))
	})

	t.Run("refusals", func(t *testing.T) {
		for name, credential := range map[string]string{"another password": "worker:guess", "another user": "nobody:secret"} {
			_, err := zklock.Connect(soon(t), z.Addrs(), login(credential, 10*time.Second))
			assert.ErrorIs(t, err, zk.ErrAuthFailed, name)
			assert.ErrorContains(t, err, "server rejected the user name or password", name)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := connect(t, nil, z.Addrs()...).Mutex(root(t)).Lock(ctx)
		assert.ErrorIs(t, err, zk.ErrAuthFailed)
		assert.ErrorContains(t, err, "requires clients to authenticate")
		_, err = zklock.Connect(soon(t), one(t).Addrs(), member)
		assert.ErrorIs(t, err, zk.ErrAuthFailed)
		assert.ErrorContains(t, err, "server does not support SASL")
	})

	t.Run("a restart in between", func(t *testing.T) {
		client := connect(t, login(`worker:se"cret`, 2*patience), z.Addrs()...)
		hold, err := client.Mutex(root(t)).Lock(soon(t))
		require.NoError(t, err)
		require.NoError(t, z.Members[0].Stop(t.Context()))
		require.NoError(t, z.Members[0].Start(t.Context()))
		require.NoError(t, hold.Confirm(soon(t)), "same session, logged in again")
		require.NoError(t, hold.Unlock(soon(t)))
	})

	t.Run("a connection of one's own", func(t *testing.T) {
		hooks := zklock.NewHooks(nil)
		conn, _ := dialWith(t, hooks.Dial, 10*time.Second, z.Addrs()...)
		client, err := zklock.Attach(soon(t), conn, hooks, member)
		require.NoError(t, err)
		defer client.Close()
		hold, err := client.Mutex(root(t)).Lock(soon(t))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(soon(t)))
	})

	t.Run("the command", func(t *testing.T) {
		command, path := buildCommand(t), root(t)
		zklock := func(auth string) (string, int) {
			cmd := exec.CommandContext(soon(t), command, "run", "--servers", z.Members[0].Addr, "--acl", "sasl:worker:cdrwa", path, "--", "echo", "held")
			cmd.Env = append(os.Environ(), "ZKLOCK_AUTH="+auth)
			out, _ := cmd.CombinedOutput()
			return string(out), cmd.ProcessState.ExitCode()
		}
		text, code := zklock(`sasl:worker:se"cret`)
		assert.Zero(t, code, text)
		assert.Contains(t, text, "held")
		text, code = zklock("sasl:worker:guess")
		assert.Equal(t, 77, code, text)
		assert.Contains(t, text, "SASL login as worker")
		assert.NotContains(t, text, "guess")
	})
}
