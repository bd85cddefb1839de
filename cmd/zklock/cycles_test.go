package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// queueOf reads a queue from words like "1" (session 1 holds), "-2" (session 2 waits), "r1" (it reads), "p-2" (it waits for a permit).
func queueOf(t *testing.T, path, words string) *operate.Queue {
	q := &operate.Queue{Path: path}
	for i, word := range strings.Fields(words) {
		who := zklock.Contender{Node: fmt.Sprintf("%s/%d", path, i), Kind: operate.KindLock, Holds: true}
		for prefix, kind := range map[string]string{"r": operate.KindRead, "p": operate.KindPermit} {
			if rest, ok := strings.CutPrefix(word, prefix); ok {
				word, who.Kind = rest, kind
			}
		}
		_, err := fmt.Sscan(word, &who.Session)
		require.NoError(t, err)
		if who.Session < 0 {
			who.Session, who.Holds = -who.Session, false
		}
		q.Contenders = append(q.Contenders, who)
	}
	return q
}

// inWords writes circles as "1 waits at /a, 2 waits at /b".
func inWords(found []circle) string {
	var all []string
	for _, c := range found {
		var steps []string
		for _, s := range c {
			word := fmt.Sprintf("%d waits at %s", s.waits.Session, s.path)
			if s.parallel {
				word += " and elsewhere"
			}
			steps = append(steps, word)
		}
		all = append(all, strings.Join(steps, ", "))
	}
	return strings.Join(all, "; ")
}

func TestCirclesAreFoundAndNothingElseIs(t *testing.T) {
	for name, c := range map[string]struct {
		queues []string
		want   string
	}{
		"two sessions":                        {[]string{"1 -2", "2 -1"}, "1 waits at /b, 2 waits at /a"},
		"three sessions":                      {[]string{"1 -2", "2 -3", "3 -1"}, "1 waits at /c, 3 waits at /b, 2 waits at /a"},
		"two circles":                         {[]string{"1 -2", "2 -1", "3 -4", "4 -3"}, "1 waits at /b, 2 waits at /a; 3 waits at /d, 4 waits at /c"},
		"others that wait for it are no part": {[]string{"1 -2 -3", "2 -1", "3 -4"}, "1 waits at /b, 2 waits at /a"},
		"behind one that waits itself":        {[]string{"9 -1 -2", "2 -9"}, "2 waits at /a, 9 waits at /b"},
		"one that only waits ahead":           {[]string{"8 -1 -2", "2 -1"}, ""},
		"a queue":                             {[]string{"1 -2 -3 -4"}, ""},
		"a line":                              {[]string{"1 -2", "2 -3", "3 -4"}, ""},
		"the same order":                      {[]string{"1 -2", "1"}, ""},
		"one session's goroutines":            {[]string{"1 -1", "1 -1"}, ""},
		"through goroutines of one session":   {[]string{"1 -2", "2 -1", "3 -1"}, "1 waits at /b and elsewhere, 2 waits at /a"},
		"readers do not wait for readers":     {[]string{"r1 r-2", "2 -1"}, ""},
		"a reader waits for a writer":         {[]string{"1 r-2", "2 -1"}, "1 waits at /b, 2 waits at /a"},
		"a reader behind a waiting writer":    {[]string{"r3 -1 r-2", "2 -3"}, "1 waits at /a, 3 waits at /b, 2 waits at /a"},
		"a writer waits for every reader":     {[]string{"r1 r2 -3", "3 -2"}, "2 waits at /b, 3 waits at /a"},
		"any permit will do":                  {[]string{"p1 p4 p-2", "2 -1"}, ""},
		"no permit will come":                 {[]string{"p1 p4 p-2", "2 -1", "2 -4"}, "1 waits at /b, 2 waits at /a"},
		"a permit's queue has an order":       {[]string{"p4 p-1 p-2", "2 -4"}, "2 waits at /a, 4 waits at /b"},
		"a node that no session ends":         {[]string{"0 -1", "1 -2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var queues []*operate.Queue
			for i, words := range c.queues {
				queues = append(queues, queueOf(t, "/"+string(rune('a'+i)), words))
			}
			assert.Equal(t, c.want, inWords(circles(queues)))
		})
	}
}

// What was put together from different times is not there a second time with the same nodes.
func TestOnlyACircleThatIsThereTwiceIsShown(t *testing.T) {
	first := circles([]*operate.Queue{queueOf(t, "/a", "1 -2"), queueOf(t, "/b", "2 -1")})
	require.Len(t, first, 1)
	assert.Len(t, inBoth(first, first), 1)
	later := circles([]*operate.Queue{queueOf(t, "/a", "3 1 -2"), queueOf(t, "/b", "2 -1")})
	require.Len(t, later, 1)
	assert.Empty(t, inBoth(first, later), "with other nodes")
	assert.Empty(t, inBoth(first, nil))
}

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
	code, _, errs = run(t, srv.Addr(), "ls", "--cycles", "/nobody")
	assert.Equal(t, codeFailure, code)
	assert.Contains(t, errs, "/nobody does not exist")
	code, out, _ = run(t, srv.Addr(), "ls", "--cycles", "--json", "/locks/a")
	assert.Zero(t, code, "one lock alone has none")
	assert.JSONEq(t, `{"cycles": []}`, out)
}
