// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// A server closes the connection of a session that is ended early, and does not always send the events first. The holder notices
// it on the next connection, when the next contender already holds.
//
//zklock:promise P2.2 A7
func TestTheEndOfASessionIsNoticedWithoutItsLastEvents(t *testing.T) {
	for _, flavor := range []zktest.Flavor{zktest.ZooKeeper38, zktest.ZooKeeper39, zktest.Keeper} {
		for _, pause := range []time.Duration{0, 100 * time.Millisecond, 990 * time.Millisecond, 2 * time.Second, 3 * term} {
			t.Run(fmt.Sprint(flavor, " after ", pause), func(t *testing.T) {
				virtual(t, lab.With(zktest.Options{Servers: 3, Flavor: flavor}, lab.Options{LoseLastEvents: true}), func(t *testing.T, srv *zktest.Server) {
					holder, contender := connect(t, srv, "holder", term, 2), connect(t, srv, "contender", term, 0, 1)
					time.Sleep(2 * time.Second) // Keeper closes the connection on the first SetWatches, so the next connection comes after a pause
					hold, err := holder.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					end := endOf(hold)
					next := lockLater(t.Context(), contender.Mutex(path).Lock)
					time.Sleep(pause)
					node, _ := srv.Node(hold.Node())
					struck := time.Now()
					srv.ExpireSession(node.EphemeralOwner)
					<-next.done
					require.NoError(t, next.err)
					require.Equal(t, struck, next.at)
					synctest.Wait()
					<-end.done
					require.ErrorIs(t, end.cause, zklock.ErrLost)
					late := end.at.Sub(struck)
					if pause > time.Second {
						require.Zero(t, late)
					}
					require.Less(t, late, 100*time.Millisecond, "a connection that was lost within a second is replaced after a pause")
				})
			})
		}
	}
}
