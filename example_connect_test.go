// SPDX-License-Identifier: Apache-2.0

package zklock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// secured returns an ensemble that requires TLS, and the certificates to trust.
func secured() (*zktest.Server, *x509.CertPool) {
	donor := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer donor.Close()
	roots := x509.NewCertPool()
	roots.AddCert(donor.Certificate())
	server := ensemble()
	must(server.Member(0).Listen("127.0.0.1:0", func(network, address string) (net.Listener, error) {
		return tls.Listen(network, address, &tls.Config{Certificates: donor.TLS.Certificates})
	}))
	return server, roots
}

// A client with TLS and a password. Only clients with the password can use its locks.
func ExampleConnect_tls() {
	server, roots := secured()
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	config := &tls.Config{RootCAs: roots}
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	}
	client, err := zklock.Connect(ctx, server.Addrs(), &zklock.Options{
		Dialer: dial,
		Auth:   []zklock.Auth{{Scheme: "digest", Data: []byte("orders:secret")}},
		ACL:    zk.DigestACL(zk.PermAll, "orders", "secret"),
	})
	must(err)
	defer client.Close()
	hold, err := client.Mutex("/orders/42").Lock(ctx)
	must(err)
	defer hold.Unlock(ctx)
	fmt.Println("held:", hold.Check() == nil)

	stranger, err := zklock.Connect(ctx, server.Addrs(), &zklock.Options{Dialer: dial})
	must(err)
	defer stranger.Close()
	_, err = stranger.Mutex("/orders/42").TryLock(ctx)
	fmt.Println("without the password:", errors.Is(err, zk.ErrNoAuth))
	// Output:
	// held: true
	// without the password: true
}

// A program that already has a ZooKeeper connection can use it for locks. The hooks let the client
// see the traffic that it needs for its guarantees.
func ExampleAttach() {
	server := ensemble()
	defer server.Close()
	ctx := context.Background()

	hooks := zklock.NewHooks(server.Dial) // nil for TCP
	conn, events, err := zk.Connect(server.Addrs(), 10*time.Second, zk.WithDialer(hooks.Dial), zk.WithLogInfo(false))
	must(err)
	defer func() {
		conn.Close()
		for range events {
		}
	}()

	client, err := zklock.Attach(ctx, conn, hooks, nil)
	must(err)
	hold, err := client.Mutex("/locks/orders/42").Lock(ctx)
	must(err)
	fmt.Println("held:", hold.Check() == nil)
	must(client.Close()) // releases the lock, and leaves the connection open

	_, _, err = conn.Exists("/locks")
	fmt.Println("the connection still works:", err == nil)
	// Output:
	// held: true
	// the connection still works: true
}
