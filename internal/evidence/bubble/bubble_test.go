// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// wayward is the variable that makes the tests of TestWayward run, which fail.
const wayward = "ZKLOCK_TEST_WAYWARD"

// Each of these fails, except the last one. TestABubbleThatDoesNotEndFailsAlone runs them.
func TestWayward(t *testing.T) {
	if os.Getenv(wayward) == "" {
		t.Skip("they fail")
	}
	t.Run("hangs during heartbeats", func(t *testing.T) {
		run(t, time.Hour, time.Minute, func(t *testing.T) {
			connect(t, zktest.Start(t, zktest.Options{}))
			<-make(chan struct{})
		})
	})
	t.Run("waits for the lock without end", func(t *testing.T) {
		run(t, time.Hour, time.Minute, func(t *testing.T) {
			srv := zktest.Start(t, zktest.Options{})
			_, err := connect(t, srv).Mutex("/locks/a").Lock(t.Context())
			require.NoError(t, err)
			_, err = connect(t, srv).Mutex("/locks/a").Lock(t.Context())
			require.NoError(t, err) // it is not, after the clean-up
		})
	})
	t.Run("leaves a goroutine", func(t *testing.T) {
		run(t, time.Hour, time.Minute, func(*testing.T) {
			go func() { <-make(chan struct{}) }() // nobody's: it must fail the test
		})
	})
	t.Run("spins", func(t *testing.T) {
		run(t, time.Hour, 200*time.Millisecond, func(*testing.T) {
			for now := time.Now(); !now.IsZero(); now = time.Now() { // nothing ends it
				_ = now
			}
		})
	})
	t.Run("requires what is not", func(t *testing.T) {
		run(t, time.Hour, time.Minute, func(t *testing.T) { require.True(t, false) })
	})
	t.Run("is the next", func(t *testing.T) {
		run(t, time.Hour, time.Minute, func(*testing.T) { time.Sleep(time.Second) })
	})
}

func connect(t *testing.T, srv *zktest.Server) *zklock.Client {
	c, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("")})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// A bubble that hangs, that spins, or whose goroutines do not end fails its own test. The others run.
func TestABubbleThatDoesNotEndFailsAlone(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestWayward$", "-test.v")
	cmd.Env = append(os.Environ(), wayward+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	for _, line := range []string{
		"--- FAIL: TestWayward/hangs_during_heartbeats", "not over after 1h0m0s of virtual time",
		"--- FAIL: TestWayward/waits_for_the_lock_without_end",
		"--- FAIL: TestWayward/leaves_a_goroutine", "[chan receive (durable), synctest bubble",
		"--- FAIL: TestWayward/spins", "of virtual time are still not over after 200ms",
		"--- FAIL: TestWayward/requires_what_is_not",
		"--- PASS: TestWayward/is_the_next",
	} {
		require.Contains(t, string(out), line)
	}
}
