// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// The servers have deleted the nodes of a session that expired in an outage. The client does not delete them again: the servers have
// enough to do then.
//
//zklock:promise P9.10
func TestAHoldThatIsLostInAnOutageCostsNoDelete(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("a")
		<-hold.Context().Done()
		srv.ResetCounts()
		time.AfterFunc(term, func() { srv.HealClient("a") })
		_, err = c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(term)
		require.Zero(t, srv.Requests()[zktest.OpDelete])
	})
}
