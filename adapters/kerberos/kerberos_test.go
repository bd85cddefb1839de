package kerberos_test

import (
	"bytes"
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

const realm = "ZKLOCK.TEST"

// A world has a KDC and a ZooKeeper server on loopback, which end with the test.
type world struct {
	dir, conf, server string
	kdcAddress        string
	kdc               func() // starts the KDC
	stopKDC           func()
}

// tool returns the path of a program, or skips the test.
func tool(t *testing.T, name string) string {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s here: install krb5-kdc, krb5-admin-server, krb5-user and zookeeper", name)
	}
	return path
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// run runs a Kerberos program and waits for its end.
func (w *world) run(t *testing.T, stdin, name string, args ...string) {
	cmd := exec.Command(tool(t, name), args...)
	cmd.Env = append(os.Environ(), "KRB5_CONFIG="+w.conf, "KRB5_KDC_PROFILE="+filepath.Join(w.dir, "kdc.conf"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
}

// start starts a server, which stop ends, and waits until it listens.
func (w *world) start(t *testing.T, listens string, cmd *exec.Cmd) (stop func()) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(append(os.Environ(), cmd.Env...), "KRB5_CONFIG="+w.conf, "KRB5_KDC_PROFILE="+filepath.Join(w.dir, "kdc.conf"))
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { // ends with the process, which stop ends and waits for
		cmd.Wait()
		close(ended)
	}()
	stop = func() {
		cmd.Process.Kill()
		<-ended
	}
	t.Cleanup(stop)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", listens)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond, "%s does not listen: %s", cmd.Path, &out)
	return stop
}

func (w *world) write(t *testing.T, name, text string) string {
	path := filepath.Join(w.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// newWorld starts the servers. require is a line of zoo.cfg.
func newWorld(t *testing.T, demand string) *world {
	const jar = "/usr/share/java/zookeeper.jar"
	for _, name := range []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit", "java"} {
		tool(t, name)
	}
	if _, err := os.Stat(jar); err != nil {
		t.Skip("there is no ZooKeeper here: install zookeeper")
	}
	dir := t.TempDir()
	kdc := freePort(t)
	w := &world{dir: dir, server: freePort(t), kdcAddress: kdc}
	w.conf = w.write(t, "krb5.conf", fmt.Sprintf(`[libdefaults]
 default_realm = %[1]s
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 %[1]s = {
  kdc = %[2]s
 }
`, realm, kdc))
	w.write(t, "kdc.conf", fmt.Sprintf(`[kdcdefaults]
 kdc_listen = %[2]s
 kdc_tcp_listen = %[2]s
[realms]
 %[1]s = {
  database_name = %[3]s/principal
  key_stash_file = %[3]s/stash
  acl_file = %[3]s/acl
  max_life = 1h
  supported_enctypes = aes256-cts:normal aes128-cts:normal
 }
[logging]
 kdc = FILE:%[3]s/kdc.log
`, realm, kdc, dir))
	w.run(t, "", "kdb5_util", "create", "-s", "-r", realm, "-P", "master")
	for _, query := range []string{
		"addprinc -randkey zookeeper/localhost", "ktadd -k " + dir + "/zk.keytab zookeeper/localhost",
		"addprinc -randkey worker", "ktadd -k " + dir + "/worker.keytab worker",
		"addprinc -pw secret joe",
	} {
		w.run(t, "", "kadmin.local", "-r", realm, "-q", query)
	}
	w.kdc = func() { w.stopKDC = w.start(t, kdc, exec.Command(tool(t, "krb5kdc"), "-n", "-r", realm)) }
	w.kdc()
	jaas := w.write(t, "jaas.conf", fmt.Sprintf(`Server {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true useTicketCache=false
  keyTab="%s/zk.keytab" principal="zookeeper/localhost@%s";
};
`, dir, realm))
	_, port, err := net.SplitHostPort(w.server)
	require.NoError(t, err)
	cfg := w.write(t, "zoo.cfg", fmt.Sprintf(`tickTime=2000
dataDir=%s/zk
clientPortAddress=127.0.0.1
clientPort=%s
admin.enableServer=false
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
%s
`, dir, port, demand))
	w.start(t, w.server, exec.Command(tool(t, "java"), "-cp", jar, "-Djava.security.auth.login.config="+jaas, "-Djava.security.krb5.conf="+w.conf,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", cfg))
	w.server = "localhost:" + port
	return w
}

func (w *world) connect(t *testing.T, login *kerberos.Login, err error, acl ...zk.ACL) (*zklock.Client, error) {
	require.NoError(t, err)
	t.Cleanup(login.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	client, err := zklock.Connect(ctx, []string{w.server}, &zklock.Options{Login: login, ACL: acl})
	if err == nil {
		t.Cleanup(func() { client.Close() })
	}
	return client, err
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
		_, err = w.connect(t, late, err)
		require.ErrorContains(t, err, "no Kerberos ticket for zookeeper/localhost")
		require.NotErrorIs(t, err, zk.ErrAuthFailed, "the KDC has refused nobody")
		w.kdc()
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
	const life = 6 * time.Second
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
	_, err = w.connect(t, cached, nil)
	require.ErrorContains(t, err, "the ticket in the credential cache has expired, run kinit")
	require.NotErrorIs(t, err, zk.ErrAuthFailed, "it can be renewed")
	w.run(t, "", "kinit", "-k", "-t", w.dir+"/worker.keytab", "-c", cache, "worker")
	again, err = w.connect(t, cached, nil)
	require.NoError(t, err, "the cache was renewed")
	lockAndUnlock(t, again, "/cached-again")
	require.NoError(t, hold.Unlock(t.Context()))
}

func TestClocksThatDifferAreNamed(t *testing.T) {
	w := newWorld(t, "")
	w.stopKDC()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	require.NoError(t, err)
	if len(libraries) == 0 {
		t.Skip("there is no libfaketime here: install faketime")
	}
	ahead := exec.Command(tool(t, "krb5kdc"), "-n", "-r", realm)
	ahead.Env = []string{"LD_PRELOAD=" + libraries[0], "FAKETIME=+20m"}
	w.start(t, w.kdcAddress, ahead)
	login, err := kerberos.FromPassword("joe", "secret", &kerberos.Options{Config: w.conf})
	_, err = w.connect(t, login, err)
	require.ErrorIs(t, err, zk.ErrAuthFailed)
	require.ErrorContains(t, err, "the clocks of this host and the KDC differ")
}

func TestAServerThatDoesNotRequireALoginAcceptsOne(t *testing.T) {
	w := newWorld(t, "")
	login, err := kerberos.FromKeytab("worker", w.dir+"/worker.keytab", &kerberos.Options{Config: w.conf})
	client, err := w.connect(t, login, err)
	require.NoError(t, err)
	lockAndUnlock(t, client, "/a")
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
