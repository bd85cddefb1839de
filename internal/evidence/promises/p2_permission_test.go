// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// connectACL returns a client whose nodes have the given ACL.
func connectACL(t *testing.T, srv *zktest.Server, label string, acl []zk.ACL) *zklock.Client {
	t.Helper()
	return connectWith(t, srv, &zklock.Options{Label: label, SessionTimeout: term, ACL: acl})
}

// aDirectory creates the queue's directory, and returns an operator's connection with all permissions on it.
func aDirectory(t *testing.T, srv *zktest.Server) *zk.Conn {
	t.Helper()
	operator := rawClient(t, srv, term)
	require.NoError(t, srv.PutNode(path, nil))
	require.NoError(t, operator.AddAuth("digest", []byte("operator:secret")))
	return operator
}

// setMembers sets the permissions of others on the queue's directory.
func setMembers(t *testing.T, operator *zk.Conn, perms int32) {
	t.Helper()
	acl := append(zk.WorldACL(perms), zk.DigestACL(zk.PermAll, "operator", "secret")...)
	_, err := operator.SetACL(path, acl, -1)
	require.NoError(t, err)
}

//zklock:promise P2.4
func TestANodeThatItsOwnerCannotReadIsNotHeld(t *testing.T) {
	unreadable := zk.WorldACL(zk.PermAll &^ zk.PermRead)
	for name, lock := range map[string]func(c *zklock.Client) lockFunc{
		"mutex":     func(c *zklock.Client) lockFunc { return c.Mutex(path).Lock },
		"try":       func(c *zklock.Client) lockFunc { return c.Mutex(path).TryLock },
		"semaphore": func(c *zklock.Client) lockFunc { return permitsOf(c, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				first := connect(t, srv, "first", term)
				for _, p := range []string{path, path + "/leases", path + "/locks"} {
					require.NoError(t, srv.PutNode(p, nil))
				}
				c := connectACL(t, srv, "a", unreadable)
				_, err := lock(c)(t.Context())
				require.ErrorIs(t, err, zk.ErrNoAuth)
				require.ErrorContains(t, err, "cannot read our own node")
				noGhost(t, srv, path)

				hold, err := first.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				next := lockLater(t.Context(), c.Mutex(path).Lock)
				require.True(t, next.returned(), "who waits behind another learns it as well")
				require.ErrorIs(t, next.err, zk.ErrNoAuth)
				unlock(t, hold)
				noGhost(t, srv, path)
			})
		})
	}
}

func permitsOf(c *zklock.Client, k int) lockFunc {
	return func(ctx context.Context) (*zklock.Hold, error) { return c.Semaphore(path, 3).Acquire(ctx, k) }
}

//zklock:promise P2.4
func TestAHoldWhoseNodeCanNoLongerBeReadIsLost(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c, operator := connect(t, srv, "a", term), rawClient(t, srv, term)
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		_, err = operator.SetACL(hold.Node(), zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
		require.NoError(t, err)
		require.ErrorIs(t, hold.Confirm(t.Context()), zklock.ErrLost)
		noGhost(t, srv, path)
	})
}

// A waiter for permits can already have nodes while others hold the permits. It returns an error if the others' nodes can no
// longer be read.
//
//zklock:promise P2.4
func TestAWaiterForPermitsWhoseNodeCanNoLongerBeReadGetsAnError(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		hold, err := connect(t, srv, "first", term).Semaphore(path, 1).Acquire(t.Context(), 1)
		require.NoError(t, err)
		waiter := connect(t, srv, "waiter", term)
		next := lockLater(t.Context(), func(ctx context.Context) (*zklock.Hold, error) { return waiter.Semaphore(path, 1).Acquire(ctx, 1) })
		time.Sleep(time.Second)
		for _, name := range srv.Children(path + "/leases") {
			if node := path + "/leases/" + name; node != hold.Node() {
				_, err := rawClient(t, srv, term).SetACL(node, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
				require.NoError(t, err)
			}
		}
		srv.DropConnections()
		time.Sleep(2 * term)
		require.True(t, next.returned())
		require.ErrorIs(t, next.err, zk.ErrNoAuth)
		require.ErrorContains(t, next.err, "cannot read our own node")
		unlock(t, hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P5.5
func TestARefusedReleaseContinuesWhenItIsAllowed(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator := aDirectory(t, srv)
		c := connect(t, srv, "a", term)
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		setMembers(t, operator, zk.PermAll&^zk.PermDelete)
		require.ErrorIs(t, hold.Unlock(t.Context()), zk.ErrNoAuth)
		time.Sleep(time.Minute)
		require.Len(t, queue(srv, path), 1)
		setMembers(t, operator, zk.PermAll)
		time.Sleep(term / 2)
		require.Empty(t, queue(srv, path))
	})
}

//zklock:promise P16.6 A15
func TestCloseDoesNotWaitForRefusedDeletions(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator := aDirectory(t, srv)
		c := connect(t, srv, "a", term)
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		setMembers(t, operator, zk.PermAll&^zk.PermDelete)
		require.ErrorIs(t, hold.Unlock(t.Context()), zk.ErrNoAuth)
		begun := time.Now()
		require.NoError(t, c.Close())
		require.Less(t, time.Since(begun), time.Second)
		require.Empty(t, queue(srv, path), "the session took it")
	})
}

// TestWithoutWritePermissionANoteIsTriedOnce counts the requests of releases after a wait of more than one behind.
//
//zklock:promise P9.4
func TestWithoutWritePermissionANoteIsTriedOnce(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		setMembers(t, aDirectory(t, srv), zk.PermAll&^zk.PermWrite)
		first, second, third := connect(t, srv, "1", term), connect(t, srv, "2", term), connect(t, srv, "3", term)
		for round := range 4 {
			hold, err := first.Mutex(path).Lock(t.Context())
			require.NoError(t, err)
			next := inTurn(t, second.Mutex(path).Lock, third.Mutex(path).Lock)
			unlock(t, hold)
			<-next[0].done
			unlock(t, next[0].hold)
			<-next[1].done
			resetCounts(srv)
			unlock(t, next[1].hold)
			notes := srv.Requests()[zktest.OpMulti]
			require.LessOrEqual(t, notes, max(0, 1-round), "round %d", round)
		}
	})
}
