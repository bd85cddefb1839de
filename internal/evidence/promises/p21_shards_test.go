// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/shards"
	"github.com/zklock-go/zklock/zktest"
)

const shardsPath = "/shards/orders"

// shardFleet is a fleet whose members share shards. It checks that each shard has one member at a time.
type shardFleet struct {
	t   *testing.T
	srv *zktest.Server
	n   int

	mu     sync.Mutex
	of     map[int]string   // guarded by mu: who runs each shard
	tokens map[int]int64    // guarded by mu: the last of each shard
	causes map[error]int    // guarded by mu: why works have ended
	begun  int              // guarded by mu
	linger time.Duration    // guarded by mu: how long works continue after their context has ended because of a move
	live   map[string]*unit // by label
	all    []*unit
}

// unit is a member of a shardFleet.
type unit struct {
	*shards.Member
	client *zklock.Client
	stop   context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

func newShardFleet(t *testing.T, srv *zktest.Server, n int) *shardFleet {
	return &shardFleet{t: t, srv: srv, n: n, of: map[int]string{}, tokens: map[int]int64{}, causes: map[error]int{}, live: map[string]*unit{}}
}

// join starts a member with a client of its own.
func (f *shardFleet) join(name string, opts *shards.Options) *unit {
	return f.joinWith(connect(f.t, f.srv, name, term), name, opts)
}

func (f *shardFleet) joinWith(c *zklock.Client, name string, opts *shards.Options) *unit {
	ctx, cancel := context.WithCancel(context.Background())
	u := &unit{Member: shards.New(c, shardsPath, f.n, opts), client: c, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(u.done)
		u.err = u.Run(ctx, f.work(name))
	}()
	f.live[name] = u
	f.all = append(f.all, u)
	f.t.Cleanup(cancel)
	return u
}

// work returns the work of a member. It continues until its context ends.
func (f *shardFleet) work(name string) shards.Work {
	return func(ctx context.Context, shard int) error {
		f.begin(ctx, name, shard)
		<-ctx.Done()
		if cause := context.Cause(ctx); cause == shards.ErrMoved {
			time.Sleep(f.linger)
		}
		f.end(ctx, name, shard)
		return ctx.Err()
	}
}

func (f *shardFleet) begin(ctx context.Context, name string, shard int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	assert.Empty(f.t, f.of[shard], "shard %d has two members", shard)
	token := zklock.HoldOf(ctx).Token()
	assert.Greater(f.t, token, f.tokens[shard])
	f.of[shard], f.tokens[shard] = name, token
	f.begun++
}

func (f *shardFleet) end(ctx context.Context, name string, shard int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	assert.Equal(f.t, name, f.of[shard])
	delete(f.of, shard)
	for _, err := range []error{shards.ErrMoved, zklock.ErrLost, context.Canceled} {
		if errors.Is(context.Cause(ctx), err) {
			f.causes[err]++
		}
	}
}

// loads returns how many shards each member runs, and how many are run.
func (f *shardFleet) loads() (by map[string]int, held int) {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	by = map[string]int{}
	for _, name := range f.of {
		by[name]++
	}
	return by, len(f.of)
}

// requireBalance requires that all shards are run, evenly, by as many members.
func (f *shardFleet) requireBalance(members int, when string) {
	f.t.Helper()
	by, held := f.loads()
	require.Equal(f.t, f.n, held, "%s: %v", when, by)
	require.Len(f.t, by, min(members, f.n), when)
	for name, load := range by {
		require.InDelta(f.t, float64(f.n)/float64(members), float64(load), 0.999, "%s: %s", when, name)
		u := f.live[name]
		require.Len(f.t, u.Assigned(), load)
		require.Equal(f.t, u.Assigned(), u.Held())
	}
}

// leave ends a member and waits for it.
func (f *shardFleet) leave(name string) {
	f.live[name].stop()
	<-f.live[name].done
	require.ErrorIs(f.t, f.live[name].err, context.Canceled)
	delete(f.live, name)
}

// leaveAll ends all members, and requires that no node is left.
func (f *shardFleet) leaveAll() {
	for name := range f.live {
		f.live[name].stop()
	}
	for name := range f.live {
		<-f.live[name].done
	}
	synctest.Wait()
	for path, n := range f.srv.Tree() {
		require.False(f.t, strings.HasPrefix(path, shardsPath) && n.Stat.EphemeralOwner != 0, path)
	}
}

// within are the times within which all shards are run again: see P21.2. A change of the members costs a second, and a session
// that has to end another session timeout, a tick and the time of a reconnect.
const (
	afterChange = time.Second
	afterCrash  = 2 * term
)

// Five members join one after another, one is partitioned and comes back, one leaves and one is killed.
//
//zklock:promise P21.1 P21.2 P21.3
func TestShardsHaveOneMemberEachAndAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	for seed := range 20 {
		if testing.Short() && seed >= 3 {
			break
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 21))
			virtual(t, zktest.Options{Servers: 3, Latency: func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(5 * time.Millisecond))) }}, func(t *testing.T, srv *zktest.Server) {
				f := newShardFleet(t, srv, 100)
				names := []string{"a", "b", "c", "d", "e"}
				r.Shuffle(5, func(i, j int) { names[i], names[j] = names[j], names[i] })
				for i, name := range names {
					f.join(name, nil)
					time.Sleep(afterChange)
					f.requireBalance(i+1, name+" has joined")
					time.Sleep(time.Duration(r.Int64N(int64(term))))
				}
				cut, leaver, killed := names[r.IntN(5)], "", ""
				for _, name := range names {
					switch {
					case name == cut:
					case leaver == "":
						leaver = name
					default:
						killed = name
					}
				}
				srv.Partition(cut)
				time.Sleep(afterCrash)
				f.requireBalance(4, cut+" is partitioned")
				if r.IntN(2) == 0 {
					srv.ElectLeader(r.IntN(3))
				}
				srv.HealClient(cut)
				time.Sleep(term) // it reconnects, and joins under a new session
				f.requireBalance(5, cut+" is back")
				f.leave(leaver)
				time.Sleep(afterChange)
				f.requireBalance(4, leaver+" has left")
				srv.Partition(killed)
				f.live[killed].stop()
				time.Sleep(afterCrash)
				delete(f.live, killed)
				f.requireBalance(3, killed+" is dead")
				srv.HealClient(killed)
				f.leaveAll()
			})
		})
	}
}

// All servers are down for longer than a session timeout, or for less.
//
//zklock:promise P21.2
func TestAfterAnOutageAllShardsAreHeldAgain(t *testing.T) {
	t.Parallel()
	for _, down := range []time.Duration{term / 5, 3 * term} {
		virtual(t, three, func(t *testing.T, srv *zktest.Server) {
			f := newShardFleet(t, srv, 30)
			for i := range 4 {
				f.join(fmt.Sprint("m", i), nil)
			}
			time.Sleep(2 * afterChange)
			f.requireBalance(4, "at first")
			for i := range 3 {
				srv.Member(i).Stop()
			}
			time.Sleep(down)
			if down > term {
				_, held := f.loads()
				require.Zero(t, held, "without a server no lease lasts")
			}
			for i := range 3 {
				srv.Member(i).Start()
			}
			time.Sleep(afterCrash)
			f.requireBalance(4, "afterwards")
			f.leaveAll()
		})
	}
}

// Work that has begun is finished under the lock: the next member waits.
//
//zklock:promise P21.4
func TestAShardThatMovesIsFinishedFirst(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 10)
		f.linger = 7 * time.Second
		f.join("a", nil)
		time.Sleep(afterChange)
		f.join("b", nil)
		time.Sleep(afterChange)
		by, held := f.loads()
		require.Equal(t, 10, held)
		require.Equal(t, map[string]int{"a": 10}, by, "five of them finish")
		require.Len(t, f.live["a"].Assigned(), 5)
		require.Len(t, f.live["b"].Assigned(), 5)
		require.Empty(t, f.live["b"].Held())
		time.Sleep(f.linger)
		f.requireBalance(2, "finished")
		synctest.Wait()
		require.Equal(t, map[error]int{shards.ErrMoved: 5}, f.causes)
		f.leaveAll()
	})
}

// With a grace, work that does not return keeps no shard from moving: its hold ends.
//
//zklock:promise P21.4
func TestAGraceLimitsHowLongAShardIsFinished(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		opts := &shards.Options{Grace: 3 * time.Second}
		var mu sync.Mutex
		ends := map[int]time.Duration{}
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			shards.Run(ctx, a, shardsPath, 10, func(ctx context.Context, shard int) error {
				<-ctx.Done()
				began, hold := time.Now(), zklock.HoldOf(ctx)
				assert.NoError(t, hold.Check(), "the lock is still held")
				<-hold.Context().Done()
				mu.Lock()
				ends[shard] = time.Since(began)
				assert.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrReleased)
				mu.Unlock()
				<-release // it does not return
				return nil
			}, opts)
		})
		time.Sleep(afterChange)
		var held []int
		wg.Go(func() {
			shards.Run(ctx, b, shardsPath, 10, func(ctx context.Context, shard int) error {
				mu.Lock()
				held = append(held, shard)
				mu.Unlock()
				<-ctx.Done()
				return nil
			}, opts)
		})
		time.Sleep(opts.Grace + 2*afterChange)
		mu.Lock()
		require.Len(t, held, 5)
		for _, shard := range held {
			require.Equal(t, opts.Grace, ends[shard])
		}
		mu.Unlock()
		cancel()
		close(release)
		wg.Wait()
	})
}

// A member that was killed and started again with its label gets its shards back, and no other shard moves.
//
//zklock:promise P21.5
func TestAMemberThatComesBackWithItsLabelGetsItsShardsBack(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 60)
		for _, name := range []string{"a", "b", "c"} {
			f.join(name, &shards.Options{Label: name})
		}
		time.Sleep(afterChange)
		f.requireBalance(3, "at first")
		before := f.live["b"].Assigned()
		synctest.Wait()
		begun := f.begun
		killed := f.live["b"]
		srv.Partition("b") // its node stays until its session ends
		again := f.joinWith(connect(t, srv, "b again", term), "b", &shards.Options{Label: "b"})
		time.Sleep(afterChange)
		require.Empty(t, again.Assigned(), "it stands by")
		time.Sleep(afterCrash)
		f.requireBalance(3, "afterwards")
		require.Equal(t, before, again.Assigned())
		synctest.Wait()
		require.Equal(t, begun+20, f.begun, "only its shards have moved")
		killed.stop()
		srv.HealClient("b")
		<-killed.done
		f.leaveAll()
	})
}

//zklock:promise P21.3
func TestWeightsOfMembers(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 40)
		for name, weight := range map[string]int{"small": 1, "middle": 2, "large": 5} {
			f.join(name, &shards.Options{Weight: weight})
		}
		time.Sleep(2 * afterChange)
		by, _ := f.loads()
		require.Equal(t, map[string]int{"small": 5, "middle": 10, "large": 25}, by)
		f.leaveAll()
	})
}

// An operator evicts members and holders of shards: they move, or are run again, and nothing ends.
//
//zklock:promise P21.2
func TestEvictedMembersAndShardsComeBack(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 12)
		for _, name := range []string{"a", "b", "c"} {
			f.join(name, nil)
		}
		time.Sleep(2 * afterChange)
		f.requireBalance(3, "at first")
		operator := connect(t, srv, "operator", term)
		for _, path := range []string{shardsPath + "/members", shardsPath + "/0003", shardsPath + "/0007"} {
			q, err := operate.Inspect(t.Context(), operator, path)
			require.NoError(t, err)
			require.NoError(t, operate.Evict(t.Context(), operator, "", q.Contenders...))
			time.Sleep(2 * afterChange)
			f.requireBalance(3, "after an eviction at "+path)
		}
		f.leaveAll()
	})
}

//zklock:promise P21.6
func TestRunReturnsTheErrorOfItsWork(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 10)
		f.join("b", nil)
		time.Sleep(afterChange)
		broken := errors.New("broken")
		var failing atomic.Int64
		failing.Store(-1)
		first := connect(t, srv, "first", term)
		err := shards.Run(t.Context(), first, shardsPath, 10, func(ctx context.Context, shard int) error {
			if failing.CompareAndSwap(-1, int64(shard)) {
				return broken
			}
			<-ctx.Done()
			return ctx.Err()
		}, nil)
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, fmt.Sprintf("shards of %s: shard %d: broken", shardsPath, failing.Load()))
		time.Sleep(afterChange)
		f.requireBalance(1, "the other member continues")
		f.leaveAll()
	})
}

//zklock:promise P21.6
func TestAWorkThatPanicsEndsTheMemberAndPanicsInRun(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 10)
		c := connect(t, srv, "a", term)
		var begun, ended sync.WaitGroup
		begun.Add(9)
		ended.Add(9)
		func() {
			defer func() {
				p := fmt.Sprint(recover())
				require.Contains(t, p, "shard 4 of "+shardsPath+": no more")
				require.Contains(t, p, "p21_shards_test.go", "the stack of work")
			}()
			shards.Run(t.Context(), c, shardsPath, 10, func(ctx context.Context, shard int) error {
				if shard == 4 {
					begun.Wait()
					panic("no more")
				}
				begun.Done()
				defer ended.Done()
				<-ctx.Done()
				return ctx.Err()
			}, nil)
		}()
		ended.Wait()
		f.leaveAll() // no node is left
		err := shards.Run(t.Context(), c, shardsPath, 10, func(ctx context.Context, shard int) error {
			if shard == 4 {
				runtime.Goexit()
			}
			<-ctx.Done()
			return ctx.Err()
		}, nil)
		require.ErrorContains(t, err, "shard 4: work has called runtime.Goexit")
	})
}

// A work that returns at once is called again, and does not overload the servers. Errors after the end of its context do not count.
//
//zklock:promise P21.6
func TestAWorkThatReturnsIsCalledAgain(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		done := make(chan error)
		go func() {
			done <- shards.Run(ctx, c, shardsPath, 1, func(ctx context.Context, _ int) error {
				if calls.Add(1) < 20 {
					return nil
				}
				<-ctx.Done()
				return errors.New("too late to count")
			}, nil)
		}()
		time.Sleep(term)
		require.Greater(t, calls.Load(), int64(8))
		require.Less(t, calls.Load(), int64(20), "with pauses of up to a second")
		time.Sleep(term)
		cancel()
		err := <-done
		require.ErrorIs(t, err, context.Canceled)
		require.NotContains(t, err.Error(), "too late")
	})
}

//zklock:promise P21.6
func TestArgumentsOfShardsAreChecked(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		nothing := func(context.Context, int) error { return nil }
		resetCounts(srv)
		for name, run := range map[string]func() error{
			"no shards":       func() error { return shards.Run(t.Context(), c, shardsPath, 0, nothing, nil) },
			"negative":        func() error { return shards.Run(t.Context(), c, shardsPath, -1, nothing, nil) },
			"too many":        func() error { return shards.Run(t.Context(), c, shardsPath, 100_001, nothing, nil) },
			"no work":         func() error { return shards.Run(t.Context(), c, shardsPath, 1, nil, nil) },
			"bad path":        func() error { return shards.Run(t.Context(), c, "shards", 1, nothing, nil) },
			"weight":          func() error { return shards.Run(t.Context(), c, shardsPath, 1, nothing, &shards.Options{Weight: 101}) },
			"negative weight": func() error { return shards.Run(t.Context(), c, shardsPath, 1, nothing, &shards.Options{Weight: -1}) },
			"negative grace":  func() error { return shards.Run(t.Context(), c, shardsPath, 1, nothing, &shards.Options{Grace: -1}) },
			"long label": func() error {
				return shards.Run(t.Context(), c, shardsPath, 1, nothing, &shards.Options{Label: strings.Repeat("x", 1025)})
			},
			"no client":          func() error { return shards.Run(t.Context(), nil, shardsPath, 1, nothing, nil) },
			"number of none":     func() error { _, _, err := shards.Number(t.Context(), c, shardsPath, 0); return err },
			"number, bad path":   func() error { _, _, err := shards.Number(t.Context(), c, "x", 1); return err },
			"number of too many": func() error { _, _, err := shards.Number(t.Context(), c, shardsPath, 100_001); return err },
		} {
			require.ErrorIs(t, run(), zklock.ErrInvalid, name)
		}
		require.ErrorIs(t, shards.Run(t.Context(), c, "/"+strings.Repeat("long", 100), 10_000, nothing, nil), zklock.ErrLimit)
		require.Zero(t, srv.RequestCount())
	})
}

// A fleet has one number of shards. A member with another one is refused, and does not disturb.
//
//zklock:promise P21.6
func TestAMemberWithAnotherNumberOfShardsIsRefused(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 10)
		f.join("a", nil)
		f.join("b", nil)
		time.Sleep(2 * afterChange)
		f.requireBalance(2, "at first")
		err := shards.Run(t.Context(), connect(t, srv, "c", term), shardsPath, 11, func(context.Context, int) error { return nil }, nil)
		require.ErrorIs(t, err, zklock.ErrMismatch)
		require.ErrorContains(t, err, "10 shards, not 11")
		m := f.live["a"]
		require.ErrorIs(t, m.Run(t.Context(), f.work("a")), zklock.ErrInvalid, "it is running")
		time.Sleep(afterChange)
		f.requireBalance(2, "afterwards")
		f.leaveAll()
	})
}

// Two members of one client, and one inside the work of another: each shard still has one.
//
//zklock:promise P21.1
func TestMembersCanShareAClient(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 10)
		c := connect(t, srv, "both", term)
		f.joinWith(c, "a", nil)
		f.joinWith(c, "b", nil)
		time.Sleep(2 * afterChange)
		f.requireBalance(2, "of one client")
		f.leaveAll()
		err := c.Mutex(shardsPath+"/0003").Do(t.Context(), func(ctx context.Context) error {
			return shards.Run(ctx, c, shardsPath, 10, func(ctx context.Context, _ int) error { <-ctx.Done(); return nil }, nil)
		})
		require.ErrorIs(t, err, zklock.ErrDeadlock)
	})
}

// The client is closed in the middle.
//
//zklock:promise P21.6
func TestCloseEndsAMember(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		f := newShardFleet(t, srv, 10)
		u := f.join("a", nil)
		time.Sleep(afterChange)
		u.client.Close()
		<-u.done
		require.ErrorIs(t, u.err, zklock.ErrClosed)
		require.Equal(t, 0, f.causes[shards.ErrMoved])
		err := u.Run(t.Context(), f.work("a"))
		require.ErrorIs(t, err, zklock.ErrClosed)
	})
}

// A server refuses to create or to read nodes.
//
//zklock:promise P21.6
func TestAMemberWithoutPermissionIsToldSo(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		owner := rawClient(t, srv, term)
		for _, dir := range []string{"/shards", shardsPath, shardsPath + "/members"} {
			perms := int32(zk.PermAll)
			if strings.HasSuffix(dir, "/members") {
				perms = zk.PermRead
			}
			_, err := owner.Create(dir, nil, 0, zk.WorldACL(perms))
			require.NoError(t, err)
		}
		err := shards.Run(t.Context(), connect(t, srv, "a", term), shardsPath, 1, func(context.Context, int) error { return nil }, nil)
		require.ErrorIs(t, err, zk.ErrNoAuth)
	})
}

// What a change of the members costs: each member lists them, and reads the node of the new one.
//
//zklock:promise P21.7
func TestCostOfAMember(t *testing.T) {
	t.Parallel()
	cost := func(members, n int) (join, idle int) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			f := newShardFleet(t, srv, n)
			for i := range members {
				f.join(fmt.Sprint("m", i), nil)
			}
			time.Sleep(3 * afterChange)
			var reads atomic.Int64 // of the members, without those of the one shard, which may move
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				switch r.Op {
				case zktest.OpGetData, zktest.OpGetChildren, zktest.OpGetChildren2:
					if strings.Contains(r.Path, "/members") {
						reads.Add(1)
					}
				}
				return zktest.Pass
			})
			time.Sleep(afterChange)
			idle = int(reads.Swap(0))
			f.join("another", nil)
			time.Sleep(3 * afterChange)
			join = int(reads.Load())
			f.leaveAll()
		})
		return join, idle
	}
	small, idle := cost(10, 1)
	large, _ := cost(20, 1)
	require.Zero(t, idle, "watched, not polled")
	require.LessOrEqual(t, large-small, 10*3, "a listing and a read for each member, and heartbeats")
	require.GreaterOrEqual(t, large-small, 10*2)
}

// Callers pick numbers one after another; each gets the smallest.
//
//zklock:promise P21.8
func TestNumbersAreUniqueAndSmall(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		const path, n = "/workers", 20
		var clients []*zklock.Client
		for i := range 4 {
			clients = append(clients, connect(t, srv, fmt.Sprint("c", i), term))
		}
		holds := make([]*zklock.Hold, n)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				hold, number, err := shards.Number(t.Context(), clients[i%4], path, n)
				if assert.NoError(t, err) {
					mu.Lock()
					defer mu.Unlock()
					assert.Nil(t, holds[number], "given twice")
					holds[number] = hold
				}
			})
		}
		wg.Wait()
		require.NotContains(t, holds, (*zklock.Hold)(nil))
		_, number, err := shards.Number(t.Context(), clients[0], path, n)
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.Equal(t, -1, number)
		for _, free := range []int{17, 3, 11} {
			unlock(t, holds[free])
		}
		for _, want := range []int{3, 11, 17} {
			hold, number, err := shards.Number(t.Context(), clients[1], path, n)
			require.NoError(t, err)
			require.Equal(t, want, number)
			require.NoError(t, hold.Check())
			require.Equal(t, fmt.Sprintf("%s/%04d", path, number), hold.Path())
			holds[number] = hold
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = shards.Number(ctx, clients[0], path, n)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// Holders are killed at random. With a lock-delay, no number is given again before the delay has passed.
//
//zklock:promise P21.8
func TestANumberIsNotGivenAgainWithinTheLockDelay(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		const path, n, delay = "/workers", 200, 45 * time.Second
		rounds := 1000
		if testing.Short() {
			rounds = 100
		}
		r := rand.New(rand.NewPCG(1, 1))
		freed := map[int]time.Time{} // when a number's session ended
		type worker struct {
			client *zklock.Client
			number int
		}
		var live []worker
		for i := range rounds {
			c, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{SessionTimeout: term, LockDelay: delay, Dialer: srv.DialFrom(fmt.Sprint(i))})
			require.NoError(t, err)
			hold, number, err := shards.Number(t.Context(), c, path, n)
			require.NoError(t, err)
			if at, ok := freed[number]; ok {
				require.GreaterOrEqual(t, time.Since(at), delay, "number %d", number)
			}
			require.False(t, slices.ContainsFunc(live, func(w worker) bool { return w.number == number }))
			require.NoError(t, hold.Check())
			live = append(live, worker{c, number})
			if len(live) > 20 { // one is killed
				k := r.IntN(len(live))
				srv.ExpireSession(sessionOf(t, srv, path, live[k].number))
				synctest.Wait()
				freed[live[k].number] = time.Now()
				live[k].client.Close()
				live = slices.Delete(live, k, k+1)
			}
			time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
		}
		for _, w := range live {
			w.client.Close()
		}
	})
}

// sessionOf returns the session of the holder of a number.
func sessionOf(t *testing.T, srv *zktest.Server, path string, number int) int64 {
	dir := fmt.Sprintf("%s/%04d", path, number)
	children := srv.Children(dir)
	require.Len(t, children, 1)
	n, _ := srv.Node(dir + "/" + children[0])
	return n.Stat.EphemeralOwner
}
