// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/zktest"
)

// register is the code under test: it announces a worker by an ephemeral node
// and survives the loss of a reply.
func register(conn *zk.Conn, path string) error {
	for {
		_, err := conn.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		switch {
		case errors.Is(err, zk.ErrConnectionClosed):
			continue // it may have been made or not: try again
		case errors.Is(err, zk.ErrNodeExists):
			_, stat, err := conn.Get(path)
			if err == nil && stat.EphemeralOwner == conn.SessionID() {
				return nil // it had been
			}
			return errors.Join(zk.ErrNodeExists, err)
		default:
			return err
		}
	}
}

// A complete test of code that uses ZooKeeper. In a test function it begins with
// srv := zktest.Start(t) and needs no Close; inside a testing/synctest bubble the
// whole of it takes no time.
func Example() {
	srv, err := zktest.New(zktest.Options{TickTime: 100 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	defer srv.Close()

	conn, _, err := zk.Connect([]string{srv.Addr(), "233.252.0.2:2181"}, time.Second,
		zk.WithDialer(srv.Dial), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	// The reply to the first create is lost after it was applied.
	lost := false
	remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Op == zktest.OpCreate && !lost {
			lost = true
			return zktest.LoseReply
		}
		return zktest.Pass
	})
	defer remove()

	fmt.Println("registered:", register(conn, "/worker-1"))
	fmt.Println("children:", srv.Children("/"))
	fmt.Println("creates:", srv.Requests()[zktest.OpCreate])

	// The session expires on the server: the node goes with it.
	srv.ExpireSession(conn.SessionID())
	fmt.Println("children:", srv.Children("/"))

	// Output:
	// registered: <nil>
	// children: [worker-1 zookeeper]
	// creates: 2
	// children: [zookeeper]
}
