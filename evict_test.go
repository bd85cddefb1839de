package zklock_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// everybody returns the contenders at path.
func everybody(t *testing.T, operator *zklock.Client) []zklock.Contender {
	t.Helper()
	q, err := operate.Inspect(t.Context(), operator, path)
	require.NoError(t, err)
	return q.Contenders
}

// TestEvictingEverybodyGrantsNobodyAndLeavesNobody has a holder and many who wait, by every recipe.
func TestEvictingEverybodyGrantsNobodyAndLeavesNobody(t *testing.T) {
	for name, lock := range map[string]func(c *zklock.Client) lockFunc{
		"mutex":     func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"writer":    func(c *zklock.Client) lockFunc { return c.RWMutex(path).Lock },
		"election":  func(c *zklock.Client) lockFunc { return campaign(c.Election(path, nil)) },
		"semaphore": func(c *zklock.Client) lockFunc { return permitsOf(c, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				operator := connect(t, srv, "operator", term)
				var all []*attempt
				for i := range 10 {
					all = append(all, inTurn(t, lock(connect(t, srv, string(rune('a'+i)), term)))...)
					time.Sleep(time.Second)
				}
				require.Equal(t, "x.........", granted(all))
				require.NoError(t, operate.Evict(t.Context(), operator, everybody(t, operator)...))
				for i, a := range all {
					require.True(t, a.returned())
					if i > 0 {
						require.ErrorIs(t, a.err, zklock.ErrEvicted)
					}
				}
				require.ErrorIs(t, all[0].hold.Check(), zklock.ErrLost)
				noGhost(t, srv, path)
				unlockSoon(t, operator)
			})
		})
	}
}

// TestAnEvictedWaiterIsToldHoweverLongItWaits has others hold and release between the eviction and the moment at which
// the waiter looks at its own node.
func TestAnEvictedWaiterIsToldHoweverLongItWaits(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator := connect(t, srv, "operator", term)
		var all []*attempt
		for i := range 6 {
			all = append(all, inTurn(t, connect(t, srv, string(rune('a'+i)), term).Mutex(path).Lock)...)
			time.Sleep(time.Second)
		}
		require.NoError(t, operate.Evict(t.Context(), operator, everybody(t, operator)[4]))
		for _, a := range all[:4] {
			<-a.done
			require.NoError(t, a.err)
			time.Sleep(time.Second)
			unlock(t, a.hold)
		}
		<-all[4].done
		require.ErrorIs(t, all[4].err, zklock.ErrEvicted)
		<-all[5].done
		require.NoError(t, all[5].err)
		unlock(t, all[5].hold)
		noGhost(t, srv, path)
	})
}

// TestAnEvictedWaiterQueuesAgainWhereItCannotBeTold has directories whose data is not ours to write.
func TestAnEvictedWaiterQueuesAgainWhereItCannotBeTold(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, srv *zktest.Server){
		"it may not be written to":  func(t *testing.T, srv *zktest.Server) { setMembers(t, aDirectory(t, srv), zk.PermAll&^zk.PermWrite) },
		"it has data of somebody's": func(t *testing.T, srv *zktest.Server) { require.NoError(t, srv.PutNode(path, []byte("precious"))) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				prepare(t, srv)
				a, b, operator := connect(t, srv, "a", term), connect(t, srv, "b", term), connect(t, srv, "operator", term)
				hold, err := a.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				next := lockLater(t.Context(), b.Mutex(path).Lock)
				require.False(t, next.returned())
				require.NoError(t, operate.Evict(t.Context(), operator, contenderAt(t, operator, 1)))
				require.NoError(t, hold.Check())
				unlock(t, hold)
				<-next.done
				require.NoError(t, next.err)
				unlock(t, next.hold)
				noGhost(t, srv, path)
			})
		})
	}
}

// TestWhatNoSessionEndsCanBeEvicted removes a node that its maker's end leaves there.
func TestWhatNoSessionEndsCanBeEvicted(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		require.NoError(t, srv.PutNode(path+"/lock-0000000000", nil))
		waiting := lockLater(t.Context(), c.Mutex(path).Lock)
		require.False(t, waiting.returned())
		who := contenderAt(t, operator, 0)
		require.Zero(t, who.Session)
		forgotten := contenderAt(t, operator, 1)
		forgotten.Session = 0
		require.ErrorIs(t, operate.Evict(t.Context(), operator, forgotten), zklock.ErrNotHeld, "that one is of a session")
		require.NoError(t, operate.Evict(t.Context(), operator, who))
		<-waiting.done
		require.NoError(t, waiting.err)
		unlock(t, waiting.hold)
	})
}
