// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// In these tests, the leader's expirer has taken a client's session for expiry, and is suspended before it ends the session.
// Meanwhile, the session is served and can be resumed, and its writes are committed. A client that reconnects must not take that
// for proof that its session is alive.

// shortTerm is the session timeout of these tests: two ticks.
const shortTerm = 4 * time.Second

// taken waits until the expirer has taken the session of label's connection, and returns when that was.
func taken(t *testing.T, srv *zktest.Server, label string) time.Time {
	for _, sess := range srv.Sessions() {
		if sess.Client == label {
			time.Sleep(time.Until(sess.Expires))
			synctest.Wait()
			return sess.Expires
		}
	}
	t.Fatalf("no session of %s", label)
	return time.Time{}
}

// notAtTheSameTime lets the expirer continue in time. The client's node is in the queue by then. notAtTheSameTime fails the test if the client
// holds when its session ends.
func notAtTheSameTime(t *testing.T, srv *zktest.Server, a *attempt, since time.Time, resume func()) {
	time.Sleep(time.Until(since.Add(900 * time.Millisecond)))
	synctest.Wait()
	require.Len(t, queue(srv, path), 1, "its node is made")
	resume()
	synctest.Wait()
	require.Empty(t, queue(srv, path), "and gone with the session")
	require.False(t, a.returned() && a.err == nil && a.hold.Check() == nil, "it was granted the lock: %v", a.hold)
	require.Eventually(t, a.returned, time.Minute, 10*time.Millisecond)
	require.NoError(t, a.err, "it has queued again under another session")
	unlock(t, a.hold)
}

// A client that was always connected to the old leader reconnects to the new one, which has received nothing from it.
//
//zklock:promise P2.1 A5
func TestARunAtADeposedLeaderDoesNotCountAtTheNext(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		srv.Member(1).Refuse(true)
		client := connect(t, srv, "idle", shortTerm, 0, 1)
		srv.Member(1).Refuse(false)
		time.Sleep(time.Minute)
		srv.Member(0).CutOff()
		srv.ElectLeader(2)
		resume := lab.StopExpirer(srv)
		since := taken(t, srv, "idle")
		srv.Member(0).Stop()
		a := lockLater(t.Context(), client.Mutex(path).Lock)
		notAtTheSameTime(t, srv, a, since, resume)
	})
}

// The leader received nothing from a client for a while, although the connection remained.
//
//zklock:promise P2.1 A5
func TestAGapOnOneConnectionProvesNothing(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3, SyncLimit: 20}, func(t *testing.T, srv *zktest.Server) {
		client := connectWith(t, srv, &zklock.Options{Label: "idle", SessionTimeout: term, TickTime: 2 * time.Second}, 1)
		time.Sleep(time.Minute)
		resume := lab.StopExpirer(srv)
		lab.CutStreams(srv.Member(1), false, true)
		since := taken(t, srv, "idle")
		a := lockLater(t.Context(), client.Mutex(path).Lock)
		synctest.Wait()
		lab.CutStreams(srv.Member(1), false, false)
		notAtTheSameTime(t, srv, a, since, resume)
	})
}

// The reply to an earlier reconnect ends a later one, which the leader has not received.
//
//zklock:promise P2.1 A5
func TestAReconnectByAnEarlierReplyProvesNothing(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		client, err := zklock.Connect(t.Context(), []string{srv.Member(1).Addr()}, &zklock.Options{SessionTimeout: term, Dialer: srv.DialFrom("back")})
		require.NoError(t, err)
		defer client.Close()
		unlockSoon(t, client)
		proven := time.Now()
		resume := lab.StopExpirer(srv)
		lab.DelayStreams(srv.Member(1), time.Minute, 0)
		srv.DropConnections() // it reconnects repeatedly, and the replies are in flight
		time.Sleep(5 * time.Second)
		lab.CutStreams(srv.Member(1), false, true) // its requests from now on do not reach the leader
		a := lockLater(t.Context(), client.Mutex(path).Lock)
		time.Sleep(time.Until(proven.Add(9 * time.Second)))
		lab.DelayStreams(srv.Member(1), 0, 0)
		since := taken(t, srv, "back")
		require.Greater(t, since.Sub(proven), term)
		lab.CutStreams(srv.Member(1), false, false)
		notAtTheSameTime(t, srv, a, since, resume)
	})
}
