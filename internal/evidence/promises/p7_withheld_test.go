// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// Tests of waits that do not get an event because the client may not read the node at that time.

// withholdRead removes READ permission on nodes for everyone, and returns a function that restores it.
func withholdRead(t *testing.T, srv *zktest.Server, nodes ...string) (giveBack func()) {
	t.Helper()
	set := func(perms int32) {
		for _, node := range nodes {
			if _, ok := srv.Node(node); ok {
				require.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: node, ACL: []zktest.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}}))
			}
		}
	}
	set(zktest.PermAll &^ zktest.PermRead)
	return func() { set(zktest.PermAll) }
}

// flavors are the servers that differ in the requests that a client may make without READ permission.
var flavors = []zktest.Flavor{zktest.ZooKeeper38, zktest.ZooKeeper39}

// TestAWithheldEventDelaysAWaiterByASessionTimeout releases a lock while its waiters may not read its node.
//
//zklock:promise P7.3
func TestAWithheldEventDelaysAWaiterByASessionTimeout(t *testing.T) {
	cohortOf := func(opts *zklock.CohortOptions) way {
		return func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Cohort(path, opts).Lock }
	}
	for name, lock := range map[string]way{
		"mutex": asMutex, "writer": asWriter, "two permits of three": forTwo,
		"election": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
			return campaign(c.Election(path, nil))
		},
		"all": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
			return func(ctx context.Context) (*zklock.Hold, error) { return c.LockAll(ctx, c.Mutex(path)) }
		},
		"cohort": cohortOf(nil),
	} {
		for _, flavor := range flavors {
			t.Run(fmt.Sprint(name, " on ", flavor), func(t *testing.T) {
				virtual(t, zktest.Options{Flavor: flavor}, func(t *testing.T, srv *zktest.Server) {
					hold, err := lock(connect(t, srv, "holder", term))(t.Context())
					require.NoError(t, err)
					var waiting []*attempt
					for i := range 3 {
						waiting = append(waiting, inTurn(t, lock(connect(t, srv, fmt.Sprint("c", i), term)))...)
					}
					for _, next := range waiting {
						giveBack := withholdRead(t, srv, path, path+"/leases", path+"/locks", hold.Node())
						unlock(t, hold)
						time.Sleep(100 * time.Millisecond)
						giveBack()
						time.Sleep(term + 100*time.Millisecond)
						require.True(t, next.returned(), "asleep")
						require.NoError(t, next.err)
						hold = next.hold
						time.Sleep(2 * term)
					}
					unlock(t, hold)
				})
			})
		}
	}
}

// TestAWithheldEventDelaysAnObserverByASessionTimeout changes the leader and its value while no one may read the leader's node.
//
//zklock:promise P7.3
func TestAWithheldEventDelaysAnObserverByASessionTimeout(t *testing.T) {
	for _, flavor := range flavors {
		virtual(t, zktest.Options{Flavor: flavor}, func(t *testing.T, srv *zktest.Server) {
			member, seen := connect(t, srv, "member", term).Election(path, nil), make(chan zklock.Contender, 10)
			require.NoError(t, srv.PutNode(path, nil))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			observer := connect(t, srv, "observer", term).Election(path, nil)
			go func() {
				for who := range observer.Follow(ctx) {
					seen <- who
				}
			}()
			sees := func(node, value string, change func()) {
				if change != nil {
					giveBack := withholdRead(t, srv, path, node)
					change()
					giveBack()
				}
				time.Sleep(term + 100*time.Millisecond)
				who := <-seen
				require.Equal(t, value, string(who.Data))
				time.Sleep(term)
				require.Empty(t, seen)
			}
			foreign := path + "/_c_0123456789abcdef0123456789abcdef-lock-0000000000"
			sees(path, "", nil)
			sees(path, "foreign", func() { require.NoError(t, srv.PutNode(foreign, []byte("foreign"))) })
			sees(foreign, "", func() { require.NoError(t, srv.DeleteNode(foreign)) })
			hold, err := member.Campaign(t.Context(), []byte("a"))
			require.NoError(t, err)
			sees(path, "a", nil)
			sees(hold.Node(), "b", func() {
				require.NoError(t, srv.PutNode(hold.Node(), []byte("b")))
			})
			sees(hold.Node(), "", func() { unlock(t, hold) })
		})
	}
}

// TestAnObserverDoesNotListTheMembersAgainAndAgain observes an election without members, with a client that led before. Its watch of
// the members has missed an event, and still shows it.
//
//zklock:promise P7.3 P9.10
func TestAnObserverDoesNotListTheMembersAgainAndAgain(t *testing.T) {
	virtual(t, zktest.Options{Latency: func(*rand.Rand) time.Duration { return time.Millisecond }}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		election := c.Election(path, &zklock.ElectionOptions{Prefer: func(_, _ []byte) bool { return false }})
		ctx, cancel := context.WithCancel(t.Context())
		require.ErrorIs(t, election.Run(ctx, nil, func(context.Context) error {
			time.Sleep(time.Second) // it watches the members
			giveBack := withholdRead(t, srv, path)
			foreign := path + "/_c_0123456789abcdef0123456789abcdef-lock-0000000000"
			require.NoError(t, srv.PutNode(foreign, nil))
			require.NoError(t, srv.DeleteNode(foreign))
			giveBack()
			cancel()
			return nil
		}), context.Canceled)
		observing, stop := context.WithCancel(t.Context())
		var observer sync.WaitGroup
		observer.Go(func() {
			for range election.Follow(observing) {
			}
		})
		time.Sleep(10 * time.Millisecond)
		srv.ResetCounts()
		time.Sleep(time.Second)
		require.LessOrEqual(t, srv.Requests()[zktest.OpGetChildren2], 1)
		stop()
		observer.Wait()
	})
}

// TestAnObserverTrustsNoWatchOfAnother observes an election with a client that is also a candidate, and so has a watch on the
// leader's node. The leader's node is deleted between the observer's listing and its read of the leader, and the event is
// withheld, so the watch does not fire.
//
//zklock:promise P17.7
func TestAnObserverTrustsNoWatchOfAnother(t *testing.T) {
	virtual(t, zktest.Options{Latency: func(*rand.Rand) time.Duration { return time.Millisecond }}, func(t *testing.T, srv *zktest.Server) {
		leader, err := connect(t, srv, "leader", term).Election(path, nil).Campaign(t.Context(), nil)
		require.NoError(t, err)
		election := connect(t, srv, "next", term).Election(path, nil)
		next := inTurn(t, campaign(election))[0]
		time.Sleep(time.Second) // it watches the leader
		var once sync.Once
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpGetChildren2 && r.Client == "next" {
				once.Do(func() {
					time.AfterFunc(time.Microsecond, func() {
						unread := []zktest.ACL{{Perms: zktest.PermAll &^ zktest.PermRead, Scheme: "world", ID: "anyone"}}
						assert.NoError(t, srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: leader.Node(), ACL: unread}))
						assert.NoError(t, srv.DeleteNode(leader.Node()))
					})
				})
			}
			return zktest.Pass
		})
		for who, err := range election.Observe(t.Context()) {
			require.NoError(t, err)
			require.NotEqual(t, leader.Node(), who.Node, "it is gone")
			break
		}
		require.False(t, next.returned(), "its watch stands")
	})
}

// TestANewObserverIsShownNoOldState observes with a client that already has a watch on the leader's node, and was not
// notified that the leader's value changed.
//
//zklock:promise P17.7
func TestANewObserverIsShownNoOldState(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		member, looker := connect(t, srv, "member", term), connect(t, srv, "looker", term)
		hold, err := member.Election(path, nil).Campaign(t.Context(), []byte("first"))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		w := follow(ctx, looker.Election(path, nil))
		require.Equal(t, []string{"first"}, w.leaders())
		only := func(scheme, id string) zktest.Step {
			return zktest.Step{Op: zktest.OpSetACL, Path: hold.Node(), ACL: []zktest.ACL{{Perms: zktest.PermAll, Scheme: scheme, ID: id}}}
		}
		require.NoError(t, srv.Apply(only("ip", lab.HostOf(srv, "member"))))
		require.NoError(t, member.Election(path, nil).Proclaim(hold.Context(), []byte("second")))
		require.NoError(t, srv.Apply(only("world", "anyone")))
		for who, err := range looker.Election(path, nil).Observe(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, "second", string(who.Data))
			break
		}
		require.Equal(t, []string{"first", "second"}, w.leaders())
		cancel()
		<-w.done
	})
}
