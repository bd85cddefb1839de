// SPDX-License-Identifier: Apache-2.0

package kerberos_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const realm = "ZKLOCK.TEST"

// patience limits waits for events that must happen. No test depends on how long they take.
const patience = 5 * time.Minute

// suites are the versions of ZooKeeper that ZKLOCK_TEST_ZOOKEEPER selects, and the Debian suites that contain them.
var suites = map[string]string{"3.8": "bookworm", "3.9": "trixie", "sid": "sid"}

// A world has a KDC and a ZooKeeper server on loopback, which end with the test.
type world struct {
	dir, conf  string
	far        string // another realm of the KDC, or ""
	image      string // of the servers
	server     string
	kdcAddress string
	stopKDC    func()
}

// missing skips the test, or fails it if ZKLOCK_TEST_REQUIRE is set.
func missing(t *testing.T, format string, args ...any) {
	if os.Getenv("ZKLOCK_TEST_REQUIRE") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// tool returns the path of a program, or skips the test.
func tool(t *testing.T, name string) string {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "there is no %s here: install krb5-kdc, krb5-admin-server and krb5-user, and a container engine", name)
	}
	return path
}

// serverImage returns the image of the servers: ZooKeeper 3.8, or the version in ZKLOCK_TEST_ZOOKEEPER.
func serverImage(t *testing.T) string {
	version := cmp.Or(os.Getenv("ZKLOCK_TEST_ZOOKEEPER"), "3.8")
	require.Contains(t, suites, version, "ZKLOCK_TEST_ZOOKEEPER")
	var out, trouble bytes.Buffer
	build := exec.Command("../../integration/image/build", suites[version])
	build.Stdout, build.Stderr = &out, &trouble
	if err := build.Run(); err != nil {
		missing(t, "there is no image of ZooKeeper %s: %v: %s", version, err, &trouble)
	}
	lines := strings.Fields(out.String())
	return lines[len(lines)-1]
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// environment returns the environment of Kerberos programs.
func (w *world) environment() []string {
	return append(os.Environ(), "KRB5_CONFIG="+w.conf, "KRB5_KDC_PROFILE="+filepath.Join(w.dir, "kdc.conf"))
}

// run runs a Kerberos program and waits for its end.
func (w *world) run(t *testing.T, stdin, name string, args ...string) {
	cmd := exec.Command(tool(t, name), args...)
	cmd.Env = w.environment()
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
}

// start starts a program, which stop ends, and waits until it is ready.
func start(t *testing.T, cmd *exec.Cmd, ready func() bool, end func(stdin io.Closer) error) (stop func()) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { // ends with the process, which stop ends and waits for
		cmd.Wait()
		close(ended)
	}()
	stop = func() {
		end(stdin)
		<-ended
		if t.Failed() {
			t.Log(cmd.Path, "said:", &out)
			out.Reset()
		}
	}
	t.Cleanup(stop)
	require.Eventually(t, ready, patience, 50*time.Millisecond, "%s does not become ready", cmd.Path)
	return stop
}

func (w *world) write(t *testing.T, name, text string) string {
	path := filepath.Join(w.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// startKDC starts the KDC, with additional variables in its environment.
func (w *world) startKDC(t *testing.T, environment ...string) {
	cmd := exec.Command(tool(t, "krb5kdc"), "-n", "-r", realm)
	if w.far != "" {
		cmd.Args = append(cmd.Args, "-r", w.far)
	}
	cmd.Env = append(w.environment(), environment...)
	listens := func() bool {
		conn, err := net.Dial("tcp", w.kdcAddress)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	w.stopKDC = start(t, cmd, listens, func(io.Closer) error { return cmd.Process.Kill() })
}

// startServer starts a ZooKeeper server and returns its address. jaas is the Server section of its JAAS configuration, or ""
// for a server without SASL. line is a line of zoo.cfg.
func (w *world) startServer(t *testing.T, jaas, line string) string {
	address := freePort(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	flags := "-Djava.security.krb5.conf=" + w.conf
	if jaas != "" {
		flags += " -Djava.security.auth.login.config=" + w.write(t, "jaas-"+port+".conf", "Server {\n"+jaas+";\n};\n")
	}
	cfg := w.write(t, "zoo-"+port+".cfg", fmt.Sprintf(`tickTime=2000
dataDir=/data
clientPortAddress=127.0.0.1
clientPort=%s
admin.enableServer=false
4lw.commands.whitelist=srvr
authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
%s
`, port, line))
	// The container ends with its standard input, even if this process is killed. It reads the files at the same paths.
	cmd := exec.Command(tool(t, "docker"), "run", "-i", "--rm", "--network", "host", "-v", w.dir+":"+w.dir+":ro", "-v", cfg+":/conf/zoo.cfg:ro",
		"-e", "SERVER_JVMFLAGS="+flags, w.image, "sh", "-c", "serve & cat >/dev/null; kill $!")
	start(t, cmd, func() bool { return strings.HasPrefix(status(address), "Zookeeper version") }, io.Closer.Close)
	return "localhost:" + port
}

// kerberosJAAS is the configuration of a server that logs in with a keytab.
func (w *world) kerberosJAAS(keytab string) string {
	return fmt.Sprintf(`com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true useTicketCache=false
  keyTab="%s/%s" principal="zookeeper/localhost@%s"`, w.dir, keytab, realm)
}

// newWorld starts a KDC and a server. line is a line of the server's zoo.cfg.
func newWorld(t *testing.T, line string) *world {
	if testing.Short() {
		t.Skip("needs a KDC and servers in containers")
	}
	for _, name := range []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit", "docker"} {
		tool(t, name)
	}
	dir := t.TempDir()
	w := &world{dir: dir, image: serverImage(t), kdcAddress: freePort(t)}
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
`, realm, w.kdcAddress))
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
`, realm, w.kdcAddress, dir))
	w.run(t, "", "kdb5_util", "create", "-s", "-r", realm, "-P", "master")
	for _, query := range []string{
		"addprinc -randkey zookeeper/localhost", "ktadd -k " + dir + "/zk.keytab zookeeper/localhost",
		"addprinc -randkey worker", "ktadd -k " + dir + "/worker.keytab worker",
		"addprinc -pw secret joe",
	} {
		w.run(t, "", "kadmin.local", "-r", realm, "-q", query)
	}
	w.startKDC(t)
	w.server = w.startServer(t, w.kerberosJAAS("zk.keytab"), line)
	return w
}

// addRealm adds another realm to the KDC, which must be stopped. All hosts are in it.
func (w *world) addRealm(t *testing.T, name string) {
	appendTo := func(file, text string) {
		f, err := os.OpenFile(filepath.Join(w.dir, file), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = io.WriteString(f, text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	w.far = name
	appendTo("krb5.conf", fmt.Sprintf("[realms]\n %[1]s = {\n  kdc = %[2]s\n }\n[domain_realm]\n localhost = %[1]s\n", name, w.kdcAddress))
	appendTo("kdc.conf", fmt.Sprintf("[realms]\n %[1]s = {\n  database_name = %[2]s/far\n  key_stash_file = %[2]s/far-stash\n  acl_file = %[2]s/acl\n  max_life = 1h\n }\n", name, w.dir))
	w.run(t, "", "kdb5_util", "create", "-s", "-r", name, "-P", "master")
}

// status returns a server's answer to srvr, or "" if there is none.
func status(address string) string {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(2 * time.Second)) // a server that is starting may leave a connection open and never answer
	if _, err = io.WriteString(conn, "srvr"); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// versionOf returns the version that a server reports.
func versionOf(t *testing.T, address string) (major, minor, patch int) {
	answer := status(address)
	_, err := fmt.Sscanf(answer, "Zookeeper version: %d.%d.%d", &major, &minor, &patch)
	require.NoError(t, err, "%s", answer)
	t.Logf("ZooKeeper %d.%d.%d", major, minor, patch)
	return major, minor, patch
}
