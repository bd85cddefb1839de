// SPDX-License-Identifier: Apache-2.0

package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// A leader loop: every member of a fleet runs it, and one of them leads at a time.
func ExampleElection_Run() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()

	ctx, stop := context.WithCancel(context.Background())
	terms := 0
	err := client.Election("/leader").Run(ctx, []byte("host-a:8080"), func(ctx context.Context) error {
		terms++
		leader, err := client.Election("/leader").Leader(ctx)
		must(err)
		fmt.Printf("term %d: %s leads\n", terms, leader.Data)
		if terms == 2 {
			stop()
		}
		return nil // ends the term; a real leader works here until ctx ends
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// term 1: host-a:8080 leads
	// term 2: host-a:8080 leads
	// true
}

// Campaign leads once, and lets you decide when to resign. Other members and other programs can
// find the leader and its value.
func ExampleElection_Campaign() {
	server := ensemble()
	defer server.Close()
	client := client(server, "example")
	defer client.Close()
	ctx := context.Background()
	election := client.Election("/leader")

	_, err := election.Leader(ctx)
	fmt.Println(errors.Is(err, zklock.ErrNoLeader))

	hold, err := election.Campaign(ctx, []byte("host-a:8080"))
	must(err)
	leader, err := election.Leader(ctx)
	must(err)
	fmt.Printf("%s leads, the token is the hold's: %v\n", leader.Data, leader.Token == hold.Token())

	must(election.Proclaim(hold.Context(), []byte("host-a:9090"))) // it has moved
	leader, err = election.Leader(ctx)
	must(err)
	fmt.Printf("%s leads\n", leader.Data)
	must(hold.Unlock(ctx)) // resigns
	// Output:
	// true
	// host-a:8080 leads, the token is the hold's: true
	// host-a:9090 leads
}

// A program that follows the leader when it changes.
func ExampleElection_Observe() {
	server := ensemble()
	defer server.Close()
	member, follower := client(server, "member"), client(server, "follower")
	defer member.Close()
	defer follower.Close()
	ctx := context.Background()

	hold, err := member.Election("/leader").Campaign(ctx, []byte("host-a:8080"))
	must(err)
	for leader, err := range follower.Election("/leader").Observe(ctx) {
		must(err)
		fmt.Printf("%s leads\n", leader.Data)
		if string(leader.Data) == "host-b:8080" {
			break
		}
		must(hold.Unlock(ctx)) // the first leader resigns, and another is elected
		hold, err = member.Election("/leader").Campaign(ctx, []byte("host-b:8080"))
		must(err)
	}
	must(hold.Unlock(ctx))
	// Output:
	// host-a:8080 leads
	// host-b:8080 leads
}

// A cron job that must run once per fleet, although every machine starts it. The name of its slot
// is the time for which the run was scheduled, so that a machine whose clock is slow finds it done.
func Example_cronJob() {
	server := ensemble()
	defer server.Close()
	scheduled := time.Date(2026, 1, 31, 2, 0, 0, 0, time.UTC)

	for machine := range 3 {
		client := client(server, fmt.Sprint("machine ", machine))
		slot := slots.Named(client, "/cron/nightly", scheduled.Format("2006-01-02T15:04"))
		err := slot.Do(context.Background(), func(context.Context) error {
			fmt.Println("backup made")
			return nil // after an error, the next machine tries
		})
		fmt.Println(machine, errors.Is(err, slots.ErrDone))
		client.Close()
	}
	// Output:
	// backup made
	// 0 false
	// 1 true
	// 2 true
}

// reign is the start of a leadership.
type reign struct {
	host string
	from time.Time
}

// candidate makes a host campaign until stop is called. stop returns when the host has resigned,
// and returns the time at which it did. When the host leads, candidate sends to terms.
func candidate(c *zklock.Client, host string, terms chan<- reign) (stop func() time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan time.Time, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := c.Election("/leader").Run(ctx, []byte(host), func(ctx context.Context) error {
			terms <- reign{host, time.Now()}
			<-ctx.Done()
			ended <- time.Now()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			panic(err)
		}
	}()
	return func() time.Time {
		cancel()
		<-done
		return <-ended
	}
}

// A fleet is restarted, one leader after the other. When a leader resigns, the next one takes over
// after a round trip, not after a session timeout.
func ExampleElection_Run_rollingRestart() {
	server := ensemble()
	defer server.Close()
	operator := client(server, "operator")
	defer operator.Close()
	terms := make(chan reign)
	var stops []func() time.Time
	for i, host := range []string{"host-a", "host-b", "host-c"} {
		c := client(server, host)
		defer c.Close()
		stops = append(stops, candidate(c, host, terms))
		if i == 0 {
			fmt.Println((<-terms).host, "leads")
		}
		for queue, err := range operate.Watch(context.Background(), operator, "/leader") {
			must(err)
			if len(queue.Contenders) == i+1 {
				break // it is in the queue behind the others
			}
		}
	}
	for _, stop := range stops[:2] {
		until := stop()
		next := <-terms
		gap := next.from.Sub(until)
		fmt.Println(next.host, "leads, after a gap of less than a second:", gap < time.Second)
	}
	stops[2]()
	// Output:
	// host-a leads
	// host-b leads, after a gap of less than a second: true
	// host-c leads, after a gap of less than a second: true
}

// A rolling upgrade ends on the newest version: a member of an older one gives up its leadership.
func ExampleElectionOptions() {
	server, err := zktest.New(zktest.Options{TickTime: 50 * time.Millisecond}) // a term lasts at least a session timeout
	must(err)
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	newest := &zklock.ElectionOptions{Prefer: func(a, b []byte) bool { return string(a) > string(b) }}
	leads := make(chan string)
	var members sync.WaitGroup
	join := func(version string) {
		client, err := zklock.Connect(ctx, server.Addrs(), &zklock.Options{Dialer: server.Dial, SessionTimeout: time.Second})
		must(err)
		members.Go(func() {
			defer client.Close()
			client.Election("/leader", newest).Run(ctx, []byte(version), func(ctx context.Context) error {
				leads <- version
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), zklock.ErrPreferred) {
					fmt.Println(version, "gives up its leadership")
				}
				return nil
			})
		})
	}
	join("v1")
	fmt.Println(<-leads, "leads")
	join("v2")
	fmt.Println(<-leads, "leads")
	stop()
	members.Wait()
	// Output:
	// v1 leads
	// v1 gives up its leadership
	// v2 leads
}
