// SPDX-License-Identifier: Apache-2.0

package crons_test

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// Every host of the fleet has this cron; each run happens on one of them.
func Example() {
	srv, err := zktest.New(zktest.Options{}) // in production: your ensemble
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ran := make(chan time.Time, 3)
	for range 3 {
		client, err := zklock.Connect(context.Background(), srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		if err != nil {
			panic(err)
		}
		defer client.Close()
		c := cron.New(cron.WithLocation(time.UTC))
		report, err := slots.Scheduled(client, "/cron", "report", slots.Every(time.Second), func(_ context.Context, due time.Time) error {
			ran <- due
			return nil
		}, nil)
		if err != nil {
			panic(err)
		}
		c.Schedule(report, report)
		c.Start()
		defer func() { <-c.Stop().Done() }()
	}
	first, second := <-ran, <-ran
	fmt.Println(second.Sub(first))
	// Output:
	// 1s
}
