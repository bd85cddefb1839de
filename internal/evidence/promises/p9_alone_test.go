// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// Tests of acquires that count other contenders instead of listing them: see internal/queue/alone.go.

// countsOthers reports whether a request creates a contender's node and writes its directory's data.
func countsOthers(r *zktest.Request) bool {
	return makesContender(r) && r.Op == zktest.OpMulti && len(r.Ops) == 2 && r.Ops[1] == zktest.OpSetData
}

// counter counts the acquires that count.
func counter(srv *zktest.Server) *atomic.Int32 {
	var n atomic.Int32
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if countsOthers(r) {
			n.Add(1)
		}
		return zktest.Pass
	})
	return &n
}

//zklock:promise P9.2
func TestAnAcquireThatCountsLeavesForeignDataAlone(t *testing.T) {
	for _, data := range []string{"", "mine", fmt.Sprintf("%2000d", 1)} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			require.NoError(t, srv.PutNode(path, []byte(data)))
			counting := counter(srv)
			client, other := connect(t, srv, "a", term), rawClient(t, srv, term)
			for i := range 20 {
				unlockSoon(t, client)
				dir, _ := srv.Node(path)
				require.Equal(t, data, string(dir.Data))
				if i%5 == 4 {
					data = fmt.Sprint("theirs ", i)
					_, err := other.Set(path, []byte(data), -1)
					require.NoError(t, err)
				}
				time.Sleep(time.Second)
			}
			require.GreaterOrEqual(t, counting.Load(), int32(10))
		})
	}
}

// An acquire that counts notices other contenders, including some that came and went, and waits for its turn as usual.
//
//zklock:promise P9.2
func TestAnAcquireThatCountsOthersWaitsForThem(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		counting := counter(srv)
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		for range 5 {
			unlockSoon(t, a)
			unlockSoon(t, a)
			unlockSoon(t, b)
			before := counting.Load()
			hold, err := b.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			waits := lockLater(t.Context(), a.Mutex(path).Lock)
			time.Sleep(time.Second)
			require.False(t, waits.returned())
			require.Greater(t, counting.Load(), before, "the lock was taken another way")
			_, err = a.Mutex(path).TryLock(t.Context())
			require.ErrorIs(t, err, zklock.ErrLocked)
			require.Len(t, queue(srv, path), 2)
			unlock(t, hold)
			time.Sleep(time.Second)
			require.True(t, waits.returned())
			require.NoError(t, waits.err)
			unlock(t, waits.hold)
		}
	})
}

// If two clients lock in turns, each is alone sometimes, and a count would only conflict with the other's write. After a
// conflict, a client does not count for a second.
//
//zklock:promise P9.1 A19
func TestTwoContendersThatComeAndGoDoNotCountEachOther(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		var useless atomic.Int32
		var last sync.Map // by client: when its last count failed
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			dir, ok := srv.Node(path)
			if !countsOthers(r) || ok && dir.Stat.NumChildren == 0 {
				return zktest.Pass
			}
			useless.Add(1)
			if before, ok := last.Swap(r.Client, time.Now()); ok {
				assert.GreaterOrEqual(t, time.Since(before.(time.Time)), time.Second, r.Client)
			}
			return zktest.Pass
		})
		var group sync.WaitGroup
		for i := range 2 {
			c := connect(t, srv, fmt.Sprint("c", i), term)
			group.Go(func() {
				for range 1000 {
					hold, err := c.Mutex(path).Lock(t.Context())
					if !assert.NoError(t, err) || !assert.NoError(t, hold.Unlock(t.Context())) {
						return
					}
					time.Sleep(time.Duration(rand.Int64N(int64(8 * time.Millisecond))))
				}
			})
		}
		group.Wait()
		require.Positive(t, useless.Load())
	})
}

// With an exhausted counter, tokens are as exact as usual, and grow.
//
//zklock:promise P9.2
func TestTheTokenOfAnAcquireThatCountsIsItsNodesOwn(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		lab.SetChildCounter(srv, path, math.MaxInt32-3)
		counting, last := counter(srv), int64(0)
		for range 10 {
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			node, _ := srv.Node(hold.Node())
			require.Equal(t, node.Stat.Czxid, hold.Token())
			require.Greater(t, hold.Token(), last)
			last = hold.Token()
			unlock(t, hold)
		}
		require.Positive(t, counting.Load())
	})
}

// If the directory is not writable or is created again, an attempt fails, but the lock is acquired.
//
//zklock:promise P9.1 A19
func TestAnAcquireThatMayNotCountListsInstead(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		setMembers(t, aDirectory(t, srv), zk.PermAll&^zk.PermWrite)
		counting := counter(srv)
		client := connect(t, srv, "a", term)
		for range 5 {
			unlockSoon(t, client)
		}
		require.Equal(t, int32(1), counting.Load())
	})
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		for range 5 {
			unlockSoon(t, client)
			unlockSoon(t, client)
			require.NoError(t, srv.DeleteNode(path))
			require.NoError(t, srv.PutNode(path, []byte("another's")))
			unlockSoon(t, client)
			dir, _ := srv.Node(path)
			require.Equal(t, "another's", string(dir.Data))
			require.NoError(t, srv.DeleteNode(path))
		}
	})
}

// A directory with much data is not written again, nor one whose data could not be read.
//
//zklock:promise P9.1
func TestAnAcquireCountsWhereTheDataIsShortAndKnown(t *testing.T) {
	for _, c := range []struct {
		size, unread int // bytes, and how many attempts to read them fail
		counts       int32
	}{{0, 0, 9}, {1024, 0, 9}, {1025, 0, 0}, {10, 3, 6}} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			require.NoError(t, srv.PutNode(path, make([]byte, c.size)))
			counting := counter(srv)
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Op == zktest.OpGetData && r.Path == path && c.unread > 0 {
					c.unread--
					return zktest.Answer(-5)
				}
				return zktest.Pass
			})
			client := connect(t, srv, "a", term)
			for range 10 {
				unlockSoon(t, client)
				time.Sleep(time.Second)
			}
			require.Equal(t, c.counts, counting.Load(), "%d bytes", c.size)
		})
	}
}

// After a lost reply, the client looks for the node, and no node remains.
//
//zklock:promise P9.2
func TestACountWhoseReplyWasLostIsSearchedFor(t *testing.T) {
	for name, verdict := range map[string]zktest.Verdict{"it was done": zktest.LoseReply, "it was not": zktest.DropBefore} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				client := connect(t, srv, "a", term)
				unlockSoon(t, client)
				lost := 0
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if countsOthers(r) && lost < 3 {
						lost++
						return verdict
					}
					return zktest.Pass
				})
				for range 10 {
					hold, err := client.Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					require.Len(t, queue(srv, path), 1)
					node, _ := srv.Node(hold.Node())
					require.Equal(t, node.Stat.Czxid, hold.Token())
					unlock(t, hold)
				}
				require.Equal(t, 3, lost)
				noGhost(t, srv, path)
			})
		})
	}
}

// TestADirectoryThatWasCreatedAgainKeepsItsData creates the directory again, with the same version but other data.
//
//zklock:promise P9.2 A20
func TestADirectoryThatWasCreatedAgainKeepsItsData(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		unlockSoon(t, client)
		seen, _ := srv.Node(path)
		require.NoError(t, srv.DeleteNode(path))
		require.NoError(t, srv.PutNode(path, nil))
		for {
			if made, _ := srv.Node(path); made.Version == seen.Version {
				break
			}
			require.NoError(t, srv.PutNode(path, []byte("another's")))
		}
		time.Sleep(10*time.Second + time.Millisecond)
		unlockSoon(t, client)
		made, _ := srv.Node(path)
		require.Equal(t, "another's", string(made.Data))
	})
}
