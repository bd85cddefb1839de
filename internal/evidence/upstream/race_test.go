// SPDX-License-Identifier: Apache-2.0

//go:build upstreamrace

package upstream

import (
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// TestReconnectsWithAWatch shows a data race of the client library to the race detector. It runs only when it is requested, not in
// ordinary runs of this module's tests under the race detector.
func TestReconnectsWithAWatch(t *testing.T) {
	srv := zktest.Run(t, three)
	require.NoError(t, srv.PutNode("/watched", nil))
	conn, _, err := zk.Connect(srv.Addrs(), 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	require.NoError(t, err)
	_, _, _, err = conn.GetW("/watched")
	require.NoError(t, err)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		wg.Add(1)
		// Owned by the test, which waits for it: ends with stop.
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
					_, _, _ = conn.Exists("/watched")
				}
			}
		}()
	}
	for range 30 {
		srv.DropConnections()
		_, err := conn.Sync("/") // may fail with the connection
		for err != nil {
			_, err = conn.Sync("/")
		}
	}
	close(stop)
	wg.Wait()
	conn.Close()
}
