// SPDX-License-Identifier: Apache-2.0

package slots_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// Every host of a fleet has this job; one of them runs it every five minutes.
func Example() {
	srv, err := zktest.New(zktest.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	report := func(host string, now time.Time) {
		client, err := zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.Dial})
		if err != nil {
			panic(err)
		}
		defer client.Close()
		err = slots.At(client, "/cron/report", now, 5*time.Minute).Do(ctx, func(context.Context) error {
			fmt.Println("the report is made by", host)
			return nil
		})
		if errors.Is(err, slots.ErrDone) {
			fmt.Println("nothing to do for", host)
		}
	}
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	report("host a", noon)
	report("host b", noon.Add(300*time.Millisecond)) // its clock is behind
	report("host b", noon.Add(5*time.Minute))
	// Output:
	// the report is made by host a
	// nothing to do for host b
	// the report is made by host b
}
