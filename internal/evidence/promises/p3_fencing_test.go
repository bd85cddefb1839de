// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// P3: tokens and guarded transactions.

//zklock:promise P3.1
func TestTokensGrowWithEveryGrant(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
		last := int64(0)
		for i := range 50 {
			client := []*zklock.Client{a, b}[i%2]
			hold, err := client.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			require.Greater(t, hold.Token(), last)
			last = hold.Token()
			unlock(t, hold)
			if i%10 == 9 { // the directory and its counter start again
				require.NoError(t, srv.DeleteNode(path))
			}
		}
	})
}

// Regardless of other changes in the directory, the token is the one that an operator is shown, and the node's czxid.
//
//zklock:promise P3.1
func TestTheTokenIsTheZxidThatCreatedTheNode(t *testing.T) {
	for name, as := range map[string]way{
		"a mutex": asMutex, "a writer": asWriter, "a reader": asReader, "permits": forTwo,
		"a leader": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) {
			return func(ctx context.Context) (*zklock.Hold, error) { return c.Election(path, nil).Campaign(ctx, nil) }
		},
		"a cohort": func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Cohort(path, nil).Lock },
	} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			a, b := connect(t, srv, "a", term), connect(t, srv, "b", term)
			hold, err := as(a)(t.Context())
			require.NoError(t, err)
			defer srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Op == zktest.OpGetChildren2 && r.Client == "b" {
					return zktest.Delay(time.Second)
				}
				return zktest.Pass
			})()
			next := lockLater(t.Context(), as(b))
			time.Sleep(time.Second / 2)
			for _, dir := range []string{path, path + "/leases", path + "/locks"} { // somebody comes and goes
				if srv.PutNode(dir+"/other", nil) == nil {
					require.NoError(t, srv.DeleteNode(dir+"/other"))
				}
			}
			time.Sleep(5 * time.Second)
			unlock(t, hold)
			<-next.done
			require.NoError(t, next.err, name)
			node, _ := srv.Node(next.hold.Node())
			require.Equal(t, node.Stat.Czxid, next.hold.Token(), name)
			shown, err := operate.Inspect(t.Context(), a, path)
			require.NoError(t, err)
			require.Equal(t, next.hold.Token(), shown.Contenders[0].Token, name)
			unlock(t, next.hold)
		})
	}
}

//zklock:promise P3.2
func TestATransactionWithTheGuardCommitsOnlyWhileHeld(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/account", []byte("0")))
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		answers, err := hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("1"), Version: -1})
		require.NoError(t, err)
		require.Len(t, answers, 1)
		require.NotNil(t, answers[0].Stat)
		_, err = hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("2"), Version: 77})
		require.ErrorIs(t, err, zk.ErrBadVersion)
		require.NoError(t, hold.Check())

		conn := rawClient(t, srv, term)
		guard := hold.Guard()
		require.NoError(t, srv.DeleteNode(hold.Node()))
		_, err = conn.Multi(append(guard, &zk.SetDataRequest{Path: "/account", Data: []byte("3"), Version: -1})...)
		require.ErrorIs(t, err, zk.ErrNoNode)
		_, err = hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("4"), Version: -1})
		require.True(t, errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrUncertain), "%v; the hold may end before the reply arrives", err)
		account, _ := srv.Node("/account")
		require.Equal(t, "1", string(account.Data))
	})
}

// The replies are those to the program's operations, whatever number of nodes the hold has.
//
//zklock:promise P3.2
func TestATransactionOfAHoldOfSeveralNodesReturnsTheProgramsReplies(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode("/account", []byte("0")))
		client := connect(t, srv, "a", term)
		hold, err := client.LockAll(t.Context(), client.Mutex("/a"), client.Mutex("/b"), client.Mutex("/c"))
		require.NoError(t, err)
		require.Len(t, hold.Guard(), 3)
		answers, err := hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("1"), Version: 0}, &zk.CheckVersionRequest{Path: "/account", Version: 1})
		require.NoError(t, err)
		require.Len(t, answers, 2)
		require.EqualValues(t, 1, answers[0].Stat.Version)
		answers, err = hold.Multi(&zk.SetDataRequest{Path: "/account", Data: []byte("2"), Version: 77})
		require.ErrorIs(t, err, zk.ErrBadVersion)
		require.Len(t, answers, 1)
		unlock(t, hold)
	})
}

// A function that writes under a lock may be called under others, too.
//
//zklock:promise P3.4
func TestHoldAtReturnsTheHoldOfThatLockWhateverElseIsHeld(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, other := connect(t, srv, "a", term), connectWith(t, srv, &zklock.Options{Label: "b", SessionTimeout: term, Root: "/other"})
		nothing := zklock.HoldAt(t.Context(), path)
		require.Nil(t, nothing)
		require.EqualValues(t, -1, nothing.Token())

		order, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		for name, lock := range map[string]lockFunc{
			"permits":           c.Semaphore("/busy", 3).Permits(2).Lock,
			"a reader":          c.RWMutex("/tables").RLock,
			"a cohort":          c.Cohort("/cohort", nil).Lock,
			"several":           func(ctx context.Context) (*zklock.Hold, error) { return c.LockAll(ctx, mutexes(c, pathA, pathB)...) },
			"of another client": other.Mutex(pathA).Lock,
		} {
			inner := grantedSoon(t, func(context.Context) (*zklock.Hold, error) { return lock(order.Context()) })
			require.NoError(t, inner.Do(inner.Context(), func(ctx context.Context) error {
				require.Same(t, order, zklock.HoldAt(ctx, path), name)
				require.NotSame(t, order, zklock.HoldOf(ctx), name)
				require.Nil(t, zklock.HoldAt(ctx, "/locks"), name)
				require.Nil(t, zklock.HoldAt(ctx, inner.Path()+","+inner.Path()), name)
				return nil
			}))
		}

		again, err := other.Mutex(path).Lock(order.Context())
		require.NoError(t, err)
		require.Same(t, again, zklock.HoldAt(again.Context(), path), "the innermost")
		unlock(t, again)
		unlock(t, order)
	})
}

// Of several locks, each has its own token, guard and end.
//
//zklock:promise P3.4 P13.6
func TestHoldAtOfSeveralLocksReturnsTheHoldOfOne(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		hold, err := c.LockAll(t.Context(), c.Mutex(pathA), c.Cohort(pathB, nil), c.Semaphore(pathC, 2).Permits(2))
		require.NoError(t, err)
		for p, recipe := range map[string]string{pathA: "mutex", pathB: "cohort", pathC: "semaphore"} {
			one := zklock.HoldAt(hold.Context(), p)
			require.Equal(t, hold.TokenOf(p), one.Token())
			require.Positive(t, one.Token())
			require.Equal(t, p, one.Path())
			require.Equal(t, recipe, one.Recipe())
			require.NoError(t, one.Check())
		}
		require.Equal(t, "all", hold.Recipe())
		require.Nil(t, zklock.HoldAt(hold.Context(), hold.Path()))
		require.NoError(t, srv.DeleteNode(zklock.HoldAt(hold.Context(), pathB).Node()))
		<-hold.Context().Done()
		require.ErrorIs(t, zklock.HoldAt(hold.Context(), pathB).Check(), zklock.ErrLost)
		require.NoError(t, zklock.HoldAt(hold.Context(), pathA).Check(), "it is held until Unlock")
		require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrLost)
		require.ErrorIs(t, zklock.HoldAt(hold.Context(), pathA).Check(), zklock.ErrReleased)
	})
}

//zklock:promise P1.5
func TestAHoldKnowsItsRecipe(t *testing.T) {
	for recipe, lock := range map[string]way{
		"mutex": asMutex, "reentrant": asReentrant, "cohort": asCohort, "write": asWriter, "read": asReader, "semaphore": forTwo, "election": asLeader, "all": asBoth,
	} {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			hold := grantedSoon(t, lock(connect(t, srv, "a", term)))
			require.Equal(t, recipe, hold.Recipe())
			if recipe == "write" {
				require.NoError(t, hold.Downgrade(t.Context()))
				require.Equal(t, "read", hold.Recipe())
			}
			unlock(t, hold)
		})
	}
	require.Empty(t, (*zklock.Hold)(nil).Recipe())
}
