// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// cutOffBehindALatePing delays the answers of the holder's server to the leader's pings, while writes overtake them, and then
// cuts it off. It fails the test if the next contender holds before the hold has ended.
func cutOffBehindALatePing(t *testing.T, opts zktest.Options, client zklock.Options, late, pings, phase time.Duration) {
	virtual(t, opts, func(t *testing.T, srv *zktest.Server) {
		time.Sleep(pings)
		srv.ElectLeader(1) // it pings from now on, every half tick; sessions expire at whole ticks
		leader := leaderIs(srv, opts.Servers)
		follower := srv.Member((leader + 1) % opts.Servers)
		client.Label = "holder"
		holder := connectWith(t, srv, &client, (leader+1)%opts.Servers)
		client.Label = "next"
		next := connectWith(t, srv, &client, leader)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		end := endOf(hold)
		second := lockLater(t.Context(), next.Mutex(path).Lock)

		time.Sleep(2*client.SessionTimeout + phase)
		lab.DelayStreams(follower, late, 0) // from now on
		time.Sleep(late - 2*time.Millisecond)
		confirmed := make(chan struct{})
		go func() { // ends with the hold
			defer close(confirmed)
			hold.Confirm(t.Context()) // a write that overtakes the server's answer to the leader's ping
		}()
		time.Sleep(time.Millisecond)
		lab.CutStreams(follower, false, true)
		<-second.done
		require.NoError(t, second.err)
		select {
		case <-end.done:
		default:
			t.Fatal("the next one holds, and the holder was not told")
		}
		require.False(t, end.at.After(second.at), "two held for %v", end.at.Sub(second.at))
		<-confirmed
		unlock(t, second.hold)
		lab.CutStreams(follower, false, false)
		lab.DelayStreams(follower, 0, 0)
	})
}

// A follower reports its live clients to the leader only with its answers to the leader's pings. Writes can overtake these.
//
//zklock:promise P2.1 A4
func TestALatePingLeavesOneHolder(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 1800 * time.Millisecond} {
		for pings := 500 * time.Millisecond; pings < time.Second; pings += 200 * time.Millisecond {
			for phase := time.Duration(0); phase < 2*time.Second; phase += time.Duration(oneIn(5)) * 50 * time.Millisecond {
				t.Run(fmt.Sprint(late, pings, phase), func(t *testing.T) {
					cutOffBehindALatePing(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second},
						zklock.Options{SessionTimeout: 4 * time.Second}, late, pings, phase)
				})
			}
		}
	}
}

// Servers can be configured to grant less than two ticks. Then TickTime is required, and used as given.
//
//zklock:promise P2.1 A3
func TestASessionBelowTwoTicksLeavesOneHolder(t *testing.T) {
	t.Parallel()
	for phase := time.Duration(0); phase < 2*time.Second; phase += 50 * time.Millisecond {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			cutOffBehindALatePing(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, MinSessionTimeout: 500 * time.Millisecond},
				zklock.Options{SessionTimeout: 2 * time.Second, TickTime: 2 * time.Second}, 0, 900*time.Millisecond, phase)
		})
	}
}

// A proof takes longer than the remaining time of such a session once its lease has expired, so an idle client must keep its
// lease.
//
//zklock:promise P2.1 A3
func TestAnIdleClientsNextHoldLastsThoughItsSessionIsAsShortAsATick(t *testing.T) {
	t.Parallel()
	for _, ticks := range []float64{1, 1.25, 1.5, 1.75} {
		t.Run(fmt.Sprint(ticks), func(t *testing.T) {
			virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, MinSessionTimeout: 500 * time.Millisecond, Latency: fixed(time.Millisecond)},
				func(t *testing.T, srv *zktest.Server) {
					term := time.Duration(ticks * float64(2*time.Second))
					client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{SessionTimeout: term, TickTime: 2 * time.Second, Dialer: srv.Dial})
					require.NoError(t, err)
					defer client.Close()
					unlockSoon(t, client)
					time.Sleep(10 * time.Minute)
					hold, err := client.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					for range 200 {
						time.Sleep(term / 40)
						require.NoError(t, hold.Check())
						require.GreaterOrEqual(t, hold.Remaining().Seconds()/term.Seconds(), 0.2)
					}
					require.NoError(t, hold.Unlock(t.Context()))
				})
		})
	}
}
