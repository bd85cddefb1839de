package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
)

// Readers share; a writer is alone, and can become a reader without letting another
// writer in between.
func ExampleRWMutex() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()
	catalogue := client.RWMutex("/catalogue")

	writer, err := catalogue.Lock(ctx)
	must(err)
	_, err = catalogue.TryRLock(ctx)
	fmt.Println("while it is written:", errors.Is(err, zklock.ErrLocked))
	must(writer.Downgrade(ctx))
	reader, err := catalogue.RLock(ctx)
	must(err)
	fmt.Println("while it is read:", reader.Check(), writer.Check())
	must(reader.Unlock(ctx))
	must(writer.Unlock(ctx))
	// Output:
	// while it is written: true
	// while it is read: <nil> <nil>
}
