// SPDX-License-Identifier: Apache-2.0

package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zklock-go/zklock"
)

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
