package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
)

func TestLsCyclesTellsOfACircleOfClients(t *testing.T) {
	srv := startServer(t)
	code, out, _ := run(t, srv.Addr(), "ls", "--cycles", "/")
	assert.Zero(t, code)
	assert.Contains(t, out, "nobody waits in a circle at / or below it")

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
		assert.Zero(t, code, "no circle yet")
		wanted := paths[(i+1)%3]
		// Owned by the test; ends when the client is closed.
		go func() { _, _ = client.Mutex(wanted).Lock(t.Context()) }()
		eventually(t, "it waits", func() bool { return queued(srv, wanted) == 2 })
	}
	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "/")
	assert.Equal(t, codeCircle, code)
	assert.Contains(t, out, "3 sessions wait for each other in a circle:")
	for _, p := range paths {
		assert.Regexp(t, `session 0x[0-9a-f]+ \(\S+:\d+\) waits for `+p+`, where session 0x[0-9a-f]+ \(\S+\) holds`, out)
	}
	assert.Contains(t, out, "where the goroutine that holds is the one that waits")

	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "--json", "/locks")
	assert.Equal(t, codeCircle, code)
	var found circlesJSON
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
	assert.Equal(t, codeUsage, code, errs)
	code, out, errs = run(t, srv.Addr(), "ls", "--cycles", "/nobody")
	assert.Zero(t, code, "ZooKeeper removes directories that are empty: %s", errs)
	assert.Contains(t, out, "/nobody does not exist: nobody has used it lately")
	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "--json", "/nobody")
	assert.Zero(t, code)
	assert.JSONEq(t, `{"cycles": []}`, out)
	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "--json", "/locks/a")
	assert.Zero(t, code, "one lock alone has none")
	assert.JSONEq(t, `{"cycles": []}`, out)
}
