// SPDX-License-Identifier: Apache-2.0

package sqlfence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/sqlfence"
	"github.com/zklock-go/zklock/zktest"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A holder is stopped in the middle of its work, and another one takes over: what the
// first one would write when it wakes up is refused.
func ExampleFence_Exec() {
	server, err := zktest.New(zktest.Options{}) // in production: your ensemble
	must(err)
	defer server.Close()
	ctx := context.Background()
	client, err := zklock.Connect(ctx, server.Addrs(), &zklock.Options{Dialer: server.Dial})
	must(err)
	defer client.Close()
	dir, err := os.MkdirTemp("", "fence")
	must(err)
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", filepath.Join(dir, "db"))
	must(err)
	defer db.Close()
	fence, err := sqlfence.New(sqlfence.SQLite, nil)
	must(err)
	_, err = db.ExecContext(ctx, fence.Schema()+`; CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT); INSERT INTO orders VALUES (42, 'new')`)
	must(err)

	ship := func(hold *zklock.Hold, beforeItIsSent func()) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		// A program of yours passes tx itself.
		if _, err := fence.Exec(ctx, &standsStill{Tx: tx, meanwhile: beforeItIsSent}, hold, `UPDATE orders SET state = 'shipped' WHERE id = 42`); err != nil {
			return err
		}
		return tx.Commit()
	}
	stopped, err := client.Mutex("/locks/orders/42").Lock(ctx)
	must(err)
	err = ship(stopped, func() {
		must(server.DeleteNode(stopped.Node())) // its session ends while the process stands still
		next, err := client.Mutex("/locks/orders/42").Lock(ctx)
		must(err)
		fmt.Println("next:", ship(next, nil))
	})
	fmt.Println("stopped:", errors.Is(err, sqlfence.ErrStale))
	// Output:
	// next: <nil>
	// stopped: true
}
