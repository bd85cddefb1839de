// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// farAway starts a server whose answers take 0.3 s.
func farAway(t *testing.T) *zktest.Server {
	return zktest.Run(t, zktest.Options{TickTime: 2 * time.Second, Latency: func(*rand.Rand) time.Duration { return 150 * time.Millisecond }})
}

// A lock that is free was reported as held, with -E 0 even as a success, though the job ran on no host: "nobody leads" and "I
// lead" were taken for "another one leads".
func TestWaitDoesNotTakeAFreeLockForAHeldOne(t *testing.T) {
	t.Parallel()
	srv := farAway(t)
	kinds := [][]string{{"run"}, {"run", "--shared"}, {"run", "--semaphore", "2"}, {"elect"}, {"run", "--anonymous"}}
	for i := range 100 {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			wait := time.Duration(300+18*i) * time.Millisecond
			path := fmt.Sprint("/free-", i)
			args := append(append([]string{}, kinds[i%len(kinds)]...), "--wait", wait.String(), "-E", "75", path, "--", "echo", "ran")
			code, out, text := run(t, srv.Addr(), args...)
			assert.NotEqualValues(t, outcome.NotAcquired, code, "%v: %s", args, text)
			assert.Equal(t, code == 0, out == "ran\n", "%v: %d %s", args, code, text)
			if code != 0 {
				assert.EqualValues(t, outcome.Unavailable, code)
				assert.Regexp(t, `^zklock: (not (acquired|elected) within \S+s: the time was too short: a server takes 0?\.?[0-9]+m?s to answer|no server answered within \S+: .*|no session within \S+: the time was too short)\n$`, text)
			}
		})
	}
}

// Readers do not keep a reader out, and one permit of two is free.
func TestWaitIsHeldUpByThoseWhoExclude(t *testing.T) {
	t.Parallel()
	srv := farAway(t)
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Label: "backup"})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	_, err = client.RWMutex("/read").RLock(t.Context())
	require.NoError(t, err)
	_, err = client.Semaphore("/one", 2).Acquire(t.Context(), 1)
	require.NoError(t, err)
	_, err = client.Semaphore("/both", 2).Acquire(t.Context(), 2)
	require.NoError(t, err)
	for _, c := range []struct {
		args []string
		held bool
	}{
		{[]string{"--wait", "4s", "/read"}, true},
		{[]string{"--wait", "1500ms", "--shared", "/read"}, false},
		{[]string{"--wait", "1500ms", "--semaphore", "2", "/one"}, false},
		{[]string{"--wait", "6s", "--semaphore", "2", "/both"}, true},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			t.Parallel()
			code, _, text := run(t, srv.Addr(), append(append([]string{"run"}, c.args...), "--", "true")...)
			if c.held {
				assert.EqualValues(t, outcome.NotAcquired, code, text)
				assert.Contains(t, text, `is held by "backup"`)
			} else {
				assert.NotEqualValues(t, outcome.NotAcquired, code, text)
			}
		})
	}
}

// A short time is no reason to say that the ensemble has no quorum, or that nothing happened "within 0s".
func TestAShortWaitIsNoFailureOfTheServers(t *testing.T) {
	t.Parallel()
	srv := farAway(t)
	code, _, text := run(t, srv.Addr(), "run", "--wait", "50ms", "/l", "--", "true")
	assert.EqualValues(t, outcome.Unavailable, code)
	assert.Regexp(t, `^zklock: no server answered within [45]?\dms: \S+ (accepted the connection and sent nothing|did not accept the connection)\n$`, text)
}
