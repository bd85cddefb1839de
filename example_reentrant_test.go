package zklock_test

import (
	"context"
	"fmt"

	"github.com/zklock-go/zklock"
)

// account locks in each of its methods, also where one calls the other.
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
		if err := a.deposit(ctx, -amount); err != nil { // ctx says that we are the owner
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
