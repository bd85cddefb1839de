// SPDX-License-Identifier: Apache-2.0

package zktest_test

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// The ways between a follower and its leader, each by itself: what may overtake
// what, and what the leader knows of the clients behind the follower.

// expires is when a session ends if its leader hears no more of it.
func expires(t *testing.T, srv *zktest.Server, id int64) time.Time {
	t.Helper()
	for _, sess := range srv.Sessions() {
		if sess.ID == id {
			return sess.Expires
		}
	}
	t.Fatalf("no session 0x%x", id)
	return time.Time{}
}

// The ensembles of these tests tick every two seconds and began a whole number
// of ticks ago, so that the leader's PINGs go out every full second.
const late = 100 * time.Millisecond

func TestATouchWaitsForALatePing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		time.Sleep(10 * time.Second)
		before := expires(t, srv, sess.ID)
		lab.DelayStreams(srv.Member(1), 900*time.Millisecond, 0)
		ping(t, c)
		time.Sleep(1900*time.Millisecond - late) // the PING went out at 1s and comes at 1.9s
		require.Equal(t, before, expires(t, srv, sess.ID))
		time.Sleep(2 * late)
		require.NotEqual(t, before, expires(t, srv, sess.ID))
	})
}

func TestTheReplyToAPingHasItsOwnLatency(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000})
		time.Sleep(10 * time.Second)
		lab.DelayStreams(srv.Member(1), 0, 5*time.Second)
		before := expires(t, srv, sess.ID)
		ping(t, c)
		time.Sleep(6*time.Second - late)
		require.Equal(t, before, expires(t, srv, sess.ID))
		time.Sleep(2 * late)
		require.NotEqual(t, before, expires(t, srv, sess.ID))
	})
}

func TestAForwardedWriteOvertakesTheTouchesBeforeIt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		time.Sleep(10 * time.Second)
		lab.DelayStreams(srv.Member(1), 900*time.Millisecond, 0)
		before := expires(t, srv, sess.ID)
		time.Sleep(1050 * time.Millisecond) // a PING is on its way
		ping(t, c)
		begin := time.Now()
		require.NoError(t, c.Send(1, 1, create("/x", 0)))
		synctest.Wait()
		require.Contains(t, srv.Tree(), "/x", "committed")
		require.Equal(t, before, expires(t, srv, sess.ID), "though no touch has come yet, and a write is none")
		lab.CutStreams(srv.Member(1), false, true)
		frame, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, int32(1), frame.Xid)
		require.Equal(t, 900*time.Millisecond, time.Since(begin), "the commit came behind the PING")
		time.Sleep(time.Until(before) - time.Millisecond)
		require.Len(t, srv.Sessions(), 1)
		time.Sleep(2 * time.Millisecond)
		require.Empty(t, srv.Sessions(), "events sent to the client do not keep its session alive")
	})
}

func TestAWriteIsATouchOnTheLeaderItself(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		time.Sleep(9900 * time.Millisecond)
		before := expires(t, srv, sess.ID)
		require.NoError(t, c.Send(1, 1, create("/x", 0)))
		_, err := c.Read()
		require.NoError(t, err)
		require.NotEqual(t, before, expires(t, srv, sess.ID))
	})
}

func TestAuthIsNoTouch(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 10000})
		time.Sleep(5 * time.Second)
		before := expires(t, srv, sess.ID)
		require.NoError(t, c.Send(-4, 100, wire.NewBody().Int(0).Str("digest").Buf([]byte("joe:secret"))))
		_, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, before, expires(t, srv, sess.ID))
	})
}

func TestTheStreamToTheLeaderCanBreakAlone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000})
		c.Wait = 20 * time.Second
		lab.CutStreams(srv.Member(1), false, true)
		cut := time.Now()
		require.NoError(t, srv.PutNode("/seen", nil))
		synctest.Wait()
		require.True(t, sees(t, c, "/seen"), "commits still arrive")
		require.NoError(t, c.Send(2, 1, create("/lost", 0)))
		time.Sleep(5 * time.Second)
		require.NotContains(t, srv.Tree(), "/lost")
		_, err := c.Read()
		require.Error(t, err)
		require.False(t, isTimeout(err), "the leader closes the connection, the follower drops its clients")
		require.Equal(t, 10*time.Second, time.Since(cut))
		lab.CutStreams(srv.Member(1), false, false)
		_, again := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID)
		require.NotContains(t, srv.Tree(), "/lost")
	})
}

func TestTheStreamFromTheLeaderCanBreakAlone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		lab.CutStreams(srv.Member(1), true, false)
		cut := time.Now()
		before := expires(t, srv, sess.ID)
		ping(t, c)
		require.NoError(t, c.Send(2, 1, create("/made", 0)))
		time.Sleep(5 * time.Second)
		require.Contains(t, srv.Tree(), "/made", "its writes are committed, and it does not hear of it")
		require.Equal(t, before, expires(t, srv, sess.ID), "without a PING there is no answer to one")
		_, err := c.Read()
		require.Error(t, err)
		require.False(t, isTimeout(err), "the follower gives up its leader")
		require.Equal(t, 10*time.Second, time.Since(cut))
	})
}

func TestAOneWayCutThatIsRepairedInTimeLosesNothing(t *testing.T) {
	for _, up := range []bool{false, true} {
		t.Run(fmt.Sprint("up ", up), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
				c, _ := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
				lab.CutStreams(srv.Member(1), !up, up)
				require.NoError(t, c.Send(2, 1, create("/x", 0)))
				time.Sleep(3 * time.Second)
				lab.CutStreams(srv.Member(1), false, false)
				frame, err := c.Read()
				require.NoError(t, err)
				require.Equal(t, int32(2), frame.Xid)
			})
		})
	}
}

func TestAFollowerThatReceivesNothingIsNotPartOfAQuorum(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		lab.CutStreams(srv.Member(1), true, false)
		lab.CutStreams(srv.Member(2), false, true)
		require.Error(t, srv.PutNode("/x", nil))
		lab.CutStreams(srv.Member(2), false, false)
		require.NoError(t, srv.PutNode("/x", nil))
	})
}

func TestOnlyTheFirstTouchIsLost(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		before := expires(t, srv, sess.ID)
		time.Sleep(2100 * time.Millisecond)
		ping(t, c)
		time.Sleep(2 * time.Second)
		require.Equal(t, before, expires(t, srv, sess.ID))
		ping(t, c)
		time.Sleep(2 * time.Second)
		require.NotEqual(t, before, expires(t, srv, sess.ID))
	}, lab.With(zktest.Options{}, lab.Options{LoseTouches: 1}))
}

func TestAFrozenLeaderSendsItsOverduePingsAfterItsWaitingReplies(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 20000})
		time.Sleep(10 * time.Second)
		srv.Member(0).Freeze()
		before := expires(t, srv, sess.ID)
		ping(t, c)
		time.Sleep(2 * time.Second)
		require.NoError(t, c.Send(1, 9, wire.NewBody().Str("/")))
		srv.Member(0).Thaw()
		begin := time.Now()
		_, err := c.Read()
		require.NoError(t, err)
		require.Zero(t, time.Since(begin))
		require.Equal(t, before, expires(t, srv, sess.ID), "the answer to the sync came before the PING")
		time.Sleep(10 * time.Second)
		require.NotEqual(t, before, expires(t, srv, sess.ID))
	}, lab.With(zktest.Options{Seed: 3}, lab.Options{LatePing: 100 * time.Millisecond}))
}

func TestALeaderThatStandsStillWithItsClockHasNoOverduePings(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 20000})
		begin := time.Now().Truncate(2 * time.Second)
		at := func(d time.Duration) { time.Sleep(time.Until(begin.Add(d))) }
		at(10*time.Second + 200*time.Millisecond)
		before := expires(t, srv, sess.ID)
		ping(t, c)
		resume := lab.StandStill(srv.Member(0))
		at(11*time.Second + 100*time.Millisecond)
		require.Equal(t, before, expires(t, srv, sess.ID), "the PING that was due after 11 s was not sent")
		resume()
		ping(t, c)
		later := before.Add(900 * time.Millisecond)
		require.Equal(t, later, expires(t, srv, sess.ID), "its clock is behind")
		at(12*time.Second - 150*time.Millisecond)
		require.Equal(t, later, expires(t, srv, sess.ID), "no PING was due")
		at(12 * time.Second)
		require.True(t, expires(t, srv, sess.ID).After(later))
		srv.Member(1).CutOff()
		end := expires(t, srv, sess.ID)
		require.Equal(t, later.Sub(end)%(2*time.Second), time.Duration(0), "its ticks are behind as well")
		at(end.Sub(begin) - 1)
		require.Len(t, srv.Sessions(), 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Empty(t, srv.Sessions())
		resume() // has no effect any more
	})
}

func TestTheExpirerClosesSessionsThatItHasTakenDespiteNewTouches(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *zktest.Server) {
		var ends []int64
		defer srv.OnTxn(func(txn zktest.Txn) {
			if txn.Op == zktest.OpCloseSession {
				ends = append(ends, txn.Session)
			}
		})()
		_, first := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 4000})
		c, second := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 4000})
		require.Equal(t, expires(t, srv, first.ID), expires(t, srv, second.ID))
		time.Sleep(time.Until(expires(t, srv, first.ID)))
		synctest.Wait()
		require.Equal(t, []int64{first.ID}, ends)
		time.Sleep(30 * time.Millisecond)
		require.NoError(t, c.Send(1, 1, create("/x", 0)))
		frame, err := c.Read()
		require.NoError(t, err)
		require.Zero(t, frame.Err, "it is still served")
		_, again := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 4000, Session: second.ID, Passwd: second.Passwd})
		require.Equal(t, second.ID, again.ID, "and taken back")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []int64{first.ID, second.ID}, ends)
	}, lab.With(zktest.Options{}, lab.Options{ExpiryGap: 50 * time.Millisecond}))
}

// A follower knows of a session only that its leader has it. The answer to a request whose connection has ended is taken for
// that to the next, though the leader has not heard of this one.
func TestTheReplyToAnEarlierRequestReattachesASession(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(2), wire.Hello{Timeout: 20000})
		again := wire.Hello{Timeout: 20000, Session: sess.ID, Passwd: sess.Passwd}
		ask := func() (answer chan wire.Session, end func() error) {
			nc, err := srv.Dial("tcp", srv.Member(1).Addr(), time.Second)
			require.NoError(t, err)
			c := wire.New(nc)
			c.Wait = time.Minute
			answer = make(chan wire.Session, 1)
			// Ends with the connection; the bubble waits for it.
			go func() {
				if sess, err := c.Connect(again); err == nil {
					answer <- sess
				}
			}()
			synctest.Wait()
			return answer, c.Close
		}
		lab.DelayStreams(srv.Member(1), 3*time.Second, 0)
		_, end := ask()
		time.Sleep(time.Second)
		require.NoError(t, end())
		known := expires(t, srv, sess.ID)
		lab.CutStreams(srv.Member(1), false, true)
		answer, end := ask()
		time.Sleep(2*time.Second - 1)
		require.Empty(t, answer)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Len(t, answer, 1)
		require.Equal(t, sess.ID, (<-answer).ID)
		require.Equal(t, known, expires(t, srv, sess.ID), "the leader has not heard of the second request")
		require.NoError(t, end())
		lab.CutStreams(srv.Member(1), false, false)
	})
}

func TestSessionsThatAStoppedExpirerHasTakenAreServed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		resume := lab.StopExpirer(srv)
		_, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 4000})
		time.Sleep(time.Until(expires(t, srv, sess.ID)))
		synctest.Wait()
		c, again := raw(t, srv, srv.Member(2), wire.Hello{Timeout: 4000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID, "it is taken back")
		require.NoError(t, c.Send(1, 1, create("/x", 1)))
		frame, err := c.Read()
		require.NoError(t, err)
		require.Zero(t, frame.Err, "and served")
		require.Contains(t, srv.Tree(), "/x")
		resume()
		resume() // does nothing
		synctest.Wait()
		require.Empty(t, srv.Sessions())
		require.NotContains(t, srv.Tree(), "/x")
	})
}

// A leader drops the requests of its own clients' sessions that it has begun to close, PINGs too.
func TestALeaderAnswersNothingOfASessionThatItCloses(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 4000})
		ping := func() { require.NoError(t, c.Send(-2, 11, nil)) }
		ping()
		frame, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, int32(-2), frame.Xid)
		lab.CutStreams(srv.Member(1), false, true)
		lab.CutStreams(srv.Member(2), false, true)
		time.Sleep(time.Until(expires(t, srv, sess.ID)) + late)
		ping()
		synctest.Wait()
		require.Len(t, srv.Sessions(), 1, "its end waits for a quorum")
		lab.CutStreams(srv.Member(1), false, false)
		_, err = c.Read()
		require.ErrorIs(t, err, io.EOF, "the connection ends with the session, and nothing was said before")
		require.Empty(t, srv.Sessions())
	}, zktest.Options{SyncLimit: 40})
}

func TestSessionsCanBeShorterThanTwoTicks(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 100})
		require.Equal(t, int32(500), sess.Timeout)
		_, sess = raw(t, srv, srv.Member(1), wire.Hello{Timeout: 60000})
		require.Equal(t, int32(3000), sess.Timeout)
		conn := only(t, srv, "a", srv.Member(1), time.Second)
		id := conn.SessionID()
		time.Sleep(time.Minute)
		require.Equal(t, id, conn.SessionID(), "PINGs every second and the expiry on the next tick just do")
	}, zktest.Options{MinSessionTimeout: 500 * time.Millisecond, MaxSessionTimeout: 3 * time.Second})
}

func TestASessionTimeoutRangeMustNotBeEmpty(t *testing.T) {
	_, err := zktest.New(zktest.Options{MinSessionTimeout: 2 * time.Second, MaxSessionTimeout: time.Second})
	require.ErrorContains(t, err, "longer than the longest")
}

func TestANewLeaderUsesTheTimeoutThatTheSessionWasCreatedWith(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 10000})
		_, again := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, int32(40000), again.Timeout)
		require.Greater(t, time.Until(expires(t, srv, sess.ID)), 39*time.Second)
		srv.ElectLeader(2)
		require.LessOrEqual(t, time.Until(expires(t, srv, sess.ID)), 12*time.Second)
	})
}

func TestALeaderThatWasReplacedAnswersSyncsFromThePast(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
		srv.Member(0).CutOff()
		srv.ElectLeader(2)
		require.NoError(t, srv.PutNode("/new", nil))
		begin := time.Now()
		syncs(t, c)
		require.False(t, sees(t, c, "/new"))
		d, again := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID, "it takes sessions back")
		syncs(t, d)
		require.False(t, sees(t, d, "/new"))
		require.Zero(t, time.Since(begin), "and asks nobody")
		_, unknown := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000, Session: sess.ID + 1, Passwd: sess.Passwd})
		require.Zero(t, unknown.ID, "nor about a session that it has not heard of")
		require.NoError(t, d.Send(7, 1, create("/never", 0)))
		require.NoError(t, d.Send(8, 9, wire.NewBody().Str("/")))
		_, err := d.Read()
		require.Error(t, err, "what it proposes is never committed, and a sync waits for it")
		srv.Member(0).Rejoin()
		e, again := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID)
		require.True(t, sees(t, e, "/new"))
		require.NotContains(t, srv.Tree(), "/never")
	})
}

func TestALeaderThatWasReplacedEndsSessionsByItsOwnClock(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 4000})
		srv.Member(0).CutOff()
		srv.ElectLeader(2)
		_, again := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 4000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID)
		for range 7 {
			time.Sleep(time.Second)
			_, again = raw(t, srv, srv.Member(1), wire.Hello{Timeout: 4000, Session: sess.ID, Passwd: sess.Passwd})
			require.Equal(t, sess.ID, again.ID)
		}
		_, old := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 4000, Session: sess.ID, Passwd: sess.Passwd})
		require.Zero(t, old.ID, "it says expired of a session that lives elsewhere")
		require.Len(t, srv.Sessions(), 1)
	})
}

func TestALeaderWithoutAQuorumReattachesSessions(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		_, sess := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000})
		srv.Member(0).CutOff()
		c, again := raw(t, srv, srv.Member(0), wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd})
		require.Equal(t, sess.ID, again.ID)
		syncs(t, c)
	})
}

func TestAHeldCreateRunsWhenItsServerHasTheSessionAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		back int
		runs bool
	}{{"at the same server", 1, true}, {"at another server", 2, false}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
				first, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 40000})
				release := lab.HoldForwards(srv.Member(1))
				require.NoError(t, first.Send(1, 1, create("/late", 1)))
				synctest.Wait()
				require.NoError(t, first.Close())
				reach := func(member int) *wire.Conn {
					conn, again := raw(t, srv, srv.Member(member), wire.Hello{Timeout: 40000, Session: sess.ID, Passwd: sess.Passwd})
					require.Equal(t, sess.ID, again.ID)
					return conn
				}
				elsewhere := reach(2)
				require.NoError(t, srv.PutNode("/quorum", nil))
				syncs(t, elsewhere)
				require.False(t, sees(t, elsewhere, "/late"))
				reach(c.back)
				require.NotContains(t, srv.Tree(), "/late")
				release()
				synctest.Wait()
				require.Equal(t, c.runs, len(srv.Ephemerals(sess.ID)) == 1)
				release() // does nothing
			})
		})
	}
}

func TestTouchesOvertakeHeldRequests(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *zktest.Server) {
		c, sess := raw(t, srv, srv.Member(1), wire.Hello{Timeout: 4000})
		release := lab.HoldForwards(srv.Member(1))
		require.NoError(t, c.Send(1, 1, create("/x", 1)))
		for range 60 {
			time.Sleep(time.Second)
			require.NoError(t, c.Send(-2, 11, nil))
		}
		require.Empty(t, srv.Ephemerals(sess.ID))
		release()
		frame, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, int32(1), frame.Xid)
		require.Equal(t, []string{"/x"}, srv.Ephemerals(sess.ID))
	})
}

// ping sends a client's ping and reads its answer.
func ping(t *testing.T, c *wire.Conn) {
	t.Helper()
	require.NoError(t, c.Send(-2, 11, wire.NewBody()))
	frame, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, int32(-2), frame.Xid)
}

// syncs sends a sync and reads its answer.
func syncs(t *testing.T, c *wire.Conn) {
	t.Helper()
	require.NoError(t, c.Send(5, 9, wire.NewBody().Str("/")))
	frame, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, int32(5), frame.Xid)
	require.Zero(t, frame.Err)
}

// sees asks whether a node exists.
func sees(t *testing.T, c *wire.Conn, path string) bool {
	t.Helper()
	require.NoError(t, c.Send(6, 3, wire.NewBody().Str(path).Bool(false)))
	frame, err := c.Read()
	require.NoError(t, err)
	return frame.Err == 0
}
