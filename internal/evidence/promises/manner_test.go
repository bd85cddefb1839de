// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/testnet"
	"github.com/zklock-go/zklock/zktest"
)

// manner selects how the tests' clients connect, unless they have a dialer, a provider or TLS: see manners.
var manner = flag.String("manner", "", "connect clients to \"name\", \"names\" or as \"attached\" or \"neighbors\", instead of with a dialer")

// manners are the other ways in which a client can connect to servers. A promise holds for each.
var manners = map[string]func(t *testing.T, srv *zktest.Server, servers []string, opts *zklock.Options) *zklock.Client{
	"name":      connectByName, // all servers are the addresses of one name
	"names":     connectByNames,
	"attached":  attach,          // to a connection of the program
	"neighbors": attachNeighbors, // with another client on the connection
}

// onConnection are the tests whose result is another one for clients on the program's connection, and why.
var onConnection = map[string]string{
	"TestACohortEndsWithItsClient":                               "the goroutine that keeps the connection's watches ends with its last client",
	"TestAHoldOutlivesServersThatServeAgainInTime":               "the client library waits for a second after three rounds of servers that fail: 17 of 96 are lost at T = 2 and 3 s",
	"TestAClientHasStatistics":                                   "the session outlives the client",
	"TestCloseDoesNotWaitForRefusedDeletions":                    "the session outlives the client",
	"TestShutdownWaitsAsLongAsItsContextAllows":                  "the error says that the connection removes the nodes",
	"TestALoginThatOneServerAcceptsIsEnough":                     "Attach returns the first refusal",
	"TestACheckOfManyWatchesIsOneRequestAndFindsWithheldChanges": "until it reconnects, an attached client checks each watch by itself",
}

// skipOnConnection skips a test whose result is another one on the program's connection.
func skipOnConnection(t *testing.T) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if why := onConnection[name]; why != "" {
		t.Skip(why)
	}
}

// connectToName connects a client without a dialer to a name. Its addresses are all servers, from the given one on.
func connectToName(t *testing.T, srv *zktest.Server, opts *zklock.Options, first int) *zklock.Client {
	t.Helper()
	all := srv.Addrs()
	return connectByName(t, srv, slices.Concat(all[first:], all[:first]), opts)
}

func connectByName(t *testing.T, srv *zktest.Server, servers []string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	return connectFrom(testnet.With(t.Context(), network(srv, opts, map[string][]string{"zk.example": servers})), t, []string{"zk.example"}, opts)
}

func connectByNames(t *testing.T, srv *zktest.Server, servers []string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	var names []string
	addresses := map[string][]string{}
	for i, server := range servers {
		names = append(names, fmt.Sprintf("zk%d.example", i))
		addresses[names[i]] = []string{server}
	}
	return connectFrom(testnet.With(t.Context(), network(srv, opts, addresses)), t, names, opts)
}

// network returns a network in which servers have names.
func network(srv *zktest.Server, opts *zklock.Options, servers map[string][]string) *testnet.Net {
	resolve := func(_ context.Context, name string) ([]string, error) { return testnet.Hosts(servers[name]) }
	return &testnet.Net{Dial: srv.DialFrom(opts.Label), Resolve: resolve}
}

func attach(t *testing.T, srv *zktest.Server, servers []string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	conn, hooks := open(t, srv, servers, opts)
	return attachTo(t, conn, hooks, opts)
}

func attachNeighbors(t *testing.T, srv *zktest.Server, servers []string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	conn, hooks := open(t, srv, servers, opts)
	attachTo(t, conn, hooks, &zklock.Options{TickTime: opts.TickTime, Auth: opts.Auth, Login: opts.Login})
	return attachTo(t, conn, hooks, opts)
}

// open returns a connection of the program, which is closed at the end of the test.
func open(t *testing.T, srv *zktest.Server, servers []string, opts *zklock.Options) (*zk.Conn, *zklock.Hooks) {
	t.Helper()
	skipOnConnection(t)
	hooks := zklock.NewHooks(srv.DialFrom(opts.Label))
	timeout := opts.SessionTimeout
	if timeout == 0 {
		timeout = term
	}
	conn, events, err := zk.Connect(servers, timeout, zk.WithDialer(hooks.Dial), zk.WithHostProvider(hooks.HostProvider()), zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		for range events { // until it dials no more
		}
	})
	return conn, hooks
}

func attachTo(t *testing.T, conn *zk.Conn, hooks *zklock.Hooks, opts *zklock.Options) *zklock.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := zklock.Attach(ctx, conn, hooks, opts)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}
