package zklock_test

import (
	"context"
	"errors"
	"fmt"
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

// One place for all goroutines of a process that read.

var (
	asCohortReader way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Cohort(path, nil).RLock }
	// asLaterReader is the hold of a goroutine that has joined another on the same node, which has left since.
	asLaterReader way = func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
		return func(ctx context.Context) (*zklock.Hold, error) {
			first, err := c.Cohort(path, nil).RLock(ctx)
			if err != nil {
				return nil, err
			}
			time.Sleep(10 * time.Millisecond)
			hold, err := c.Cohort(path, nil).RLock(ctx)
			if err == nil && hold.Node() != first.Node() {
				err = errors.New("the goroutines have not shared a node")
			}
			return hold, errors.Join(err, first.Unlock(ctx))
		}
	}
)

// A room holds readers or one writer, and says when it held both.
type room struct {
	mu               sync.Mutex
	readers, writers int            // guarded by mu
	most             int            // guarded by mu: readers at a time
	bad              bool           // guarded by mu
	visits           map[string]int // guarded by mu
}

func newRoom() *room { return &room{visits: map[string]int{}} }

func (r *room) come(group string, readers, writers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers += readers
	r.writers += writers
	r.most = max(r.most, r.readers)
	r.bad = r.bad || r.writers > 1 || r.writers > 0 && r.readers > 0
	if readers+writers > 0 {
		r.visits[group]++
	}
}

// visit holds for a while, or until the hold is lost.
func (r *room) visit(group string, hold *zklock.Hold, reads bool, during time.Duration) {
	if hold.Context().Err() != nil {
		return
	}
	readers, writers := 0, 1
	if reads {
		readers, writers = 1, 0
	}
	r.come(group, readers, writers)
	select {
	case <-time.After(during):
	case <-hold.Context().Done():
	}
	r.come(group, -readers, -writers)
}

// loop has n goroutines visit again and again until stop is closed.
func (r *room) loop(t *testing.T, all *sync.WaitGroup, stop chan struct{}, group string, n int, lock lockFunc, reads bool) {
	for i := range n {
		all.Go(func() {
			for !isClosed(stop) {
				hold, err := lock(t.Context())
				if !assert.NoError(t, err, group) {
					return
				}
				r.visit(group, hold, reads, time.Duration(1+i%3)*time.Millisecond)
				if !assert.NoError(t, hold.Unlock(t.Context()), group) {
					return
				}
			}
		})
	}
}

func TestReadersOfACohortShareAPlaceWithoutARequest(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		cohort := connect(t, srv, "a", term).Cohort(path, nil)
		first, err := cohort.RLock(t.Context())
		require.NoError(t, err)
		time.Sleep(50 * time.Millisecond)
		c := costOf(srv, func() {
			var holds []*zklock.Hold
			for range 100 {
				hold, err := cohort.RLock(t.Context())
				require.NoError(t, err)
				require.Equal(t, first.Node(), hold.Node())
				require.Equal(t, first.Token(), hold.Token())
				holds = append(holds, hold)
			}
			unlock(t, first)
			for i := range holds {
				require.NoError(t, holds[i].Check())
				unlock(t, holds[i])
				require.Error(t, holds[i].Context().Err())
			}
			again, err := cohort.RLock(t.Context())
			require.NoError(t, err)
			require.Equal(t, first.Node(), again.Node())
			unlock(t, again)
		})
		require.Equal(t, cost{}, c)
		time.Sleep(time.Second)
		require.Empty(t, queue(srv, path), "it is not kept for ever")
	})
}

// Processes that read do not disturb one another, and all goroutines that ask while a place is sought hold as soon as it is there.
func TestReadersOfSeveralProcessesShareTheirPlaces(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		r, stop := newRoom(), make(chan struct{})
		var all sync.WaitGroup
		for i := range 3 {
			r.loop(t, &all, stop, fmt.Sprint(i), 8, connect(t, srv, fmt.Sprint(i), term).Cohort(path, nil).RLock, true)
		}
		time.Sleep(100 * time.Millisecond)
		raw := rawClient(t, srv, term)
		c := costOf(srv, func() {
			for range 10 { // another library's reader comes and goes
				node, err := raw.Create(path+"/_c_0123456789abcdef0123456789abcdef-__READ__", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
				time.Sleep(5 * time.Millisecond)
				require.NoError(t, raw.Delete(node, -1))
				time.Sleep(5 * time.Millisecond)
			}
		})
		close(stop)
		all.Wait()
		require.False(t, r.bad)
		require.Greater(t, r.most, 20)
		require.LessOrEqual(t, c.writes, 20+6, "only the other's, and a heartbeat")
		for i := range 3 {
			require.Greater(t, r.visits[fmt.Sprint(i)], 500)
		}
	})
}

func TestReadersAndWritersOfCohortsAndOthersExcludeEachOtherAndNobodyStarves(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		r, stop := newRoom(), make(chan struct{})
		var all sync.WaitGroup
		for i := range 2 {
			cohort := connect(t, srv, fmt.Sprint("cohort ", i), term).Cohort(path, nil)
			r.loop(t, &all, stop, "cohort's readers", 8, cohort.RLock, true)
			r.loop(t, &all, stop, "cohort's own", 2, cohort.Lock, false)
		}
		other := connect(t, srv, "other", term)
		r.loop(t, &all, stop, "readers", 2, other.RWMutex(path).RLock, true)
		r.loop(t, &all, stop, "writers", 2, other.RWMutex(path).Lock, false)
		r.loop(t, &all, stop, "mutex", 1, connect(t, srv, "mutex", term).Mutex(path).Lock, false)
		time.Sleep(5 * time.Second)
		close(stop)
		all.Wait()
		t.Logf("%v", r.visits)
		require.False(t, r.bad)
		require.Greater(t, r.most, 4)
		for _, group := range []string{"cohort's readers", "cohort's own", "readers", "writers", "mutex"} {
			require.Greater(t, r.visits[group], 30, group)
		}
		noGhost(t, srv, path)
	})
}

// A writer waits for those that read, and for none that comes later, however many do.
func TestAWriterWaitsForNoReaderThatComesLater(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		r, stop := newRoom(), make(chan struct{})
		var all sync.WaitGroup
		r.loop(t, &all, stop, "readers", 32, connect(t, srv, "ours", term).Cohort(path, nil).RLock, true)
		time.Sleep(100 * time.Millisecond)
		writer := connect(t, srv, "writer", term)
		for range 20 {
			asked := time.Now()
			hold, err := writer.RWMutex(path).Lock(t.Context())
			require.NoError(t, err)
			require.Less(t, time.Since(asked), 30*time.Millisecond)
			r.visit("writer", hold, false, time.Millisecond)
			unlock(t, hold)
			time.Sleep(20 * time.Millisecond)
		}
		for range 3 { // one that only looks whether it is free gets in at the end of a run
			try, asked := zklock.ErrLocked, time.Now()
			for errors.Is(try, zklock.ErrLocked) {
				var hold *zklock.Hold
				if hold, try = writer.RWMutex(path).TryLock(t.Context()); try == nil {
					r.visit("writer", hold, false, time.Millisecond)
					unlock(t, hold)
				}
			}
			require.NoError(t, try)
			require.Less(t, time.Since(asked), 3*time.Second)
		}
		close(stop)
		all.Wait()
		require.False(t, r.bad)
		require.Greater(t, r.visits["readers"], 1000)
	})
}

// The loss of the place ends the holds of all that read there, and those that come are granted in another one.
func TestALossEndsAllReadersOfAPlace(t *testing.T) {
	for name, strike := range map[string]func(srv *zktest.Server, h *zklock.Hold){
		"somebody deletes the node": func(srv *zktest.Server, h *zklock.Hold) { srv.DeleteNode(h.Node()) },
		"an operator ends the session": func(srv *zktest.Server, h *zklock.Hold) {
			node, _ := srv.Node(h.Node())
			srv.ExpireSession(node.EphemeralOwner)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, three, func(t *testing.T, srv *zktest.Server) {
				cohort, other := connect(t, srv, "ours", term).Cohort(path, nil), connect(t, srv, "other", term)
				var holds []*zklock.Hold
				for range 5 {
					hold, err := cohort.RLock(t.Context())
					require.NoError(t, err)
					holds = append(holds, hold)
				}
				stranger := lockLater(t.Context(), other.RWMutex(path).Lock)
				time.Sleep(time.Second)
				unlock(t, holds[0])
				require.False(t, stranger.returned())
				later := lockLater(t.Context(), cohort.RLock)
				strike(srv, holds[1])
				<-stranger.done
				require.NoError(t, stranger.err)
				synctest.Wait() // all are told at the same moment that a node was deleted
				for _, hold := range holds[1:] {
					require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
					require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrLost)
				}
				time.Sleep(time.Second)
				require.False(t, later.returned())
				unlock(t, stranger.hold)
				<-later.done
				require.NoError(t, later.err)
				unlock(t, later.hold)
				noGhost(t, srv, path)
			})
		})
	}
}

func TestAReaderOfACohortUnderAHoldOfItsOwnIsADeadlock(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		cohort := connect(t, srv, "a", term).Cohort(path, nil)
		for _, lock := range []lockFunc{cohort.Lock, cohort.RLock} {
			hold, err := lock(t.Context())
			require.NoError(t, err)
			for _, again := range []lockFunc{cohort.Lock, cohort.RLock} {
				_, err = again(hold.Context())
				require.ErrorIs(t, err, zklock.ErrDeadlock)
			}
			unlock(t, hold)
		}
	})
}

// TestReadersOfACohortThroughAnyFault breaks each request of what readers and a writer do, one after the other.
func TestReadersOfACohortThroughAnyFault(t *testing.T) {
	t.Parallel()
	throughEveryFault(t, 4, func(t *testing.T, srv *zktest.Server, n int, verdict faultVerdict) bool {
		ours, other := connect(t, srv, "victim", term), connect(t, srv, "other", term)
		time.Sleep(2 * time.Second) // or it would connect again only after a pause, and learn late that its session was ended
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		struck := strikeOnce(srv, "victim", n, func(r *zktest.Request) zktest.Verdict { return verdict(srv, r, cancel) })
		r := newRoom()
		visit := func(ctx context.Context, lock lockFunc, reads bool) {
			hold, err := lock(ctx)
			if err != nil {
				assert.Error(t, ctx.Err(), "%v", err)
				return
			}
			time.Sleep(time.Nanosecond) // a holder whose session an operator has ended is told at this moment
			r.visit("all", hold, reads, 20*time.Millisecond)
			_ = hold.Unlock(t.Context()) // lost, here and there
		}
		var all sync.WaitGroup
		visit(ctx, ours.Cohort(path, nil).RLock, true)
		for i := range 3 {
			all.Go(func() {
				time.Sleep(time.Duration(5*i) * time.Millisecond)
				visit(ctx, ours.Cohort(path, nil).RLock, true)
			})
			all.Go(func() {
				time.Sleep(time.Duration(15*i) * time.Millisecond)
				visit(t.Context(), other.RWMutex(path).Lock, false)
			})
		}
		all.Wait()
		visit(ctx, ours.Cohort(path, nil).RLock, true)
		visit(t.Context(), ours.Cohort(path, nil).Lock, false)
		require.False(t, r.bad)
		time.Sleep(2 * term) // for a create that was only delayed
		noGhost(t, srv, path)
		return struck()
	})
}

// A reader that cannot share its process's place any more gets another one at once.
func TestAReaderOfACohortWaitsForNoOtherReader(t *testing.T) {
	for name, spend := range map[string]func(t *testing.T, srv *zktest.Server, ours, other *zklock.Client){
		"of long ago": func(*testing.T, *zktest.Server, *zklock.Client, *zklock.Client) { time.Sleep(5 * term) },
		"of before a reconnect": func(_ *testing.T, srv *zktest.Server, _, _ *zklock.Client) {
			srv.DropConnections()
			time.Sleep(2 * time.Second)
		},
		"who was asked to let go": func(t *testing.T, _ *zktest.Server, _, other *zklock.Client) {
			require.NoError(t, operate.Revoke(t.Context(), other, everybody(t, other)[0]))
			time.Sleep(time.Second)
		},
		"after a writer that came and went": func(t *testing.T, _ *zktest.Server, _, other *zklock.Client) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := other.RWMutex(path).Lock(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
				ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
				first, err := ours.Cohort(path, nil).RLock(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second)
				spend(t, srv, ours, other)
				require.NoError(t, first.Check())
				var later []*zklock.Hold
				for range 3 {
					later = append(later, grantedSoon(t, ours.Cohort(path, nil).RLock))
				}
				unlock(t, first)
				time.Sleep(time.Second)
				for _, hold := range later {
					require.NoError(t, hold.Check())
				}
				require.Len(t, queue(srv, path), 1, "the last one in the old place gives it up")
				for _, hold := range later {
					unlock(t, hold)
				}
				noGhost(t, srv, path)
			})
		})
	}
}

// grantedSoon locks, and fails the test if that takes a minute.
func grantedSoon(t *testing.T, lock lockFunc) *zklock.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	hold, err := lock(ctx)
	require.NoError(t, err)
	return hold
}

// A writer that has become a reader stands before them, and wants nothing of them.
func TestReadersOfACohortShareAPlaceBesideAWriterThatWasDowngraded(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		writer, err := other.RWMutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, writer.Downgrade(t.Context()))
		first := grantedSoon(t, ours.Cohort(path, nil).RLock)
		time.Sleep(time.Second / 2)
		second := grantedSoon(t, ours.Cohort(path, nil).RLock)
		require.Equal(t, first.Node(), second.Node())
		for _, hold := range []*zklock.Hold{first, second, writer} {
			require.NoError(t, hold.Check())
			unlock(t, hold)
		}
		noGhost(t, srv, path)
	})
}

// A reader that waits has a node of its process in the queue, so that writers who ask later come later.
func TestReadersOfACohortAndWritersHoldInTheOrderInWhichTheyAsked(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		read, write := ours.Cohort(path, nil).RLock, other.RWMutex(path).Lock
		first := grantedSoon(t, read)
		time.Sleep(2 * time.Second)
		var waiting []*attempt
		for _, lock := range []lockFunc{write, read, write, read} {
			waiting = append(waiting, inTurn(t, lock)...)
			time.Sleep(10 * time.Millisecond)
		}
		unlock(t, first)
		for i, a := range waiting {
			<-a.done
			require.NoError(t, a.err)
			for _, later := range waiting[i+1:] {
				require.False(t, later.returned())
			}
			unlock(t, a.hold)
		}
		noGhost(t, srv, path)
	})
}

// The client knows that something has happened in the queue, and not yet what.
func TestAReaderThatAsksAfterAWriterHoldsAfterIt(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term), connect(t, srv, "other", term)
		first := grantedSoon(t, ours.Cohort(path, nil).RLock)
		time.Sleep(100 * time.Millisecond)
		writer := lockLater(t.Context(), other.RWMutex(path).Lock)
		time.Sleep(2500 * time.Microsecond) // its node is known, a listing after that is not
		second := lockLater(t.Context(), ours.Cohort(path, nil).RLock)
		time.Sleep(100 * time.Millisecond)
		require.False(t, second.returned())
		unlock(t, first)
		<-writer.done
		require.NoError(t, writer.err)
		time.Sleep(100 * time.Millisecond)
		require.False(t, second.returned())
		unlock(t, writer.hold)
		<-second.done
		require.NoError(t, second.err)
		unlock(t, second.hold)
		noGhost(t, srv, path)
	})
}

func TestATryOfAReaderOfACohortAnswersAtOnceAndLeavesNothing(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term).Cohort(path, nil), connect(t, srv, "other", term)
		first, err := ours.TryRLock(t.Context())
		require.NoError(t, err)
		time.Sleep(50 * time.Millisecond)
		second, err := ours.TryRLock(t.Context())
		require.NoError(t, err)
		require.Equal(t, first.Node(), second.Node())
		unlock(t, second)

		waiting := inTurn(t, other.RWMutex(path).Lock)
		time.Sleep(50 * time.Millisecond)
		_, err = ours.TryRLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked, "a writer waits")
		waiting = append(waiting, inTurn(t, ours.RLock)...)
		_, err = ours.TryRLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked, "behind a reader that waits for a writer")
		unlock(t, first)
		for _, a := range waiting {
			<-a.done
			require.NoError(t, a.err)
			unlock(t, a.hold)
		}
		noGhost(t, srv, path)

		asking := inTurn(t, ours.RLock) // its place is asked for
		beside, err := ours.TryRLock(t.Context())
		require.NoError(t, err, "beside a reader that asks")
		<-asking[0].done
		require.NoError(t, asking[0].err)
		unlock(t, beside)
		unlock(t, asking[0].hold)
		noGhost(t, srv, path)
	})
}

func TestDoOfACohortsReaderReadsBesideOthers(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		cohort := connect(t, srv, "a", term).Cohort(path, nil)
		hold, err := cohort.RLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Do(t.Context(), func(ctx context.Context) error {
			require.Equal(t, path, zklock.HoldOf(ctx).Path())
			beside := grantedSoon(t, connect(t, srv, "b", term).RWMutex(path).RLock)
			unlock(t, beside)
			return nil
		}))
		noGhost(t, srv, path)
	})
}

// All readers that wait for a writer hold together after it, whether they asked before their place was asked for or later.
func TestReadersOfACohortThatWaitHoldTogether(t *testing.T) {
	virtual(t, zktest.Options{Latency: fixed(time.Millisecond)}, func(t *testing.T, srv *zktest.Server) {
		ours, other := connect(t, srv, "ours", term).Cohort(path, nil), connect(t, srv, "other", term)
		for range 3 {
			writer := grantedSoon(t, other.RWMutex(path).Lock)
			var readers []*attempt
			for range 5 {
				readers = append(readers, inTurn(t, ours.RLock)...)
				time.Sleep(10 * time.Millisecond)
			}
			unlock(t, writer)
			time.Sleep(50 * time.Millisecond)
			for i, reader := range readers {
				require.True(t, reader.returned(), "number %d waits though another reads", i)
				require.NoError(t, reader.err)
			}
			for _, reader := range readers {
				unlock(t, reader.hold)
			}
		}
		noGhost(t, srv, path)
	})
}
