// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

// These tests are run with yields between the statements, too: see internal/evidence/yields. In each, a goroutine begins to wait while
// another one does what it waits for. Nothing in them takes longer than a minute of virtual time, unless a wake-up is missed.

const aMoment = time.Minute

// both calls two functions in goroutines of their own, and returns when both have returned.
func both(a, b func()) {
	var other sync.WaitGroup
	other.Go(a) // ends with a; both waits for it
	b()
	other.Wait()
}

// soon calls obtain with a context that lasts for a moment.
func soon(t *testing.T, obtain func(ctx context.Context) (*Grant, error)) *Grant {
	ctx, cancel := context.WithTimeout(t.Context(), aMoment)
	defer cancel()
	g, err := obtain(ctx)
	assert.NoError(t, err)
	return g
}

// takeLock returns a function that acquires a lock.
func takeLock(e *Engine) func(ctx context.Context) (*Grant, error) {
	return func(ctx context.Context) (*Grant, error) { return e.Obtain(ctx, wantLock(testDir)) }
}

// takeTwo returns a function that acquires two of so many permits.
func takeTwo(e *Engine, total int) func(ctx context.Context) (*Grant, error) {
	return func(ctx context.Context) (*Grant, error) { return permitsOf(e, total).Obtain(ctx, 2) }
}

// letGo releases a grant, and reports an error in any goroutine.
func letGo(t *testing.T, g *Grant) {
	if g != nil {
		assert.NoError(t, outcomeOf(g, false))
	}
}

func TestNoWakeUpIsMissedByAWaiterWhoseHolderReleases(t *testing.T) {
	for name, take := range map[string]func(e *Engine) func(ctx context.Context) (*Grant, error){
		"lock": takeLock, "permits": func(e *Engine) func(ctx context.Context) (*Grant, error) { return takeTwo(e, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
				for range 20 {
					held := soon(t, take(a))
					both(func() { letGo(t, held) }, func() { letGo(t, soon(t, take(b))) })
				}
			})
		})
	}
}

func TestNoWakeUpIsMissedByAWaiterThatAResizeSuits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)
		for range 20 {
			held := soon(t, takeTwo(a, 3))
			both(func() { assert.NoError(t, permitsOf(a, 4).Resize(t.Context())) }, func() { letGo(t, soon(t, takeTwo(b, 0))) })
			letGo(t, held)
			require.NoError(t, permitsOf(a, 3).Resize(t.Context()))
		}
	})
}

func TestNoWakeUpIsMissedByAHoldWhoseNodeIsDeleted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		for range 20 {
			g := soon(t, takeLock(e))
			n := g.Nodes()[0]
			both(g.WatchSelf, func() { assert.NoError(t, srv.DeleteNode(n.Path())) })
			select {
			case <-n.Gone.Done():
			case <-time.After(aMoment):
				t.Fatal("the hold does not end")
			}
			_ = outcomeOf(g, true)
		}
	})
}

// The client is closed while the observer has the contender: either Recall or the caller removes it.
func TestNoWakeUpIsMissedByACloseWhileTheObserverHasAContender(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		for range 20 {
			e := startEngine(t, srv, "a", nil)
			co := soon(t, takeLock(e)).lead
			path := co.Path()
			both(e.Recall, func() {
				_ = co.lend(func() {})
				<-e.remove(co)
			})
			ctx, cancel := context.WithTimeout(t.Context(), aMoment)
			require.NoError(t, srv.WaitGone(ctx, path))
			cancel()
		}
	})
}
