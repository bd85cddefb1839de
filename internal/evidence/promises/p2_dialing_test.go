// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// memberOf returns the member to which the only session is connected.
func memberOf(srv *zktest.Server) int { return srv.Sessions()[0].Member }

// The client's server fails, and the one that is tried next accepts the connection but does not reply. A third one is asked in time.
//
//zklock:promise P2.7
func TestAFrozenServerThatIsTriedFirstCostsNoHold(t *testing.T) {
	fails := map[string]func(m *zktest.Member, srv *zktest.Server){
		"killed":  func(m *zktest.Member, _ *zktest.Server) { m.Stop() },
		"dropped": func(_ *zktest.Member, srv *zktest.Server) { srv.DropConnections() },
	}
	for name, fail := range fails {
		for _, session := range []time.Duration{4 * time.Second, 6 * time.Second, term, 30 * time.Second} {
			for phase := 0; phase < 16; phase += oneIn(4) {
				t.Run(fmt.Sprint(name, session, phase), func(t *testing.T) {
					virtual(t, zktest.Options{Servers: 5, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
						leader := leaderIs(srv, 5)
						order := &cycle{}
						client := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: session, HostProvider: order}, (leader+1)%5, (leader+2)%5, (leader+3)%5)
						own, frozen := srv.Member(memberOf(srv)), memberAt(srv, order.servers[1])
						hold, err := client.Mutex(path).Lock(t.Context())
						require.NoError(t, err)
						time.Sleep(2*session + time.Duration(phase)*session/16)
						frozen.Freeze()
						fail(own, srv)
						require.Greater(t, lowest(hold, 3*session), session/5)
						unlock(t, hold)
					})
				})
			}
		}
	}
}

// memberAt returns the member with an address.
func memberAt(srv *zktest.Server, address string) *zktest.Member {
	for i := range srv.Addrs() {
		if m := srv.Member(i); m.Addr() == address {
			return m
		}
	}
	return nil
}

// cycle is a host provider that returns one server after the other, and never ends a round.
type cycle struct {
	servers []string
	next    int
}

func (p *cycle) Init(servers []string) error { p.servers = servers; return nil }
func (p *cycle) Len() int                    { return len(p.servers) }
func (p *cycle) Connected()                  {}
func (p *cycle) Next() (string, bool) {
	p.next++
	return p.servers[(p.next-1)%len(p.servers)], false
}

// The client library waits for a second when its host provider has returned all servers.
//
//zklock:promise P2.7 P18.5
func TestTheEndOfARoundOfServersCostsNoAttachedHold(t *testing.T) {
	for _, members := range []int{2, 3} {
		for _, session := range []time.Duration{4 * time.Second, 6 * time.Second, 8 * time.Second} {
			lost := 0
			for i := range time.Duration(40) {
				virtual(t, zktest.Options{Servers: 5, TickTime: 2 * time.Second, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
					leader := leaderIs(srv, 5)
					var addrs []string
					for m := range members {
						addrs = append(addrs, srv.Member((leader+1+m)%5).Addr())
					}
					hooks := zklock.NewHooks(srv.DialFrom("attached"))
					conn, _, err := zk.Connect(addrs, session, zk.WithDialer(hooks.Dial),
						zk.WithLogInfo(false), zk.WithHostProvider(zk.NewDNSHostProvider()), zk.WithLogger(silent{}))
					require.NoError(t, err)
					t.Cleanup(conn.Close)
					client, err := zklock.Attach(t.Context(), conn, hooks, nil)
					require.NoError(t, err)
					t.Cleanup(func() { client.Close() })
					hold, err := client.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					time.Sleep(3*session + i*session/40)
					own := memberOf(srv)
					for m := range members {
						if member := (leader + 1 + m) % 5; member != own {
							srv.Member(member).Freeze()
						}
					}
					srv.DropConnections()
					time.Sleep(2 * session)
					if hold.Check() != nil {
						lost++
					}
				})
			}
			t.Logf("%d servers, T = %v: %d of 40 holds lost", members, session, lost)
			require.Zero(t, lost, "of 40 with %d servers and T = %v", members, session)
		}
	}
}

// A follower carries out requests late. It is asked to take the session over, another server is asked as well and answers first, and later
// the slow one takes the session from it. That happens once, and not again with every connection.
//
//zklock:promise P2.7 P18.7 P18.9
func TestASlowServerThatWasNotWaitedForIsNotAskedFirstAgain(t *testing.T) {
	const timeout, tick = 10 * time.Second, 500 * time.Millisecond
	for _, share := range []int{35, 40, 50, 60} { // of the timeout, in hundredths
		for i := range 6 {
			virtual(t, zktest.Options{Servers: 3, Seed: uint64(i), TickTime: tick, Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				srv.ElectLeader(0)
				c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: timeout, TickTime: tick}, 1, 2)
				hold, err := c.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(2*timeout + time.Duration(i)*timeout/13)
				lab.DelayStreams(srv.Member(1), 0, timeout*time.Duration(share)/100)
				srv.DropConnections()
				resetCounts(srv)
				least := leastOf(hold, timeout, 8*timeout, func(int) {})
				assert.LessOrEqual(t, srv.Requests()[zktest.OpCreateSession], 6, "0.%d T", share)
				assert.Greater(t, least, 0.2, "0.%d T", share)
				assert.NoError(t, hold.Check())
			})
		}
	}
}
