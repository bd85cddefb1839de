package zklock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// costOfOne returns the cost of most of several runs of fn. A heartbeat can be counted by halves, a listing repeated, and a
// hold released before its watch was asked for.
func costOfOne(srv *zktest.Server, fn func()) cost {
	var writes, reads []int
	for range 9 {
		c := costOf(srv, func() {
			fn()
			time.Sleep(10 * time.Millisecond) // for what is removed behind the caller's back
		})
		writes, reads = append(writes, c.writes), append(reads, c.reads)
	}
	slices.Sort(writes)
	slices.Sort(reads)
	return cost{writes: writes[len(writes)/2], reads: reads[len(reads)/2]}
}

// TestRecipesCostWhatTheirPagesSay counts the requests of a cycle of each recipe, uncontended: the numbers in docs/recipes.
func TestRecipesCostWhatTheirPagesSay(t *testing.T) {
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
			run           func()
			writes, reads int
		}{
			"mutex":                     {cycle(mutex.Lock), 2, 0},
			"mutex, without waiting":    {cycle(mutex.TryLock), 2, 0},
			"reentrant":                 {cycle(client.Reentrant("/r").Lock), 2, 0},
			"reader":                    {cycle(rw.RLock), 2, 0},
			"writer":                    {cycle(rw.Lock), 2, 0},
			"reader, without waiting":   {cycle(rw.TryRLock), 2, 0},
			"one permit":                {permits(semaphore.Acquire, 1), 4, 3},
			"three permits":             {permits(semaphore.Acquire, 3), 4, 3},
			"a permit, without waiting": {permits(semaphore.TryAcquire, 1), 2, 5},
			"three locks": {cycle(func(ctx context.Context) (*zklock.Hold, error) {
				return client.LockAll(ctx, all...)
			}), 6, 0},
			"writer that becomes a reader": {func() {
				hold, err := rw.Lock(ctx)
				require.NoError(t, err)
				require.NoError(t, hold.Downgrade(ctx))
				unlock(t, hold)
			}, 3, 1},
			"a term": {cycle(func(ctx context.Context) (*zklock.Hold, error) { return election.Campaign(ctx, nil) }), 2, 0},
			"a slot": {once, 6, 3},
			"a slot after a pause": {func() {
				time.Sleep(2 * time.Second)
				require.NoError(t, slots.At(client, "/timed", time.Now(), time.Second).Do(ctx, func(context.Context) error { return nil }))
			}, 8, 4},
			"a slot that is done": {func() {
				require.ErrorIs(t, slots.Named(client, "/once", "B").Do(ctx, func(context.Context) error { return nil }), slots.ErrDone)
			}, 1, 1},
		} {
			if what == "a slot that is done" {
				once()
			}
			c.run() // makes the directory
			require.Equal(t, cost{writes: c.writes, reads: c.reads}, costOfOne(srv, c.run), what)
		}

		held, err := mutex.Lock(ctx)
		require.NoError(t, err)
		require.Equal(t, cost{reads: 1}, costOfOne(srv, func() {
			_, err := other.Mutex("/m").TryLock(ctx)
			require.ErrorIs(t, err, zklock.ErrLocked)
		}), "a try that is refused")
		unlock(t, held)

		leads, err := election.Campaign(ctx, []byte("a"))
		require.NoError(t, err)
		require.Equal(t, cost{writes: 1, reads: 2}, costOfOne(srv, func() {
			_, err := election.Leader(ctx)
			require.NoError(t, err)
		}), "who leads")
		require.Equal(t, cost{writes: 1, reads: 2}, costOfOne(srv, func() { require.NoError(t, election.Proclaim(leads.Context(), []byte("b"))) }), "another value")
		unlock(t, leads)
	})
}
