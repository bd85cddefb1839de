// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// slowLeader returns an ensemble during a rolling change of tickTime: the leader's tick is longer than the followers'.
func slowLeader(tick time.Duration) zktest.Options {
	return zktest.Options{Servers: 3, TickTimes: []time.Duration{tick, 2 * time.Second, 2 * time.Second}}
}

// cutAtTheSlowLeader cuts a holder's follower off from the leader, together with the holder, some time after the leader sent its
// newest PING. It returns how long the holder would have overlapped with the next one. The follower rejoins as soon as there
// are two holders.
func cutAtTheSlowLeader(t *testing.T, srv *zktest.Server, opts zklock.Options, since, cut time.Duration) (both time.Duration) {
	time.Sleep(since)
	srv.ElectLeader(0) // it pings from now on, every half tick; sessions expire at whole ticks
	opts.Label = "holder"
	holder := connectWith(t, srv, &opts, 1)
	opts.Label, opts.Observer, opts.Logger = "next", nil, nil
	next := connectWith(t, srv, &opts, 2)
	hold, err := holder.Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	end := endOf(hold)
	second := lockLater(t.Context(), next.Mutex(path).Lock)
	time.Sleep(cut)
	follower := srv.Member(1)
	follower.CutOff()
	<-second.done
	require.NoError(t, second.err)
	if hold.Context().Err() == nil {
		both = hold.Remaining()
	}
	follower.Rejoin() // it notifies the holder that the session has expired
	<-end.done
	unlock(t, second.hold)
	return both
}

// alarms counts a client's reports of sessions that expired early.
type alarms struct {
	mu     sync.Mutex
	events []error // guarded by mu
	log    strings.Builder
}

func (a *alarms) Observe(e observe.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Kind == observe.ExpiredEarly {
		a.events = append(a.events, e.Err)
	}
}

func (a *alarms) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(p)
}

func (a *alarms) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a, &slog.HandlerOptions{Level: slog.LevelError}))
}

// throughCuts tries cuts at every eighth of the leader's tick, for several positions of its PINGs
// between the ticks on which sessions expire.
func throughCuts(t *testing.T, tick time.Duration, opts zklock.Options) (both []time.Duration, a *alarms) {
	a = &alarms{}
	for since := tick / 4; since < tick/2; since += tick / 16 {
		for cut := tick / 2; cut < 2*tick; cut += tick / 8 {
			t.Run(fmt.Sprint(since, cut), func(t *testing.T) {
				virtual(t, slowLeader(tick), func(t *testing.T, srv *zktest.Server) {
					opts.Observer, opts.Logger = a, a.logger()
					if d := cutAtTheSlowLeader(t, srv, opts, since, cut-100*time.Millisecond); d > 0 {
						both = append(both, d)
					}
				})
			})
		}
	}
	return both, a
}

// A client's server grants two of its own ticks, but reports the session to the leader at the leader's pings, which depend on the
// leader's tick. This violates the assumption on ticks. It is reported.
//
//zklock:promise P2.13 A3
func TestALeaderWithALongTickIsReported(t *testing.T) {
	t.Parallel()
	both, a := throughCuts(t, 8*time.Second, zklock.Options{SessionTimeout: 4 * time.Second})
	t.Logf("two holders %d times: %v; reported %d times", len(both), both, len(a.events))
	require.NotEmpty(t, both, "the tests with the right tick show nothing")
	require.GreaterOrEqual(t, len(a.events), len(both), "the follower rejoins while there are two holders")
	for _, err := range a.events {
		require.ErrorContains(t, err, "tickTime")
	}
	require.Equal(t, len(a.events), strings.Count(a.log.String(), "zklock: session expired early"), a.log.String())
}

//zklock:promise P2.1 A3
func TestWithTheLongestTickThereIsOneHolder(t *testing.T) {
	t.Parallel()
	both, a := throughCuts(t, 8*time.Second, zklock.Options{SessionTimeout: 12 * time.Second, TickTime: 8 * time.Second})
	require.Empty(t, both)
	require.Empty(t, a.events)
}

//zklock:promise P2.1 A3
func TestALeaderWhoseTickIsHalfATimeoutLeavesOneHolder(t *testing.T) {
	t.Parallel()
	both, a := throughCuts(t, 4*time.Second, zklock.Options{SessionTimeout: 8 * time.Second})
	require.Empty(t, both)
	require.Empty(t, a.events)
}

// A client that cannot reconnect in time has noticed that its node was deleted while its lease was valid.
//
//zklock:promise P2.13
func TestASessionThatExpiredEarlyIsReportedAfterALongReconnect(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a := &alarms{}
		client := connectWith(t, srv, &zklock.Options{Label: "holder", Observer: a, Logger: a.logger()})
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second) // by now, the watch on its node is set
		srv.Member(0).Refuse(true)
		srv.ExpireSession(srv.Sessions()[0].ID) // which no server does by itself
		<-hold.Context().Done()
		require.ErrorContains(t, context.Cause(hold.Context()), "was deleted")
		time.Sleep(2 * term)
		synctest.Wait()
		require.Empty(t, a.events, "nothing was said about the session")
		srv.Member(0).Refuse(false)
		time.Sleep(2 * time.Second) // dials that fail are up to a second apart
		synctest.Wait()
		require.Len(t, a.events, 1)
	})
}

//zklock:promise P2.13
func TestANodeDeletedByAnOperatorIsNotReportedAsAnEarlyExpiry(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a := &alarms{}
		client := connectWith(t, srv, &zklock.Options{Label: "holder", Observer: a, Logger: a.logger()})
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, srv.DeleteNode(hold.Node()))
		<-hold.Context().Done()
		other, err := client.Mutex("/locks/other").Lock(t.Context()) // its replies come after the deletion
		require.NoError(t, err)
		defer other.Unlock(context.WithoutCancel(t.Context()))
		srv.Member(0).Refuse(true)
		srv.DropConnections()
		time.Sleep(3 * term)
		srv.Member(0).Refuse(false)
		time.Sleep(term)
		synctest.Wait()
		require.Empty(t, a.events)
	})
}

// After the deletion no request is answered, and the session expires normally.
//
//zklock:promise P2.13
func TestANodeDeletedBeforeTheServerFellSilentIsNotReportedAsAnEarlyExpiry(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a := &alarms{}
		client := connectWith(t, srv, &zklock.Options{Label: "holder", Observer: a, Logger: a.logger()})
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		answer := make(chan struct{})
		defer srv.Intercept(func(*zktest.Request) zktest.Verdict { return zktest.Hold(answer) })()
		require.NoError(t, srv.DeleteNode(hold.Node()))
		<-hold.Context().Done()
		require.ErrorContains(t, context.Cause(hold.Context()), "was deleted")
		session := srv.Sessions()[0].ID
		srv.Member(0).Refuse(true)
		time.Sleep(3 * term)
		close(answer)
		for _, s := range srv.Sessions() {
			require.NotEqual(t, session, s.ID)
		}
		srv.Member(0).Refuse(false)
		time.Sleep(term)
		synctest.Wait()
		require.Empty(t, a.events)
	})
}

//zklock:promise P2.1 A3
func TestASessionTooShortForTheLongestTickIsRefused(t *testing.T) {
	virtual(t, slowLeader(8*time.Second), func(t *testing.T, srv *zktest.Server) {
		_, err := zklock.Connect(t.Context(), srv.Addrs()[1:], &zklock.Options{SessionTimeout: 4 * time.Second, TickTime: 8 * time.Second, Dialer: srv.Dial})
		require.ErrorIs(t, err, zklock.ErrInvalid)
		require.ErrorContains(t, err, "session timeout of 4s is too short for a tickTime of 8s")
	})
}
