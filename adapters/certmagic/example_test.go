// SPDX-License-Identifier: Apache-2.0

package zkcertmagic_test

import (
	"context"
	"fmt"
	"os"

	"github.com/caddyserver/certmagic"

	"github.com/zklock-go/zklock"
	zkcertmagic "github.com/zklock-go/zklock/adapters/certmagic"
	"github.com/zklock-go/zklock/zktest"
)

// The fleet's files are in one directory, and its locks in ZooKeeper.
func ExampleStorage() {
	server, err := zktest.New(zktest.Options{}) // in production: your ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client, err := zklock.Connect(context.Background(), server.Addrs(), &zklock.Options{Dialer: server.Dial})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	dir, err := os.MkdirTemp("", "certs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	storage := zkcertmagic.NewStorage(&certmagic.FileStorage{Path: dir}, client, "/certs")
	certmagic.Default.Storage = storage // certmagic.HTTPS and Caddy's certmagic.Config now use these locks

	ctx := context.Background()
	fmt.Println(storage.Lock(ctx, "issue_cert_example.com"))
	got, err := storage.TryLock(ctx, "issue_cert_example.com")
	fmt.Println(got, err)
	fmt.Println(storage.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// <nil>
	// false <nil>
	// <nil>
}
