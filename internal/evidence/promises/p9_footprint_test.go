// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// The resources of a process for holds and waiters: P9.

var ownFrame = regexp.MustCompile(`github\.com/zklock-go/zklock(/internal/(queue|session))?\.\(`)

// ownGoroutines returns the number of goroutines of the library's clients.
func ownGoroutines() (n int) {
	synctest.Wait()
	buf := make([]byte, 1<<24)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if ownFrame.MatchString(g) {
			n++
		}
	}
	return n
}

// An idle hold has no goroutine, and goroutines that are no longer needed end.
//
//zklock:promise P9.8
func TestHoldsHaveNoGoroutines(t *testing.T) {
	const holds = 100
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		unlockSoon(t, client)
		time.Sleep(time.Second)
		before := ownGoroutines()
		var held []*zklock.Hold
		for i := range holds {
			for _, lock := range []lockFunc{
				client.Mutex(fmt.Sprint("/mutex/", i)).Lock,
				client.RWMutex(fmt.Sprint("/reader/", i)).RLock,
				client.Semaphore(fmt.Sprint("/permits/", i), 3).Permits(2).Lock,
				client.Reentrant(fmt.Sprint("/reentrant/", i)).Lock,
				client.Cohort(fmt.Sprint("/cohort/", i), nil).Lock,
			} {
				hold, err := lock(t.Context())
				require.NoError(t, err)
				held = append(held, hold)
			}
			all, err := client.LockAll(t.Context(), client.Mutex(fmt.Sprint("/one/", i)), client.Mutex(fmt.Sprint("/another/", i)))
			require.NoError(t, err)
			held = append(held, all)
		}
		time.Sleep(time.Second)
		nodes := 8 * holds // two for the semaphore, two for LockAll, one for each of the others
		require.GreaterOrEqual(t, srv.WatchCount(), nodes)
		require.Less(t, ownGoroutines(), before+10)

		srv.DropConnections()
		time.Sleep(5 * time.Second)
		require.Equal(t, nodes, srv.WatchCount(), "all are watched again, and nothing that nobody waits for")
		require.Less(t, ownGoroutines(), before+10)
		for _, hold := range held {
			require.NoError(t, hold.Check())
		}
	})
}

// ownHeap returns how much memory is in use that this library has allocated, without the test's server.
func ownHeap(t *testing.T) (bytes int64) {
	t.Helper()
	for range 3 { // a profile shows the state of the last collection but one
		runtime.GC()
	}
	records := make([]runtime.MemProfileRecord, 1<<16)
	n, ok := runtime.MemProfile(records, false)
	require.True(t, ok)
	for _, r := range records[:n] {
		var ours, servers bool
		for frames := runtime.CallersFrames(r.Stack()); ; {
			f, more := frames.Next()
			ours = ours || strings.HasPrefix(f.Function, "github.com/zklock-go/zklock.") || strings.HasPrefix(f.Function, "github.com/zklock-go/zklock/internal/")
			servers = servers || strings.HasPrefix(f.Function, "github.com/zklock-go/zklock/zktest.")
			if !more {
				break
			}
		}
		if ours && !servers {
			bytes += r.InUseBytes()
		}
	}
	return bytes
}

// A waiter takes two kilobytes of this library's memory, in a short queue as well as in a long one. Every allocation is counted.
//
//zklock:promise P9.8
func TestAWaiterTakesTwoKilobytes(t *testing.T) {
	rate := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = rate }()
	runtime.MemProfileRate = 1
	sizes := []int{100, 1000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for name, lock := range map[string]way{"a mutex": asMutex, "writers": asWriter, "a reader among writers": asEither(), "two permits": forTwo} {
		for _, n := range sizes {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					waitTogether(t, lock, func(join func(n int)) {
						join(100) // what each connection takes is not the waiters'
						time.Sleep(10 * time.Minute / time.Duration(oneIn(5)))
						before := ownHeap(t)
						join(n)
						time.Sleep(10 * time.Minute / time.Duration(oneIn(5))) // with heartbeats, and nothing else
						took := (ownHeap(t) - before) / int64(n)
						t.Logf("%d bytes a waiter", took)
						require.Less(t, took, int64(2<<10+256))
					})
				})
			})
		}
	}
}

// asEither returns a way that alternates between writers and readers.
func asEither() way {
	var n atomic.Int32
	return func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		if n.Add(1)%2 == 0 {
			return asReader(c)
		}
		return asWriter(c)
	}
}

// BenchmarkHold measures the memory of a hold in a process. It also reports the memory of the hold's node and watch in the client
// library and in the server, which is in the same process.
//
//zklock:promise P9.8
func BenchmarkHold(b *testing.B) {
	ctx := context.Background()
	b.Run("a mutex", func(b *testing.B) {
		client := benchClient(b, zktest.Start(b))
		footprint(b, func(path string) error {
			_, err := client.Mutex(path).Lock(ctx)
			return err
		})
	})
	b.Run("a node and a watch", func(b *testing.B) {
		conn := rawClient(b, zktest.Start(b), term)
		footprint(b, func(path string) error {
			_, err := conn.CreateContainer(path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
			if err != nil {
				return err
			}
			name, err := conn.Create(path+"/_c_0123456789abcdef0123456789abcdef-lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			if err != nil {
				return err
			}
			_, _, _, err = conn.GetW(name)
			return err
		})
	})
}

// footprint calls take many times and reports the memory in use for each.
func footprint(b *testing.B, take func(path string) error) {
	const many = 10_000
	for i := range b.N {
		before, goroutines := inUse(), runtime.NumGoroutine()
		for j := range many {
			if err := take(fmt.Sprintf("/lock-%d-%d", i, j)); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(time.Second) // all are watched by then
		b.ReportMetric(float64(inUse()-before)/many, "B/hold")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/many, "goroutines/hold")
	}
}

// inUse returns how much memory is in use.
func inUse() int64 {
	heap, stacks := inHeapAndStacks()
	return heap + stacks
}

func inHeapAndStacks() (heap, stacks int64) {
	var m runtime.MemStats
	for range 3 { // stacks shrink by half at a time
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}

// A program that acquires each lock under the previous hold, and then releases the previous one, retains memory only for its
// current holds.
//
//zklock:promise P9.8
func TestChainedHoldsDoNotAccumulate(t *testing.T) {
	for name, lock := range map[string]func(c *zklock.Client, path string) lockFunc{
		"mutex":     func(c *zklock.Client, path string) lockFunc { return c.Mutex(path).Lock },
		"reentrant": func(c *zklock.Client, path string) lockFunc { return c.Reentrant(path).Lock },
		"cohort":    func(c *zklock.Client, path string) lockFunc { return c.Cohort(path, nil).Lock },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				type key struct{}
				client := connect(t, srv, "a", term)
				last, err := lock(client, "/hand/1")(context.WithValue(t.Context(), key{}, "value"))
				require.NoError(t, err)
				first, kept := last.Token(), weak.Make(last)
				for i := range 20 {
					next, err := lock(client, fmt.Sprint("/hand/", i%2))(last.Context())
					require.NoError(t, err)
					unlock(t, last)
					last = next
				}
				time.Sleep(10 * time.Minute) // the watches of the nodes have fired, and idle places are given up
				require.Greater(t, last.Token(), first)
				require.Equal(t, "value", last.Context().Value(key{}))
				_, err = lock(client, "/hand/1")(last.Context())
				if name == "reentrant" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, zklock.ErrDeadlock)
				}
				runtime.GC()
				require.Nil(t, kept.Value(), "the first hold is kept")
			})
		})
	}
}
