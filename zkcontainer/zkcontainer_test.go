package zkcontainer_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
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
	assert.Error(t, first.Check(), "nobody holds beside the next one")
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

func TestAnEnsembleSurvivesWhatIsDoneToIt(t *testing.T) {
	t.Parallel()
	z := zkcontainer.RunEnsemble(t.Context(), t, 3)
	ctx := soon(t)
	conn, _, err := zk.Connect(z.Addrs(), 10*time.Second, zk.WithLogger(quiet{}))
	require.NoError(t, err)
	defer conn.Close()
	set := func(path string) {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		for err == zk.ErrConnectionClosed { // it may have been done: the next answer tells
			_, err = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		}
		if err != zk.ErrNodeExists {
			require.NoError(t, err)
		}
	}
	set("/before")
	leader, err := z.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, leader.Kill(ctx))
	_, err = z.Leader(ctx, leader)
	require.NoError(t, err)
	set("/between")
	require.NoError(t, leader.Restart(ctx))
	require.NoError(t, z.Healthy(ctx))
	if err := z.HurtsNetworks(ctx); err != nil {
		t.Skip(err)
	}
	leader, err = z.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, leader.CutFromPeers(ctx))
	_, err = z.Leader(ctx, leader)
	require.NoError(t, err)
	require.NoError(t, leader.Heal(ctx))
	set("/after")
	names, _, err := conn.Children("/")
	require.NoError(t, err)
	assert.Subset(t, names, []string{"before", "between", "after"})
}

func TestUsersAndCertificates(t *testing.T) {
	t.Parallel()
	authority, err := zkcontainer.NewAuthority()
	require.NoError(t, err)
	z := zkcontainer.Run(t.Context(), t, zkcontainer.Options{
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

func TestTheToolsCanBeInAnotherImage(t *testing.T) {
	t.Parallel()
	engine, err := zkcontainer.Find()
	if err != nil {
		t.Skip(err)
	}
	image, err := engine.Image(t.Context())
	if err != nil || image == zkcontainer.Official {
		t.Skip("no image with iptables and tc here: ", image, " ", err)
	}
	z := zkcontainer.RunEnsemble(t.Context(), t, 1, zkcontainer.Options{Tools: image})
	ctx := soon(t)
	require.NoError(t, z.HurtsNetworks(ctx))
	_, err = z.Members[0].Slow(ctx)
	require.NoError(t, err)
	require.NoError(t, z.Members[0].Fast(ctx))
	require.NoError(t, z.Members[0].Kill(ctx))
	require.NoError(t, z.Members[0].Restart(ctx))
	_, err = z.Members[0].Slow(ctx)
	require.NoError(t, err, "the server's network is a new one")
}

func TestAFailedTestShowsTheServersLogs(t *testing.T) {
	t.Parallel()
	inner := &failing{TB: t}
	z := zkcontainer.Run(t.Context(), inner)
	_, err := io.WriteString(io.Discard, z.ConnectionString())
	require.NoError(t, err)
	inner.end()
	assert.Contains(t, inner.out.String(), "the last lines of zk1")
	_, err = net.DialTimeout("tcp", z.Addrs()[0], time.Second)
	assert.Error(t, err, "nothing listens there any more")
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
