// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// queueOfClients is the number of clients that share the waiters of a long queue.
const queueOfClients = 8

// countQueued counts the attempts that have queued.
type countQueued struct{ n atomic.Int64 }

func (c *countQueued) Observe(e observe.Event) {
	if e.Kind == observe.Queued {
		c.n.Add(1)
	}
}

// BenchmarkWaiter measures the memory of a waiter, with its goroutine's stack, in a queue of that length. It also reports the
// memory of a node and a watch in the client library and in the server, which is in the same process, and how long it takes until
// all have queued.
//
//zklock:promise P9.8
func BenchmarkWaiter(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("a mutex/%d", n), func(b *testing.B) {
			for range b.N {
				waitTogether(b, asMutex, func(join func(n int)) { reportWaiters(b, n, func() { join(n) }) })
			}
		})
		b.Run(fmt.Sprintf("a node and a watch/%d", n), func(b *testing.B) {
			for range b.N {
				watchTogether(b, n)
			}
		})
	}
}

// reportWaiters runs fn, which starts n waiters, and reports the cost of each.
func reportWaiters(b *testing.B, n int, fn func()) {
	start, goroutines := time.Now(), runtime.NumGoroutine()
	heap, stacks := inHeapAndStacks()
	fn()
	b.ReportMetric(float64(time.Since(start).Microseconds())/float64(n), "us/join")
	time.Sleep(time.Second) // all are watched by then
	heapThen, stacksThen := inHeapAndStacks()
	b.ReportMetric(float64(heapThen-heap)/float64(n), "heap-B/waiter")
	b.ReportMetric(float64(stacksThen-stacks)/float64(n), "stack-B/waiter")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(n), "goroutines/waiter")
}

// waitTogether calls fn with a function that adds n waiters for one lock, and returns when they have queued.
func waitTogether(b testing.TB, lock way, fn func(join func(n int))) {
	srv := zktest.Start(b)
	ctx, cancel := context.WithCancel(context.Background())
	queued := new(countQueued)
	var clients []*zklock.Client
	for range queueOfClients {
		client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial, Observer: queued, SessionTimeout: 40 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		clients = append(clients, client)
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	fn(func(n int) {
		until := queued.n.Load() + int64(n)
		for i := range n {
			all.Go(func() { lock(clients[i%len(clients)])(ctx) })
		}
		for queued.n.Load() < until {
			time.Sleep(time.Millisecond)
		}
	})
}

// watchTogether creates n nodes in one directory and watches each of them.
func watchTogether(b *testing.B, n int) {
	srv := zktest.Start(b)
	var conns []*zk.Conn
	for range queueOfClients {
		conns = append(conns, rawClient(b, srv, 40*time.Second))
	}
	if _, err := conns[0].Create("/queue", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		b.Fatal(err)
	}
	over := make(chan struct{})
	var all, begun sync.WaitGroup
	defer all.Wait()
	defer close(over)
	reportWaiters(b, n, func() {
		begun.Add(n)
		for i := range n {
			all.Go(func() {
				_, err := watchOne(conns[i%len(conns)])
				begun.Done()
				if err != nil {
					b.Error(err)
				}
				<-over
			})
		}
		begun.Wait()
	})
}

func watchOne(conn *zk.Conn) (<-chan zk.Event, error) {
	name, err := conn.Create("/queue/_c_0123456789abcdef0123456789abcdef-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return nil, err
	}
	_, _, events, err := conn.GetW(name)
	return events, err
}
