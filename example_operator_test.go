package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
)

// A worker hangs while it holds the lock, and an operator takes the lock away from it. It
// learns of that at once, if it still runs.
func ExampleClient_Evict() {
	server := ensemble()
	defer server.Close()
	worker, operator := client(server, "worker"), client(server, "operator")
	defer worker.Close()
	defer operator.Close()
	ctx := context.Background()

	hold, err := worker.Mutex("/locks/batch").Lock(ctx)
	must(err)

	queue, err := operator.Inspect(ctx, "/locks/batch")
	must(err)
	for _, who := range queue.Contenders {
		if who.Holds && who.Label == "worker" {
			must(operator.Evict(ctx, who))
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
