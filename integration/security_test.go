package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
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
	"github.com/zklock-go/zklock/integration/internal/zoo"
)

// TestSecurity uses a real secure client port that wants certificates from both sides, and digest ACLs.
func TestSecurity(t *testing.T) {
	t.Parallel()
	part(t)
	needsOwn(t)
	ours, theirs := newAuthority(t), newAuthority(t)
	cert, key := ours.issue(t)
	server := start(t, zoo.Config{
		Secure: true,
		Files: map[string][]byte{
			"/conf/server.pem": append(key, cert...),
			"/conf/ca.pem":     ours.pem,
		},
		Lines: []string{
			fmt.Sprintf("maxSessionTimeout=%d", (2 * patience).Milliseconds()),
			"secureClientPort=2281", "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
			"ssl.keyStore.location=/conf/server.pem", "ssl.keyStore.type=PEM",
			"ssl.trustStore.location=/conf/ca.pem", "ssl.trustStore.type=PEM", "ssl.clientAuth=need",
		},
	}).Servers[0]
	ourDialer := dialTLS(&tls.Config{RootCAs: ours.pool, Certificates: []tls.Certificate{ours.clientCert(t)}})
	acl := zk.DigestACL(zk.PermAll, "worker", "secret")
	member := &zklock.Options{
		SessionTimeout: 10 * time.Second, Dialer: ourDialer, ACL: acl,
		Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("worker:secret")}},
	}

	t.Run("TLS refuses", func(t *testing.T) {
		for name, config := range map[string]*tls.Config{
			"a client without a certificate":        {RootCAs: ours.pool},
			"a client with a stranger's":            {RootCAs: ours.pool, Certificates: []tls.Certificate{theirs.clientCert(t)}},
			"a server that the client doesn't know": {RootCAs: theirs.pool, Certificates: []tls.Certificate{ours.clientCert(t)}},
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
		assert.ErrorIs(t, err, zk.ErrNoAuth, "no waiting for what can't be had")
		wrong := *member
		wrong.Auth = []zklock.Auth{{Scheme: "digest", Data: []byte("worker:guess")}}
		_, err = connect(t, &wrong, server.Secure).Mutex(path).TryLock(soon(t))
		assert.ErrorIs(t, err, zk.ErrNoAuth)
		require.NoError(t, hold.Check(), "the holder has noticed nothing")

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
		cert, key := ours.issue(t)
		secure := []string{"--tls-ca", file("ca.pem", ours.pem), "--tls-cert", file("cert.pem", cert), "--tls-key", file("key.pem", key)}
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
		// The session outlasts any restart that the test is patient enough for, on the slowest machine.
		lasting := *member
		lasting.SessionTimeout = 2 * patience
		client := connect(t, &lasting, server.Secure)
		hold, err := client.Mutex(root(t)).Lock(soon(t))
		require.NoError(t, err)
		require.NoError(t, server.Kill(t.Context()))
		require.NoError(t, server.Restart(t.Context()))
		require.NoError(t, hold.Confirm(soon(t)), "same session, over TLS again")
		require.NoError(t, hold.Unlock(soon(t)), "the credentials were presented again")
	})
}

// authority is a certificate authority made for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

// issue returns a certificate for the loopback address, good for servers and clients, and its key.
func (a *authority) issue(t *testing.T) (cert, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "party"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func (a *authority) clientCert(t *testing.T) tls.Certificate {
	cert, err := tls.X509KeyPair(a.issue(t))
	require.NoError(t, err)
	return cert
}

// greet connects and reads until the server, or the client itself, refuses.
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
