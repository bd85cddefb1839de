// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// certificate returns a certificate for a name, and the pool of authorities that has signed it.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(longest),
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// sender is a connection whose writes do not wait for the reader, like those to a socket.
type sender struct {
	net.Conn
	queue chan []byte
	ended <-chan struct{}
}

func newSender(conn net.Conn, ended <-chan struct{}) *sender {
	s := &sender{conn, make(chan []byte, 100), ended}
	go func() {
		for {
			select {
			case p := <-s.queue:
				conn.Write(p)
			case <-ended:
				conn.Close()
				return
			}
		}
	}()
	return s
}

func (s *sender) Write(p []byte) (int, error) {
	select {
	case s.queue <- bytes.Clone(p):
		return len(p), nil
	case <-s.ended:
		return 0, net.ErrClosed
	}
}

// encrypted returns a TLS dialer for servers with the given certificate.
func encrypted(t *testing.T, srv *zktest.Server, own tls.Certificate) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		plain, err := srv.Dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		near, far := net.Pipe()
		server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{own}})
		end := func(to io.Writer, from io.Reader) {
			io.Copy(to, from)
			plain.Close()
			far.Close()
		}
		go end(plain, server)
		go end(server, plain)
		return newSender(near, t.Context().Done()), nil
	}
}

// A certificate must be for the name by which its server is listed, or for the configured one.
//
//zklock:promise P18.9
func TestAClientWithTLSChecksTheNameOfItsServer(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		host, _, err := net.SplitHostPort(srv.Addr())
		require.NoError(t, err)
		for name, c := range map[string]struct {
			certified, asked string
			ok               bool
		}{
			"the listed name":                  {"zk1.example", "", false},
			"another name that was configured": {"zk1.example", "zk1.example", true},
			"a name that it does not have":     {"zk1.example", "zk2.example", false},
			"the host of the address":          {host, host, true},
		} {
			own, roots := certificate(t, c.certified)
			ctx, cancel := context.WithTimeout(t.Context(), term)
			client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: encrypted(t, srv, own), TLS: &tls.Config{RootCAs: roots, ServerName: c.asked}})
			cancel()
			if !c.ok {
				require.ErrorContains(t, err, "TLS handshake", name)
				require.ErrorContains(t, err, "certificate", name)
				continue
			}
			require.NoError(t, err, name)
			unlockSoon(t, client)
			require.NoError(t, client.Close())
		}
	})
}

// A client leaves a server that accepts its connection and does not answer the handshake, in time.
//
//zklock:promise P18.9
func TestATLSHandshakeIsBounded(t *testing.T) {
	virtual(t, zktest.Options{Servers: 2}, func(t *testing.T, srv *zktest.Server) {
		own, roots := certificate(t, "zk.example")
		silent := srv.Member(0).Addr()
		dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
			if address == silent {
				near, far := net.Pipe()
				go io.Copy(io.Discard, far)
				return near, nil
			}
			return encrypted(t, srv, own)(network, address, timeout)
		}
		ctx, cancel := context.WithTimeout(t.Context(), term)
		defer cancel()
		client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: dial, TLS: &tls.Config{RootCAs: roots, ServerName: "zk.example"}})
		require.NoError(t, err)
		unlockSoon(t, client)
		require.NoError(t, client.Close())
	})
}
