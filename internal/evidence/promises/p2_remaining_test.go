// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

//zklock:promise P2.5
func TestRemainingReturnsHowLongAHoldIsCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const session = 10 * time.Second
		srv := zktest.Start(t)
		client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{SessionTimeout: session, Dialer: srv.DialFrom("holder")})
		require.NoError(t, err)
		defer client.Close()
		hold, err := client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)

		for range 600 {
			left := hold.Remaining()
			require.GreaterOrEqual(t, left, session*4/10, "a healthy session must leave time to stop work before it ends")
			require.LessOrEqual(t, left, session*95/100)
			time.Sleep(100 * time.Millisecond)
		}

		srv.Partition("holder")
		defer srv.HealClient("holder")
		cut, left := time.Now(), hold.Remaining()
		<-hold.Context().Done()
		assert.Equal(t, left, time.Since(cut), "the context must end when the time is up")
		assert.Zero(t, hold.Remaining())
		assert.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
	})
}
