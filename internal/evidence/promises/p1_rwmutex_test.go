// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// inTurn starts attempts one after the other, each queued before the next.
func inTurn(t *testing.T, locks ...func(context.Context) (*zklock.Hold, error)) []*attempt {
	t.Helper()
	var attempts []*attempt
	for _, lock := range locks {
		attempts = append(attempts, lockLater(t.Context(), lock))
		synctest.Wait()
	}
	return attempts
}

// granted returns which of the attempts hold.
func granted(attempts []*attempt) string {
	var b strings.Builder
	for _, a := range attempts {
		if a.returned() && a.err == nil {
			b.WriteByte('x')
		} else {
			b.WriteByte('.')
		}
	}
	return b.String()
}

//zklock:promise P4.2
func TestReadersShareAndWritersDoNotInOrderOfArrival(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term).RWMutex(path), connect(t, srv, "b", term).RWMutex(path)
		all := inTurn(t, a.RLock, b.RLock, a.Lock, b.RLock, a.RLock, b.Lock, a.RLock)
		release := func(holding, then string, which ...int) {
			t.Helper()
			require.Equal(t, holding, granted(all))
			for _, i := range which {
				unlock(t, all[i].hold)
			}
			time.Sleep(time.Second)
			require.Equal(t, then, granted(all))
		}
		release("xx.....", "xx.....", 1)
		release("xx.....", "xxx....", 0)
		release("xxx....", "xxxxx..", 2)
		release("xxxxx..", "xxxxx..", 3)
		release("xxxxx..", "xxxxxx.", 4)
		release("xxxxxx.", "xxxxxxx", 5)
		unlock(t, all[6].hold)
		for i := 1; i < len(all); i++ {
			require.Greater(t, all[i].hold.Token(), all[i-1].hold.Token())
		}
		noGhost(t, srv, path)
	})
}

// A hand-off wakes only the waiters that can hold.
//
//zklock:promise P9.5
func TestAWritersReleaseWakesTheReadersUpToTheNextWriter(t *testing.T) {
	for _, more := range []int{0, 100} {
		t.Run(fmt.Sprint(more, " more waiters"), func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				var clients []*zklock.RWMutex
				for i := range 5 {
					clients = append(clients, connect(t, srv, fmt.Sprint("c", i), 40*time.Second).RWMutex(path))
				}
				all := inTurn(t, clients[0].Lock)
				for i := range 10 {
					all = append(all, inTurn(t, clients[i%5].RLock)...)
				}
				all = append(all, inTurn(t, clients[0].Lock)...)
				for i := range more {
					all = append(all, inTurn(t, clients[i%5].RLock, clients[i%5].Lock)[i%2])
				}
				time.Sleep(time.Second)
				resetCounts(srv)
				unlock(t, all[0].hold)
				time.Sleep(time.Second)
				require.Equal(t, strings.Repeat("x", 11)+strings.Repeat(".", 1+more), granted(all))
				n := srv.Requests()
				require.Equal(t, 1, n[zktest.OpDelete]+n[zktest.OpMulti], "one write")
				require.LessOrEqual(t, srv.RequestCount()-n[zktest.OpPing], 1+10, "and at most each reader's own watch: %v", n)
				for _, a := range all[1:11] {
					unlock(t, a.hold)
				}
			})
		})
	}
}

//zklock:promise P9.5
func TestReadersSleepUntilTheLastWriterBeforeThemLeaves(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		writers, readers := connect(t, srv, "writers", 40*time.Second).RWMutex(path), connect(t, srv, "readers", 40*time.Second).RWMutex(path)
		all := inTurn(t, writers.Lock, writers.Lock, writers.Lock, readers.RLock, readers.RLock, readers.RLock, readers.RLock, readers.RLock)
		time.Sleep(time.Second)
		looks := 0
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "readers" && strings.HasPrefix(r.Path, path) {
				looks++
			}
			return zktest.Pass
		})
		for i := range 2 {
			unlock(t, all[i].hold)
			time.Sleep(time.Second)
			require.Equal(t, strings.Repeat("x", i+2)+strings.Repeat(".", 6-i), granted(all))
			require.Zero(t, looks)
		}
		unlock(t, all[2].hold)
		time.Sleep(time.Second)
		require.Equal(t, "xxxxxxxx", granted(all))
		for _, reader := range all[3:] {
			unlock(t, reader.hold)
		}
	})
}

//zklock:promise P1.5
func TestDowngradeKeepsThePlaceAndAdmitsReaders(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		ra, rb := a.RWMutex(path), b.RWMutex(path)
		all := inTurn(t, ra.Lock, rb.RLock, ra.RLock, rb.Lock, ra.RLock)
		time.Sleep(time.Second)
		require.Equal(t, "x....", granted(all))
		hold := all[0].hold
		token, node := hold.Token(), hold.Node()
		require.NoError(t, hold.Downgrade(t.Context()))
		time.Sleep(time.Second)
		require.Equal(t, "xxx..", granted(all), "the readers right behind hold, the writer and who is behind it do not")
		require.NoError(t, hold.Check())
		require.NoError(t, hold.Confirm(t.Context()))
		require.Equal(t, token, hold.Token())
		require.Equal(t, node, hold.Node())
		_, err := rb.TryRLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked, "a writer waits")

		q, err := operate.Inspect(t.Context(), b, path)
		require.NoError(t, err)
		require.Equal(t, operate.KindRead, q.Contenders[0].Kind)
		for i, who := range q.Contenders {
			require.Equal(t, i < 3, who.Holds, "%+v", who)
		}

		unlock(t, all[1].hold)
		unlock(t, all[2].hold)
		time.Sleep(time.Second)
		require.Equal(t, "xxx..", granted(all))
		unlock(t, hold)
		time.Sleep(time.Second)
		require.Equal(t, "xxxx.", granted(all))
		unlock(t, all[3].hold)
		<-all[4].done
		unlock(t, all[4].hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P1.5
func TestReadersComeAfterADowngrade(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term).RWMutex(path), connect(t, srv, "b", term).RWMutex(path)
		hold, err := a.Lock(t.Context())
		require.NoError(t, err)
		_, err = b.TryRLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.NoError(t, hold.Downgrade(t.Context()))
		require.NoError(t, hold.Downgrade(t.Context()), "again")
		for _, lock := range []func(context.Context) (*zklock.Hold, error){b.RLock, b.TryRLock} {
			reader, err := lock(t.Context())
			require.NoError(t, err)
			unlock(t, reader)
		}
		_, err = b.TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		unlock(t, hold)
		writer, err := b.TryLock(t.Context())
		require.NoError(t, err)
		unlock(t, writer)
	})
}

// A reader can be next although others are ahead of it, if those are readers as well.
//
//zklock:promise P7.1
func TestAReaderThatLostItsNodeIsNotGranted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term).RWMutex(path), connect(t, srv, "b", term).RWMutex(path)
		all := inTurn(t, a.RLock, a.Lock, b.RLock)
		time.Sleep(time.Second)
		names := queue(srv, path)
		slices.SortFunc(names, func(x, y string) int { return strings.Compare(x[len(x)-10:], y[len(y)-10:]) })
		require.Len(t, names, 3)
		require.NoError(t, srv.DeleteNode(path+"/"+names[2]))
		time.Sleep(time.Second)
		require.Len(t, queue(srv, path), 3, "it queues again")
		unlock(t, all[0].hold)
		<-all[1].done
		unlock(t, all[1].hold)
		<-all[2].done
		require.NoError(t, all[2].hold.Check())
		unlock(t, all[2].hold)
	})
}

//zklock:promise P1.5
func TestOnlyAWriterCanBeDowngraded(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		for _, lock := range []way{asMutex, asReader, forTwo} {
			hold, err := lock(client)(t.Context())
			require.NoError(t, err)
			synctest.Wait() // the place in a semaphore's queue is deleted in the background
			resetCounts(srv)
			require.ErrorIs(t, hold.Downgrade(t.Context()), zklock.ErrInvalid)
			require.Zero(t, srv.RequestCount())
			unlock(t, hold)
		}
		hold, err := client.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
		require.ErrorIs(t, hold.Downgrade(t.Context()), zklock.ErrReleased)
	})
}

//zklock:promise P7.11
func TestAReaderCannotBecomeAWriter(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		m := connect(t, srv, "a", term).RWMutex(path)
		hold, err := m.RLock(t.Context())
		require.NoError(t, err)
		resetCounts(srv)
		for _, lock := range []func(context.Context) (*zklock.Hold, error){m.Lock, m.TryLock, m.RLock, m.TryRLock} {
			_, err = lock(hold.Context())
			require.ErrorIs(t, err, zklock.ErrDeadlock)
		}
		require.Zero(t, srv.RequestCount(), "nothing was sent")
		unlock(t, hold)
	})
}

// TestADowngradeThroughAnyFault runs a downgrade with a fault at each request: no writer is granted in between, and the readers
// are granted unless the writer's place is lost.
//
//zklock:promise P1.5
func TestADowngradeThroughAnyFault(t *testing.T) {
	throughEveryFault(t, 1, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) (struck bool) {
		victim, other := connect(t, srv, "victim", term), connect(t, srv, "other", term)
		hold, err := victim.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		rest := inTurn(t, other.RWMutex(path).RLock, other.RWMutex(path).Lock)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hit := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
		err = hold.Downgrade(ctx)
		struck = hit()
		if err != nil && ctx.Err() == nil {
			require.ErrorIs(t, err, zklock.ErrLost)
		}
		time.Sleep(time.Second)
		require.Equal(t, byte('.'), granted(rest)[1], "a writer together with a reader")
		if err == nil {
			require.Equal(t, "x.", granted(rest))
		}
		unlockThroughFault(t, hold)
		for _, a := range rest {
			<-a.done
			require.NoError(t, a.err)
			unlock(t, a.hold)
		}
		noGhost(t, srv, path)
		require.Zero(t, srv.WatchCount(), "%v", srv.Watches())
		return struck
	})
}

// Curator's downgrade creates a reader's node with the writer's number and then deletes the writer's node.
//
//zklock:promise P1.5
func TestAWriterWaitsForCuratorsDowngradedReader(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		curator := rawClient(t, srv, term)
		m := connect(t, srv, "a", term).RWMutex(path)
		reader, err := m.RLock(t.Context()) // makes the directory
		require.NoError(t, err)
		unlock(t, reader)
		const guid = "_c_01234567-89ab-cdef-0123-456789abcdef"
		writing, err := curator.Create(path+"/"+guid+"-__WRIT__", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		all := inTurn(t, m.Lock, m.RLock)
		time.Sleep(time.Second)
		reading := strings.ReplaceAll(writing, "WRIT", "READ")
		_, err = curator.Create(reading, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.NoError(t, curator.Delete(writing, -1))
		time.Sleep(time.Second)
		require.Equal(t, "..", granted(all), "Curator's reader holds")
		require.NoError(t, curator.Delete(reading, -1))
		time.Sleep(time.Second)
		require.Equal(t, "x.", granted(all))
		unlock(t, all[0].hold)
		<-all[1].done
		unlock(t, all[1].hold)
	})
}

// TestReadersAndWritersNeverMix runs 100 goroutines in 10 clients on one lock while sessions end and connections break.
//
//zklock:promise P1.5
func TestReadersAndWritersNeverMix(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var mu sync.Mutex
		readers, writers, grants := 0, 0, map[string]int{} // guarded by mu
		enter := func(kind string, r, w int) {
			mu.Lock()
			defer mu.Unlock()
			readers, writers = readers+r, writers+w
			grants[kind]++
			assert.True(t, writers == 0 || writers == 1 && readers == 0, "%d readers and %d writers", readers, writers)
		}
		leave := func(r, w int) {
			mu.Lock()
			defer mu.Unlock()
			readers, writers = readers-r, writers-w
		}
		work := func(m *zklock.RWMutex, r *rand.Rand) {
			if r.IntN(4) > 0 {
				if hold, err := m.RLock(t.Context()); err == nil {
					use(hold, r, func() { enter("read", 1, 0) }, func() { leave(1, 0) })
				}
				return
			}
			hold, err := m.Lock(t.Context())
			if err != nil {
				return
			}
			if r.IntN(2) == 0 {
				use(hold, r, func() { enter("write", 0, 1) }, func() { leave(0, 1) })
				return
			}
			enter("downgrade", 0, 1)
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			mu.Lock()
			readers, writers = readers+1, writers-1
			mu.Unlock()
			_ = hold.Downgrade(t.Context()) // a reader from the call on, even if the call fails
			use(hold, r, func() {}, func() { leave(1, 0) })
		}
		crowd(t, srv, func(c *zklock.Client, r *rand.Rand) { work(c.RWMutex(path), r) })
		for _, kind := range []string{"read", "write", "downgrade"} {
			require.Greater(t, grants[kind], 20)
		}
	})
}

// use keeps a hold for a while or until it is lost.
func use(hold *zklock.Hold, r *rand.Rand, enter, leave func()) {
	var once sync.Once
	enter()
	stop := context.AfterFunc(hold.Context(), func() { once.Do(leave) })
	timer := time.NewTimer(time.Duration(r.IntN(50)) * time.Millisecond)
	select {
	case <-timer.C:
	case <-hold.Context().Done():
	}
	once.Do(leave)
	stop()
	_ = hold.Unlock(context.Background())
}

// crowd runs work ten times in each of ten goroutines of ten clients, while sessions end and connections break, and waits for
// all.
func crowd(t *testing.T, srv *zktest.Server, work func(c *zklock.Client, r *rand.Rand)) {
	var wg sync.WaitGroup
	for i := range 10 {
		c := connect(t, srv, fmt.Sprint("c", i), term)
		for j := range 10 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				for range 10 {
					work(c, r)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	r := rand.New(rand.NewPCG(1, 2))
	for trouble := 0; ; trouble++ {
		select {
		case <-done:
			noGhost(t, srv, path)
			return
		case <-time.After(time.Duration(r.IntN(3000)) * time.Millisecond):
		}
		switch victim := fmt.Sprint("c", r.IntN(10)); {
		case trouble > 20:
		case trouble%3 == 0:
			srv.Partition(victim)
			time.Sleep(3 * term / 2)
			srv.HealClient(victim)
		default:
			srv.DropConnections()
		}
	}
}

// A label can be any text.
//
//zklock:promise P1.5
func TestAWriterWhoseLabelIsNotUTF8IsDowngraded(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Label: "caf\xe9", SessionTimeout: term, Dialer: srv.Dial})
		if err != nil {
			require.ErrorIs(t, err, zklock.ErrInvalid)
			return
		}
		defer c.Close()
		hold, err := c.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Downgrade(t.Context()))
	})
}
