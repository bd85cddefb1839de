// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/conn"
)

// These tests are run with yields between the statements, too: see internal/evidence/yields. In each, one goroutine begins to wait while
// another one does what it waits for. If the wake-up is missed, the wait never ends, or takes longer than a minute of virtual time.

// both calls two functions in goroutines of their own, and returns when both have returned.
func both(a, b func()) {
	var other sync.WaitGroup
	other.Go(a) // ends with a; both waits for it
	b()
	other.Wait()
}

// repeatedly runs fn many times in virtual time.
func repeatedly(t *testing.T, fn func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			fn(t)
		}
	})
}

// aMoment is a context for something that is due at once.
func aMoment(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestNoWakeUpIsMissedByAHoldWhoseNodeIsGone(t *testing.T) {
	repeatedly(t, func(t *testing.T) {
		n, told := new(OwnNode), 0
		both(func() { n.MarkGone(nil) }, func() { n.WhenGone(func() { told++ }) })
		require.Equal(t, 1, told)
	})
}

func TestNoWakeUpIsMissedByARevocationThatIsForwarded(t *testing.T) {
	repeatedly(t, func(t *testing.T) {
		from, to := new(Revocation), new(Revocation)
		both(from.request, func() { from.Forward(to) })
		require.True(t, to.Requested.IsSet())
	})
}

func TestNoWakeUpIsMissedByAWaiterForALatch(t *testing.T) {
	repeatedly(t, func(t *testing.T) {
		var l Latch
		both(func() { l.Set() }, func() { assert.NoError(t, l.Await(aMoment(t))) })
	})
}

func TestNoWakeUpIsMissedByTheOwnerOfAWatch(t *testing.T) {
	repeatedly(t, func(t *testing.T) {
		w := newWatch(watchKey{sess: conn.NewSession(7, nil), path: "/a"})
		w.answered(View{Stat: new(zk.Stat)}, nil)
		wt, o := &watchTable{requests: &Requests{Calls: NewTasks()}, live: map[watchKey]*watch{}}, new(firedCount)
		both(func() { wt.fire(w, Gone) }, func() { w.latest().Notify(o) })
		<-wt.requests.Calls.Close()
		require.Equal(t, int32(1), o.fired.Load())
	})
}

// firedCount is an Owner that counts calls of Fired.
type firedCount struct{ fired atomic.Int32 }

func (o *firedCount) Answered(*View) {}

func (o *firedCount) Fired(State) { o.fired.Add(1) }

// The first watch of a session has just been set when the connection is lost.
func TestNoWakeUpIsMissedByTheWatchesOfALostConnection(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inWatching(t, func(t *testing.T, w *watching) {
				v, err := w.Watch(t.Context(), w.s, "/a")
				require.NoError(t, err)
				w.s.Reattach()
				ctx, cancel := context.WithTimeout(t.Context(), testTerm/3) // before watches are checked
				defer cancel()
				select {
				case <-v.Newer():
				case <-ctx.Done():
					require.Fail(t, "nobody waited for the watch, and it was not dropped")
				}
			})
		})
	}
}
