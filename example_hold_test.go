// SPDX-License-Identifier: Apache-2.0

package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock-go/zklock"
)

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
