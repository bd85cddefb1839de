package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock-go/zklock"
)

// A program that needs time to stop its work asks how much it has.
func ExampleHold_Remaining() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()

	const toStop = 500 * time.Millisecond // what it takes to stop the machine
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

// Before a step that cannot be undone, ask the quorum. It costs one write.
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

// A writer that has finished writing goes on as a reader: no other writer gets in between.
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
	fmt.Println("no reader beside the writer:", errors.Is(err, zklock.ErrLocked))

	must(hold.Downgrade(ctx))
	reader, err := lock.TryRLock(ctx)
	must(err)
	defer reader.Unlock(ctx)
	_, err = lock.TryLock(ctx)
	fmt.Println("no writer beside the readers:", errors.Is(err, zklock.ErrLocked))
	// Output:
	// no reader beside the writer: true
	// no writer beside the readers: true
}

// What the errors of an acquire mean, and what a program can do.
func Example_errors() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	ctx := context.Background()
	lock := client.Mutex("/locks/orders/42")

	explain := func(err error) {
		switch {
		case errors.Is(err, zklock.ErrLocked):
			fmt.Println("another has it: try later")
		case errors.Is(err, context.DeadlineExceeded):
			fmt.Println("its turn did not come in time")
		case errors.Is(err, zklock.ErrDeadlock):
			fmt.Println("we hold it: pass another context, or use Reentrant")
		case errors.Is(err, zklock.ErrInvalid):
			fmt.Println("a mistake in the program")
		case errors.Is(err, zklock.ErrReleased), errors.Is(err, zklock.ErrNotHeld):
			fmt.Println("it was unlocked before")
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
	// another has it: try later
	// its turn did not come in time
	// we hold it: pass another context, or use Reentrant
	// a mistake in the program
	// it was unlocked before
	// it was unlocked before
	// the client is closed
}
