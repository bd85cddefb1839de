// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// Connecting takes a round trip, and fails if the dialer's timeout is shorter.
func TestConnectingTakesARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const way = 300 * time.Millisecond
		srv := zktest.Start(t, zktest.Options{Latency: func(*rand.Rand) time.Duration { return way }})
		dial := srv.DialFrom("a")
		began := time.Now()
		conn, err := dial("tcp", srv.Addrs()[0], time.Second)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Equal(t, 2*way, time.Since(began))

		began = time.Now()
		_, err = dial("tcp", srv.Addrs()[0], way)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, way, time.Since(began))

		srv.Partition("a")
		began = time.Now()
		_, err = dial("tcp", srv.Addrs()[0], time.Second)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
	})
}
