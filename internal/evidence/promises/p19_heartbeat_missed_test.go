// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// HeartbeatMissed is observed before the loss, regardless of how the replies fail to come.
//
//zklock:promise P19.7
func TestAMissedHeartbeatIsObservedBeforeTheLoss(t *testing.T) {
	for name, cut := range map[string]func(srv *zktest.Server){
		"nothing arrives":         func(srv *zktest.Server) { srv.Partition("a") },
		"the member is cut off":   func(srv *zktest.Server) { srv.Member(2).CutOff() },
		"the member stands still": func(srv *zktest.Server) { srv.Member(2).Freeze() },
		"connections are refused": func(srv *zktest.Server) {
			srv.Member(2).Refuse(true)
			srv.DropConnections()
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				seen := &recorder{}
				c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: seen}, 2)
				hold, err := c.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(2 * term)
				require.Empty(t, seen.of(observe.HeartbeatMissed), "all was well")
				cut(srv)
				<-hold.Context().Done()
				told := seen.of(observe.HeartbeatMissed)
				require.NotEmpty(t, told)
				if name != "connections are refused" {
					require.ErrorContains(t, told[0].Err, "no reply from the server for too long", "before the client library notices")
				}
			})
		})
	}
}

// A throttling server gets only one request at a time.
//
//zklock:promise P7.9
func TestAHeartbeatThatWasThrottledIsRepeatedOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		connect(t, srv, "a", term)
		time.Sleep(3 * term)
		var since time.Time
		var times []time.Duration
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSync {
				if since.IsZero() {
					since = time.Now()
				}
				times = append(times, time.Since(since))
				return zktest.Answer(-127)
			}
			return zktest.Pass
		})
		time.Sleep(term)
		synctest.Wait()
		require.Greater(t, len(times), 5)
		for i := 1; i < len(times); i++ {
			require.NotEqual(t, times[i-1], times[i], "several heartbeats at once")
		}
	})
}
