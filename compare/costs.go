// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/compare/servers"
)

// A load is many equal requests.
type load struct {
	name     string
	requests int
	send     func(c *zk.Conn, i int) error
}

// loads are the requests whose costs internal/evidence/scale uses. The write changes one node; the
// check is a transaction that changes nothing, as a heartbeat is.
var loads = []load{
	{"read", 100_000, func(c *zk.Conn, _ int) error { _, _, err := c.Exists("/costs"); return err }},
	{"sync", 50_000, func(c *zk.Conn, _ int) error { _, err := c.Sync("/costs"); return err }},
	{"check", 50_000, func(c *zk.Conn, _ int) error {
		_, err := c.Multi(&zk.CheckVersionRequest{Path: "/costs", Version: -1})
		return err
	}},
	{"write", 50_000, func(c *zk.Conn, _ int) error { _, err := c.Set("/costs", []byte("costs"), -1); return err }},
	{"create and delete", 25_000, func(c *zk.Conn, i int) error {
		path := fmt.Sprint("/costs/", i)
		if _, err := c.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			return err
		}
		return c.Delete(path, -1)
	}},
}

// outstanding is how many requests are sent at the same time.
const outstanding = 50

// measureCosts prints how much processor time requests take in each of three servers.
func measureCosts() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set, err := servers.NewSet()
	if err != nil {
		return err
	}
	defer set.Close()
	ensemble, err := set.ZooKeeperEnsemble(ctx)
	if err != nil {
		return err
	}
	leader, err := ensemble.Leader(ctx)
	if err != nil {
		return err
	}
	follower, err := ensemble.Follower(ctx)
	if err != nil {
		return err
	}
	conn, _, err := zk.Connect([]string{follower.Addr}, 30*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Create("/costs", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		return err
	}
	measured := []*servers.Process{leader, follower}
	for _, other := range ensemble.Members {
		if other != leader && other != follower {
			measured = append(measured, other)
		}
	}
	fmt.Println("| request of a follower's client | leader | follower | other follower |\n|---|---|---|---|")
	for _, l := range loads {
		if err := l.run(conn, l.requests); err != nil { // the servers compile what they run often
			return err
		}
		var before []time.Duration
		for _, p := range measured {
			before = append(before, p.ProcessorTime())
		}
		if err := l.run(conn, l.requests); err != nil {
			return err
		}
		fmt.Printf("| %s ", l.name)
		for i, p := range measured {
			each := (p.ProcessorTime() - before[i]) / time.Duration(l.requests)
			fmt.Printf("| %s µs ", strconv.FormatInt(each.Microseconds(), 10))
		}
		fmt.Println("|")
	}
	return nil
}

// run sends n of the requests.
func (l load) run(conn *zk.Conn, n int) error {
	failed := make(chan error, outstanding)
	for worker := range outstanding {
		go func() { // run waits for it below
			for i := worker; i < n; i += outstanding {
				if err := l.send(conn, i); err != nil {
					failed <- fmt.Errorf("%s: %w", l.name, err)
					return
				}
			}
			failed <- nil
		}()
	}
	var first error
	for range outstanding {
		if err := <-failed; err != nil && first == nil {
			first = err
		}
	}
	return first
}
