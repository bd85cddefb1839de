package zklock_test

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

// queueOfClients is how many clients the waiters of a long queue share.
const queueOfClients = 8

// countQueued counts the attempts that have found their place in a queue.
type countQueued struct{ n atomic.Int64 }

func (c *countQueued) Observe(e observe.Event) {
	if e.Kind == observe.Queued {
		c.n.Add(1)
	}
}

// BenchmarkWaiter measures what a waiter in a queue of that length takes of a process, with its goroutine's stack.
// Beside it stands what a node and a watch on the one before it take of the client library and of the server, which
// is in the same process. It also reports how long it takes until all stand in the queue.
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

// reportWaiters runs fn, which has n wait, and reports what each of them costs.
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

// waitTogether calls fn with a function that has n more wait for one lock, and returns when they do.
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

// watchTogether has n nodes made in one directory, and each watched.
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
