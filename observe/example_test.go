// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// ensemble returns an in-process ZooKeeper for the examples, which they reach without a socket.
func ensemble() *zktest.Server {
	server, err := zktest.New(zktest.Options{})
	if err != nil {
		panic(err)
	}
	return server
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// tally counts events; an adapter for OpenTelemetry is in adapters/otel.
type tally struct {
	mu   sync.Mutex
	seen []string
}

func (t *tally) Observe(e observe.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, e.Kind.String())
}

func ExampleObserver() {
	server := ensemble()
	defer server.Close()
	var events tally
	client, err := zklock.Connect(context.Background(), server.Addrs(), &zklock.Options{Dialer: server.Dial, Observer: &events})
	must(err)
	must(client.Mutex("/locks/orders/42").Do(context.Background(), func(context.Context) error { return nil }))
	must(client.Close())
	fmt.Println(strings.Join(events.seen, ", "))
	// Output: queued, acquired, released
}
