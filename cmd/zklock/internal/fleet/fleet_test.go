// SPDX-License-Identifier: Apache-2.0

package fleet

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

func TestTheShopOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		ctx, stop := context.WithCancel(t.Context())
		closed := make(chan error, 1)
		// Owned by the test, which waits; ends with ctx.
		go func() {
			closed <- Run(ctx, "/shop", func(ctx context.Context, label string) (*zklock.Client, error) {
				return zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("shop"), Label: label, SessionTimeout: 4 * time.Second})
			})
		}()
		time.Sleep(time.Minute)
		srv.Partition("shop")
		time.Sleep(time.Minute)
		srv.HealClient("shop")
		time.Sleep(time.Minute)
		require.Empty(t, closed, "it is open")
		stop()
		assert.NoError(t, <-closed)
	})
}
