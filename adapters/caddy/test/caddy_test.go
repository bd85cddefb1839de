// SPDX-License-Identifier: Apache-2.0

package zkcaddy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/caddypki"
	_ "github.com/caddyserver/caddy/v2/modules/caddytls"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	_ "github.com/zklock-go/zklock/adapters/caddy"
	"github.com/zklock-go/zklock/zktest"
)

// beCaddy is the environment variable that makes this binary a Caddy server with the configuration in it.
const beCaddy = "ZKLOCK_TEST_CADDY"

func TestMain(m *testing.M) {
	config := os.Getenv(beCaddy)
	if config == "" {
		os.Exit(m.Run())
	}
	if err := caddy.Load([]byte(config), true); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for !certmagic.Default.Storage.Exists(context.Background(), certificate) {
		time.Sleep(time.Millisecond)
	}
}

// certificate is where Caddy stores the certificate of the fleet.
const certificate = "certificates/local/a.example/a.example.crt"

// adapted returns the JSON that Caddy makes of a Caddyfile.
func adapted(caddyfile string) ([]byte, error) {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
	return config, err
}

// with returns a Caddyfile whose storage has options.
func with(options ...string) string {
	return "{\nadmin off\npersist_config off\nstorage zklock {\n" + strings.Join(options, "\n") + "\n}\n}\n"
}

// load makes Caddy use a configuration until the test ends.
func load(t *testing.T, caddyfile string) error {
	config, err := adapted(caddyfile)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, caddy.Stop()) })
	return caddy.Load(config, true)
}

// listening returns a server at a TCP address.
func listening(t *testing.T) *zktest.Server {
	srv := zktest.Start(t)
	require.NoError(t, srv.Listen("127.0.0.1:0"))
	return srv
}

func TestACaddyfileSetsEachOption(t *testing.T) {
	config, err := adapted(with(`servers zk1:2181 zk2:2181,zk3:2181`, `dir /tls/locks`, `session_timeout 20s`, `user caddy {env.ZK}`,
		"tls {\nca ca.pem\ncert cert.pem\nkey key.pem\n}", `storage file_system /shared`))
	require.NoError(t, err)
	var got struct{ Storage json.RawMessage }
	require.NoError(t, json.Unmarshal(config, &got))
	assert.JSONEq(t, `{
		"module": "zklock",
		"servers": ["zk1:2181", "zk2:2181,zk3:2181"],
		"dir": "/tls/locks",
		"session_timeout": 20000000000,
		"user": "caddy", "password": "{env.ZK}",
		"tls": {"ca": "ca.pem", "cert": "cert.pem", "key": "key.pem"},
		"storage": {"module": "file_system", "root": "/shared"}
	}`, string(got.Storage))
}

func TestAWrongCaddyfileIsRefused(t *testing.T) {
	for option, want := range map[string]string{
		`dir`:                        "wrong argument count",
		`dir /a /b`:                  "wrong argument count",
		`session_timeout soon`:       "session_timeout",
		`user caddy`:                 "wrong argument count",
		`user a b c`:                 "wrong argument count",
		"tls {\nissuer x\n}":         `unrecognized option "issuer" of tls`,
		`tls on`:                     "wrong argument count",
		`storage`:                    "wrong argument count",
		`storage nowhere`:            "module not registered",
		`database /certs`:            `unrecognized option "database"`,
		"storage file_system {\n\n}": "missing root path",
	} {
		_, err := adapted(with(option))
		assert.ErrorContains(t, err, want, option)
	}
}

func TestAWrongConfigurationIsRefused(t *testing.T) {
	srv := listening(t)
	certs := "storage file_system " + t.TempDir()
	servers := "servers " + srv.Addr()
	for options, want := range map[string]string{
		servers: "a storage for the certificates is required",
		certs:   "no server",
		servers + "\nuser caddy {env.NONE}\n" + certs: "no password",
		servers + "\nsession_timeout -1s\n" + certs:   "session timeout",
		servers + "\ntls {\nca absent\n}\n" + certs:   "absent",
		servers + "\ntls {\nkey absent\n}\n" + certs:  "open",
	} {
		err := load(t, with(options))
		if assert.Error(t, err, options) {
			assert.Contains(t, err.Error(), want, options)
		}
	}
	assert.Empty(t, srv.Sessions(), "no client remains")
}

// A reload changes neither the session nor the locks that are held.
func TestAReloadKeepsWhatIsHeld(t *testing.T) {
	srv := listening(t)
	t.Setenv("ZK_CHROOT", "/fleet")
	dir := t.TempDir()
	options := []string{"servers " + srv.Addr() + "{env.ZK_CHROOT}", "user caddy secret", "storage file_system " + dir}
	require.NoError(t, load(t, with(options...)))
	before := certmagic.Default.Storage
	require.NoError(t, before.Lock(t.Context(), "issue_cert_example.com"))
	sessions := srv.Sessions()
	require.Len(t, sessions, 1)
	nodes := srv.Ephemerals(sessions[0].ID)
	require.Len(t, nodes, 1)
	assert.True(t, strings.HasPrefix(nodes[0], "/fleet/caddy/issue_cert_example.com/"), nodes)
	node, _ := srv.Node(nodes[0])
	assert.Equal(t, "digest", node.ACL[0].Scheme)
	assert.Len(t, node.ACL, 1)

	require.NoError(t, load(t, with(append(options, "dir /caddy")...)))
	after := certmagic.Default.Storage
	require.NotSame(t, before, after)
	got, err := after.(certmagic.TryLocker).TryLock(t.Context(), "issue_cert_example.com")
	require.NoError(t, err)
	assert.False(t, got, "the former configuration holds it")
	assert.NoError(t, before.(certmagic.LockLeaseRenewer).RenewLockLease(t.Context(), "issue_cert_example.com", time.Minute))
	require.NoError(t, before.Unlock(t.Context(), "issue_cert_example.com"))
	require.NoError(t, after.Lock(t.Context(), "issue_cert_example.com"))
	assert.Equal(t, sessions[0].ID, srv.Sessions()[0].ID)
	require.NoError(t, after.Store(t.Context(), "a", []byte("b")))
	assert.FileExists(t, filepath.Join(dir, "a"))
	assert.Contains(t, fmt.Sprint(after), "with locks in ZooKeeper below /caddy")

	// As Caddy does when it exits.
	require.NoError(t, caddy.Stop())
	assert.Empty(t, srv.Sessions())
	assert.NoError(t, after.Unlock(t.Context(), "issue_cert_example.com"))
	certmagic.CleanUpOwnLocks(t.Context(), zap.NewNop())
}

// Caddy serves the certificates that it has while no server can be reached.
func TestCaddyStartsWithoutServers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	srv := zktest.Start(t)
	require.NoError(t, load(t, with("servers "+address, "storage file_system "+t.TempDir())))
	s := certmagic.Default.Storage
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, s.Lock(ctx, "a"), context.DeadlineExceeded)
	assert.Error(t, s.Unlock(t.Context(), "a"))
	assert.Error(t, s.(certmagic.LockLeaseRenewer).RenewLockLease(t.Context(), "a", time.Minute))
	require.NoError(t, s.Store(t.Context(), "a", nil))

	require.NoError(t, srv.Listen(address))
	require.NoError(t, s.Lock(t.Context(), "a"))
	require.NoError(t, s.Unlock(t.Context(), "a"))
}

// Three Caddy processes share a storage and its certificate authority.
func TestAFleetOfCaddyServersObtainsACertificateOnce(t *testing.T) {
	srv := listening(t)
	config, err := adapted("{\nadmin off\npersist_config off\nskip_install_trust\n" +
		"storage zklock {\nservers " + srv.Addr() + "\nstorage file_system " + t.TempDir() + "\n}\n}\n")
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(config, &all))
	const authority = `"pki": {"certificate_authorities": {"local": {"install_trust": false}}}`
	all["apps"] = json.RawMessage("{" + authority + "}")
	config, err = json.Marshal(all)
	require.NoError(t, err)
	// Caddy makes a certificate authority without a lock.
	require.NoError(t, caddy.Load(config, true))
	require.NoError(t, caddy.Stop())
	all["apps"] = json.RawMessage("{" + authority + `,
		"tls": {"certificates": {"automate": ["a.example"]}, "automation": {"policies": [{"issuers": [{"module": "internal"}]}]}}
	}`)
	config, err = json.Marshal(all)
	require.NoError(t, err)

	binary, err := os.Executable()
	require.NoError(t, err)
	var fleet []*exec.Cmd
	var logs [3]bytes.Buffer
	for i := range logs {
		process := exec.CommandContext(t.Context(), binary)
		process.Env = append(os.Environ(), beCaddy+"="+string(config))
		process.Stderr = &logs[i]
		require.NoError(t, process.Start())
		fleet = append(fleet, process)
	}
	orders := 0
	for i, process := range fleet {
		assert.NoError(t, process.Wait(), "%s", &logs[i])
		orders += strings.Count(logs[i].String(), `"obtaining certificate"`)
	}
	assert.Equal(t, 1, orders, "%s%s%s", &logs[0], &logs[1], &logs[2])
}
