// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/integration/internal/images"
	"github.com/zklock-go/zklock/integration/internal/peers"
	"github.com/zklock-go/zklock/internal/evidence/peer"
	"github.com/zklock-go/zklock/operate"
)

// host returns the container in which all peers run.
func host(t *testing.T) *peers.Host {
	if lab.engine == nil {
		t.Skip("needs clients in other languages, in containers")
	}
	network, addrs := peers.Machine, lab.external
	if len(lab.external) == 0 {
		network, addrs = one(t).Network(), one(t).InternalAddrs()
	}
	lab.mu.Lock()
	defer lab.mu.Unlock()
	if lab.peers == nil {
		image, err := images.Peers(t.Context())
		require.NoError(t, err)
		lab.peers, err = peers.NewHost(context.Background(), lab.engine, image, network, addrs)
		require.NoError(t, err)
	}
	return lab.peers
}

// startPeer starts a client in another language.
func startPeer(t *testing.T, command []string) *peers.Peer {
	p, err := host(t).Start(soon(t), command, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		assert.NoError(t, p.Close(ctx))
	})
	return p
}

func curator(t *testing.T) *peers.Peer { return startPeer(t, peers.Curator) }
func kazoo(t *testing.T) *peers.Peer   { return startPeer(t, peers.Kazoo) }

// user is one contender of any client library. Both functions block.
type user struct {
	acquire, release func(ctx context.Context) error
}

// client creates users of one client library. kind is the recipe's name in the peers' line protocol.
type client func(t *testing.T, kind, path string) user

// permits is the size of every semaphore here.
const permits = 2

func peerUsers(p *peers.Peer) client {
	return func(t *testing.T, kind, path string) user {
		c, err := p.Contender(soon(t), kind, path, more(kind)...)
		require.NoError(t, err)
		return user{
			func(ctx context.Context) error {
				_, err := c.Lock(ctx)
				return err
			},
			c.Unlock,
		}
	}
}

// more returns the arguments that a peer needs for a recipe in addition to the path.
func more(kind string) []string {
	switch kind {
	case "semaphore":
		return []string{strconv.Itoa(permits)}
	case "latch", "selector":
		return []string{fmt.Sprintf("member-%d", memberCount.Add(1))}
	}
	return nil
}

var memberCount atomic.Int64

// zklockUsers returns users that share one client, like goroutines of a process.
func zklockUsers(c *zklock.Client) client {
	return func(t *testing.T, kind, path string) user {
		take := recipeOf(t, c, kind, path)
		var hold *zklock.Hold
		return user{
			func(ctx context.Context) (err error) {
				hold, err = take(ctx)
				return err
			},
			func(ctx context.Context) error { return hold.Unlock(ctx) },
		}
	}
}

// recipeOf returns the acquiring function of zklock's counterpart of a peer's recipe.
func recipeOf(t *testing.T, c *zklock.Client, kind, path string) func(ctx context.Context) (*zklock.Hold, error) {
	campaign := func(opts *zklock.ElectionOptions) func(ctx context.Context) (*zklock.Hold, error) {
		return func(ctx context.Context) (*zklock.Hold, error) {
			return c.Election(path, opts).Campaign(ctx, []byte("ours"))
		}
	}
	switch kind {
	case "mutex":
		return c.Mutex(path).Lock
	case "selector":
		return campaign(nil)
	case "latch":
		return campaign(&zklock.ElectionOptions{Latch: true})
	case "read":
		return c.RWMutex(path).RLock
	case "write":
		return c.RWMutex(path).Lock
	case "semaphore":
		return func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(path, permits).Acquire(ctx, 1) }
	}
	require.FailNow(t, "no such recipe", kind)
	return nil
}

// goZookeeperUsers returns users with a connection each, because sessions of go-zookeeper cannot share a Lock.
func goZookeeperUsers(addrs []string) client {
	return func(t *testing.T, _, path string) user {
		conn, _ := dial(t, 10*time.Second, addrs...)
		lock := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
		return user{
			func(context.Context) error { return lock.Lock() },
			func(context.Context) error { return lock.Unlock() },
		}
	}
}

// place is one contender's place in a queue.
type place struct {
	client client
	kind   string
}

// TestPeersTakeTurns queues contenders of zklock and another client on the same path, in several orders. It checks that they
// are granted the lock one after the other, in the order in which they queued.
//
//zklock:promise P1.2 A9
func TestPeersTakeTurns(t *testing.T) {
	part(t)
	ours := zklockUsers(connect(t, nil, servers(t)...))
	clients := map[string]client{
		"Curator":      peerUsers(curator(t)),
		"kazoo":        peerUsers(kazoo(t)),
		"go-zookeeper": goZookeeperUsers(servers(t)),
	}
	conn, _ := dial(t, 10*time.Second, servers(t)...)
	for name, theirs := range clients {
		t.Run(name, func(t *testing.T) {
			o, p := place{ours, "mutex"}, place{theirs, "mutex"}
			takeTurns(t, conn, root(t), []place{o, p, o, o, p, p, o, p})
			takeTurns(t, conn, root(t)+"-2", []place{p, o, p, p, o, o, p, o})
		})
	}
}

// queueOf returns the queue for words like "we:read they:write".
func queueOf(ours, theirs client, words string) (places []place) {
	for _, word := range strings.Fields(words) {
		who, kind, _ := strings.Cut(word, ":")
		places = append(places, place{map[string]client{"we": ours, "they": theirs}[who], kind})
	}
	return places
}

// TestPeersRecipes is TestPeersTakeTurns for the peers' other recipes.
//
//zklock:promise P1.2
func TestPeersRecipes(t *testing.T) {
	part(t)
	ours := zklockUsers(connect(t, nil, servers(t)...))
	curator, kazoo := peerUsers(curator(t)), peerUsers(kazoo(t))
	conn, _ := dial(t, 10*time.Second, servers(t)...)
	const readAndWrite = "we:read they:read they:write we:write we:read they:read we:read they:write they:read we:read we:write"
	// A reader of kazoo 2.8 waits for the last writer of the whole queue, even if that one is behind the reader
	// (https://github.com/python-zk/kazoo/issues/649). Then both would wait forever, so the readers are last here.
	const readersLast = "they:write we:write they:write we:read they:write we:read we:write they:read we:read they:read"
	for _, c := range []struct {
		recipe string
		theirs client
		words  string
	}{
		{"Curator LeaderSelector", curator, "we:selector they:selector they:selector we:selector we:selector they:selector"},
		{"Curator LeaderLatch", curator, "they:latch we:latch we:latch they:latch they:latch we:latch"},
		{"Curator InterProcessReadWriteLock", curator, readAndWrite},
		{"kazoo ReadLock and WriteLock", kazoo, readersLast},
	} {
		t.Run(c.recipe, func(t *testing.T) { takeTurns(t, conn, root(t), queueOf(ours, c.theirs, c.words)) })
	}
}

// TestPeersRefuseInvalidRequests sends invalid requests to the programs, and then a valid one.
func TestPeersRefuseInvalidRequests(t *testing.T) {
	part(t)
	for name, command := range map[string][]string{"Curator": peers.Curator, "kazoo": peers.Kazoo} {
		t.Run(name, func(t *testing.T) {
			p := startPeer(t, command)
			c, err := p.Contender(soon(t), "mutex", root(t))
			require.NoError(t, err)
			for request, says := range map[string]string{
				"":                         "usage: ID VERB [ARGS]",
				"dance":                    "no such verb: dance",
				"lock":                     "usage: ID lock CONTENDER",
				"lock 1 2":                 "usage: ID lock CONTENDER",
				"lock 99":                  "no such contender: 99",
				"lock x":                   "no such contender: x",
				"end 99":                   "no such session: 99",
				"contender 99 mutex /a":    "no such session: 99",
				"contender 1 spinlock /a":  "no such kind: spinlock",
				"contender 1 mutex /a b c": "usage: ID contender SESSION KIND PATH [MORE]",
			} {
				_, err := p.Program.Ask(soon(t), strings.Fields(request)...)
				assert.ErrorContains(t, err, says, request)
			}
			_, err = c.Lock(soon(t))
			require.NoError(t, err)
			require.NoError(t, c.Unlock(soon(t)))
		})
	}
}

// TestPeersReportWhyTheyEnd starts a program that ends at its first request.
func TestPeersReportWhyTheyEnd(t *testing.T) {
	part(t)
	_, err := host(t).Start(soon(t), []string{"python3", "-c", "import sys; input(); sys.exit('out of paper')"}, 10*time.Second)
	require.ErrorIs(t, err, peer.ErrGone)
	require.ErrorContains(t, err, "out of paper")
}

// TestCuratorSemaphore shares permits between zklock and Curator: a released permit goes to the next contender of either library.
//
//zklock:promise P1.6 A10
func TestCuratorSemaphore(t *testing.T) {
	part(t)
	ours, theirs := zklockUsers(connect(t, nil, servers(t)...)), peerUsers(curator(t))
	conn, _ := dial(t, 10*time.Second, servers(t)...)
	path, ctx := root(t), soon(t)
	queue := queueOf(ours, theirs, "we:semaphore they:semaphore they:semaphore we:semaphore we:semaphore they:semaphore we:semaphore")
	users := make([]user, len(queue))
	granted := make([]chan error, len(queue))
	for i, p := range queue {
		users[i], granted[i] = p.client(t, p.kind, path), make(chan error, 1)
		// Owned by this test: ends with the grant or with ctx.
		go func() { granted[i] <- users[i].acquire(ctx) }()
		if i < permits {
			require.NoError(t, await(t, granted[i], "a free permit"))
		}
		// The first waiter has also created its permit's node, and keeps its place in the queue.
		untilChildren(t, conn, path+"/leases", min(i+1, permits+1))
		untilChildren(t, conn, path+"/locks", max(0, i+1-permits))
	}
	for i := permits; i < len(queue); i++ {
		for _, later := range granted[i:] {
			require.Empty(t, later, "more than %d holders", permits)
		}
		require.NoError(t, users[i-permits].release(ctx))
		require.NoError(t, await(t, granted[i], "the released permit"))
	}
	for _, u := range users[len(users)-permits:] {
		require.NoError(t, u.release(ctx))
	}
	untilChildren(t, conn, path+"/leases", 0)
	untilChildren(t, conn, path+"/locks", 0)
}

// TestCuratorLeader checks that zklock and Curator show each other's leader.
//
//zklock:promise P17.1
func TestCuratorLeader(t *testing.T) {
	part(t)
	ours, theirs, ctx := connect(t, nil, servers(t)...), curator(t), soon(t)
	for kind, opts := range map[string]*zklock.ElectionOptions{"selector": nil, "latch": {Latch: true}} {
		t.Run(kind, func(t *testing.T) {
			path := root(t)
			election := ours.Election(path, opts)
			member, err := theirs.Contender(ctx, kind, path, "curator-"+kind)
			require.NoError(t, err)
			_, err = member.Lock(ctx)
			require.NoError(t, err)
			leader, err := election.Leader(ctx)
			require.NoError(t, err)
			assert.Equal(t, "curator-"+kind, string(leader.Data))
			require.NoError(t, member.Unlock(ctx))

			hold, err := election.Campaign(ctx, []byte("zklock-member"))
			require.NoError(t, err)
			name, err := theirs.Leader(ctx, kind, path)
			require.NoError(t, err)
			assert.Equal(t, "zklock-member", name)
			require.NoError(t, hold.Unlock(ctx))
		})
	}
}

// TestCuratorRevoker checks that zklock and Curator can revoke each other's locks.
//
//zklock:promise P19.5
func TestCuratorRevoker(t *testing.T) {
	part(t)
	ours, theirs, ctx, path := connect(t, nil, servers(t)...), curator(t), soon(t), root(t)
	hold, err := ours.Mutex(path).Lock(ctx)
	require.NoError(t, err)
	require.NoError(t, theirs.Revoke(ctx, hold.Node()))
	select {
	case <-hold.Revoked():
	case <-ctx.Done():
		require.Fail(t, "zklock's holder was not notified")
	}
	require.NoError(t, hold.Check(), "a revocation does not end the hold")
	require.NoError(t, hold.Unlock(ctx))

	member, err := theirs.Contender(ctx, "mutex", path)
	require.NoError(t, err)
	_, err = member.Lock(ctx)
	require.NoError(t, err)
	queue, err := operate.Inspect(ctx, ours, path)
	require.NoError(t, err)
	require.Len(t, queue.Contenders, 1)
	require.NoError(t, operate.Revoke(ctx, ours, queue.Contenders[0]))
	require.NoError(t, member.Revoked(ctx))
	require.NoError(t, member.Unlock(ctx))
}

// takeTurns queues the places one after the other. It then checks that each stage is granted the lock in turn, and that no
// other contender holds at the same time.
func takeTurns(t *testing.T, conn *zk.Conn, path string, queue []place) {
	ctx := soon(t)
	users := make([]user, len(queue))
	granted := make(chan int, len(queue))
	failed := make(chan error, len(queue))
	for i, p := range queue {
		users[i] = p.client(t, p.kind, path)
		// Owned by this test: ends with the grant or with ctx.
		go func() {
			if err := users[i].acquire(ctx); err != nil {
				failed <- fmt.Errorf("place %d: %w", i, err)
				return
			}
			granted <- i
		}()
		untilChildren(t, conn, path, i+1)
	}
	for _, stage := range stages(queue) {
		in := map[int]bool{}
		for range stage {
			select {
			case i := <-granted:
				in[i] = true
			case err := <-failed:
				require.NoError(t, err)
			case <-ctx.Done():
				require.FailNow(t, "the lock was not granted", "stage %v, granted so far: %v", stage, in)
			}
		}
		for _, i := range stage {
			require.True(t, in[i], "stage %v, but %v hold", stage, in)
		}
		require.Empty(t, granted, "stage %v, but others hold as well", stage)
		for _, i := range stage {
			require.NoError(t, users[i].release(ctx), "place %d", i)
		}
	}
	untilChildren(t, conn, path, 0)
}

// stages divides a queue into the groups that hold together: consecutive readers, or one contender.
func stages(queue []place) [][]int {
	var out [][]int
	for i, p := range queue {
		if n := len(out); n > 0 && p.kind == "read" && queue[i-1].kind == "read" {
			out[n-1] = append(out[n-1], i)
			continue
		}
		out = append(out, []int{i})
	}
	return out
}

// TestPeersContend runs contenders of zklock and another client for one lock, and checks that no two hold at the same time.
//
//zklock:promise P1.2 A9
func TestPeersContend(t *testing.T) {
	part(t)
	ours := zklockUsers(connect(t, nil, servers(t)...))
	clients := map[string]client{
		"Curator":      peerUsers(curator(t)),
		"kazoo":        peerUsers(kazoo(t)),
		"go-zookeeper": goZookeeperUsers(servers(t)),
	}
	for name, theirs := range clients {
		t.Run(name, func(t *testing.T) {
			const each, rounds = 3, 30
			path, ctx := root(t), soon(t)
			var inside, together atomic.Int64
			var wg sync.WaitGroup
			for i := range 2 * each {
				u := []client{ours, theirs}[i%2](t, "mutex", path)
				wg.Add(1)
				// Owned by this test, which waits for it: ends after its rounds or with ctx.
				go func() {
					defer wg.Done()
					for range rounds {
						if !assert.NoError(t, u.acquire(ctx)) {
							return
						}
						if inside.Add(1) > 1 {
							together.Add(1)
						}
						inside.Add(-1)
						if !assert.NoError(t, u.release(ctx)) {
							return
						}
					}
				}()
			}
			wg.Wait()
			assert.Zero(t, together.Load(), "grants while another contender held")
		})
	}
}
