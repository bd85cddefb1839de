// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/show"
)

//zklock:promise P19.9 A31
func TestLsCyclesReportsACycleOfClients(t *testing.T) {
	srv := startServer(t)
	code, out, _ := run(t, srv.Addr(), "ls", "--cycles", "/")
	assert.Zero(t, code)
	assert.Contains(t, out, "no cycles at or below /")

	paths := []string{"/locks/a", "/locks/b", "/locks/deep/c"}
	var clients []*zklock.Client
	for _, p := range paths {
		client := connect(t, srv)
		hold, err := client.Mutex(p).Lock(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = hold.Unlock(context.Background()) })
		clients = append(clients, client)
	}
	for i, client := range clients {
		code, _, _ := run(t, srv.Addr(), "ls", "--cycles", "/locks")
		assert.Zero(t, code, "no cycle yet")
		wanted := paths[(i+1)%3]
		// Owned by the test; ends when the client is closed.
		go func() { _, _ = client.Mutex(wanted).Lock(t.Context()) }()
		eventually(t, "it waits", func() bool { return queued(srv, wanted) == 2 })
	}
	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "/")
	assert.EqualValues(t, outcome.Cycle, code)
	assert.Contains(t, out, "3 sessions wait for each other in a cycle:")
	for _, p := range paths {
		assert.Regexp(t, `session 0x[0-9a-f]+ \(\S+:\d+\) waits for `+p+`, where session 0x[0-9a-f]+ \(\S+\) holds`, out)
	}
	assert.Contains(t, out, "if the goroutine that holds is the one that waits")

	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "--json", "/locks")
	assert.EqualValues(t, outcome.Cycle, code)
	var found show.CyclesJSON
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.Len(t, found.Cycles, 1)
	steps := found.Cycles[0].Steps
	require.Len(t, steps, 3)
	for i, s := range steps {
		assert.Equal(t, steps[(i+1)%3].Waits.Session, s.BlockedBy.Session, "each waits for the next")
		assert.True(t, s.BlockedBy.Holds)
		assert.False(t, s.Parallel)
	}

	code, _, errs := run(t, srv.Addr(), "ls", "--cycles", "--watch", "/")
	assert.EqualValues(t, outcome.Usage, code, errs)
	code, out, errs = run(t, srv.Addr(), "ls", "--cycles", "/nobody")
	assert.Zero(t, code, "ZooKeeper removes directories that are empty: %s", errs)
	assert.Contains(t, out, "/nobody does not exist: it has not been used recently")
	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "--json", "/nobody")
	assert.Zero(t, code)
	assert.JSONEq(t, `{"cycles": []}`, out)
	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "--json", "/locks/a")
	assert.Zero(t, code, "one lock alone has none")
	assert.JSONEq(t, `{"cycles": []}`, out)
}

// What could not be read may be part of a cycle.
func TestLsCyclesReportsUnreadableLocks(t *testing.T) {
	srv := startServer(t)
	owner, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{
		ACL: zk.DigestACL(zk.PermAll, "u", "p"), Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}},
	})
	require.NoError(t, err)
	defer owner.Close()
	hold, err := owner.Mutex("/locks/hidden").Lock(t.Context())
	require.NoError(t, err)
	defer hold.Unlock(t.Context())
	code, out, errs := run(t, srv.Addr(), "ls", "--cycles", "/")
	assert.EqualValues(t, outcome.NoPermission, code)
	assert.Equal(t, "no cycles among the locks at or below / that could be read\n", out)
	assert.Contains(t, errs, "/locks/hidden")
}
