// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A request that its connection has held back is handled as if it had queued when it arrived.
func TestRequestsQueueAsTheyArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		now := time.Now()
		at := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
		require.Equal(t, at(2), q.add(at(0), 2*time.Second))
		require.Equal(t, at(5), q.add(at(1), 3*time.Second))
		require.Equal(t, at(3), q.add(at(0), time.Second), "before the one that arrived later")
		require.Equal(t, at(6), q[len(q)-1].done, "which is done later by as much")
		require.Equal(t, 6*time.Second, q.wait())
		require.Equal(t, at(11), q.add(at(10), time.Second), "after a pause")
		require.Equal(t, at(7), q.add(at(4), time.Second))
		require.Equal(t, at(11), q[len(q)-1].done, "the pause is long enough")
		time.Sleep(11*time.Second + remembered + 1)
		q.add(time.Now(), time.Second)
		require.Len(t, q, 1)
	})
}
