// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestSecurity uses digest ACLs and a real secure client port that requires certificates of both sides.
//
//zklock:promise P20.1
func TestSecurity(t *testing.T) {
	t.Parallel()
	part(t)
	needsOwn(t)
	ours, theirs := newAuthority(t), newAuthority(t)
	server := start(t, zkcontainer.Options{TLS: ours, MaxSessionTimeout: 2 * patience}).Members[0]
	ourDialer := dialTLS(clientOf(t, ours))
	acl := zk.DigestACL(zk.PermAll, "worker", "secret")
	member := &zklock.Options{
		SessionTimeout: 10 * time.Second, Dialer: ourDialer, ACL: acl,
		Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("worker:secret")}},
	}

	t.Run("TLS refuses", func(t *testing.T) {
		for name, config := range map[string]*tls.Config{
			"a client without a certificate":      {RootCAs: ours.Pool},
			"a client with a foreign certificate": {RootCAs: ours.Pool, Certificates: clientOf(t, theirs).Certificates},
			"a server with a foreign certificate": {RootCAs: theirs.Pool, Certificates: clientOf(t, ours).Certificates},
		} {
			t.Run(name, func(t *testing.T) {
				assert.ErrorContains(t, greet(server.Secure, config), "tls: ")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := zklock.Connect(ctx, []string{server.Secure}, &zklock.Options{Dialer: dialTLS(config)})
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
	})

	t.Run("digest ACL", func(t *testing.T) {
		path := root(t)
		hold, err := connect(t, member, server.Secure).Mutex(path).Lock(soon(t))
		require.NoError(t, err)

		stranger, _ := dial(t, 10*time.Second, server.Addr)
		assert.ErrorIs(t, stranger.Delete(hold.Node(), -1), zk.ErrNoAuth)
		_, err = stranger.Create(path+"/_c_00000000000000000000000000000000-lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		assert.ErrorIs(t, err, zk.ErrNoAuth)
		_, err = connect(t, nil, server.Addr).Mutex(path).Lock(soon(t))
		assert.ErrorIs(t, err, zk.ErrNoAuth, "a wait without permission must not start")
		wrong := *member
		wrong.Auth = []zklock.Auth{{Scheme: "digest", Data: []byte("worker:guess")}}
		_, err = connect(t, &wrong, server.Secure).Mutex(path).TryLock(soon(t))
		assert.ErrorIs(t, err, zk.ErrNoAuth)
		require.NoError(t, hold.Check(), "the hold is not affected")

		second := connect(t, member, server.Secure).Mutex(path)
		_, err = second.TryLock(soon(t))
		assert.ErrorIs(t, err, zklock.ErrLocked, "a member may join")
		require.NoError(t, hold.Unlock(soon(t)))
		hold, err = second.Lock(soon(t))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(soon(t)))
	})

	t.Run("a whole session of the library", func(t *testing.T) {
		path, ctx := root(t), soon(t)
		client := connect(t, member, server.Secure)
		first, err := client.Mutex(path).Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, first.Confirm(ctx))
		second := make(chan error, 1)
		waiter := connect(t, member, server.Secure)
		// Owned by this test: ends with the grant or with ctx.
		go func() {
			hold, err := waiter.Mutex(path).Lock(ctx)
			if err == nil {
				err = errors.Join(hold.Check(), hold.Unlock(ctx))
			}
			second <- err
		}()
		insider, _ := dialWith(t, ourDialer, 10*time.Second, server.Secure)
		require.NoError(t, insider.AddAuth("digest", []byte("worker:secret")))
		untilChildren(t, insider, path, 2)
		_, err = first.Multi(&zk.CreateRequest{Path: path + "-written", Acl: acl})
		require.NoError(t, err, "a write that commits only while held")
		require.NoError(t, client.Close())
		assert.Error(t, first.Check())
		require.NoError(t, await(t, second, "the next grant"))
	})

	t.Run("the command", func(t *testing.T) {
		dir := t.TempDir()
		file := func(name string, content []byte) string {
			name = filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(name, content, 0o600))
			return name
		}
		cert, key, err := ours.Issue()
		require.NoError(t, err)
		secure := []string{"--tls-ca", file("ca.pem", ours.PEM), "--tls-cert", file("cert.pem", cert), "--tls-key", file("key.pem", key)}
		command := buildCommand(t)
		zklock := func(flags []string, verb string, args ...string) (string, int) {
			cmd := exec.CommandContext(soon(t), command, slices.Concat([]string{verb, "--servers", server.Secure}, flags, args)...)
			cmd.Env = append(os.Environ(), "ZKLOCK_AUTH=digest:worker:secret")
			out, _ := cmd.CombinedOutput()
			return string(out), cmd.ProcessState.ExitCode()
		}
		path := root(t)
		text, code := zklock(slices.Concat(secure, []string{"--acl", "auth::cdrwa"}), "run", path, "--", "sh", "-c", "echo token $ZKLOCK_TOKEN")
		require.Zero(t, code, text)
		assert.Regexp(t, `token \d+`, text)

		hold, err := connect(t, member, server.Secure).Mutex(path).Lock(soon(t))
		require.NoError(t, err)
		text, code = zklock(secure, "run", "--no-wait", path, "--", "true")
		assert.Equal(t, 75, code, "held by the library: %s", text)
		text, code = zklock(secure, "ls", path)
		assert.Zero(t, code, text)
		assert.Contains(t, text, strconv.Itoa(os.Getpid()), "the holder's process")
		require.NoError(t, hold.Unlock(soon(t)))

		text, code = zklock([]string{"--tls-ca", secure[1], "--connect-timeout", "2s"}, "run", path, "--", "true")
		assert.Equal(t, 69, code, "without a certificate: %s", text)
	})

	t.Run("a restart in between", func(t *testing.T) {
		// The session outlasts the restart even on a slow machine: the test waits less long for the server.
		lasting := *member
		lasting.SessionTimeout = 2 * patience
		client := connect(t, &lasting, server.Secure)
		hold, err := client.Mutex(root(t)).Lock(soon(t))
		require.NoError(t, err)
		require.NoError(t, server.Stop(t.Context()))
		require.NoError(t, server.Start(t.Context()))
		require.NoError(t, hold.Confirm(soon(t)), "same session, over TLS again")
		require.NoError(t, hold.Unlock(soon(t)), "the credentials were presented again")
	})
}

func newAuthority(t *testing.T) *zkcontainer.Authority {
	a, err := zkcontainer.NewAuthority()
	require.NoError(t, err)
	return a
}

func clientOf(t *testing.T, a *zkcontainer.Authority) *tls.Config {
	config, err := a.Client()
	require.NoError(t, err)
	return config
}

// greet connects and reads until the server or the client refuses the other's certificate.
func greet(addr string, config *tls.Config) error {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", addr, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = io.ReadAll(conn)
	return err
}

func dialTLS(config *tls.Config) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	}
}
