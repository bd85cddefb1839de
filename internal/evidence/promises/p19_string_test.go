// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// Waiters are calls: two of a mutex, and two of a Cohort that have one node together.
//
//zklock:promise P19.10
func TestAClientHasStatistics(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := a.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cohort := b.Cohort(path, nil)
		waits := []*attempt{lockLater(ctx, b.Mutex(path).Lock), lockLater(ctx, b.Mutex(path).Lock), lockLater(ctx, cohort.Lock), lockLater(ctx, cohort.Lock)}
		time.Sleep(time.Second)
		require.Equal(t, zklock.Stats{Connected: true, Remaining: hold.Remaining()}, a.Stats())
		require.Equal(t, len(waits), b.Stats().Waiting)
		cancel()
		for _, w := range waits {
			<-w.done
		}
		require.Zero(t, b.Stats().Waiting)

		srv.Partition("a")
		<-hold.Context().Done()
		time.Sleep(term)
		require.Equal(t, zklock.Stats{}, a.Stats())
		srv.HealClient("a")
		time.Sleep(term / 2) // a new session is proven for nearly a whole timeout
		stats := a.Stats()
		require.True(t, stats.Connected)
		require.Positive(t, stats.Remaining)
		require.NoError(t, a.Close())
		require.Equal(t, zklock.Stats{}, a.Stats())
	})
}

// Events and spans have the same name of a recipe.
//
//zklock:promise P19.7
func TestTheRecipeOfALockIsThatOfItsEvents(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var seen string
		c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Observer: onEvent{observe.Acquired, func(e observe.Event) { seen = e.Recipe }}})
		locks := []zklock.Locker{c.Mutex(path), c.Reentrant(path), c.RWMutex(path), c.RWMutex(path).Reader(), c.Cohort(path, nil), c.Semaphore(path, 2).Permits(1)}
		names := map[string]bool{}
		for _, l := range locks {
			hold, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.Equal(t, seen, hold.Recipe())
			names[seen] = true
			unlock(t, hold)
			time.Sleep(term) // a Cohort keeps its place for a while
		}
		require.Len(t, names, len(locks))
	})
}

// Client.String shows what a program waits for.
//
//zklock:promise P19.10
func TestAClientShowsItsHoldsAndWaits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		hold, err := a.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		first := lockLater(t.Context(), b.Mutex(path).Lock)
		time.Sleep(time.Second)
		second := lockLater(t.Context(), b.Mutex(path).Lock)
		time.Sleep(time.Second)
		names := inOrder(srv, path)

		lines := strings.Split(a.String(), "\n")
		require.Len(t, lines, 2)
		require.Regexp(t, `^session 0x[0-9a-f]+ lease=\S+ of 10s`, lines[0])
		require.Regexp(t, "^"+regexp.QuoteMeta(hold.Node())+` holds for 2s: levels=1 token=\d+ lease=`, lines[1])
		lines = strings.Split(b.String(), "\n")
		require.Len(t, lines, 3)
		said := strings.Join(lines[1:], "\n")
		require.Regexp(t, regexp.QuoteMeta(path+"/"+names[1])+` has waited 2s for a, lease=`, said)
		require.Regexp(t, regexp.QuoteMeta(path+"/"+names[2])+` has waited 1s for a and 1 more, lease=`, said)

		unlock(t, hold)
		<-first.done
		unlock(t, first.hold)
		<-second.done
		require.Contains(t, b.String(), second.hold.Node()+" holds for 0s")
		require.NotContains(t, b.String(), "has waited")
		unlock(t, second.hold)
		require.NoError(t, b.Close())
		require.NotContains(t, b.String(), "holds")
	})
}
