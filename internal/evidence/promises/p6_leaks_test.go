// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

//zklock:promise P6.2
func TestCancelledAttemptsShareOneWatch(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "holder", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, 1, srv.WatchCount(), "the holder's own")
		client := connect(t, srv, "a", term)
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err := client.Mutex(path).Lock(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		time.Sleep(time.Second)
		require.Equal(t, 2, srv.WatchCount(), "%v", srv.Watches())
		unlock(t, hold)
		time.Sleep(time.Second)
		require.Zero(t, srv.WatchCount())
	})
}
