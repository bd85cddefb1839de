// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// ensemble returns an in-process ZooKeeper for the examples, which they reach without a socket.
func ensemble() *zktest.Server {
	server, err := zktest.New(zktest.Options{})
	if err != nil {
		panic(err)
	}
	return server
}

func client(server *zktest.Server, label string) *zklock.Client {
	c, err := zklock.Connect(context.Background(), server.Addrs(), &zklock.Options{Dialer: server.Dial, Label: label})
	if err != nil {
		panic(err)
	}
	return c
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ExampleInspect() {
	server := ensemble()
	defer server.Close()
	billing, shipping := client(server, "billing"), client(server, "shipping")
	defer billing.Close()
	defer shipping.Close()
	ctx := context.Background()

	hold, err := billing.Mutex("/locks/orders/42").Lock(ctx)
	must(err)
	queued := make(chan struct{})
	waiting, stop := context.WithCancel(ctx)
	go func() {
		defer close(queued)
		shipping.Mutex("/locks/orders/42").Lock(waiting)
	}()

	for {
		queue, err := operate.Inspect(ctx, billing, "/locks/orders/42")
		must(err)
		if len(queue.Contenders) < 2 {
			continue // the other contender has not queued yet
		}
		for _, contender := range queue.Contenders {
			fmt.Printf("%s holds: %v\n", contender.Label, contender.Holds)
		}
		fmt.Println(queue.Contenders[0].Token == hold.Token())
		break
	}
	stop()
	<-queued
	must(hold.Unlock(ctx))
	// Output:
	// billing holds: true
	// shipping holds: false
	// true
}

// A holder can be asked to release its lock. The holder decides whether to do so.
func ExampleRevoke() {
	server := ensemble()
	defer server.Close()
	worker, operator := client(server, "worker"), client(server, "operator")
	defer worker.Close()
	defer operator.Close()
	ctx := context.Background()

	hold, err := worker.Mutex("/locks/batch").Lock(ctx)
	must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-hold.Revoked() // a long job checks this between two steps
		fmt.Println("asked to release the lock")
		must(hold.Unlock(ctx))
	}()

	queue, err := operate.Inspect(ctx, operator, "/locks/batch")
	must(err)
	must(operate.Revoke(ctx, operator, queue.Contenders[0]))
	<-done
	// Output: asked to release the lock
}

// A worker hangs while it holds the lock, and an operator removes it. If the worker still runs, it
// learns of its loss at once.
func ExampleEvict() {
	server := ensemble()
	defer server.Close()
	worker, operator := client(server, "worker"), client(server, "operator")
	defer worker.Close()
	defer operator.Close()
	ctx := context.Background()

	hold, err := worker.Mutex("/locks/batch").Lock(ctx)
	must(err)

	queue, err := operate.Inspect(ctx, operator, "/locks/batch")
	must(err)
	for _, contender := range queue.Contenders {
		if contender.Holds && contender.Label == "worker" {
			must(operate.Evict(ctx, operator, "", contender))
		}
	}

	<-hold.Context().Done()
	fmt.Println("lost:", errors.Is(context.Cause(hold.Context()), zklock.ErrLost))
	next, err := operator.Mutex("/locks/batch").Lock(ctx)
	must(err)
	fmt.Println("a larger token:", next.Token() > hold.Token())
	must(next.Unlock(ctx))
	// Output:
	// lost: true
	// a larger token: true
}
