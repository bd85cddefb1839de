// SPDX-License-Identifier: Apache-2.0

package zklock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
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

// A program that needs time to stop its work checks how much time it has.
func ExampleHold_Remaining() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()

	const toStop = 500 * time.Millisecond // the time that it takes to stop the machine
	hold, err := client.Mutex("/locks/machine").Lock(ctx)
	must(err)
	defer hold.Unlock(ctx)

	for step := 1; step <= 3; step++ {
		if hold.Remaining() < toStop {
			fmt.Println("stop the machine now")
			return
		}
		fmt.Println("step", step)
	}
	// Output:
	// step 1
	// step 2
	// step 3
}

// Before a step that cannot be undone, confirm the lock with the quorum. This costs one write.
func ExampleHold_Confirm() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()

	hold, err := client.Mutex("/locks/orders/42").Lock(ctx)
	must(err)
	fmt.Println("held:", hold.Confirm(ctx) == nil)

	must(server.DeleteNode(hold.Node())) // an operator's mistake
	err = hold.Confirm(ctx)
	fmt.Println("lost:", errors.Is(err, zklock.ErrLost))
	// Output:
	// held: true
	// lost: true
}

// A writer that has finished writing continues as a reader. No other writer acquires the lock in
// between.
func ExampleHold_Downgrade() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()
	lock := client.RWMutex("/locks/config")

	hold, err := lock.Lock(ctx)
	must(err)
	defer hold.Unlock(ctx)
	_, err = lock.TryRLock(ctx)
	fmt.Println("no reader next to the writer:", errors.Is(err, zklock.ErrLocked))

	must(hold.Downgrade(ctx))
	reader, err := lock.TryRLock(ctx)
	must(err)
	defer reader.Unlock(ctx)
	_, err = lock.TryLock(ctx)
	fmt.Println("no writer next to the readers:", errors.Is(err, zklock.ErrLocked))
	// Output:
	// no reader next to the writer: true
	// no writer next to the readers: true
}

// The errors of an acquire, and how a program can react to them.
func Example_errors() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	ctx := context.Background()
	lock := client.Mutex("/locks/orders/42")

	explain := func(err error) {
		switch {
		case errors.Is(err, zklock.ErrLocked):
			fmt.Println("already locked: try later")
		case errors.Is(err, context.DeadlineExceeded):
			fmt.Println("not granted in time")
		case errors.Is(err, zklock.ErrDeadlock):
			fmt.Println("we hold it: pass another context, or use Reentrant")
		case errors.Is(err, zklock.ErrInvalid):
			fmt.Println("bug in the program")
		case errors.Is(err, zklock.ErrReleased), errors.Is(err, zklock.ErrNotHeld):
			fmt.Println("already unlocked")
		case errors.Is(err, zklock.ErrClosed):
			fmt.Println("the client is closed")
		default:
			fmt.Println(err)
		}
	}

	hold, err := lock.Lock(ctx)
	must(err)
	_, err = lock.TryLock(ctx)
	explain(err)
	soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = lock.Lock(soon)
	explain(err)
	_, err = lock.Lock(hold.Context())
	explain(err)
	_, err = client.Mutex("locks/orders").Lock(ctx)
	explain(err)
	must(hold.Unlock(ctx))
	explain(hold.Check())
	explain(hold.Unlock(ctx))
	must(client.Close())
	_, err = lock.Lock(ctx)
	explain(err)
	// Output:
	// already locked: try later
	// not granted in time
	// we hold it: pass another context, or use Reentrant
	// bug in the program
	// already unlocked
	// already unlocked
	// the client is closed
}

// Many goroutines of one process acquire the same lock again and again. They share one place in the
// queue: passing the lock on takes one request, and each hold has its own token.
func ExampleCohort() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()

	stock := 1000 // in production, in a store that other processes use as well
	cohort := client.Cohort("/stock")
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			for range 100 {
				must(cohort.Do(context.Background(), func(context.Context) error {
					stock--
					return nil
				}))
			}
		})
	}
	workers.Wait()
	fmt.Println(stock)
	// Output: 0
}

// Several locks, all or none. The order in which they are passed cannot cause a deadlock.
func ExampleClient_LockAll() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()

	both, err := client.LockAll(ctx, client.Mutex("/accounts/yours"), client.Mutex("/accounts/mine"))
	must(err)
	_, err = client.Mutex("/accounts/mine").TryLock(ctx)
	fmt.Println(errors.Is(err, zklock.ErrLocked))
	must(both.Unlock(ctx))
	one, err := client.Mutex("/accounts/mine").TryLock(ctx)
	must(err)
	fmt.Println(one.Unlock(ctx))
	// Output:
	// true
	// <nil>
}

// account locks in each of its methods, even if one calls the other.
type account struct {
	lock    *zklock.Reentrant
	balance int
}

func (a *account) deposit(ctx context.Context, amount int) error {
	return a.lock.Do(ctx, func(ctx context.Context) error {
		a.balance += amount
		return nil
	})
}

func (a *account) transfer(ctx context.Context, amount int, to *account) error {
	return a.lock.Do(ctx, func(ctx context.Context) error {
		if err := a.deposit(ctx, -amount); err != nil { // ctx identifies us as the owner
			return err
		}
		return to.deposit(ctx, amount)
	})
}

func ExampleReentrant() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()

	mine := &account{lock: client.Reentrant("/accounts/mine"), balance: 100}
	yours := &account{lock: client.Reentrant("/accounts/yours")}
	must(mine.transfer(context.Background(), 30, yours))
	fmt.Println(mine.balance, yours.balance)
	// Output: 70 30
}

// Readers share the lock; a writer holds it alone. A writer can become a reader without letting
// another writer acquire the lock in between.
func ExampleRWMutex() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()
	catalog := client.RWMutex("/catalog")

	writer, err := catalog.Lock(ctx)
	must(err)
	_, err = catalog.TryRLock(ctx)
	fmt.Println("while it is written:", errors.Is(err, zklock.ErrLocked))
	must(writer.Downgrade(ctx))
	reader, err := catalog.RLock(ctx)
	must(err)
	fmt.Println("while it is read:", reader.Check(), writer.Check())
	must(reader.Unlock(ctx))
	must(writer.Unlock(ctx))
	// Output:
	// while it is written: true
	// while it is read: <nil> <nil>
}

// At most three permits in use at a time across a fleet, however many processes it has.
func ExampleSemaphore() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()
	uplinks := client.Semaphore("/uplinks", 3)

	two, err := uplinks.Acquire(ctx, 2)
	must(err)
	_, err = uplinks.TryAcquire(ctx, 2)
	fmt.Println("two more:", errors.Is(err, zklock.ErrLocked))
	must(uplinks.Resize(ctx, 5))
	_, err = uplinks.TryAcquire(ctx, 2)
	fmt.Println("a caller with the old number:", errors.Is(err, zklock.ErrMismatch))
	more, err := client.Semaphore("/uplinks", 5).Acquire(ctx, 3)
	must(err)
	fmt.Println("three more of five:", more.Check())
	must(more.Unlock(ctx))
	must(two.Unlock(ctx))
	// Output:
	// two more: true
	// a caller with the old number: true
	// three more of five: <nil>
}

// A leader loop: every member of a fleet runs it, and one of them leads at a time.
func ExampleElection_Run() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()

	ctx, stop := context.WithCancel(context.Background())
	terms := 0
	err := client.Election("/leader").Run(ctx, []byte("host-a:8080"), func(ctx context.Context) error {
		terms++
		leader, err := client.Election("/leader").Leader(ctx)
		must(err)
		fmt.Printf("term %d: %s leads\n", terms, leader.Data)
		if terms == 2 {
			stop()
		}
		return nil // ends the term; a real leader works here until ctx ends
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// term 1: host-a:8080 leads
	// term 2: host-a:8080 leads
	// true
}

// Campaign leads once, and lets you decide when to resign. Other members and other programs can
// find the leader and its value.
func ExampleElection_Campaign() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()
	election := client.Election("/leader")

	_, err := election.Leader(ctx)
	fmt.Println(errors.Is(err, zklock.ErrNoLeader))

	hold, err := election.Campaign(ctx, []byte("host-a:8080"))
	must(err)
	leader, err := election.Leader(ctx)
	must(err)
	fmt.Printf("%s leads, the token is the hold's: %v\n", leader.Data, leader.Token == hold.Token())

	must(election.Proclaim(hold.Context(), []byte("host-a:9090"))) // it has moved
	leader, err = election.Leader(ctx)
	must(err)
	fmt.Printf("%s leads\n", leader.Data)
	must(hold.Unlock(ctx)) // resigns
	// Output:
	// true
	// host-a:8080 leads, the token is the hold's: true
	// host-a:9090 leads
}

// A program that follows the leader when it changes.
func ExampleElection_Observe() {
	server := ensemble()
	defer server.Close()
	member, follower := client(server, "member"), client(server, "follower")
	defer member.Close()
	defer follower.Close()
	ctx := context.Background()

	hold, err := member.Election("/leader").Campaign(ctx, []byte("host-a:8080"))
	must(err)
	for leader, err := range follower.Election("/leader").Observe(ctx) {
		must(err)
		fmt.Printf("%s leads\n", leader.Data)
		if string(leader.Data) == "host-b:8080" {
			break
		}
		must(hold.Unlock(ctx)) // the first leader resigns, and another is elected
		hold, err = member.Election("/leader").Campaign(ctx, []byte("host-b:8080"))
		must(err)
	}
	must(hold.Unlock(ctx))
	// Output:
	// host-a:8080 leads
	// host-b:8080 leads
}

// A cron job that must run once per fleet, although every machine starts it. The name of its slot
// is the time for which the run was scheduled, so that a machine whose clock is slow finds it done.
func Example_cronJob() {
	server := ensemble()
	defer server.Close()
	scheduled := time.Date(2026, 1, 31, 2, 0, 0, 0, time.UTC)

	for machine := range 3 {
		client := client(server, fmt.Sprint("machine ", machine))
		slot := slots.Named(client, "/cron/nightly", scheduled.Format("2006-01-02T15:04"))
		err := slot.Do(context.Background(), func(context.Context) error {
			fmt.Println("backup made")
			return nil // after an error, the next machine tries
		})
		fmt.Println(machine, errors.Is(err, slots.ErrDone))
		client.Close()
	}
	// Output:
	// backup made
	// 0 false
	// 1 true
	// 2 true
}

// reign is the start of a leadership.
type reign struct {
	host string
	from time.Time
}

// candidate makes a host campaign until stop is called. stop returns when the host has resigned,
// and returns the time at which it did. When the host leads, candidate sends to terms.
func candidate(c *zklock.Client, host string, terms chan<- reign) (stop func() time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan time.Time, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := c.Election("/leader").Run(ctx, []byte(host), func(ctx context.Context) error {
			terms <- reign{host, time.Now()}
			<-ctx.Done()
			ended <- time.Now()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			panic(err)
		}
	}()
	return func() time.Time {
		cancel()
		<-done
		return <-ended
	}
}

// A fleet is restarted, one leader after the other. When a leader resigns, the next one takes over
// after a round trip, not after a session timeout.
func ExampleElection_Run_rollingRestart() {
	server := ensemble()
	defer server.Close()
	operator := client(server, "operator")
	defer operator.Close()
	terms := make(chan reign)
	var stops []func() time.Time
	for i, host := range []string{"host-a", "host-b", "host-c"} {
		c := client(server, host)
		defer c.Close()
		stops = append(stops, candidate(c, host, terms))
		if i == 0 {
			fmt.Println((<-terms).host, "leads")
		}
		for queue, err := range operate.Watch(context.Background(), operator, "/leader") {
			must(err)
			if len(queue.Contenders) == i+1 {
				break // it is in the queue behind the others
			}
		}
	}
	for _, stop := range stops[:2] {
		until := stop()
		next := <-terms
		gap := next.from.Sub(until)
		fmt.Println(next.host, "leads, after a gap of less than a second:", gap < time.Second)
	}
	stops[2]()
	// Output:
	// host-a leads
	// host-b leads, after a gap of less than a second: true
	// host-c leads, after a gap of less than a second: true
}

// A rolling upgrade ends on the newest version: a member of an older one gives up its leadership.
func ExampleElectionOptions() {
	server, err := zktest.New(zktest.Options{TickTime: 50 * time.Millisecond}) // a term lasts at least a session timeout
	must(err)
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	newest := &zklock.ElectionOptions{Prefer: func(a, b []byte) bool { return string(a) > string(b) }}
	leads := make(chan string)
	var members sync.WaitGroup
	join := func(version string) {
		client, err := zklock.Connect(ctx, server.Addrs(), &zklock.Options{Dialer: server.Dial, SessionTimeout: time.Second})
		must(err)
		members.Go(func() {
			defer client.Close()
			client.Election("/leader", newest).Run(ctx, []byte(version), func(ctx context.Context) error {
				leads <- version
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), zklock.ErrPreferred) {
					fmt.Println(version, "gives up its leadership")
				}
				return nil
			})
		})
	}
	join("v1")
	fmt.Println(<-leads, "leads")
	join("v2")
	fmt.Println(<-leads, "leads")
	stop()
	members.Wait()
	// Output:
	// v1 leads
	// v1 gives up its leadership
	// v2 leads
}
