package zklock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// throttled is the answer of a server that has too many requests. It has not done what it was asked for, and has heard of the
// session. It never answers pings so, nor the requests that begin and end a session.
var throttled = zktest.Answer(-127)

// A server that throttles a part of what it is asked costs no hold.
func TestAServerThatThrottlesCostsNoHold(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second}[:3/oneIn(3)] {
		for _, percent := range []int{65, 50, 35, 20}[:4/oneIn(2)] {
			t.Run(fmt.Sprint(timeout, " ", percent, " of 100"), func(t *testing.T) {
				t.Parallel()
				virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
					hold, err := connect(t, srv, "a", timeout).Mutex(path).Lock(t.Context())
					require.NoError(t, err)
					r, asked := rand.New(rand.NewPCG(1, uint64(percent))), 0
					serve := srv.Intercept(func(q *zktest.Request) zktest.Verdict {
						switch {
						case q.Op == zktest.OpPing:
							return zktest.Pass
						case r.IntN(100) < percent:
							return throttled
						}
						asked++
						return zktest.Pass
					})
					times := 100 / oneIn(4)
					least := lowest(hold, time.Duration(times)*timeout)
					t.Logf("least %.2f of the timeout, %d requests a timeout were answered", least.Seconds()/timeout.Seconds(), asked/times)
					require.Greater(t, least, timeout/8)
					serve()
					unlock(t, hold)
				})
			})
		}
	}
}

// A server that has too many requests for a moment is no lost connection.
func TestATryThatIsThrottledIsAskedAgain(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetChildren2} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			c := connect(t, srv, "a", term)
			unlockSoon(t, c)
			srv.Next(3, throttled, op)
			hold, err := c.Mutex(path).TryLock(t.Context())
			require.NoError(t, err, "%v", op)
			unlock(t, hold)
			noGhost(t, srv, path)
		})
	}
}

// Where a server does nothing else, a try ends.
func TestATryThatIsAlwaysThrottledEnds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		unlockSoon(t, c)
		serve := srv.Intercept(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.OpPing || q.Op == zktest.OpCloseSession {
				return zktest.Pass
			}
			return throttled
		})
		began := time.Now()
		_, err := c.Mutex(path).TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrNotConnected)
		require.LessOrEqual(t, time.Since(began), 5*term+time.Second)
		t.Log(err)
		serve()
	})
}

// A server that answers everything, though each time late, has served a try.
func TestATryThatIsServedSlowlySucceeds(t *testing.T) {
	const short = 4 * time.Second
	for name, try := range map[string]func(c *zklock.Client) lockFunc{
		"a mutex": func(c *zklock.Client) lockFunc { return c.Mutex(path).TryLock },
		"two permits": func(c *zklock.Client) lockFunc {
			return func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(path, 3).TryAcquire(ctx, 2) }
		},
		"a cohort": func(c *zklock.Client) lockFunc { return c.Cohort(path, nil).TryLock },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{Latency: fixed(short / 16)}, func(t *testing.T, srv *zktest.Server) {
				c := connect(t, srv, "a", short)
				time.Sleep(10 * time.Second)
				hold, err := try(c)(t.Context())
				require.NoError(t, err)
				unlock(t, hold)
			})
		})
	}
}
