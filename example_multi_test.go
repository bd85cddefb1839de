package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
)

// Several locks, all or none, without deadlock whatever the order they are named in.
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
