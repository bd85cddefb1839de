// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// moveTo makes all other members refuse the client, so that it connects to the member to.
func moveTo(srv *zktest.Server, members, to int) {
	for i := range members {
		srv.Member(i).Refuse(i != to)
	}
	srv.DropConnections()
	time.Sleep(time.Second)
}

// leaderIs returns the number of the leader.
func leaderIs(srv *zktest.Server, members int) int {
	for i := range members {
		if srv.Member(i) == srv.Leader() {
			return i
		}
	}
	return -1
}

// TestACreateUnknownToAReplacedLeaderLeavesNoGhost loses the reply to a create. The client then reconnects to a leader
// that was replaced before the create and has not noticed it. This leader resumes the session, answers syncs, and does not show
// the node.
//
//zklock:promise P5.1
func TestACreateUnknownToAReplacedLeaderLeavesNoGhost(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, SyncLimit: 5}, func(t *testing.T, srv *zktest.Server) {
		const session = 30 * time.Second
		old := leaderIs(srv, 3)
		next := (old + 1) % 3
		client := connect(t, srv, "a", session, old, next)
		moveTo(srv, 3, next)
		unlockSoon(t, client)
		other := connect(t, srv, "b", session, next, (old+2)%3)

		srv.Member(old).CutOff()
		srv.ElectLeader(next)
		var lost atomic.Bool
		stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client != "a" || !makesContender(r) || lost.Swap(true) {
				return zktest.Pass
			}
			srv.Member(next).Refuse(true)
			srv.Member(old).Refuse(false)
			return zktest.LoseReply
		})
		srv.Member(next).Refuse(false)
		srv.Member((old + 2) % 3).Refuse(false)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		first := lockLater(ctx, client.Mutex(path).Lock)
		time.Sleep(5 * time.Second) // the replaced leader still replies
		synctest.Wait()
		require.True(t, lost.Load())
		srv.Member(next).Refuse(false)
		srv.Member(old).Rejoin()
		<-first.done
		require.NoError(t, first.err)
		stop()
		unlock(t, first.hold)
		second, err := other.Mutex(path).Lock(ctx)
		require.NoError(t, err, "left in the queue: %v", queue(srv, path))
		unlock(t, second)
		noGhost(t, srv, path)
	})
}

// TestACreateThatRunsLateIsRemovedWhenItAppears delays a create in a server that the client leaves and to which it reconnects
// later.
//
//zklock:promise P5.1
func TestACreateThatRunsLateIsRemovedWhenItAppears(t *testing.T) {
	for name, giveUp := range map[string]bool{"the caller continues": false, "the caller gives up": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				leader := leaderIs(srv, 3)
				follower := (leader + 1) % 3
				client := connect(t, srv, "a", term)
				moveTo(srv, 3, follower)
				unlockSoon(t, client)
				release := lab.HoldForwards(srv.Member(follower))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := lockLater(ctx, client.Mutex(path).Lock)
				time.Sleep(100 * time.Millisecond)
				if giveUp {
					cancel()
				}
				moveTo(srv, 3, leader)
				require.True(t, first.returned())
				if !giveUp {
					require.NoError(t, first.err, "the create is not there")
				}
				moveTo(srv, 3, follower) // resumes the session before the delayed requests
				release()
				time.Sleep(time.Second)
				if giveUp {
					require.ErrorIs(t, first.err, context.Canceled)
				} else {
					require.Len(t, queue(srv, path), 1)
					require.NoError(t, first.hold.Confirm(t.Context()))
					unlock(t, first.hold)
				}
				require.Empty(t, queue(srv, path))
				unlockSoon(t, client)
			})
		})
	}
}

// The client that has sent the create is closed before it runs. Its session lives on, because the program has made the connection.
//
//zklock:promise P5.1
func TestACreateThatRunsAfterCloseIsRemovedFromASharedConnection(t *testing.T) {
	for name, others := range map[string]int{"no client is left": 0, "another client is left": 1} {
		t.Run(name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				leader := leaderIs(srv, 3)
				follower := (leader + 1) % 3
				on := shareOn(t, srv, "a", term)
				for range others {
					on.attach(t, nil)
				}
				client := on.attach(t, nil)
				moveTo(srv, 3, follower)
				unlockSoon(t, client)
				release := lab.HoldForwards(srv.Member(follower))
				first := lockLater(t.Context(), client.Mutex(path).Lock)
				time.Sleep(100 * time.Millisecond)
				go client.Close() // ends after the move
				moveTo(srv, 3, leader)
				<-first.done
				require.ErrorIs(t, first.err, zklock.ErrClosed)
				client.Close()
				moveTo(srv, 3, follower) // resumes the session before the delayed requests
				release()
				time.Sleep(term/4 + 500*time.Millisecond)
				require.Empty(t, queue(srv, path))
			})
		})
	}
}

// searches returns the number of goroutines of this process that look for lost creates.
func searches() int {
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("(*Sweeper).run("))
}

// TestTheSearchForALostCreateEnds counts the requests after a reconnect: none, once a later leader has replied.
//
//zklock:promise P5.2
func TestTheSearchForALostCreateEnds(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		struck := strikeOnce(srv, "a", 0, func(*zktest.Request) zktest.Verdict { return zktest.DropBefore })
		unlockSoon(t, client)
		require.True(t, struck())
		time.Sleep(time.Minute)
		require.Equal(t, 1, searches(), "the create may still run")
		srv.ElectLeader((leaderIs(srv, 3) + 1) % 3)
		time.Sleep(time.Minute)
		require.Zero(t, searches(), "no earlier leader commits anything")
		time.Sleep(3 * time.Minute) // heartbeats continue meanwhile
		resetCounts(srv)
		srv.DropConnections()
		time.Sleep(time.Minute)
		require.Zero(t, srv.Requests()[zktest.OpMulti])
	})
}

// TestTheSearchForALostCreateEndsWithItsSession is the same test without a later leader: the search ends with the session.
//
//zklock:promise P5.2
func TestTheSearchForALostCreateEndsWithItsSession(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		struck := strikeOnce(srv, "a", 0, func(*zktest.Request) zktest.Verdict { return zktest.DropBefore })
		unlockSoon(t, client)
		require.True(t, struck())
		time.Sleep(time.Hour)
		require.Equal(t, 1, searches(), "the create may still run")
		for _, s := range srv.Sessions() {
			srv.ExpireSession(s.ID)
		}
		time.Sleep(time.Minute)
		require.Zero(t, searches())
	})
}

// TestAForgedNodeIsNotTakenForALostCreate creates a node in another session with the name of a lost create, ahead of a
// holder's node.
//
//zklock:promise P5.3
func TestAForgedNodeIsNotTakenForALostCreate(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder, client, hostile := connect(t, srv, "holder", term), connect(t, srv, "a", term), rawClient(t, srv, term)
		unlockSoon(t, holder)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		var lost atomic.Bool
		var imitation string
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client != "a" || !makesContender(r) || lost.Swap(true) {
				return zktest.Pass
			}
			var err error
			imitation, err = hostile.Create(r.Path+"0000000000", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			assert.NoError(t, err)
			return zktest.DropBefore
		})
		waiting := lockLater(t.Context(), client.Mutex(path).Lock)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.True(t, lost.Load())
		require.False(t, waiting.returned(), "granted by another's node")
		require.NoError(t, hold.Check())
		require.NoError(t, hostile.Delete(imitation, -1))
		synctest.Wait()
		unlock(t, hold)
		<-waiting.done
		require.NoError(t, waiting.err)
		unlock(t, waiting.hold)
	})
}

// TestAListingIsConfirmedByTheQuorum inspects a queue at a leader that was replaced, whose replies do not have a quorum.
//
//zklock:promise P2.12
func TestAListingIsConfirmedByTheQuorum(t *testing.T) {
	virtual(t, zktest.Options{Servers: 3, TickTime: 2 * time.Second, SyncLimit: 5}, func(t *testing.T, srv *zktest.Server) {
		const session = 30 * time.Second
		old := leaderIs(srv, 3)
		next := (old + 1) % 3
		looking := connect(t, srv, "looking", session, old)
		member := connect(t, srv, "member", session, next)
		e := member.Election(path, nil)
		hold, err := e.Campaign(t.Context(), []byte("first"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		srv.Member(old).CutOff()
		srv.ElectLeader(next)
		time.Sleep(time.Second)
		require.NoError(t, hold.Confirm(t.Context()))
		require.NoError(t, e.Proclaim(hold.Context(), []byte("second")))

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = looking.Election(path, nil).Leader(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "nobody can know")
		_, err = operate.Inspect(ctx, looking, path)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		srv.Member(old).Rejoin()
		who, err := looking.Election(path, nil).Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "second", string(who.Data))
	})
}

//zklock:promise P5.1
func TestALostCreateReplyLeavesNoGhostWhenTheCallerGivesUp(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client) // the directory exists
		remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if makesContender(r) {
				srv.Member(0).Refuse(true) // and no client can find it
				return zktest.LoseReply
			}
			return zktest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := client.Mutex(path).Lock(ctx)
		remove()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, queue(srv, path), 1, "the create was applied")
		srv.Member(0).Refuse(false)
		time.Sleep(2 * time.Second)
		require.Empty(t, queue(srv, path))
		unlockSoon(t, client)
	})
}

//zklock:promise P1.4
func TestACreateThatRanOnALaterSessionIsUndone(t *testing.T) {
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", 4*time.Second)
		unlockSoon(t, client)
		hold, err := client.Mutex("/locks/other").Lock(t.Context())
		require.NoError(t, err)
		srv.Partition("a")
		a := lockLater(t.Context(), client.Mutex(path).Lock)
		time.Sleep(20 * time.Second) // the session has ended
		srv.HealClient("a")
		<-a.done
		require.NoError(t, a.err)
		require.ErrorIs(t, hold.Check(), zklock.ErrLost)
		require.NoError(t, a.hold.Confirm(t.Context()))
		require.Len(t, queue(srv, path), 1)
		unlock(t, a.hold)
		noGhost(t, srv, path)
	})
}

// unansweredCreate makes a client lock. The reply to its create is lost, but the connection remains. It returns the requested
// path of the node, without its number, and the session.
func unansweredCreate(t *testing.T, srv *zktest.Server, client *zklock.Client) (asked string, session int64) {
	t.Helper()
	unlockSoon(t, client)
	stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Client != "a" || !makesContender(r) || asked != "" {
			return zktest.Pass
		}
		asked, session = r.Path, r.Session
		for _, path := range r.Paths {
			if isContenderPath(path) {
				asked = path
			}
		}
		return zktest.Answer(-5)
	})
	defer stop()
	unlockSoon(t, client)
	require.NotEmpty(t, asked)
	return asked, session
}

// appears creates the node of a create whose reply was lost.
func appears(t *testing.T, srv *zktest.Server, asked string, session int64) (node string) {
	t.Helper()
	node = asked + "0000000099"
	require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpCreate, Path: node, Owner: session}))
	return node
}

// isRemoved checks that a node that has appeared is removed after a while, and that the search has ended.
func isRemoved(t *testing.T, srv *zktest.Server, node string, session int64) {
	t.Helper()
	time.Sleep(term/4 + 500*time.Millisecond)
	_, there := srv.Node(node)
	require.False(t, there)
	require.True(t, slices.ContainsFunc(srv.Sessions(), func(s zktest.Session) bool { return s.ID == session }), "the client has removed it")
	require.Zero(t, searches())
}

// runsLate creates the node of a create whose reply was lost, and checks that it is removed.
func runsLate(t *testing.T, srv *zktest.Server, asked string, session int64) {
	t.Helper()
	isRemoved(t, srv, appears(t, srv, asked, session), session)
}

// TestALostCreateIsSearchedForOnceMore executes a create after the client has looked for it without success: at first, and after a
// reconnect.
//
//zklock:promise P5.1
func TestALostCreateIsSearchedForOnceMore(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		asked, session := unansweredCreate(t, srv, client)
		time.Sleep(time.Second)
		runsLate(t, srv, asked, session)

		asked, session = unansweredCreate(t, srv, client)
		time.Sleep(term)
		srv.DropConnections()
		time.Sleep(time.Second)
		runsLate(t, srv, asked, session)
	})
}

// TestAnotherLostCreateIsSearchedForLikeTheFirst executes a second lost create while the client still looks for the first.
//
//zklock:promise P5.1
func TestAnotherLostCreateIsSearchedForLikeTheFirst(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		first, session := unansweredCreate(t, srv, client)
		time.Sleep(term)
		second, _ := unansweredCreate(t, srv, client)
		require.Equal(t, 1, searches())
		time.Sleep(time.Second)
		node := appears(t, srv, second, session)
		time.Sleep(term / 2)
		_, there := srv.Node(node)
		require.False(t, there)
		require.Equal(t, 1, searches(), "the first may still run")
		node = appears(t, srv, first, session)
		srv.DropConnections()
		isRemoved(t, srv, node, session)
	})
}

// TestTheSearchForALostCreateOutlastsRefusals refuses each request of the search, for longer than a normal search takes.
//
//zklock:promise P5.1
func TestTheSearchForALostCreateOutlastsRefusals(t *testing.T) {
	for _, c := range []struct {
		refused zktest.Op
		late    bool // the node appears only after the refusals
	}{{zktest.OpMulti, true}, {zktest.OpGetChildren2, true}, {zktest.OpGetChildren2, false}, {zktest.OpExists, false}, {zktest.OpDelete, false}} {
		t.Run(fmt.Sprint(c.refused, " late ", c.late), func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				asked, session := unansweredCreate(t, srv, connect(t, srv, "a", term))
				time.Sleep(time.Second)
				var node string
				if !c.late {
					node = appears(t, srv, asked, session)
				}
				refusals := 0
				stop := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op != c.refused {
						return zktest.Pass
					}
					refusals++
					return zktest.Answer(-5)
				})
				time.Sleep(term)
				stop()
				synctest.Wait() // for what the server has counted
				require.GreaterOrEqual(t, refusals, 2)
				if c.late {
					node = appears(t, srv, asked, session)
				}
				isRemoved(t, srv, node, session)
			})
		})
	}
}

// TestALostCreateIsSearchedForUntilNoServerHasItsSession makes one server forget a session that the next leader remembers.
//
//zklock:promise P5.2
func TestALostCreateIsSearchedForUntilNoServerHasItsSession(t *testing.T) {
	virtual(t, lab.With(zktest.Options{Servers: 3}, lab.Options{ForgetSessions: true}), func(t *testing.T, srv *zktest.Server) {
		asked, session := unansweredCreate(t, srv, connect(t, srv, "a", term))
		time.Sleep(term)
		srv.DropConnections()
		time.Sleep(term - time.Second)
		srv.ElectLeader((leaderIs(srv, 3) + 1) % 3)
		time.Sleep(term / 2)
		runsLate(t, srv, asked, session)
	})
}
