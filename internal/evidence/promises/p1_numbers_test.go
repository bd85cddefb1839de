// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// Servers match replies to a session's requests only by their xids, even across connections: a member that applies a request from
// another connection late takes its result for the reply to a request with the same xid.
//
//zklock:promise P1.1
func TestNoNumberIsGivenTwiceInASession(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		type number struct {
			session int64
			xid     int32
		}
		given := map[number]zktest.Op{}
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpPing || r.Op == zktest.OpCreateSession {
				return zktest.Pass
			}
			n := number{r.Session, r.Xid}
			if before, ok := given[n]; ok {
				t.Errorf("%v and %v have the number %d", before, r.Op, r.Xid)
			}
			given[n] = r.Op
			return zktest.Pass
		})
		hold, err := connect(t, srv, "a", term).Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for range 3 {
			time.Sleep(term)
			srv.DropConnections()
		}
		time.Sleep(term)
		synctest.Wait()
		require.NoError(t, hold.Check())
		unlock(t, hold)
	})
}
