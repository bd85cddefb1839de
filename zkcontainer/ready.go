// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// answers waits until the servers answer a client: it creates a session and, unless the servers require SASL, reads a node.
func answers(ctx context.Context, o Options, addrs []string) error {
	conn, events, err := zk.Connect(addrs, 4*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		return fmt.Errorf("connect to %v: %w", addrs, err)
	}
	answered := make(chan error, 1)
	// Ends with the answer, or when conn is closed.
	go func() { answered <- read(conn, events, o) }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case err = <-answered:
		conn.Close()
	case <-ctx.Done():
		conn.Close()
		<-answered
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("first request to %v: %w", addrs, err)
	}
	return nil
}

// read waits for a session and reads a node, unless the servers require SASL.
func read(conn *zk.Conn, events <-chan zk.Event, o Options) error {
	for e := range events {
		if e.State != zk.StateHasSession {
			continue
		}
		if o.RequireSASL {
			return nil
		}
		_, _, err := conn.Exists("/")
		if !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer) {
			return err
		}
	}
	return zk.ErrClosing
}

type silent struct{}

// Printf writes nothing.
func (silent) Printf(string, ...any) {}
