// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/testnet"
	"github.com/zklock-go/zklock/zktest"
)

// trials records which servers a link dials, and delays their handshakes.
type trials struct {
	srv *zktest.Server

	mu     sync.Mutex
	takes  map[string]time.Duration // guarded by mu: how long the handshake with a server takes
	dialed []string                 // guarded by mu
	open   map[net.Conn]string      // guarded by mu: the connections that are not closed
}

// counted is a connection that tells when it is closed.
type counted struct {
	net.Conn
	of *trials
}

func (c counted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (ts *trials) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	plain, err := ts.srv.DialFrom("a")(network, address, timeout)
	if err != nil {
		return nil, err
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	c := counted{plain, ts}
	ts.dialed = append(ts.dialed, address)
	ts.open[c] = address
	return c, nil
}

func (ts *trials) encrypt(ctx context.Context, server string, plain net.Conn) (net.Conn, error) {
	ts.mu.Lock()
	takes := ts.takes[server]
	ts.mu.Unlock()
	select {
	case <-time.After(takes):
		return plain, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// slow sets how long the handshake with a server takes.
func (ts *trials) slow(server string, d time.Duration) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.takes[server] = d
}

// reset forgets what was dialed.
func (ts *trials) reset() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.dialed = nil
}

func (ts *trials) seen() (dialed []string, open []string) {
	synctest.Wait()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, address := range ts.open {
		open = append(open, address)
	}
	return slices.Clone(ts.dialed), open
}

// try runs a test of a client library's connection to some servers.
func try(t *testing.T, servers int, fn func(t *testing.T, ts *trials, l *Link, s *Session)) {
	tryWith(t, servers, func(l *Link) zk.HostProvider { return l.Hosts(&Rotation{}) }, fn)
}

// tryWith is try with a host provider that the link may not know.
func tryWith(t *testing.T, servers int, provider func(*Link) zk.HostProvider, fn func(t *testing.T, ts *trials, l *Link, s *Session)) {
	inVirtual(t, zktest.Options{Servers: servers}, func(t *testing.T, srv *zktest.Server, l *Link) {
		ts := &trials{srv: srv, takes: map[string]time.Duration{}, open: map[net.Conn]string{}}
		conn, _, err := zk.Connect(srv.Addrs(), term, zk.WithLogger(quiet{}), zk.WithHostProvider(provider(l)),
			zk.WithDialer(l.Dialer(Dialing{Dial: ts.dial, Encrypt: ts.encrypt, Timeout: term})))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		s, err := l.Attached(t.Context())
		require.NoError(t, err)
		ts.reset()
		fn(t, ts, l, s)
	})
}

// A handshake that has begun is not begun again, even if it takes longer than the client library's limit of a second.
//
//zklock:promise P18.9
func TestASlowServerGetsOneHandshake(t *testing.T) {
	try(t, 1, func(t *testing.T, ts *trials, l *Link, s *Session) {
		again := s.Reattached()
		ts.slow(ts.srv.Addr(), term*6/10)
		ts.srv.DropConnections()
		<-again
		dialed, _ := ts.seen()
		require.Len(t, dialed, 1)
	})
}

// One server is frozen, another one slow: the client waits for both, and keeps the one that answers.
//
//zklock:promise P2.7
func TestASlowServerIsKeptBesideAFrozenOne(t *testing.T) {
	for name, frozen := range map[string]func(ts *trials, server string){
		"in the handshake":       func(ts *trials, server string) { ts.slow(server, time.Hour) },
		"before it answers":      func(ts *trials, server string) { memberAt(ts.srv, server).Freeze() },
		"and closes connections": func(ts *trials, server string) { memberAt(ts.srv, server).Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			try(t, 3, func(t *testing.T, ts *trials, l *Link, s *Session) {
				time.Sleep(term * 55 / 100) // 0.4 of the timeout remain
				own := l.conn.server.address
				servers := ts.srv.Addrs()
				slow := ts.srv.Leader().Addr() // without which no server answers
				if slow == own {
					slow = servers[(slices.Index(servers, own)+1)%3]
				}
				for _, server := range servers {
					switch {
					case server == slow:
						ts.slow(server, term/10)
					case server != own:
						frozen(ts, server)
					default:
						ts.slow(server, time.Hour)
					}
				}
				again := s.Reattached()
				ts.srv.DropConnections()
				<-again
				assert.Greater(t, s.Lease.Remaining(), term/20)
				assert.Equal(t, slow, l.conn.server.address)
				dialed, open := ts.seen()
				assert.LessOrEqual(t, len(dialed), 3, "%v", dialed)
				assert.Equal(t, []string{slow}, open, "the others are closed")
			})
		})
	}
}

// The other servers fail at once while one is frozen, and come back. The client does not wait for the frozen one for longer than a session
// timeout, as often as it asks that server again, and however far away the servers are.
//
//zklock:promise P2.7
func TestAFrozenServerDoesNotKeepTheClientFromTheOthers(t *testing.T) {
	for name, provider := range map[string]func(*Link) zk.HostProvider{
		"the link knows all servers":    func(l *Link) zk.HostProvider { return l.Hosts(&Rotation{}) },
		"it knows those that it dialed": func(*Link) zk.HostProvider { return new(zk.DNSHostProvider) },
	} {
		for _, away := range []time.Duration{0, term / 100} {
			t.Run(fmt.Sprintf("%s, %v away", name, away), func(t *testing.T) {
				tryWith(t, 3, provider, func(t *testing.T, ts *trials, l *Link, s *Session) {
					l.dialing.Encrypt = nil
					l.dialing.Dial = func(network, address string, timeout time.Duration) (net.Conn, error) {
						time.Sleep(away)
						return ts.dial(network, address, timeout)
					}
					own := memberAt(ts.srv, l.conn.server.address)
					for _, server := range ts.srv.Addrs() {
						if m := memberAt(ts.srv, server); m != own {
							m.Stop()
							time.AfterFunc(term, m.Start)
						}
					}
					ts.srv.DropConnections()
					own.Freeze()
					time.Sleep(4 * term)
					require.NotNil(t, l.Carried())
					require.NotEqual(t, own.Addr(), l.conn.server.address)
				})
			})
		}
	}
}

// While a race waits for a frozen server, it asks the others again: they have refused while they had no leader.
func TestAServerThatHasRefusedIsAskedAgainWhileAnotherIsFrozen(t *testing.T) {
	for name, encrypted := range map[string]bool{"no reply": false, "no handshake": true} {
		t.Run(name, func(t *testing.T) {
			try(t, 3, func(t *testing.T, ts *trials, l *Link, s *Session) {
				current := func() *zktest.Member {
					l.mu.Lock()
					defer l.mu.Unlock()
					return memberAt(ts.srv, l.conn.server.address)
				}
				for current() == ts.srv.Leader() { // without a leader no other server could take the session
					l.restart()
					time.Sleep(time.Second)
				}
				own := current()
				if encrypted {
					ts.slow(own.Addr(), time.Hour)
				}
				for _, server := range ts.srv.Addrs() {
					if m := memberAt(ts.srv, server); m != own {
						m.Refuse(true)
						time.AfterFunc(term/2, func() { m.Refuse(false) })
					}
				}
				own.Freeze()
				ts.reset()
				l.restart()
				time.Sleep(term / 2)
				dialed, _ := ts.seen()
				require.Contains(t, dialed, own.Addr())
				require.Nil(t, l.Carried())
				time.Sleep(term / 4)
				require.Same(t, s, l.Carried())
				require.NotEqual(t, own, current())
			})
		})
	}
}

// A server that does not answer is asked again, and has no more time for that.
func TestASearchForAServerEndsIfOneIsFrozen(t *testing.T) {
	try(t, 1, func(t *testing.T, ts *trials, l *Link, s *Session) {
		l.dialing.Encrypt = nil
		dials := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.fails
		}
		ts.srv.Member(0).Freeze()
		ts.reset()
		l.restart()
		time.Sleep(term / 2)
		before := dials()
		time.Sleep(term)
		dialed, _ := ts.seen()
		require.Greater(t, len(dialed), 2, "asked again")
		require.Greater(t, dials(), before, "the client library dials again")
	})
}

// The link knows how long connecting to its server took: not to one that lost the race, and without the handshake of an encrypted connection.
func TestTheTimeToConnectIsThatOfTheServerThatWins(t *testing.T) {
	try(t, 3, func(t *testing.T, ts *trials, l *Link, s *Session) {
		const quick, handshake = term / 200, term / 100
		slow := l.conn.server.address
		l.dialing.Dial = func(network, address string, timeout time.Duration) (net.Conn, error) {
			if address == slow {
				time.Sleep(term)
			}
			time.Sleep(quick)
			return ts.dial(network, address, timeout)
		}
		for _, server := range ts.srv.Addrs() {
			ts.slow(server, handshake)
		}
		memberAt(ts.srv, slow).Stop()
		time.Sleep(2 * term)
		require.NotNil(t, l.Carried())
		require.NotEqual(t, slow, l.conn.server.address)
		require.Equal(t, quick, l.conn.server.dialed)
	})
}

// memberAt returns the member with an address.
func memberAt(srv *zktest.Server, address string) *zktest.Member {
	return srv.Member(slices.Index(srv.Addrs(), address))
}

func TestClosingTheLinkEndsAllAttempts(t *testing.T) {
	try(t, 3, func(t *testing.T, ts *trials, l *Link, s *Session) {
		for i, server := range ts.srv.Addrs() {
			ts.srv.Member(i).Freeze()
			ts.slow(server, 0)
		}
		l.Abandon(s)
		time.Sleep(term * 9 / 10)
		_, open := ts.seen()
		require.Len(t, open, maxAttempts)
		l.Close()
		_, open = ts.seen()
		require.Empty(t, open)
	})
}

// named connects a client library that knows one name, of which all servers of the ensemble are addresses, and returns its session.
func named(t *testing.T, ts *trials, l *Link) *Session {
	connectToName(t, ts, l)
	s, err := l.Attached(t.Context())
	require.NoError(t, err)
	return s
}

func connectToName(t *testing.T, ts *trials, l *Link) {
	resolve := func(_ context.Context, host string) ([]string, error) {
		if host != "zk.example" {
			return nil, errors.New("no such host")
		}
		return testnet.Hosts(ts.srv.Addrs())
	}
	conn, _, err := zk.Connect([]string{"zk.example:2181"}, term, zk.WithLogger(quiet{}), zk.WithHostProvider(l.Hosts(&Rotation{})),
		zk.WithDialer(l.Dialer(Dialing{Dial: ts.dial, Resolve: resolve, Timeout: term})))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
}

// Each address of a name is a server. If one of them is frozen, the next one is asked, and later connections do not all begin with it.
//
//zklock:promise P2.7
func TestEachAddressOfANameIsAServer(t *testing.T) {
	for frozen := range 3 {
		inVirtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server, l *Link) {
			ts := &trials{srv: srv, open: map[net.Conn]string{}}
			if frozen == 0 {
				srv.Member(0).Freeze()
			}
			s := named(t, ts, l)
			require.Equal(t, "zk.example:2181", l.conn.server.address, "for which certificates are checked")
			srv.Member(frozen).Freeze()
			for range 5 {
				time.Sleep(term / 3)
				again := s.Reattached()
				l.Abandon(s)
				select {
				case <-again:
				case <-s.Over():
					t.Fatal("the session is lost")
				}
			}
		})
	}
}

// The same holds for the addresses of one name.
func TestAnAddressThatHasRefusedIsAskedAgainWhileAnotherIsFrozen(t *testing.T) {
	for frozen := range 3 {
		inVirtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server, l *Link) {
			ts := &trials{srv: srv, open: map[net.Conn]string{}}
			s := named(t, ts, l)
			if srv.Member(frozen) == srv.Leader() { // without a leader no other server could take the session
				srv.ElectLeader((frozen + 1) % 3)
				time.Sleep(time.Second)
			}
			for i := range 3 {
				if i != frozen {
					srv.Member(i).Refuse(true)
					time.AfterFunc(term/2, func() { srv.Member(i).Refuse(false) })
				}
			}
			srv.Member(frozen).Freeze()
			l.restart()
			time.Sleep(term / 2)
			require.Nil(t, l.Carried())
			time.Sleep(term / 4)
			require.Same(t, s, l.Carried())
		})
	}
}

// A server that is asked in addition may belong to another ensemble by now. It cannot end the session.
func TestAServerAskedInAdditionThatDoesNotKnowTheSessionIsIgnored(t *testing.T) {
	inVirtual(t, zktest.Options{Servers: 3}, func(t *testing.T, srv *zktest.Server, l *Link) {
		other := zktest.Start(t, zktest.Options{})
		var asked atomic.Int32
		dial := l.Dialer(Dialing{Dial: func(network, address string, timeout time.Duration) (net.Conn, error) {
			if address == "other:2181" {
				asked.Add(1)
				return other.Dial(network, address, timeout)
			}
			return srv.DialFrom("a")(network, address, timeout)
		}})
		l.servers.seen = []string{"other:2181"}
		conn, _, err := zk.Connect(srv.Addrs(), term, zk.WithLogger(quiet{}), zk.WithDialer(dial), zk.WithHostProvider(zk.NewDNSHostProvider()))
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		s, err := l.Attached(t.Context())
		require.NoError(t, err)
		for i := range 3 {
			srv.Member(i).Freeze()
		}
		again := s.Reattached()
		l.Abandon(s)
		time.Sleep(term * 9 / 10)
		require.Positive(t, asked.Load(), "it was asked")
		require.False(t, s.IsOver())
		for i := range 3 {
			srv.Member(i).Thaw()
		}
		<-again
	})
}
