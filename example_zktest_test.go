package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// charge is code of one's own that must not go on when its lock is lost.
func charge(ctx context.Context, client *zklock.Client, bill func(context.Context) error) error {
	return client.Mutex("/locks/card").Do(ctx, func(ctx context.Context) error {
		if err := bill(ctx); err != nil {
			return err
		}
		return context.Cause(ctx) // not charged twice: the caller asks the bank
	})
}

// Test your own code against a server in your own process, faults on command. In a test
// that is zktest.Run(t), or inside testing/synctest zktest.Start(t), where ten seconds
// of session timeout take no time.
func Example_testingYourOwnCode() {
	server, err := zktest.New(zktest.Options{})
	must(err)
	defer server.Close()
	client, err := zklock.Connect(context.Background(), server.Addrs(), &zklock.Options{Dialer: server.Dial})
	must(err)
	defer client.Close()

	err = charge(context.Background(), client, func(ctx context.Context) error {
		for _, session := range server.Sessions() {
			server.ExpireSession(session.ID) // as after a long pause
		}
		<-ctx.Done() // the bank takes long to answer
		return nil
	})
	fmt.Println(errors.Is(err, zklock.ErrLost))
	fmt.Println(server.Children("/locks/card"))
	// Output:
	// true
	// []
}
