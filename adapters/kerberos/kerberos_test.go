// SPDX-License-Identifier: Apache-2.0

package kerberos_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/kerberos"
)

// connect connects a client, unless err says that there is no login.
func (w *world) connect(t *testing.T, login *kerberos.Login, err error, acl ...zk.ACL) (*zklock.Client, error) {
	require.NoError(t, err)
	t.Cleanup(login.Close)
	return w.connectWithin(t, patience, &zklock.Options{Login: login, ACL: acl})
}

func (w *world) connectWithin(t *testing.T, limit time.Duration, opts *zklock.Options) (*zklock.Client, error) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	client, err := zklock.Connect(ctx, []string{w.server}, opts)
	if err == nil {
		t.Cleanup(func() { client.Close() })
	}
	return client, err
}

// aWhile is how long a client tries that is not refused, but cannot log in.
const aWhile = 10 * time.Second

// dial returns a connection that the test owns.
func (w *world) dial(t *testing.T, hooks *zklock.Hooks, hosts zk.HostProvider) *zk.Conn {
	conn, events, err := zk.Connect([]string{w.server}, 10*time.Second, zk.WithDialer(hooks.Dial), zk.WithHostProvider(hosts), zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	return conn
}

func lockAndUnlock(t *testing.T, client *zklock.Client, path string) {
	hold, err := client.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, hold.Unlock(t.Context()))
}

func TestClientsLogInWithKerberos(t *testing.T) {
	w := newWorld(t, "sessionRequireClientSASLAuth=true")
	opts := &kerberos.Options{Config: w.conf}

	t.Run("keytab", func(t *testing.T) {
		login, err := kerberos.FromKeytab("worker", w.dir+"/worker.keytab", opts)
		client, err := w.connect(t, login, err, zk.ACL{Scheme: "sasl", ID: "worker@" + realm, Perms: zk.PermAll})
		require.NoError(t, err)
		require.Equal(t, "worker@"+realm, login.String())
		lockAndUnlock(t, client, "/worker")
	})
	t.Run("password", func(t *testing.T) {
		login, err := kerberos.FromPassword("joe@"+realm, "secret", opts)
		client, err := w.connect(t, login, err)
		require.NoError(t, err)
		lockAndUnlock(t, client, "/joe")
	})
	t.Run("another principal has no access", func(t *testing.T) {
		login, err := kerberos.FromPassword("joe", "secret", opts)
		client, err := w.connect(t, login, err)
		require.NoError(t, err)
		_, err = client.Mutex("/worker").Lock(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth)
	})
	t.Run("credential cache", func(t *testing.T) {
		cache := w.dir + "/cache"
		w.run(t, "secret\n", "kinit", "-c", cache, "joe")
		login, err := kerberos.FromCache(cache, opts)
		client, err := w.connect(t, login, err)
		require.NoError(t, err)
		lockAndUnlock(t, client, "/joe")
	})
	t.Run("wrong password", func(t *testing.T) {
		login, err := kerberos.FromPassword("joe", "wrong", opts)
		_, err = w.connect(t, login, err)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "the password or the keytab's key is wrong")
	})
	t.Run("a keytab with another key", func(t *testing.T) {
		other := w.dir + "/other.keytab"
		w.run(t, "addent -password -p worker@"+realm+" -k 1 -e aes256-cts\nwrong\nwkt "+other+"\nq\n", "ktutil")
		login, err := kerberos.FromKeytab("worker", other, opts)
		_, err = w.connect(t, login, err)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "the password or the keytab's key is wrong")
	})
	t.Run("unknown principal", func(t *testing.T) {
		login, err := kerberos.FromPassword("nobody", "secret", opts)
		_, err = w.connect(t, login, err)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "the KDC does not know the client's principal")
	})
	t.Run("unknown service", func(t *testing.T) {
		login, err := kerberos.FromPassword("joe", "secret", &kerberos.Options{Config: w.conf, Service: "hbase"})
		_, err = w.connect(t, login, err)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "the KDC does not know the server's principal")
	})
	t.Run("a server that is listed by address", func(t *testing.T) {
		by := *w
		_, port, err := net.SplitHostPort(w.server)
		require.NoError(t, err)
		by.server = "127.0.0.1:" + port
		login, err := kerberos.FromPassword("joe", "secret", &kerberos.Options{Config: w.conf, Host: func(dialed string) (string, error) {
			require.Equal(t, "127.0.0.1", dialed)
			return "localhost", nil
		}})
		client, err := by.connect(t, login, err)
		require.NoError(t, err)
		lockAndUnlock(t, client, "/joe")
	})
	t.Run("a host in upper case", func(t *testing.T) {
		by := *w
		by.server = "LocalHost" + strings.TrimPrefix(w.server, "localhost")
		login, err := kerberos.FromPassword("joe", "secret", opts)
		client, err := by.connect(t, login, err)
		require.NoError(t, err)
		lockAndUnlock(t, client, "/joe")
	})
	t.Run("attached", func(t *testing.T) {
		good, err := kerberos.FromKeytab("worker", w.dir+"/worker.keytab", opts)
		require.NoError(t, err)
		t.Cleanup(good.Close)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for provider, works := range map[string]bool{"of the hooks": true, "of go-zookeeper": false} {
			hooks := zklock.NewHooks(nil)
			hosts := hooks.HostProvider()
			if !works {
				hosts = &zk.DNSHostProvider{} // the default
			}
			conn := w.dial(t, hooks, hosts)
			client, err := zklock.Attach(ctx, conn, hooks, &zklock.Options{Login: good, ACL: []zk.ACL{{Scheme: "sasl", ID: "worker@" + realm, Perms: zk.PermAll}}})
			if !works { // it dials addresses
				require.ErrorIs(t, err, zk.ErrAuthFailed, provider)
				require.ErrorContains(t, err, "Hooks.HostProvider")
				continue
			}
			require.NoError(t, err, provider)
			lockAndUnlock(t, client, "/attached")
			require.NoError(t, client.Close())
		}
	})
	t.Run("no login", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		client, err := zklock.Connect(ctx, []string{w.server}, nil)
		if err == nil {
			defer client.Close()
			_, err = client.Mutex("/nobody").Lock(ctx)
		}
		require.ErrorIs(t, err, zk.ErrAuthFailed)
	})
	t.Run("the KDC is down", func(t *testing.T) {
		login, err := kerberos.FromPassword("joe", "secret", opts)
		client, err := w.connect(t, login, err)
		require.NoError(t, err)
		hold, err := client.Mutex("/joe").Lock(t.Context())
		require.NoError(t, err)
		w.stopKDC()
		other, err := zklock.Connect(t.Context(), []string{w.server}, &zklock.Options{Login: login})
		require.NoError(t, err, "it has a ticket")
		require.NoError(t, other.Close())
		require.NoError(t, hold.Check())
		late, err := kerberos.FromPassword("joe", "secret", opts)
		require.NoError(t, err)
		t.Cleanup(late.Close)
		_, err = w.connectWithin(t, aWhile, &zklock.Options{Login: late})
		require.ErrorContains(t, err, "no Kerberos ticket for zookeeper/localhost")
		require.NotErrorIs(t, err, zk.ErrAuthFailed, "the KDC has refused nobody")
		w.startKDC(t)
		again, err := kerberos.FromPassword("joe", "secret", opts)
		client, err = w.connect(t, again, err)
		require.NoError(t, err)
		require.NoError(t, client.Close())
		require.NoError(t, hold.Unlock(t.Context()))
	})
}

func TestTicketsEnd(t *testing.T) {
	w := newWorld(t, "sessionRequireClientSASLAuth=true")
	opts := &kerberos.Options{Config: w.conf}
	const life = 15 * time.Second
	for _, who := range []string{"worker", "krbtgt/" + realm, "zookeeper/localhost"} {
		w.run(t, "", "kadmin.local", "-r", realm, "-q", "modprinc -maxlife "+fmt.Sprint(life.Seconds())+"s "+who)
	}
	cache := w.dir + "/cache"
	w.run(t, "", "kinit", "-k", "-t", w.dir+"/worker.keytab", "-c", cache, "worker")
	cached, err := kerberos.FromCache(cache, opts)
	client, err := w.connect(t, cached, err)
	require.NoError(t, err)
	keyed, err := kerberos.FromKeytab("worker", w.dir+"/worker.keytab", opts)
	_, err = w.connect(t, keyed, err)
	require.NoError(t, err)
	hold, err := client.Mutex("/cached").Lock(t.Context())
	require.NoError(t, err)

	time.Sleep(life + time.Second) // KDC and server measure real time
	require.NoError(t, hold.Check(), "a connection outlives the ticket that it was made with")
	again, err := w.connect(t, keyed, nil)
	require.NoError(t, err, "a keytab gets another ticket")
	lockAndUnlock(t, again, "/keyed")
	_, err = w.connectWithin(t, aWhile, &zklock.Options{Login: cached})
	require.ErrorContains(t, err, "the ticket in the credential cache has expired, run kinit")
	require.NotErrorIs(t, err, zk.ErrAuthFailed, "it can be renewed")
	w.run(t, "", "kinit", "-k", "-t", w.dir+"/worker.keytab", "-c", cache, "worker")
	again, err = w.connect(t, cached, nil)
	require.NoError(t, err, "the cache was renewed")
	lockAndUnlock(t, again, "/cached-again")
	require.NoError(t, hold.Unlock(t.Context()))
}

// The KDC is down when the first tickets end, and when their successors end; then the key is replaced.
func TestALoginLogsInAgainAfterAnOutageAndWithANewKey(t *testing.T) {
	w := newWorld(t, "sessionRequireClientSASLAuth=true")
	const life = 20 * time.Second
	for _, who := range []string{"worker", "krbtgt/" + realm, "zookeeper/localhost"} {
		w.run(t, "", "kadmin.local", "-r", realm, "-q", "modprinc -maxrenewlife 1d -maxlife "+fmt.Sprint(life.Seconds())+"s "+who)
	}
	login, err := kerberos.FromKeytab("worker", w.dir+"/worker.keytab", &kerberos.Options{Config: w.conf})
	client, err := w.connect(t, login, err)
	require.NoError(t, err)
	hold, err := client.Mutex("/a").Lock(t.Context())
	require.NoError(t, err)
	time.Sleep(life/2 + time.Second) // KDC and server measure real time
	w.stopKDC()
	time.Sleep(life / 2)
	another, err := w.connectWithin(t, aWhile, &zklock.Options{Login: login})
	require.NoError(t, err, "the first tickets have ended, and the login has got others in time")
	require.NoError(t, another.Close())
	time.Sleep(life)
	_, err = w.connectWithin(t, aWhile, &zklock.Options{Login: login})
	require.ErrorContains(t, err, "no answer from the KDC")
	require.NoError(t, hold.Check(), "a connection outlives the ticket that it was made with")
	w.startKDC(t)
	client, err = w.connect(t, login, nil)
	require.NoError(t, err)
	w.run(t, "", "kadmin.local", "-r", realm, "-q", "ktadd -k "+w.dir+"/worker.keytab worker") // adds a new key
	time.Sleep(life + time.Second)
	again, err := w.connect(t, login, nil)
	require.NoError(t, err)
	lockAndUnlock(t, again, "/b")
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, client.Close())
}

func TestAServerInAnotherRealm(t *testing.T) {
	w := newWorld(t, "sessionRequireClientSASLAuth=true")
	const far = "FAR.TEST"
	w.stopKDC()
	w.addRealm(t, far)
	for _, r := range []string{realm, far} {
		w.run(t, "", "kadmin.local", "-r", r, "-q", "addprinc -pw shared krbtgt/"+far+"@"+realm)
	}
	w.run(t, "", "kadmin.local", "-r", far, "-q", "addprinc -randkey zookeeper/localhost")
	w.run(t, "", "kadmin.local", "-r", far, "-q", "ktadd -k "+w.dir+"/far.keytab zookeeper/localhost")
	w.startKDC(t)
	server := w.startServer(t, strings.ReplaceAll(w.kerberosJAAS("far.keytab"), "@"+realm, "@"+far), "sessionRequireClientSASLAuth=true")
	w.server = server
	login, err := kerberos.FromPassword("joe", "secret", &kerberos.Options{Config: w.conf})
	client, err := w.connect(t, login, err)
	require.NoError(t, err)
	lockAndUnlock(t, client, "/joe")
}

func TestClocksThatDifferAreNamed(t *testing.T) {
	w := newWorld(t, "")
	w.stopKDC()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	require.NoError(t, err)
	if len(libraries) == 0 {
		missing(t, "there is no libfaketime here: install faketime")
	}
	w.startKDC(t, "LD_PRELOAD="+libraries[0], "FAKETIME=+20m")
	login, err := kerberos.FromPassword("joe", "secret", &kerberos.Options{Config: w.conf})
	_, err = w.connect(t, login, err)
	require.ErrorIs(t, err, zk.ErrAuthFailed)
	require.ErrorContains(t, err, "the clocks of this host and the KDC differ")
}

func TestAServerThatDoesNotRequireALoginAcceptsOne(t *testing.T) {
	w := newWorld(t, "")
	t.Run("a refused Attach leaves the program's connection as it was", func(t *testing.T) {
		hooks := zklock.NewHooks(nil)
		conn := w.dial(t, hooks, hooks.HostProvider())
		_, _, err := conn.Exists("/")
		require.NoError(t, err)
		session := conn.SessionID()
		login, err := kerberos.FromPassword("joe", "wrong", &kerberos.Options{Config: w.conf})
		require.NoError(t, err)
		t.Cleanup(login.Close)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err = zklock.Attach(ctx, conn, hooks, &zklock.Options{Login: login})
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		_, _, err = conn.Exists("/")
		require.NoError(t, err)
		require.Equal(t, session, conn.SessionID())
	})
	login, err := kerberos.FromKeytab("worker", w.dir+"/worker.keytab", &kerberos.Options{Config: w.conf})
	client, err := w.connect(t, login, err)
	require.NoError(t, err)
	lockAndUnlock(t, client, "/a")
}

func TestServersThatCannotServeALogin(t *testing.T) {
	w := newWorld(t, "")
	opts := &kerberos.Options{Config: w.conf}
	t.Run("a server without SASL", func(t *testing.T) {
		plain := *w
		plain.server = w.startServer(t, "", "")
		login, err := kerberos.FromPassword("joe", "secret", opts)
		_, err = plain.connect(t, login, err)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "server does not support SASL")
	})
	t.Run("a server with an old key", func(t *testing.T) {
		w.run(t, "", "kadmin.local", "-r", realm, "-q", "cpw -randkey zookeeper/localhost")
		login, err := kerberos.FromPassword("joe", "secret", opts)
		_, err = w.connect(t, login, err)
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "server rejected the Kerberos ticket")
	})
}

func TestKerberosWorksWhereDIGESTMD5IsRefused(t *testing.T) {
	w := newWorld(t, "sessionRequireClientSASLAuth=true")
	login, err := kerberos.FromPassword("joe", "secret", &kerberos.Options{Config: w.conf})
	client, err := w.connect(t, login, err)
	require.NoError(t, err)
	lockAndUnlock(t, client, "/joe")

	digest := *w
	digest.server = w.startServer(t, `org.apache.zookeeper.server.auth.DigestLoginModule required user_joe="secret"`, "sessionRequireClientSASLAuth=true")
	client, err = digest.connectWithin(t, patience, &zklock.Options{Auth: []zklock.Auth{{Scheme: "sasl", Data: []byte("joe:secret")}}})
	if major, minor, patch := versionOf(t, digest.server); major > 3 || minor > 9 || minor == 9 && patch >= 6 {
		require.ErrorIs(t, err, zk.ErrAuthFailed)
		require.ErrorContains(t, err, "fips-mode")
		return
	}
	require.NoError(t, err)
	lockAndUnlock(t, client, "/digest")
}

// TestTheCommandLogsIn uses the command that is built with this adapter.
func TestTheCommandLogsIn(t *testing.T) {
	w := newWorld(t, "sessionRequireClientSASLAuth=true")
	program := filepath.Join(t.TempDir(), "zklock")
	out, err := exec.Command("go", "build", "-C", "../../cmd/zklock/kerberos", "-o", program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, port, err := net.SplitHostPort(w.server)
	require.NoError(t, err)
	byAddress := "127.0.0.1:" + port
	cache := w.dir + "/cache"
	w.run(t, "secret\n", "kinit", "-c", cache, "joe")
	password, wrong := w.write(t, "password", "secret\n"), w.write(t, "wrong", "guess\n")
	worker := []string{"--kerberos-principal", "worker", "--kerberos-keytab", w.dir + "/worker.keytab", "--acl", "sasl:worker@" + realm + ":cdrwa"}
	for _, c := range []struct {
		servers, path string
		flags         []string
		code          int
	}{
		{w.server, "/worker", worker, 0},
		{byAddress, "/worker", append([]string{"--kerberos-host", "localhost"}, worker...), 0},
		{w.server, "/joe", []string{"--kerberos-cache", cache}, 0},
		{w.server, "/joe", []string{"--kerberos-principal", "joe", "--kerberos-password-file", password}, 0},
		{w.server, "/worker", []string{"--kerberos-principal", "joe", "--kerberos-password-file", password}, 77},
		{w.server, "/joe", []string{"--kerberos-principal", "joe", "--kerberos-password-file", wrong}, 77},
		{w.server, "/joe", []string{"--kerberos-principal", "worker", "--kerberos-keytab", w.dir + "/missing.keytab"}, 64},
	} {
		args := append([]string{"run", "--servers", c.servers, "--connect-timeout", patience.String(), "--kerberos-config", w.conf}, c.flags...)
		cmd := exec.Command(program, append(args, c.path, "--", "echo", "held")...)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%v: %s", c.flags, out)
		require.Equal(t, c.code == 0, strings.Contains(string(out), "held"), "%v: %s", c.flags, out)
	}
}

func TestCanonicalAsksTheNameService(t *testing.T) {
	names, err := net.LookupAddr("127.0.0.1")
	if err != nil {
		t.Skip("127.0.0.1 has no name here:", err)
	}
	name, err := kerberos.Canonical("127.0.0.1")
	require.NoError(t, err)
	require.Equal(t, strings.ToLower(strings.TrimSuffix(names[0], ".")), name)
	_, err = kerberos.Canonical("no-such-host.invalid")
	require.Error(t, err)
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	_, err := kerberos.FromPassword("joe", "secret", &kerberos.Options{Config: missing})
	require.ErrorContains(t, err, missing)
	conf := filepath.Join(dir, "krb5.conf")
	require.NoError(t, os.WriteFile(conf, []byte("[libdefaults]\n default_realm = "+realm+"\n"), 0o600))
	_, err = kerberos.FromKeytab("joe", missing, &kerberos.Options{Config: conf})
	require.ErrorContains(t, err, "keytab "+missing)
	_, err = kerberos.FromCache(missing, &kerberos.Options{Config: conf})
	require.ErrorContains(t, err, "credential cache "+missing)
}
