// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// A lease that has expired must be renewed on the same connection, however short the session is.
//
//zklock:promise P7.2
func TestALeaseThatRanOutComesBack(t *testing.T) {
	const tick = 2 * time.Second
	for _, session := range []time.Duration{tick, 3 * tick / 2, 2 * tick, 5 * tick} {
		t.Run(fmt.Sprint(session), func(t *testing.T) {
			opts := zktest.Options{Servers: 3, TickTime: tick, MinSessionTimeout: tick / 2, Latency: fixed(time.Millisecond)}
			virtual(t, opts, func(t *testing.T, srv *zktest.Server) {
				client := connectWith(t, srv, &zklock.Options{SessionTimeout: session, TickTime: tick, Label: "a"})
				warm, err := client.Mutex(path + "-other").Lock(t.Context())
				require.NoError(t, err)
				remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == zktest.OpMulti {
						return zktest.Answer(-127)
					}
					return zktest.Pass
				})
				<-warm.Context().Done()
				require.ErrorIs(t, context.Cause(warm.Context()), zklock.ErrLost)
				time.Sleep(2 * session)
				remove()

				began := time.Now()
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				require.Less(t, time.Since(began), 3*session)
				unlock(t, hold)
			})
		})
	}
}

// A heartbeat is also a touch. If each touch had a separate request, there would be more and more of them.
//
//zklock:promise P9.7
func TestAShortSessionHasFewHeartbeats(t *testing.T) {
	const tick, way = 2 * time.Second, 10 * time.Millisecond
	latency := func(r *rand.Rand) time.Duration { return way/2 + time.Duration(r.Int64N(int64(way))) }
	for _, session := range []time.Duration{tick, tick * 11 / 10, tick * 5 / 4} {
		t.Run(fmt.Sprint(session), func(t *testing.T) {
			virtual(t, zktest.Options{Servers: 3, TickTime: tick, MinSessionTimeout: tick / 2, Latency: latency}, func(t *testing.T, srv *zktest.Server) {
				client := connectWith(t, srv, &zklock.Options{SessionTimeout: session, TickTime: tick, Label: "a"})
				hold, err := client.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				const timeouts = 50
				srv.ResetCounts()
				for range 100 * timeouts {
					time.Sleep(session / 100)
					require.Greater(t, hold.Remaining(), session*3/20)
				}
				require.Less(t, srv.Requests()[zktest.OpExists], 25*timeouts, "twelve heartbeats in a timeout, each with two reads at most")
				unlock(t, hold)
			})
		})
	}
}

// With sessions of two ticks a round trip may take a twelfth of the timeout on average, at times five times as long.
//
//zklock:promise P7.2
func TestASlowNetworkDelaysNoGrantForProof(t *testing.T) {
	t.Parallel()
	const tick, session = 2 * time.Second, 4 * time.Second
	slow := func(r *rand.Rand) time.Duration {
		d := time.Duration(r.Int64N(int64(session / 12)))
		if r.IntN(200) == 0 {
			d *= 5
		}
		return d
	}
	virtual(t, zktest.Options{Servers: 3, TickTime: tick, Latency: slow}, func(t *testing.T, srv *zktest.Server) {
		client := connectWith(t, srv, &zklock.Options{SessionTimeout: session, Label: "a"})
		for range 200 {
			began := time.Now()
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			require.Less(t, time.Since(began), 12*session) // six in two of a hundred runs
			select {
			case <-time.After(session):
			case <-hold.Context().Done():
			}
			_ = hold.Unlock(t.Context())
		}
	})
}
