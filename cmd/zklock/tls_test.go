// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// authority is a certificate authority of a test's own.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
	n    int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key = a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(template, template, a.key)
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	return key
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert
}

// issue returns a certificate for a name, and writes it and its key into files of that name.
func (a *authority) issue(name string) tls.Certificate {
	a.n++
	key := a.newKey()
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(1 + a.n), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	a.write(name+".pem", "CERTIFICATE", cert.Raw)
	a.write(name+".key", "EC PRIVATE KEY", der)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *authority) write(file, kind string, der []byte) {
	require.NoError(a.t, os.WriteFile(a.file(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// secured serves what is at address over TLS, to clients with a certificate of the authority only.
type secured struct {
	net.Listener
	config atomic.Pointer[tls.Config]
	mu     sync.Mutex
	conns  []net.Conn // guarded by mu
}

func (a *authority) secure(address, name string) *secured {
	s := &secured{}
	s.config.Store(a.config(name))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.config.Load(), nil }})
	require.NoError(a.t, err)
	s.Listener = l
	a.t.Cleanup(func() {
		l.Close()
		s.drop()
	})
	// Owned by the test; ends with the listener.
	go s.serve(address)
	return s
}

// config is that of a server with that name whose clients need a certificate of the authority.
func (a *authority) config(name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{a.issue(name)}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

func (s *secured) serve(address string) {
	for {
		client, err := s.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", address)
		if err != nil {
			client.Close()
			continue
		}
		s.mu.Lock()
		s.conns = append(s.conns, client, server)
		s.mu.Unlock()
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			// Ends with either connection; drop closes both.
			go func() {
				io.Copy(pair[0], pair[1])
				pair[0].Close()
				pair[1].Close()
			}()
		}
	}
}

// drop closes every connection.
func (s *secured) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

//zklock:promise P18.9
func TestTLSFromEndToEnd(t *testing.T) {
	t.Parallel()
	needsShell(t)
	srv := startServer(t)
	a := newAuthority(t)
	s := a.secure(srv.Addr(), "localhost")
	a.issue("me")
	_, port, err := net.SplitHostPort(s.Addr().String())
	require.NoError(t, err)
	byName, byAddress := "localhost:"+port, s.Addr().String()
	ours := []string{"--tls-ca", a.file("ca.pem"), "--tls-cert", a.file("me.pem"), "--tls-key", a.file("me.key")}
	for _, c := range []struct {
		servers string
		flags   []string
		code    outcome.Verdict
		text    string
	}{
		{byName, ours, 0, ""},
		{byAddress, append([]string{"--tls-server-name", "localhost"}, ours...), 0, ""},
		{byAddress, ours, outcome.Unavailable, "its certificate is valid for localhost, not for 127.0.0.1"},
		{byName, []string{"--tls"}, outcome.Unavailable, "unknown authority"},
		{byName, append([]string{"--tls-server-name", "other"}, ours...), outcome.Unavailable, "valid for localhost, not for other"},
		{byName, ours[:2], outcome.Unavailable, "certificate required"},
		{byName, nil, outcome.Unavailable, "it expects --tls"},
	} {
		t.Run(fmt.Sprint(c.servers, c.flags), func(t *testing.T) {
			t.Parallel()
			args := append([]string{"run", "--connect-timeout", "6s"}, c.flags...)
			code, out, err := run(t, c.servers, append(args, "/l", "--", "echo", "ran")...)
			assert.EqualValues(t, c.code, code, err)
			assert.Contains(t, err, c.text)
			assert.Equal(t, c.code == 0, out == "ran\n")
			assert.LessOrEqual(t, strings.Count(err, "\n"), 1)
		})
	}
}

// Each loss of a connection costs a TLS handshake. In virtual time the library's own tests lose it with sessions of 900 ms.
func TestTLSReconnectsWhileItHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: waits for a session")
	}
	needsShell(t)
	srv := zktest.Run(t, zktest.Options{TickTime: 200 * time.Millisecond})
	a := newAuthority(t)
	s := a.secure(srv.Addr(), "localhost")
	a.issue("me")
	_, port, err := net.SplitHostPort(s.Addr().String())
	require.NoError(t, err)
	ready := filepath.Join(t.TempDir(), "ready")
	i := zklockCommand(t, "localhost:"+port, "run", "--session-timeout", "4s", "--grace", "0s",
		"--tls-ca", a.file("ca.pem"), "--tls-cert", a.file("me.pem"), "--tls-key", a.file("me.key"),
		"/l", "--", "sh", "-c", `: >"$0"; while [ -e "$0" ]; do sleep 0.01; done`, ready).start()
	eventually(t, "the command runs", func() bool { return exists(ready) })
	for range 5 {
		before := srv.Requests()[zktest.OpMulti]
		s.drop()
		eventually(t, "heartbeats continue", func() bool { return srv.Requests()[zktest.OpMulti] >= before+2 })
	}
	require.NoError(t, os.Remove(ready))
	assert.Zero(t, i.code(), i.err.String())
	assert.Empty(t, i.err.String())
}

// overTLS starts a command under a lock, with the files of an authority, and returns it once the command runs. TERM ends it.
func overTLS(t *testing.T, a *authority, fronts ...*secured) *invocation {
	var servers []string
	for _, f := range fronts {
		servers = append(servers, strings.Replace(f.Addr().String(), "127.0.0.1", "localhost", 1))
	}
	i := zklockCommand(t, strings.Join(servers, ","), "run", "--session-timeout", "10s", "--grace", "0s",
		"--tls-ca", a.file("ca.pem"), "--tls-cert", a.file("me.pem"), "--tls-key", a.file("me.key"), "/l", "--", "sh", "-c", "echo ready; exec sleep 1000").start()
	eventually(t, "the command runs", func() bool { return i.out.String() == "ready\n" })
	return i
}

// A zklock that holds for months outlives its certificate, and that of the authority. The files were read only once: the first
// reconnect after a renewal ended the command.
//
//zklock:promise P18.9
func TestTLSFilesAreReadAgainWhenTheyHaveChanged(t *testing.T) {
	t.Parallel()
	needsShell(t)
	needsSignals(t)
	srv := zktest.Run(t, zktest.Options{TickTime: tickTime})
	a, next := newAuthority(t), newAuthority(t)
	a.issue("me")
	next.issue("me")
	front := a.secure(srv.Addr(), "localhost")
	i := overTLS(t, a, front)
	front.config.Store(next.config("localhost"))
	require.NoError(t, os.WriteFile(a.file("me.pem"), []byte("half a file"), 0o600))
	for _, file := range []string{"ca.pem", "me.key", "me.pem"} {
		data, err := os.ReadFile(next.file(file))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(a.file(file), data, 0o600))
	}
	for range 2 {
		before := srv.Requests()[zktest.OpMulti]
		front.drop()
		eventually(t, "heartbeats continue", func() bool { return srv.Requests()[zktest.OpMulti] >= before+2 })
	}
	require.NoError(t, i.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, outcome.SignalBase+int(syscall.SIGTERM), i.code(), i.err.String())
	assert.Empty(t, i.err.String())
}

// The message about a loss said that no quorum had answered, and nothing of the certificate.
func TestALossOverTLSNamesTheCertificate(t *testing.T) {
	t.Parallel()
	needsShell(t)
	needsSignals(t)
	srv := zktest.Run(t, zktest.Options{TickTime: tickTime})
	a, other := newAuthority(t), newAuthority(t)
	a.issue("me")
	front := a.secure(srv.Addr(), "localhost")
	i := overTLS(t, a, front)
	front.config.Store(other.config("localhost"))
	front.drop()
	assert.EqualValues(t, outcome.Lost, i.code())
	assert.Regexp(t, `\nzklock: the command was ended: lock was lost: no quorum answered in time \(localhost:\d+: did not agree on TLS: its certificate was issued by an unknown authority \(see --tls-ca\)\)\n$`, i.err.String())
}

//zklock:promise P18.9
func TestTLSSessionsMoveAndExpire(t *testing.T) {
	t.Parallel()
	needsShell(t)
	needsSignals(t)
	srv := zktest.Run(t, zktest.Options{TickTime: tickTime, Servers: 3})
	a := newAuthority(t)
	a.issue("me")
	var fronts []*secured
	for _, address := range srv.Addrs() {
		fronts = append(fronts, a.secure(address, "localhost"))
	}
	i := overTLS(t, a, fronts...)
	for range 4 {
		at := srv.Sessions()[0].Member
		fronts[at].Close()
		fronts[at].drop()
		eventually(t, "the session moves", func() bool { s := srv.Sessions(); return len(s) == 1 && s[0].Member >= 0 && s[0].Member != at })
		before := srv.Requests()[zktest.OpMulti]
		eventually(t, "heartbeats continue", func() bool { return srv.Requests()[zktest.OpMulti] >= before+2 })
		fronts[at] = a.reopen(fronts[at], srv.Addrs()[at])
	}
	assert.Empty(t, i.err.String())
	srv.ExpireSession(srv.Sessions()[0].ID)
	assert.EqualValues(t, outcome.Lost, i.code())
	assert.Contains(t, i.err.String(), "the command was ended: check /l: lock was lost: ")
	assert.NotContains(t, i.err.String(), "TLS", "that is not the reason")
}

// reopen serves at the address of a server that was closed.
func (a *authority) reopen(s *secured, address string) *secured {
	again := &secured{}
	again.config.Store(s.config.Load())
	l, err := tls.Listen("tcp", s.Addr().String(), &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return again.config.Load(), nil }})
	require.NoError(a.t, err)
	again.Listener = l
	a.t.Cleanup(func() {
		l.Close()
		again.drop()
	})
	// Owned by the test; ends with the listener.
	go again.serve(address)
	return again
}
