// SPDX-License-Identifier: Apache-2.0

package zkcontainer_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// patience bounds waits for what must come; nothing is concluded from how long it took.
const patience = 90 * time.Second

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// twoClients is a test of a program, as a user would write it: one that holds a lock and is cut off loses it, and the
// next one gets it.
func twoClients(t *testing.T, z zkcontainer.Backend) {
	client := func(name string) *zklock.Client {
		c, err := zklock.Connect(soon(t), z.Addrs(), &zklock.Options{SessionTimeout: 4 * time.Second, Dialer: z.DialFrom(name)})
		require.NoError(t, err)
		return c
	}
	a, b := client("a"), client("b")
	defer a.Close()
	defer b.Close()
	z.Faults(0).Freeze()
	z.Faults(0).Thaw()
	first, err := a.Mutex("/locks/x").Lock(soon(t))
	require.NoError(t, err)
	z.Partition("a")
	second, err := b.Mutex("/locks/x").Lock(soon(t))
	require.NoError(t, err)
	assert.Error(t, first.Check(), "it no longer holds when the next one does")
	assert.Greater(t, second.Token(), first.Token())
	z.HealClient("a")
	require.NoError(t, second.Unlock(soon(t)))
}

func TestTheSameBodyRunsOnEveryBackend(t *testing.T) {
	for _, kind := range []string{"virtual", "process", "container"} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("ZKCONTAINER_BACKEND", kind)
			zkcontainer.Test(t, zkcontainer.Options{}, twoClients)
		})
	}
}

func TestAnEnsembleWithoutItsLeaderElectsAnother(t *testing.T) {
	t.Parallel()
	z := zkcontainer.RunEnsemble(t.Context(), t, 3)
	ctx := soon(t)
	if err := z.CheckTools(ctx); err != nil {
		t.Skip(err)
	}
	leader, err := z.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, leader.CutOff(ctx))
	next, err := z.Leader(ctx, leader)
	require.NoError(t, err)
	conn, _, err := zk.Connect([]string{next.Addr}, 10*time.Second, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	defer conn.Close()
	require.Eventually(t, func() bool {
		_, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
		return err == nil || errors.Is(err, zk.ErrNodeExists)
	}, patience, 50*time.Millisecond, "two of three are a quorum")
	require.NoError(t, leader.Rejoin(ctx))
}

func TestUsersAndCertificates(t *testing.T) {
	t.Parallel()
	authority, err := zkcontainer.NewAuthority()
	require.NoError(t, err)
	z := zkcontainer.RunEnsemble(t.Context(), t, 1, zkcontainer.Options{
		TLS: authority, Super: "super:secret", SASL: map[string]string{"joe": "pässwörd"}, MaxSessionTimeout: time.Minute,
	})
	config, err := authority.Client()
	require.NoError(t, err)
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	}
	joe, err := zklock.Connect(soon(t), []string{z.Members[0].Secure}, &zklock.Options{
		SessionTimeout: 20 * time.Second, Dialer: dial, Auth: []zklock.Auth{{Scheme: "sasl", Data: []byte("joe:pässwörd")}},
		ACL: []zk.ACL{{Scheme: "sasl", ID: "joe", Perms: zk.PermAll}},
	})
	require.NoError(t, err)
	defer joe.Close()
	hold, err := joe.Mutex("/locks/x").Lock(soon(t))
	require.NoError(t, err)

	conn, _, err := zk.Connect(z.Addrs(), 10*time.Second, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	defer conn.Close()
	require.ErrorIs(t, conn.Delete(hold.Node(), -1), zk.ErrNoAuth)
	require.NoError(t, conn.AddAuth("digest", []byte("super:secret")))
	require.NoError(t, conn.Delete(hold.Node(), -1), "the super user may")
	<-hold.Context().Done()
}

// Slow links of a server with a tools container, in a test that fails.
func TestAFailedTestShowsTheServersLogs(t *testing.T) {
	t.Parallel()
	inner := &failing{TB: t}
	z := zkcontainer.RunEnsemble(t.Context(), inner, 1, toolsElsewhere(t))
	server, ctx := z.Members[0], soon(t)
	if z.Options.Tools != "" {
		_, err := server.Slow(ctx)
		require.NoError(t, err)
		require.NoError(t, server.EndSlow(ctx))
		require.NoError(t, server.Stop(ctx))
		require.NoError(t, server.Start(ctx))
		_, err = server.Slow(ctx)
		require.NoError(t, err, "the server's network is a new one")
	}
	inner.end()
	assert.Contains(t, inner.out.String(), "the last lines of zk1")
	_, err := net.DialTimeout("tcp", z.Addrs()[0], time.Second)
	assert.Error(t, err, "nothing listens there now")
}

// toolsElsewhere names the tools' image, if there is one that has them.
func toolsElsewhere(t *testing.T) zkcontainer.Options {
	engine, err := zkcontainer.Find()
	if err != nil {
		return zkcontainer.Options{}
	}
	image, err := engine.Image(t.Context())
	if err != nil || image == zkcontainer.DefaultImage {
		return zkcontainer.Options{}
	}
	return zkcontainer.Options{Tools: image}
}

// failing is a test that has failed.
type failing struct {
	testing.TB
	out      bytes.Buffer
	cleanups []func()
}

func (f *failing) Failed() bool      { return true }
func (f *failing) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }
func (f *failing) Log(args ...any) {
	for _, a := range args {
		f.out.WriteString(a.(string))
	}
}

func (f *failing) end() {
	for _, fn := range f.cleanups {
		fn()
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
