// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const certified = "zk.example"

// certificate returns the configurations of all servers and of all clients. It is made only for plans that use it.
var certificate = sync.OnceValues(func() (servers, clients *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: certified}, DNSNames: []string{certified}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), // a bubble begins in the year 2000
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	own := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return &tls.Config{Certificates: []tls.Certificate{own}}, &tls.Config{RootCAs: pool, ServerName: certified}
})

// speakTLS returns a dialer for servers that expect TLS, and that begin to answer a handshake after a delay. dial connects to them
// without it.
func speakTLS(dial zk.Dialer, delay func() time.Duration) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		plain, err := dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		near, far := net.Pipe()
		config, _ := certificate()
		server := tls.Server(far, config)
		relay := func(to io.Writer, from io.Reader) {
			_, _ = io.Copy(to, from) // ends with either connection
			plain.Close()
			far.Close()
		}
		// Owned by the connection; both end when it is closed at either end.
		go func() {
			time.Sleep(delay())
			relay(plain, server)
		}()
		// Owned by the connection; see above.
		go relay(server, plain)
		return newBuffered(near), nil
	}
}

// overTLS returns a dialer that encrypts the connections of dial, as a program does that makes its own connection.
func overTLS(dial zk.Dialer) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		plain, err := dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		_, config := certificate()
		encrypted := tls.Client(plain, config)
		_ = plain.SetDeadline(time.Now().Add(timeout))
		if err := encrypted.Handshake(); err != nil {
			plain.Close()
			return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
		}
		_ = plain.SetDeadline(time.Time{})
		return encrypted, nil
	}
}

// buffered is a connection whose writes do not wait for the reader, like those to a socket.
type buffered struct {
	net.Conn
	queue  chan []byte
	closed chan struct{}
	once   sync.Once
}

func newBuffered(conn net.Conn) *buffered {
	b := &buffered{Conn: conn, queue: make(chan []byte, 100), closed: make(chan struct{})}
	// Owned by the connection; ends when it is closed.
	go func() {
		for {
			select {
			case p := <-b.queue:
				_, _ = conn.Write(p) // it fails when the connection is closed
			case <-b.closed:
				return
			}
		}
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	select {
	case b.queue <- bytes.Clone(p):
		return len(p), nil
	case <-b.closed:
		return 0, net.ErrClosed
	}
}

func (b *buffered) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Conn.Close()
}
