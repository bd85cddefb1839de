// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// Another member comes after the first look: nobody waits behind it, and nothing of ours is left.
//
//zklock:promise P17.6
func TestAnElectionWithoutWaitingIsOneAttempt(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	client := connect(t, srv)
	require.NoError(t, srv.PutNode("/e", nil))
	var came atomic.Bool
	remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		creates := slices.ContainsFunc(append(r.Paths, r.Path), func(p string) bool { return strings.HasPrefix(p, "/e/") })
		if creates && came.CompareAndSwap(false, true) {
			rival := zktest.Step{Op: zktest.OpCreate, Path: "/e/_c_00000000000000000000000000000001-lock-0000000000", Data: []byte("rival")}
			assert.NoError(t, srv.Apply(rival))
		}
		return zktest.Pass
	})
	defer remove()
	start := time.Now()
	_, err := client.Election("/e", nil).TryCampaign(t.Context(), []byte("mine"))
	require.ErrorIs(t, err, zklock.ErrLocked)
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(start), time.Minute, "it has not waited")
	eventually(t, "our node is gone", func() bool { return queued(srv, "/e") == 1 })
	require.True(t, came.Load())
}

//zklock:promise P17.6
func TestAnElectionWithoutWaitingNamesTheLeader(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	client := connect(t, srv)
	leader, err := client.Election("/e", nil).Campaign(t.Context(), []byte("host-a"))
	require.NoError(t, err)
	code, _, errs := run(t, srv.Addr(), "elect", "--no-wait", "/e", "--", "true")
	assert.EqualValues(t, outcome.NotAcquired, code)
	assert.Contains(t, errs, `/e is led by "host-a"`)
	require.NoError(t, leader.Unlock(t.Context()))
	code, out, errs := run(t, srv.Addr(), "elect", "--no-wait", "/e", "--", "echo", "led")
	assert.Zero(t, code, errs)
	assert.Equal(t, "led\n", out)
}
