// SPDX-License-Identifier: Apache-2.0

package zkgoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/zklock-go/zklock"
	zkgoose "github.com/zklock-go/zklock/adapters/goose"
	"github.com/zklock-go/zklock/zktest"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Each instance of a program does this when it starts; one of them migrates.
func ExampleLocker() {
	server, err := zktest.New(zktest.Options{}) // in production: your ensemble
	must(err)
	defer server.Close()
	client, err := zklock.Connect(context.Background(), server.Addrs(), &zklock.Options{Dialer: server.Dial})
	must(err)
	defer client.Close()
	dir, err := os.MkdirTemp("", "goose")
	must(err)
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", filepath.Join(dir, "db"))
	must(err)
	defer db.Close()
	migrations := fstest.MapFS{"001_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n")}}

	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithLocker(zkgoose.NewLocker(client, "/migrations/orders")))
	must(err)
	ctx, end := zkgoose.Context(context.Background()) // ends when the lock is lost
	defer end()
	for range 2 {
		results, err := provider.Up(ctx)
		must(err)
		fmt.Println(len(results), "applied")
	}
	// Output:
	// 1 applied
	// 0 applied
}
