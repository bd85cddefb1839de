// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// costOfOne returns the median cost of several runs of fn. Costs can differ if only half of a heartbeat is counted, a
// listing is repeated, or a hold is released before its watch is set.
func costOfOne(srv *zktest.Server, fn func()) cost {
	var writes, reads []int
	for range 9 {
		c := costOf(srv, func() {
			fn()
			time.Sleep(20 * time.Millisecond) // until nodes are removed in the background and the watch on a kept node is set
		})
		writes, reads = append(writes, c.writes), append(reads, c.reads)
	}
	slices.Sort(writes)
	slices.Sort(reads)
	return cost{writes: writes[len(writes)/2], reads: reads[len(reads)/2]}
}

// costsOfThePage returns the table of docs/capacity.md on acquiring and releasing, by the first cell of each row.
func costsOfThePage(t *testing.T) map[string]cost {
	costs := map[string]cost{}
	row := regexp.MustCompile(`(?m)^\| (.*?) \| (\d+)\D*? \| (\d+).*? \|$`)
	for _, m := range row.FindAllStringSubmatch(texts(t, "docs/capacity.md"), -1) {
		writes, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		reads, err := strconv.Atoi(m[3])
		require.NoError(t, err)
		costs[m[1]] = cost{writes: writes, reads: reads}
	}
	return costs
}

// TestRecipesCostWhatTheirPagesSay counts the requests of a lock and an unlock of each recipe without contention, and compares
// them with the table of docs/capacity.md.
//
//zklock:promise P9.10
func TestRecipesCostWhatTheirPagesSay(t *testing.T) {
	page := costsOfThePage(t)
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, other := connect(t, srv, "a", term), connect(t, srv, "b", term)
		ctx := t.Context()
		cycle := func(acquire func(context.Context) (*zklock.Hold, error)) func() {
			return func() {
				hold, err := acquire(ctx)
				require.NoError(t, err)
				unlock(t, hold)
			}
		}
		permits := func(acquire func(context.Context, int) (*zklock.Hold, error), k int) func() {
			return cycle(func(ctx context.Context) (*zklock.Hold, error) { return acquire(ctx, k) })
		}
		mutex, rw, semaphore, election := client.Mutex("/m"), client.RWMutex("/rw"), client.Semaphore("/s", 3), client.Election("/e", nil)
		all := []zklock.Locker{client.Mutex("/x"), client.Mutex("/y"), client.Mutex("/z")}
		slot := 0
		once := func() {
			slot++
			require.NoError(t, slots.Named(client, "/once", string(rune('A'+slot))).Do(ctx, func(context.Context) error { return nil }))
		}
		for what, c := range map[string]struct {
			run func()
			row string // of the page
		}{
			"mutex":                     {cycle(mutex.Lock), "`Mutex`: `Lock` or `TryLock`, then `Unlock`"},
			"mutex, without waiting":    {cycle(mutex.TryLock), "`Mutex`: `Lock` or `TryLock`, then `Unlock`"},
			"reentrant":                 {cycle(client.Reentrant("/r").Lock), "`Reentrant`: the outermost `Lock` and `Unlock`"},
			"cohort, after a pause":     {cycle(client.Cohort("/k", nil).Lock), "`Cohort`: after a pause of more than 2 ms in which the place was kept"},
			"reader":                    {cycle(rw.RLock), "`RWMutex`: `RLock`, `TryRLock` or `Lock`, then `Unlock`"},
			"writer":                    {cycle(rw.Lock), "`RWMutex`: `RLock`, `TryRLock` or `Lock`, then `Unlock`"},
			"reader, without waiting":   {cycle(rw.TryRLock), "`RWMutex`: `RLock`, `TryRLock` or `Lock`, then `Unlock`"},
			"one permit":                {permits(semaphore.Acquire, 1), "`Semaphore`: `Acquire` of any number of permits, then `Unlock`"},
			"three permits":             {permits(semaphore.Acquire, 3), "`Semaphore`: `Acquire` of any number of permits, then `Unlock`"},
			"a permit, without waiting": {permits(semaphore.TryAcquire, 1), "`Semaphore`: `TryAcquire`, then `Unlock`"},
			"three locks": {cycle(func(ctx context.Context) (*zklock.Hold, error) {
				return client.LockAll(ctx, all...)
			}), "`LockAll` of three mutexes, then `Unlock`"},
			"writer that becomes a reader": {func() {
				hold, err := rw.Lock(ctx)
				require.NoError(t, err)
				require.NoError(t, hold.Downgrade(ctx))
				unlock(t, hold)
			}, "`RWMutex`: `Lock`, `Downgrade`, then `Unlock`"},
			"a term": {cycle(func(ctx context.Context) (*zklock.Hold, error) { return election.Campaign(ctx, nil) }), "`Election`: a term without other members"},
			"a slot": {once, "`Slot`: `Do` of an open slot"},
			"a slot after a pause": {func() {
				time.Sleep(2 * time.Second)
				require.NoError(t, slots.At(client, "/timed", time.Now(), time.Second).Do(ctx, func(context.Context) error { return nil }))
			}, "`Slot`: `Do` of an open slot of a period, if no slot of a period was marked recently"},
			"a slot that is done": {func() {
				require.ErrorIs(t, slots.Named(client, "/once", "B").Do(ctx, func(context.Context) error { return nil }), slots.ErrDone)
			}, "`Slot`: `Do` of a slot that is done"},
		} {
			if what == "a slot that is done" {
				once()
			}
			c.run() // makes the directory
			require.Contains(t, page, c.row)
			require.Equal(t, page[c.row], costOfOne(srv, c.run), what)
		}

		held, err := mutex.Lock(ctx)
		require.NoError(t, err)
		require.Equal(t, page["`TryLock` that returns `ErrLocked`"], costOfOne(srv, func() {
			_, err := other.Mutex("/m").TryLock(ctx)
			require.ErrorIs(t, err, zklock.ErrLocked)
		}), "a try that is refused")
		unlock(t, held)

		leads, err := election.Campaign(ctx, []byte("a"))
		require.NoError(t, err)
		require.Equal(t, page["`Election`: `Leader`"], costOfOne(srv, func() {
			_, err := election.Leader(ctx)
			require.NoError(t, err)
		}), "who leads")
		require.Equal(t, page["`Election`: `Proclaim`"], costOfOne(srv, func() { require.NoError(t, election.Proclaim(leads.Context(), []byte("b"))) }), "another value")
		unlock(t, leads)
	})
}
