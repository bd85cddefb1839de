// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/shards"
	"github.com/zklock-go/zklock/zktest"
)

// A second member joins, and gets half of the shards.
func ExampleMember() {
	srv, err := zktest.New(zktest.Options{}) // in production: your ensemble
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	join := func() *shards.Member {
		client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		if err != nil {
			panic(err)
		}
		member := shards.New(client, "/shards/orders", 10)
		wg.Go(func() {
			defer client.Close()
			member.Run(ctx, func(ctx context.Context, shard int) error {
				<-ctx.Done() // works until then
				return ctx.Err()
			})
		})
		return member
	}
	holds := func(m *shards.Member, n int) {
		for len(m.Held()) != n {
			time.Sleep(10 * time.Millisecond)
		}
	}
	a := join()
	holds(a, 10)
	fmt.Println("a:", a.Held())
	b := join()
	holds(b, 5)
	fmt.Println("a and b:", len(a.Held()), len(b.Held()))
	cancel()
	wg.Wait()
	// Output:
	// a: [0 1 2 3 4 5 6 7 8 9]
	// a and b: 5 5
}

// Each worker gets a number that no other live worker has.
func ExampleNumber() {
	srv, err := zktest.New(zktest.Options{}) // in production: your ensemble
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for range 3 {
		hold, worker, err := shards.Number(ctx, client, "/workers", 1024)
		if err != nil {
			panic(err)
		}
		defer hold.Unlock(ctx)
		fmt.Println("worker", worker)
	}
	// Output:
	// worker 0
	// worker 1
	// worker 2
}
