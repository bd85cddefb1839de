// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// A caller of TestTheFirstContenderHolds waits or holds.
type caller struct {
	*obtaining
	end context.CancelFunc
}

// isDone reports whether the acquire has returned.
func (o *obtaining) isDone() bool { return session.IsClosed(o.done) }

// holds reports whether the caller has a grant that is not lost, and of which node.
func (c *caller) holds() (name string, ok bool) {
	select {
	case <-c.done:
	default:
		return "", false
	}
	if c.err != nil || !isHeld(c.grant) {
		return "", false
	}
	return c.grant.Nodes()[0].Name, true
}

// first returns the contenders in the directory that may hold: the first, and all readers before the first writer.
func first(names []string) (may []string) {
	entries := node.NewQueue(names).Entries
	for i, e := range entries {
		if i > 0 && node.AfterExclusive(entries[:i]) >= 0 || i > 0 && !e.Shared {
			break
		}
		may = append(may, e.Name)
	}
	return may
}

// TestTheFirstContenderHolds has callers come, give up, release and lose their nodes at random. After each step exactly those hold that may.
func TestTheFirstContenderHolds(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 15
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			virtual(t, zktest.Options{TickTime: time.Second}, func(t *testing.T, srv *zktest.Server) { playAtRandom(t, srv, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func playAtRandom(t *testing.T, srv *zktest.Server, r *rand.Rand) {
	engines := []*Engine{startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil), startEngine(t, srv, "c", nil)}
	recipes := [][]*Recipe{{testLock}, {testReader, testWriter}}[r.IntN(2)]
	var callers []*caller
	for step := range 40 {
		switch k := r.IntN(10); {
		case k < 5 && len(callers) < 12:
			e, recipe := engines[r.IntN(len(engines))], recipes[r.IntN(len(recipes))]
			ctx, end := context.WithCancel(t.Context())
			w := &Want{Recipe: recipe, Path: testDir, Dir: testDir, Data: node.OwnerData("test", true)}
			callers = append(callers, &caller{later(func() (*Grant, error) { return obtainWatched(ctx, e, w) }), end})
		case len(callers) == 0:
		case k < 7: // gives up, or releases
			i := r.IntN(len(callers))
			callers[i].leave()
			callers = slices.Delete(callers, i, i+1)
		case k < 9: // the first releases
			i := slices.IndexFunc(callers, func(c *caller) bool { _, ok := c.holds(); return ok })
			if i >= 0 {
				callers[i].leave()
				callers = slices.Delete(callers, i, i+1)
			}
		default: // a third party deletes a node
			names := srv.Children(testDir)
			if len(names) > 0 {
				name := names[r.IntN(len(names))]
				if srv.DeleteNode(testDir+"/"+name) != nil { // a release has deleted it since
					require.NotContains(t, srv.Children(testDir), name)
				}
			}
		}
		if r.IntN(3) > 0 { // sometimes the next step follows at once
			time.Sleep(testTerm / 2) // longer than the proof of a lease takes
			synctest.Wait()
			var held []string
			for _, c := range callers {
				if name, ok := c.holds(); ok {
					held = append(held, name)
				}
			}
			may := first(srv.Children(testDir))
			slices.Sort(held)
			slices.Sort(may)
			require.Equal(t, may, held, "step %d of %v", step, srv.Children(testDir))
		}
	}
	for _, c := range callers {
		c.leave()
	}
	time.Sleep(testTerm)
	require.Empty(t, srv.Children(testDir))
	require.Zero(t, srv.WatchCount(), "%v", srv.Watches())
	for _, e := range engines {
		requireIdle(t, srv, e)
	}
}

// obtainWatched obtains a grant that watches its own node, as a hold does.
func obtainWatched(ctx context.Context, e *Engine, w *Want) (*Grant, error) {
	g, err := e.Obtain(ctx, w)
	if err == nil {
		g.WatchSelf()
	}
	return g, err
}

// leave ends the wait or the hold.
func (c *caller) leave() {
	c.end()
	<-c.done
	if c.err == nil {
		_ = outcomeOf(c.grant, !isHeld(c.grant))
	}
}

func TestAWaiterIsReportedBeforeItWaits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		to := new(observed)
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", func(e *Engine) { e.Reporter.To = to })
		held := obtain(t, a)
		waits := later(func() (*Grant, error) { return b.Obtain(t.Context(), wantLock(testDir)) })
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []observe.Kind{observe.Queued}, to.kinds)
		release(t, held)
		waits.release(t)
		require.Len(t, to.kinds, 1)
	})
}
