package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
)

// At most three of a fleet at a time, whatever the number of processes.
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
