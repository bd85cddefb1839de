// SPDX-License-Identifier: Apache-2.0

package zklock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// ensemble returns an in-process ZooKeeper for the examples, which they reach without a socket. In
// production, call zklock.Connect(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"}, nil).
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

func ExampleMutex_Lock() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()

	hold, err := client.Mutex("/locks/orders/42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held:", hold.Check() == nil)
	if err := hold.Unlock(ctx); err != nil { // releasing can fail, too
		fmt.Println(err)
	}
	fmt.Println("and after:", hold.Check())
	// Output:
	// held: true
	// and after: zklock: check /locks/orders/42: lock was released
}

// A deadline on the context limits the wait. A caller that gives up leaves no node in the queue.
func ExampleMutex_Lock_deadline() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	other, err := client.Mutex("/locks/orders/42").Lock(context.Background())
	must(err)
	defer other.Unlock(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = client.Mutex("/locks/orders/42").Lock(ctx)
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// zklock: lock /locks/orders/42: context deadline exceeded (waited for example)
	// true
}

func ExampleMutex_TryLock() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()

	first, err := client.Mutex("/locks/orders/42").TryLock(ctx)
	must(err)
	defer first.Unlock(ctx)
	_, err = client.Mutex("/locks/orders/42").TryLock(ctx)
	fmt.Println(errors.Is(err, zklock.ErrLocked))
	// Output: true
}

func ExampleMutex_Do() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()

	stock := 10
	var all sync.WaitGroup
	for range 12 { // the number of buyers
		all.Go(func() {
			err := client.Mutex("/locks/stock").Do(context.Background(), func(ctx context.Context) error {
				if stock > 0 {
					stock--
				}
				return context.Cause(ctx) // not nil if the lock was lost in the meantime
			})
			must(err)
		})
	}
	all.Wait()
	fmt.Println(stock)
	// Output: 0
}

// The hold's context ends before anyone else can hold the lock, so use it for the work.
func ExampleHold_Context() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()

	hold, err := client.Mutex("/locks/orders/42").Lock(context.Background())
	must(err)
	must(server.DeleteNode(hold.Node())) // an operator takes the lock away
	<-hold.Context().Done()
	fmt.Println(errors.Is(context.Cause(hold.Context()), zklock.ErrLost))
	fmt.Println(errors.Is(hold.Unlock(context.Background()), zklock.ErrLost))
	// Output:
	// true
	// true
}

// orders is a stand-in for an SQL database with one table.
type orders struct {
	mu    sync.Mutex
	state string
	fence int64
}

// ExecContext executes the one statement that the example uses.
func (o *orders) ExecContext(_ context.Context, _ string, args ...any) (sql.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if state, token := args[0].(string), args[1].(int64); o.fence <= token {
		o.state, o.fence = state, token
		return driver.RowsAffected(1), nil
	}
	return driver.RowsAffected(0), nil
}

// A token increases with every grant. Write it with the data and reject smaller tokens. Then a
// process that is stopped while it holds the lock does no harm, even if it resumes when another
// process holds the lock.
func ExampleHold_Token() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()
	db := &orders{} // in production: *sql.DB

	write := func(hold *zklock.Hold, state string) {
		result, err := db.ExecContext(ctx,
			`UPDATE orders SET state = $1, fence = $2 WHERE id = 42 AND fence <= $2`, state, hold.Token())
		must(err)
		n, err := result.RowsAffected()
		must(err)
		fmt.Printf("%s: %d row\n", state, n)
	}

	stopped, err := client.Mutex("/locks/orders/42").Lock(ctx)
	must(err)
	must(server.DeleteNode(stopped.Node())) // its session ends while the process is stopped
	next, err := client.Mutex("/locks/orders/42").Lock(ctx)
	must(err)
	defer next.Unlock(ctx)
	write(next, "shipped")
	write(stopped, "canceled") // it resumes and has not noticed its loss
	// Output:
	// shipped: 1 row
	// canceled: 0 row
}

// Data in ZooKeeper needs no token: a transaction of the hold commits only while the lock is held.
func ExampleHold_Multi() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()
	must(server.PutNode("/config", []byte("old")))

	hold, err := client.Mutex("/locks/config").Lock(ctx)
	must(err)
	_, err = hold.Multi(&zk.SetDataRequest{Path: "/config", Data: []byte("new"), Version: -1})
	fmt.Println(err)

	must(server.DeleteNode(hold.Node()))
	<-hold.Context().Done()
	_, err = hold.Multi(&zk.SetDataRequest{Path: "/config", Data: []byte("too late"), Version: -1})
	fmt.Println(errors.Is(err, zklock.ErrLost))
	config, _ := server.Node("/config")
	fmt.Println(string(config.Data))
	// Output:
	// <nil>
	// true
	// new
}
