// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// only connects a client to one member alone.
func only(t *testing.T, srv *zktest.Server, name string, m *zktest.Member, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{m.Addr()}, timeout, zk.WithDialer(srv.DialFrom(name)), zk.WithLogger(quiet{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, _, err = conn.Exists("/")
	require.NoError(t, err)
	return conn
}

// bubble runs a test in virtual time with an ensemble of n members.
func bubble(t *testing.T, n int, fn func(t *testing.T, srv *zktest.Server), opts ...zktest.Options) {
	t.Helper()
	o := zktest.Options{}
	if len(opts) > 0 {
		o = opts[0]
	}
	o.Servers = n
	synctest.Test(t, func(t *testing.T) { fn(t, zktest.Start(t, o)) })
}

func mustCreate(t *testing.T, conn *zk.Conn, path string, flags int32) string {
	t.Helper()
	got, err := conn.Create(path, nil, flags, open)
	require.NoError(t, err)
	return got
}

func exists(t *testing.T, conn *zk.Conn, path string) bool {
	t.Helper()
	ok, _, err := conn.Exists(path)
	require.NoError(t, err)
	return ok
}

func TestACutOffFollowerServesItsClientsStaleDataForSyncLimitTicks(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(1), 4*time.Second)
		b := only(t, srv, "b", srv.Member(0), 10*time.Second)
		mustCreate(t, a, "/held", zk.FlagEphemeral)
		_, _, gone, err := b.GetW("/held")
		require.NoError(t, err)
		time.Sleep(3130 * time.Millisecond)

		srv.Member(1).CutOff()
		cut := time.Now()
		<-gone
		expired := time.Since(cut)
		assert.LessOrEqual(t, expired, 6*time.Second, "a session of 4s ends within a timeout and a tick")
		assert.False(t, exists(t, b, "/held"))
		assert.True(t, exists(t, a, "/held"), "the cut-off follower still answers reads, and with old data")
		assert.Equal(t, zk.StateHasSession, a.State())

		for a.State() == zk.StateHasSession {
			time.Sleep(10 * time.Millisecond)
		}
		dropped := time.Since(cut)
		assert.InDelta(t, 10, dropped.Seconds(), 0.1, "it gives up after five ticks")
		requireHangsUp(t, srv, srv.Member(1))

		srv.Member(1).Rejoin()
		raw(t, srv, srv.Member(1), wire.Hello{Timeout: 4000})
		eventually(t, func() bool { ok, _, err := a.Exists("/held"); return err == nil && !ok })
	})
}

func TestTouchesOfACutOffFollowersClientsNeverReachTheLeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(1), 6*time.Second)
		id := a.SessionID()
		time.Sleep(20*time.Second + 500*time.Millisecond)
		last := srv.Sessions()[0].Expires
		_, _, err := a.Exists("/") // touched at the follower; the next ping answer is half a second away
		require.NoError(t, err)
		srv.Member(1).CutOff()
		require.Equal(t, last, srv.Sessions()[0].Expires, "what the follower had not passed on does not count")
		time.Sleep(time.Until(last) - time.Millisecond)
		require.Len(t, srv.Sessions(), 1, "never early")
		time.Sleep(2 * time.Millisecond)
		require.Empty(t, srv.Sessions())
		require.Equal(t, id, a.SessionID(), "and the client does not know")
	})
}

func TestTouchesArriveWithTheFirstAnswerToALeadersPing(t *testing.T) {
	for _, c := range []struct {
		name       string
		harm, mend func(*zktest.Server)
		survives   bool
	}{
		{"a follower that was cut off has pings waiting", func(srv *zktest.Server) { srv.Member(1).CutOff() }, func(srv *zktest.Server) { srv.Member(1).Rejoin() }, true},
		{"a leader that stood still has sent none", func(srv *zktest.Server) { srv.Leader().Freeze() }, func(srv *zktest.Server) { srv.Leader().Thaw() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
				require.NotEqual(t, srv.Member(1), srv.Leader())
				a := only(t, srv, "a", srv.Member(1), 6*time.Second)
				time.Sleep(20*time.Second + 500*time.Millisecond)
				last := srv.Sessions()[0].Expires
				c.harm(srv)
				time.Sleep(time.Second)
				_, _, err := a.Exists("/")
				require.NoError(t, err, "the follower still answers")
				back := time.Until(last) - 100*time.Millisecond
				if !c.survives {
					back += 200 * time.Millisecond // it comes back when the time is up
				}
				time.Sleep(back)
				c.mend(srv)
				time.Sleep(time.Until(last) + 150*time.Millisecond)
				require.Equal(t, c.survives, len(srv.Sessions()) == 1)
			})
		})
	}
}

func TestAShortCutOnlyDelaysMessages(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(1), 20*time.Second)
		b := only(t, srv, "b", srv.Member(0), 20*time.Second)
		srv.Member(1).CutOff()
		done := make(chan error, 1)
		go func() { _, err := a.Create("/late", nil, 0, open); done <- err }()
		mustCreate(t, b, "/other", 0)
		time.Sleep(3 * time.Second)
		select {
		case err := <-done:
			t.Fatalf("a write through a cut-off follower was answered: %v", err)
		default:
		}
		assert.False(t, exists(t, b, "/late"))
		srv.Member(1).Rejoin()
		require.NoError(t, <-done)
		assert.True(t, exists(t, a, "/other"), "the missed commit arrived before the write's own")
		assert.Equal(t, zk.StateHasSession, a.State())
	})
}

func TestALaggingFollowerShowsThePastUntilSync(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(1), 20*time.Second)
		b := only(t, srv, "b", srv.Member(0), 20*time.Second)
		srv.Member(1).Lag(3 * time.Second)
		mustCreate(t, b, "/x", 0)
		assert.False(t, exists(t, a, "/x"))
		begin := time.Now()
		_, err := a.Sync("/x")
		require.NoError(t, err)
		assert.Equal(t, 3*time.Second, time.Since(begin))
		assert.True(t, exists(t, a, "/x"))
		begin = time.Now()
		mustCreate(t, a, "/y", 0)
		assert.Equal(t, 3*time.Second, time.Since(begin), "a write is answered when its own server shows it")
		assert.True(t, exists(t, a, "/y"))
	})
}

func TestALeaderThatLagsShowsItsOwnClientsThePast(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(0), 20*time.Second)
		b := only(t, srv, "b", srv.Member(1), 20*time.Second)
		srv.Member(0).Lag(3 * time.Second)
		_, _, seen, err := a.ExistsW("/x")
		require.NoError(t, err)
		begin := time.Now()
		mustCreate(t, b, "/x", 0)
		assert.True(t, exists(t, b, "/x"))
		_, err = a.Sync("/x")
		require.NoError(t, err)
		assert.False(t, exists(t, a, "/x"), "a sync with the leader itself waits for nothing")
		assert.Zero(t, time.Since(begin))
		assert.Contains(t, srv.Tree(), "/x")
		_, err = a.Create("/x", nil, 0, open)
		assert.ErrorIs(t, err, zk.ErrNodeExists)
		assert.Equal(t, 3*time.Second, time.Since(begin), "it is answered behind what was committed before")
		assert.True(t, exists(t, a, "/x"))
		assert.Equal(t, zk.EventNodeCreated, (<-seen).Type)
	})
}

// If a leader fell back behind the count of its followers, its next creates would not move the newest change that these show.
func TestALeaderThatLagsKeepsTheCountOfChildrenThatWasSet(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		far := only(t, srv, "far", srv.Member(1), 20*time.Second)
		mustCreate(t, far, "/d", 0)
		srv.Member(0).Lag(time.Second)
		mustCreate(t, far, "/elsewhere", 0)
		lab.SetChildCounter(srv, "/d", 100)
		time.Sleep(2 * time.Second) // the leader has applied what it had committed
		name, err := far.Create("/d/n-", nil, zk.FlagSequence, open)
		require.NoError(t, err)
		assert.Equal(t, "/d/n-0000000100", name)
		_, own, err := far.Get(name)
		require.NoError(t, err)
		_, dir, err := far.Get("/d")
		require.NoError(t, err)
		assert.Equal(t, own.Czxid, dir.Pzxid)
	})
}

// A create that is on its way to a follower would not move the newest change that this one shows.
func TestACreateOnItsWayIsOlderThanTheCountThatIsSet(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		near, far := only(t, srv, "near", srv.Member(0), 20*time.Second), only(t, srv, "far", srv.Member(1), 20*time.Second)
		mustCreate(t, near, "/d", 0)
		lab.DelayStreams(srv.Member(1), time.Second, 0)
		_, err := near.Create("/d/n-", nil, zk.FlagSequence, open)
		require.NoError(t, err)
		lab.SetChildCounter(srv, "/d", 100)
		time.Sleep(2 * time.Second)
		_, own, err := far.Get("/d/n-0000000000")
		require.NoError(t, err)
		_, dir, err := far.Get("/d")
		require.NoError(t, err)
		assert.Equal(t, own.Czxid, dir.Pzxid)
		name, err := far.Create("/d/n-", nil, zk.FlagSequence, open)
		require.NoError(t, err)
		assert.Equal(t, "/d/n-0000000100", name)
	})
}

func TestAMemberThatLagsShowsATransactionLater(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		lab.DelayStreams(srv.Member(1), time.Second, 0)
		srv.Member(2).Stop()
		require.NoError(t, srv.PutNode("/x", nil))
		zxid := srv.Zxid()
		shown := func() (by []bool) {
			for i := range 3 {
				by = append(by, lab.Shows(srv.Member(i), zxid))
			}
			return by
		}
		assert.Equal(t, []bool{true, false, true}, shown(), "the last serves nobody")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []bool{true, true, true}, shown())
		assert.False(t, lab.Shows(srv.Member(1), zxid+1))
	})
}

func TestALeaderThatLagsRefusesClientsThatHaveSeenMore(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000})
		srv.Member(0).Lag(3 * time.Second)
		require.NoError(t, c.Send(1, 1, create("/x", 0)))
		reply, err := c.Read()
		require.NoError(t, err)
		nc, err := srv.Dial("tcp", srv.Member(0).Addr(), time.Second)
		require.NoError(t, err)
		defer nc.Close()
		_, err = wire.New(nc).Connect(wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd, LastZxid: reply.Zxid})
		require.ErrorIs(t, err, io.EOF)
		time.Sleep(3 * time.Second)
		_, again := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd, LastZxid: reply.Zxid})
		require.Equal(t, sess.ID, again.ID)
	})
}

func TestALeaderWithoutAQuorumCommitsNothingAndStepsDown(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(0), 20*time.Second)
		mustCreate(t, a, "/x", 0)
		srv.Member(0).CutOff()
		assert.True(t, exists(t, a, "/x"), "it still answers reads")
		done := make(chan error, 1)
		go func() { _, err := a.Create("/never", nil, 0, open); done <- err }()
		time.Sleep(9 * time.Second)
		require.Empty(t, done)
		require.Equal(t, srv.Member(0), srv.Leader())
		require.Error(t, <-done)
		time.Sleep(time.Second)
		require.Equal(t, srv.Member(2), srv.Leader(), "the others elect one of themselves")
		b := only(t, srv, "b", srv.Member(1), 20*time.Second)
		assert.False(t, exists(t, b, "/never"))
		assert.True(t, exists(t, b, "/x"))
		assert.Equal(t, int64(2), srv.Zxid()>>32, "in a new epoch")
	})
}

func TestANewLeaderGivesEverySessionAFullTimeout(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(1), 6*time.Second)
		srv.Partition("a")
		before := srv.Sessions()[0].Expires
		time.Sleep(5 * time.Second)
		srv.ElectLeader(2)
		require.Equal(t, srv.Member(2), srv.Leader())
		after := srv.Sessions()[0].Expires
		assert.GreaterOrEqual(t, after.Sub(before), 4*time.Second)
		assert.GreaterOrEqual(t, time.Until(after), 6*time.Second)
		srv.HealClient("a")
		assert.True(t, exists(t, a, "/"))
	})
}

func TestAStoppedMembersClientsReconnectElsewhereAndKeepTheirSession(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 10*time.Second)
		mustCreate(t, a, "/e", zk.FlagEphemeral)
		id := a.SessionID()
		for i := range 3 {
			srv.Member(i).Stop()
			eventually(t, func() bool { ok, _, err := a.Exists("/e"); return err == nil && ok })
			srv.Member(i).Start()
		}
		assert.Equal(t, id, a.SessionID())
	})
}

// eventually polls in virtual time.
func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	for range 600 {
		if cond() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("did not come true within a minute")
}

func TestAFrozenMemberAcceptsRequestsAndAnswersNone(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(0), 20*time.Second)
		srv.Member(0).Freeze()
		done := make(chan error, 1)
		go func() { _, err := a.Create("/x", nil, 0, open); done <- err }()
		nc, err := srv.Dial("tcp", srv.Addr(), time.Second)
		require.NoError(t, err, "the kernel still accepts")
		defer nc.Close()
		time.Sleep(5 * time.Second)
		require.Empty(t, done)
		srv.Member(0).Thaw()
		require.NoError(t, <-done)
	})
}

func TestAMemberFrozenForLongDropsItsClientsWhenThawed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		nc, err := srv.Dial("tcp", srv.Member(0).Addr(), time.Second)
		require.NoError(t, err)
		srv.Member(0).Freeze()
		time.Sleep(11 * time.Second)
		require.NotEqual(t, srv.Member(0), srv.Leader())
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(time.Second)))
		_, err = nc.Read(make([]byte, 1))
		require.True(t, isTimeout(err), "not closed while frozen")
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(time.Second)))
		srv.Member(0).Thaw()
		_, err = nc.Read(make([]byte, 1))
		require.Error(t, err)
		require.False(t, isTimeout(err))
	})
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestAPartitionedClientIsCutOffSilentlyBothWays(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, events := connect(t, srv, "a", 9*time.Second)
		b, _ := connect(t, srv, "b", 9*time.Second)
		mustCreate(t, a, "/e", zk.FlagEphemeral)
		_, _, gone, err := b.GetW("/e")
		require.NoError(t, err)
		id := a.SessionID()
		for len(events) > 0 {
			<-events
		}
		srv.Partition("a")
		begin := time.Now()
		require.Equal(t, zk.StateDisconnected, (<-events).State)
		assert.Equal(t, 6*time.Second, time.Since(begin).Round(time.Second), "only its own read deadline tells the client")
		<-gone
		assert.GreaterOrEqual(t, time.Since(begin), 9*time.Second)
		_, err = srv.DialFrom("a")("tcp", srv.Addr(), time.Second)
		var ne net.Error
		require.ErrorAs(t, err, &ne)
		assert.True(t, ne.Timeout())
		srv.HealClient("a")
		eventually(t, func() bool { return a.State() == zk.StateHasSession && a.SessionID() != id })
		assert.False(t, exists(t, a, "/e"))
	})
}

func TestALostReplyWasApplied(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/dir", 0)
		var once atomic.Bool
		defer srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreate && r.Path == "/dir/n-" && once.CompareAndSwap(false, true) {
				return zktest.LoseReply
			}
			return zktest.Pass
		})()
		_, err := a.Create("/dir/n-", nil, zk.FlagEphemeral|zk.FlagSequence, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.Equal(t, []string{"n-0000000000"}, srv.Children("/dir"))
	})
}

func TestEachVerdictHasItsEffect(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		require.True(t, exists(t, a, "/"))
		var verdict atomic.Pointer[zktest.Verdict]
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if v := verdict.Load(); v != nil && r.Op == zktest.OpCreate {
				return *v
			}
			return zktest.Pass
		})
		try := func(path string, v zktest.Verdict) error {
			verdict.Store(&v)
			_, err := a.Create(path, nil, 0, open)
			return err
		}
		require.ErrorIs(t, try("/a", zktest.Answer(zktest.CodeNoAuth)), zk.ErrNoAuth)
		require.ErrorIs(t, try("/b", zktest.DropBefore), zk.ErrConnectionClosed)
		eventually(t, func() bool { return a.State() == zk.StateHasSession })
		begin := time.Now()
		require.NoError(t, try("/c", zktest.Delay(2*time.Second)))
		assert.Equal(t, 2*time.Second, time.Since(begin))

		release := make(chan struct{})
		held := make(chan error, 1)
		go func() { held <- try("/d", zktest.Hold(release)) }()
		synctest.Wait()
		behind := make(chan bool, 1)
		go func() { ok, _, _ := a.Exists("/d"); behind <- ok }()
		time.Sleep(time.Second)
		require.Empty(t, held)
		require.Empty(t, behind, "what comes after a held request waits too")
		close(release)
		require.NoError(t, <-held)
		require.True(t, <-behind)

		silent := make(chan error, 1)
		go func() { silent <- try("/e", zktest.DropReply) }()
		synctest.Wait()
		require.True(t, exists(t, a, "/e"), "applied, and the connection lives")
		require.Empty(t, silent)
		remove()
		mustCreate(t, a, "/f", 0)
		require.Equal(t, []string{"c", "d", "e", "f", "zookeeper"}, srv.Children("/"))
	})
}

func TestExpireSessionEndsItWithAllItsNodesInOneTransaction(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, events := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/e1", zk.FlagEphemeral)
		mustCreate(t, a, "/e2", zk.FlagEphemeral)
		id := a.SessionID()
		var txns []zktest.Txn
		defer srv.OnTxn(func(txn zktest.Txn) { txns = append(txns, txn) })()
		srv.ExpireSession(id)
		require.Len(t, txns, 1)
		require.ElementsMatch(t, []string{"/e1", "/e2"}, txns[0].Deleted)
		require.Equal(t, id, txns[0].Session)
		for e := range events {
			if e.State == zk.StateExpired {
				break
			}
		}
		eventually(t, func() bool { return a.SessionID() != id && a.SessionID() != 0 })
	})
}

func TestARestartKeepsDataZxidAndSessions(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/e", zk.FlagEphemeral)
		id, zxid := a.SessionID(), srv.Zxid()
		srv.Restart()
		require.Equal(t, zxid, srv.Zxid())
		eventually(t, func() bool { ok, _, err := a.Exists("/e"); return ok && err == nil })
		require.Equal(t, id, a.SessionID())
	})
}

func TestAWipedServerRefusesClientsThatHaveSeenMore(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		mustCreate(t, a, "/x", 0)
		srv.Wipe()
		require.Empty(t, srv.Tree())
		time.Sleep(30 * time.Second)
		require.NotEqual(t, zk.StateHasSession, a.State(), "it loops, as with the real one")
		b, _ := connect(t, srv, "b", 9*time.Second)
		require.False(t, exists(t, b, "/x"))
	})
}

func TestForgetSessionsGivesAnotherSessionWithoutExpiry(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, events := connect(t, srv, "a", 9*time.Second)
		require.True(t, exists(t, a, "/"))
		id := a.SessionID()
		for len(events) > 0 {
			<-events
		}
		srv.DropConnections()
		for e := range events {
			require.NotEqual(t, zk.StateExpired, e.State)
			if e.State == zk.StateHasSession {
				break
			}
		}
		require.NotEqual(t, id, a.SessionID())
		require.Len(t, srv.Sessions(), 2, "the old session lives until its timeout")
		time.Sleep(12 * time.Second)
		require.Len(t, srv.Sessions(), 1)
	}, lab.With(zktest.Options{}, lab.Options{ForgetSessions: true}))
}

func TestNoContainersAnswersUnimplemented(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		_, err := a.CreateContainer("/c", nil, zk.FlagContainer, open)
		require.Error(t, err)
		require.NotContains(t, srv.Tree(), "/c")
	}, zktest.Options{NoContainers: true})
}

func TestTheLastEventsOfASessionCanBeLost(t *testing.T) {
	for _, lost := range []bool{false, true} {
		bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
			c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
			require.NoError(t, c.Send(1, int32(zktest.OpCreate), create("/e", zk.FlagEphemeral)))
			require.NoError(t, c.Send(2, int32(zktest.OpExists), wire.NewBody().Str("/e").Bool(true)))
			for range 2 {
				_, err := c.Read()
				require.NoError(t, err)
			}
			srv.ExpireSession(sess.ID)
			event, err := c.Read()
			if lost {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.True(t, event.Notification())
			_, err = c.Read()
			require.Error(t, err)
		}, lab.With(zktest.Options{}, lab.Options{LoseLastEvents: lost}))
	}
}

// ZooKeeper keeps a session's nodes in a hash set.
func TestTheNodesOfASessionEndInAnyOrder(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		orders := map[string]bool{}
		srv.OnTxn(func(tx zktest.Txn) {
			if len(tx.Deleted) > 0 {
				orders[strings.Join(tx.Deleted, " ")] = true
			}
		})
		for range 50 {
			c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
			for _, path := range []string{"/a", "/b", "/c"} {
				require.NoError(t, c.Send(1, int32(zktest.OpCreate), create(path, zk.FlagEphemeral)))
				_, err := c.Read()
				require.NoError(t, err)
			}
			srv.ExpireSession(sess.ID)
		}
		require.Len(t, orders, 6)
	})
}

func TestRefusedDialsFailAtOnceAndConnectionsStay(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 9*time.Second)
		require.True(t, exists(t, a, "/"))
		srv.Member(0).Refuse(true)
		_, err := srv.Dial("tcp", srv.Addr(), time.Second)
		require.Error(t, err)
		require.True(t, exists(t, a, "/"))
		srv.Member(0).Refuse(false)
		nc, err := srv.Dial("tcp", srv.Addr(), time.Second)
		require.NoError(t, err)
		require.NoError(t, nc.Close())
	})
}

func TestAClientThatMovedIsRefusedThroughItsOldServer(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		first, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		_, again := raw(t, srv, srv.Member(2), wire.Hello{Timeout: 10000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID)
		require.NoError(t, first.Send(1, 1, create("/stray", 0)))
		_, err := first.Read()
		require.Error(t, err, "no answer, only the end of the connection")
		require.NotContains(t, srv.Tree(), "/stray")
	})
}

func TestReadsThroughALeaderThatTheClientLeftEndTheConnection(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		first, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		raw(t, srv, srv.Member(2), wire.Hello{Timeout: 10000, Session: sess.ID, Passwd: sess.Passwd})
		require.NoError(t, first.Send(1, 3, wire.NewBody().Str("/").Bool(false)))
		_, err := first.Read()
		require.Error(t, err)
	})
}

func TestChangesMissedDuringAShortCutArriveLater(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(1), 20*time.Second)
		b := only(t, srv, "b", srv.Member(0), 20*time.Second)
		_, _, made, err := a.ExistsW("/other")
		require.NoError(t, err)
		srv.Member(1).CutOff()
		mustCreate(t, b, "/other", 0)
		synctest.Wait()
		require.Empty(t, made)
		srv.Member(1).Rejoin()
		require.Equal(t, zk.EventNodeCreated, (<-made).Type)
	})
}

func TestAWriteThroughAFollowerThatGaveUpIsNeverApplied(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000})
		srv.Member(1).CutOff()
		require.NoError(t, c.Send(1, 1, create("/late", 0)))
		time.Sleep(11 * time.Second)
		srv.Member(1).Rejoin()
		_, again := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID, "the session lives")
		time.Sleep(time.Minute)
		require.NotContains(t, srv.Tree(), "/late")
	})
}

func TestACommitSurvivesItsLeaderEvenIfTheOthersLag(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(0), 20*time.Second)
		srv.Member(1).Lag(time.Minute)
		srv.Member(2).Lag(time.Minute)
		mustCreate(t, a, "/x", 0)
		srv.Member(0).Stop()
		time.Sleep(time.Second)
		require.Equal(t, srv.Member(2), srv.Leader())
		require.Contains(t, srv.Tree(), "/x")
	})
}

func TestAFollowerThatNoLongerLagsCatchesUpAtOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a := only(t, srv, "a", srv.Member(1), 20*time.Second)
		srv.Member(1).Lag(time.Hour)
		require.NoError(t, srv.PutNode("/x", nil))
		assert.False(t, exists(t, a, "/x"))
		srv.Member(1).Lag(0)
		assert.True(t, exists(t, a, "/x"))
	})
}

func TestAPartitionHidesEventsAndTheEndOfTheConnectionUntilItHeals(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/x", nil))
		nc, err := srv.DialFrom("a")("tcp", srv.Addr(), time.Second)
		require.NoError(t, err)
		defer nc.Close()
		c := wire.New(nc)
		_, err = c.Connect(wire.Hello{Timeout: 40000})
		require.NoError(t, err)
		require.NoError(t, c.Send(1, 4, wire.NewBody().Str("/x").Bool(true)))
		_, err = c.Read()
		require.NoError(t, err)
		srv.Partition("a")
		require.NoError(t, srv.PutNode("/x", nil))
		_, err = c.Read()
		require.True(t, isTimeout(err), "%v", err)
		srv.HealClient("a")
		event, err := c.Read()
		require.NoError(t, err)
		require.True(t, event.Notification())

		srv.Partition("a")
		srv.DropConnections()
		_, err = c.Read()
		require.True(t, isTimeout(err), "%v", err)
		srv.HealClient("a")
		_, err = c.Read()
		require.False(t, isTimeout(err), "%v", err)
		require.Error(t, err)
	})
}

func TestAnEnsembleWithoutAQuorumServesNoClient(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 10*time.Second)
		mustCreate(t, a, "/e", zk.FlagEphemeral)
		srv.Member(1).Stop()
		srv.Member(2).Stop()
		time.Sleep(20 * time.Second)
		require.Nil(t, srv.Leader())
		requireHangsUp(t, srv, srv.Member(0))
		for _, addr := range srv.Addrs()[1:] {
			_, err := srv.Dial("tcp", addr, time.Second)
			require.ErrorIs(t, err, syscall.ECONNREFUSED, "it does not run")
		}
		require.Error(t, srv.PutNode("/x", nil))
		require.Contains(t, srv.Tree(), "/e", "without a leader no session expires")
		srv.Member(2).Start()
		eventually(t, func() bool { ok, _, err := a.Exists("/e"); return ok && err == nil })
	})
}

func TestLatencyDelaysBothWaysAndKeepsTheOrder(t *testing.T) {
	const oneWay = 10 * time.Millisecond
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		a, _ := connect(t, srv, "a", 10*time.Second)
		require.True(t, exists(t, a, "/"))
		begin := time.Now()
		require.True(t, exists(t, a, "/"))
		require.InDelta(t, 2*oneWay, time.Since(begin), float64(time.Microsecond))
	}, zktest.Options{Latency: func(*rand.Rand) time.Duration { return oneWay }})
}

func TestAConnectRequestCanBeHeldOrRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		var verdict atomic.Pointer[zktest.Verdict]
		defer srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpCreateSession && verdict.Load() != nil {
				return *verdict.Load()
			}
			return zktest.Pass
		})()
		expired, late := zktest.Answer(zktest.CodeSessionExpired), zktest.Delay(3*time.Second)
		verdict.Store(&expired)
		_, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.Zero(t, sess.ID)
		verdict.Store(&late)
		begin := time.Now()
		_, sess = raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		require.NotZero(t, sess.ID)
		require.Equal(t, 3*time.Second, time.Since(begin))
	})
}

func TestEachSilentSessionExpiresInItsOwnBucket(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		connect(t, srv, "busy", 5*time.Second)
		time.Sleep(700 * time.Millisecond)
		begin := time.Now()
		ends := make(map[int64]time.Duration)
		defer srv.OnTxn(func(txn zktest.Txn) {
			if txn.Op == zktest.OpCloseSession {
				ends[txn.Session] = time.Since(begin)
			}
		})()
		want := make(map[int64]time.Duration)
		for timeout, end := range map[int32]time.Duration{4000: 5300, 6000: 7300, 15000: 15300, 15300: 17300} {
			_, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: timeout})
			want[sess.ID] = end * time.Millisecond // the next tick after the timeout, not the one it falls on
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, want, ends)
		require.Len(t, srv.Sessions(), 1)
	})
}

// raw opens a bare connection to one member and a session on it.
func raw(t *testing.T, srv *zktest.Server, m *zktest.Member, h wire.Hello) (*wire.Conn, wire.Session) {
	t.Helper()
	nc, err := srv.Dial("tcp", m.Addr(), time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	c := wire.New(nc)
	sess, err := c.Connect(h)
	require.NoError(t, err)
	return c, sess
}

// requireHangsUp requires that a member takes a connection, and closes it when it has read the connect request.
func requireHangsUp(t *testing.T, srv *zktest.Server, m *zktest.Member) {
	t.Helper()
	nc, err := srv.Dial("tcp", m.Addr(), time.Second)
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err = nc.Read(make([]byte, 1))
	require.True(t, isTimeout(err), "it waits for the connect request: %v", err)
	begin := time.Now()
	_, err = wire.New(nc).Connect(wire.Hello{Timeout: 10000})
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, time.Since(begin))
}

func TestALeaderWhoseFollowersHaveEndedGivesUpAfterATick(t *testing.T) {
	for name, strike := range map[string]func(m *zktest.Member){
		"ended": (*zktest.Member).Stop, "silent": (*zktest.Member).CutOff,
	} {
		bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
			strike(srv.Member(1))
			strike(srv.Member(2))
			begin := time.Now()
			for srv.Leader() != nil {
				time.Sleep(100 * time.Millisecond)
			}
			ticks := map[string]int{"ended": 1, "silent": 5}
			require.InDelta(t, 2*ticks[name], time.Since(begin).Seconds(), 0.2, name)
		})
	}
}

// A member that is back has connections from before, and serves them.
func TestAMemberServesClientsThatConnectedBeforeItHadALeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		srv.Member(1).Stop()
		srv.Member(2).Stop()
		time.Sleep(20 * time.Second)
		requireHangsUp(t, srv, srv.Member(0))
		nc, err := srv.Dial("tcp", srv.Member(0).Addr(), time.Second)
		require.NoError(t, err)
		defer nc.Close()
		srv.Member(1).Start()
		require.Nil(t, srv.Leader(), "they are electing")
		requireHangsUp(t, srv, srv.Member(1))
		time.Sleep(time.Second)
		require.NotNil(t, srv.Leader())
		_, err = wire.New(nc).Connect(wire.Hello{Timeout: 10000})
		require.NoError(t, err)
	})
}

// create is the body of a create request open to the world.
func create(path string, flags int32) *wire.Body {
	return wire.NewBody().Str(path).Buf(nil).Int(1).Int(31).Str("world").Str("anyone").Int(flags)
}
