// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// charge is application code that must not continue when its lock is lost.
func charge(ctx context.Context, client *zklock.Client, bill func(context.Context) error) error {
	return client.Mutex("/locks/card").Do(ctx, func(ctx context.Context) error {
		if err := bill(ctx); err != nil {
			return err
		}
		return context.Cause(ctx) // not charged twice: the caller checks with the bank
	})
}

// Test your own code against an in-process server and inject faults. In a test, use zktest.Run(t),
// or zktest.Start(t) inside testing/synctest, where ten seconds of session timeout take no time.
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

func must(err error) {
	if err != nil {
		panic(err)
	}
}
