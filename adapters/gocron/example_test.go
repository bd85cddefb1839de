// SPDX-License-Identifier: Apache-2.0

package zkgocron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/zklock-go/zklock"
	zkgocron "github.com/zklock-go/zklock/adapters/gocron"
	"github.com/zklock-go/zklock/zktest"
)

// Two schedulers have the same job; each of its runs happens on one of them.
func ExampleLocker() {
	server, err := zktest.New(zktest.Options{}) // in production: your ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	var schedulers []gocron.Scheduler
	for range 2 {
		client, err := zklock.Connect(context.Background(), server.Addrs(), &zklock.Options{Dialer: server.Dial})
		if err != nil {
			panic(err)
		}
		defer client.Close()
		locker := zkgocron.NewLocker(client, "/cron")
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			panic(err)
		}
		defer scheduler.Shutdown()
		locker.Use(scheduler)
		schedulers = append(schedulers, scheduler)
	}
	ran := make(chan string, 2)
	due := time.Now().Truncate(time.Second).Add(2 * time.Second) // the same for both, and a whole second
	for _, scheduler := range schedulers {
		if _, err := scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(due)),
			gocron.NewTask(func() { ran <- "the report was sent" }), gocron.WithName("report")); err != nil {
			panic(err)
		}
		scheduler.Start()
	}
	fmt.Println(<-ran)
	select {
	case <-ran:
		fmt.Println("and again")
	case <-time.After(500 * time.Millisecond):
		fmt.Println("once")
	}
	// Output:
	// the report was sent
	// once
}
