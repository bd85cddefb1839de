// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// A fault strikes one request of the engine named "a".
type fault struct {
	name    string
	verdict func(srv *zktest.Server, r *zktest.Request) zktest.Verdict
	refuses error // the error that an acquire may return; nil if it must succeed
	ends    bool  // somebody ends a hold early, which may then overlap with the next
}

func always(v zktest.Verdict) func(*zktest.Server, *zktest.Request) zktest.Verdict {
	return func(*zktest.Server, *zktest.Request) zktest.Verdict { return v }
}

var faults = []fault{
	{"the request is lost", always(zktest.DropBefore), nil, false},
	{"the reply is lost", always(zktest.LoseReply), nil, false},
	{"the connection is lost after the reply", always(zktest.DropAfter), nil, false},
	{"no reply is sent", always(zktest.DropReply), nil, false},
	{"the request is late", always(zktest.Delay(time.Second)), nil, false},
	{"throttled", always(throttled), nil, false},
	{"an unknown error", always(zktest.Answer(zktest.CodeRuntimeInconsistency)), nil, false},
	{"refused", always(zktest.Answer(zktest.CodeNoAuth)), zk.ErrNoAuth, false},
	{"the session ends", func(srv *zktest.Server, r *zktest.Request) zktest.Verdict {
		srv.ExpireSession(r.Session)
		return zktest.Pass
	}, nil, true},
	{"its nodes are deleted", func(srv *zktest.Server, r *zktest.Request) zktest.Verdict {
		for _, path := range srv.Ephemerals(r.Session) {
			_ = srv.DeleteNode(path)
		}
		return zktest.Pass
	}, nil, true},
}

// A company is who holds.
type company struct {
	mu     sync.Mutex
	inside map[*Grant]bool // guarded by mu; the value says whether it excludes all others
	clash  string          // guarded by mu
}

func isHeld(g *Grant) bool {
	for _, n := range g.Nodes() {
		if n.IsGone() || n.Sess.IsOver() {
			return false
		}
	}
	return g.Nodes()[0].Sess.Lease.Remaining() > 0
}

func (c *company) enter(g *Grant, alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, excludes := range c.inside {
		if (alone || excludes) && isHeld(other) {
			c.clash = fmt.Sprintf("%s and %s hold", other.Nodes()[0].Path(), g.Nodes()[0].Path())
		}
	}
	if c.inside == nil {
		c.inside = map[*Grant]bool{}
	}
	c.inside[g] = alone
}

func (c *company) leave(g *Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inside, g)
}

// stay acquires, holds for a while and releases. It returns the error of the acquire.
func (c *company) stay(obtain func(context.Context) (*Grant, error), alone bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	g, err := obtain(ctx)
	if err != nil {
		return err
	}
	c.enter(g, alone)
	g.WatchSelf()
	time.Sleep(50 * time.Millisecond)
	c.leave(g)
	lost := !isHeld(g)
	_ = outcomeOf(g, lost)
	return nil
}

// A scenario uses the struck engine and two others, and returns what the struck one got.
type scenario struct {
	configure func(*Engine)
	play      func(t *testing.T, in *company, srv *zktest.Server, struck, b, c *Engine) error
}

// throughEveryFault plays a scenario for every fault at every request of the struck engine, with -short most of them at every fourth.
// Whatever the fault, nobody holds together with another whom it excludes, the struck engine gets what it wants unless it is refused, and
// in the end nothing is left: no node, no watch, and nothing in the engines' memory.
func throughEveryFault(t *testing.T, s scenario) {
	for i, f := range faults {
		every := 1
		if testing.Short() && f.name != "refused" && f.name != "an unknown error" {
			every = 4
		}
		t.Run(f.name, func(t *testing.T) {
			for n, struck := i%every, true; struck && !t.Failed(); n += every {
				t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
					virtual(t, zktest.Options{TickTime: time.Second}, func(t *testing.T, srv *zktest.Server) { struck = s.strike(t, srv, f, n) })
				})
			}
		})
	}
}

func (s scenario) strike(t *testing.T, srv *zktest.Server, f fault, n int) bool {
	require.NoError(t, srv.PutNode(testDir, nil))
	struck, b, c := startEngine(t, srv, "a", s.configure), startEngine(t, srv, "b", s.configure), startEngine(t, srv, "c", s.configure)
	synctest.Wait()
	var count atomic.Int32
	remove := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if r.Client != "a" || isHeartbeat(r) || int(count.Add(1)) != n+1 {
			return zktest.Pass
		}
		return f.verdict(srv, r)
	})
	in := new(company)
	err := s.play(t, in, srv, struck, b, c)
	remove()
	if err != nil {
		require.NotNil(t, f.refuses, "%v", err)
		require.ErrorIs(t, err, f.refuses)
	}
	require.True(t, f.ends || in.clash == "", in.clash)
	require.NoError(t, in.stay(func(ctx context.Context) (*Grant, error) { return b.Obtain(ctx, wantLock("/locks/other")) }, true))
	time.Sleep(4 * testTerm) // what was late has run, and what was refused was tried again
	asked := srv.Requests()[zktest.OpMulti]
	time.Sleep(2 * testTerm)
	require.Equal(t, asked, srv.Requests()[zktest.OpMulti], "the quorum is asked although no node is kept")
	for path := range srv.Tree() {
		require.NotContains(t, path, node.NamePrefix, "left")
	}
	require.Zero(t, srv.WatchCount(), "%v", srv.Watches())
	for _, e := range []*Engine{struck, b, c} {
		requireIdle(t, srv, e)
	}
	return int(count.Load()) > n
}

func isHeartbeat(r *zktest.Request) bool {
	if r.Op == zktest.OpMulti {
		for _, op := range r.Ops {
			if op != zktest.OpCheck {
				return false
			}
		}
		return true
	}
	return r.Path == "/" || r.Op == zktest.OpPing || r.Op == zktest.OpCreateSession || r.Op == zktest.OpSync || r.Op >= zktest.OpAuth
}

// requireIdle checks that the engine remembers no contender, and at last no create that a server could still execute.
func requireIdle(t *testing.T, srv *zktest.Server, e *Engine) {
	t.Helper()
	synctest.Wait()
	require.Empty(t, e.acquires.live)
	require.Empty(t, e.Hub.holders.of)
	require.Empty(t, e.Status())
	s, err := e.session(t.Context())
	require.NoError(t, err)
	owned, _ := s.Own(0, MaxOwned)
	if owned > 0 {
		srv.ExpireSession(s.ID)
		time.Sleep(3 * testTerm)
		owned, _ = s.Own(0, MaxOwned)
	}
	require.Zero(t, owned, "bytes of paths")
}

func TestALockSurvivesEveryFault(t *testing.T) {
	throughEveryFault(t, scenario{play: func(t *testing.T, in *company, srv *zktest.Server, a, b, c *Engine) error {
		lock := func(e *Engine) func(context.Context) (*Grant, error) {
			return func(ctx context.Context) (*Grant, error) { return e.Obtain(ctx, wantLock(testDir)) }
		}
		other := later(func() (*Grant, error) {
			time.Sleep(120 * time.Millisecond)
			return nil, in.stay(lock(b), true)
		})
		for range 3 { // the second and the third time it counts the nodes
			if err := in.stay(lock(a), true); err != nil {
				<-other.done
				return err
			}
		}
		<-other.done
		require.NoError(t, other.err)
		return nil
	}})
}

func TestAWaiterSurvivesEveryFault(t *testing.T) {
	throughEveryFault(t, scenario{play: func(t *testing.T, in *company, srv *zktest.Server, a, b, c *Engine) error {
		lock := func(e *Engine, after time.Duration) *obtaining {
			return later(func() (*Grant, error) {
				time.Sleep(after)
				return nil, in.stay(func(ctx context.Context) (*Grant, error) { return e.Obtain(ctx, wantLock(testDir)) }, true)
			})
		}
		all := []*obtaining{lock(b, 0), lock(c, 10*time.Millisecond), lock(b, 20*time.Millisecond), lock(a, 30*time.Millisecond), lock(c, 40*time.Millisecond)}
		for _, o := range all {
			<-o.done
		}
		for i, o := range all {
			if i != 3 {
				require.NoError(t, o.err)
			}
		}
		return all[3].err
	}})
}

func TestATryAndASuccessorSurviveEveryFault(t *testing.T) {
	throughEveryFault(t, scenario{play: func(t *testing.T, in *company, srv *zktest.Server, a, b, c *Engine) error {
		held, err := b.Obtain(t.Context(), wantLock(testDir))
		require.NoError(t, err)
		_, err = a.TryObtain(t.Context(), wantLock(testDir))
		require.Error(t, err)
		release(t, held)
		g, err := a.Obtain(t.Context(), wantLock(testDir))
		if err != nil {
			return err
		}
		in.enter(g, true)
		waits := later(func() (*Grant, error) {
			return nil, in.stay(func(ctx context.Context) (*Grant, error) { return c.Obtain(ctx, wantLock(testDir)) }, true)
		})
		time.Sleep(50 * time.Millisecond)
		in.leave(g)
		w := wantLock(testDir)
		w.Replaces = g
		g.Retire()
		err = in.stay(func(ctx context.Context) (*Grant, error) { return a.Obtain(ctx, w) }, true)
		<-waits.done
		require.NoError(t, waits.err)
		return err
	}})
}

func TestPermitsSurviveEveryFault(t *testing.T) {
	throughEveryFault(t, scenario{play: func(t *testing.T, in *company, srv *zktest.Server, a, b, c *Engine) error {
		stay := func(e *Engine, k int, after time.Duration) *obtaining {
			return later(func() (*Grant, error) {
				time.Sleep(after)
				return nil, in.stay(func(ctx context.Context) (*Grant, error) { return permitsOf(e, 3).Obtain(ctx, k) }, k == 3)
			})
		}
		all := []*obtaining{stay(a, 2, 0), stay(b, 1, 10*time.Millisecond), stay(c, 3, 20*time.Millisecond), stay(b, 1, 30*time.Millisecond), stay(a, 3, 40*time.Millisecond), stay(c, 1, 300*time.Millisecond)}
		for _, o := range all {
			<-o.done
		}
		for i, o := range all {
			if i != 0 && i != 4 {
				require.NoError(t, o.err)
			}
		}
		_, err := permitsOf(b, 3).TryObtain(t.Context(), 4)
		require.ErrorIs(t, err, outcome.ErrLimit)
		if all[0].err != nil {
			return all[0].err
		}
		return all[4].err
	}})
}

func TestADelayedLockSurvivesEveryFault(t *testing.T) {
	throughEveryFault(t, scenario{
		configure: func(e *Engine) { e.Delay = 3 * time.Second },
		play: func(t *testing.T, in *company, srv *zktest.Server, a, b, c *Engine) error {
			held, err := b.Obtain(t.Context(), wantLock(testDir))
			require.NoError(t, err)
			stay := func(e *Engine) *obtaining {
				return later(func() (*Grant, error) {
					return nil, in.stay(func(ctx context.Context) (*Grant, error) { return e.Obtain(ctx, wantLock(testDir)) }, true)
				})
			}
			first := stay(a)
			time.Sleep(10 * time.Millisecond)
			second := stay(c)
			time.Sleep(10 * time.Millisecond)
			began := time.Now()
			require.NoError(t, srv.DeleteNode(held.Nodes()[0].Path()))
			_ = outcomeOf(held, true)
			<-first.done
			if first.err == nil {
				require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
			}
			<-second.done
			require.NoError(t, second.err)
			if _, there := srv.Node(testRecord); there {
				require.True(t, strings.HasSuffix(testRecord, node.RecordSuffix))
				require.NoError(t, srv.DeleteNode(testRecord))
			}
			return first.err
		}})
}

func TestReadersAndWritersSurviveEveryFault(t *testing.T) {
	throughEveryFault(t, scenario{
		configure: func(e *Engine) { e.Delay = 3 * time.Second },
		play: func(t *testing.T, in *company, srv *zktest.Server, a, b, c *Engine) error {
			require.NoError(t, srv.PutNode(testRecord, []byte("zklock: delay 3s\nreleased by x")))
			stay := func(e *Engine, shared bool, after time.Duration) *obtaining {
				w := &Want{Recipe: &Recipe{Name: "write", Infix: node.WriterInfix, Rule: node.AfterAll, TakesDelay: true}, Path: testDir, Dir: testDir, Data: node.OwnerData("test", true)}
				if shared {
					w.Recipe = &Recipe{Name: "read", Infix: node.ReaderInfix, Rule: node.AfterExclusive, Shared: true, TakesDelay: true, Passes: node.IsDowngraded}
				}
				return later(func() (*Grant, error) {
					time.Sleep(after)
					return nil, in.stay(func(ctx context.Context) (*Grant, error) { return e.Obtain(ctx, w) }, !shared)
				})
			}
			all := []*obtaining{stay(b, false, 0), stay(a, true, 10*time.Millisecond), stay(c, true, 20*time.Millisecond), stay(a, false, 30*time.Millisecond), stay(b, true, 40*time.Millisecond), stay(a, true, 5*time.Second)}
			for _, o := range all {
				<-o.done
			}
			_ = srv.DeleteNode(testRecord)
			var err error
			for i, o := range all {
				if i == 1 || i == 3 || i == 5 {
					err = errors.Join(err, o.err)
				} else {
					require.NoError(t, o.err)
				}
			}
			return err
		}})
}
