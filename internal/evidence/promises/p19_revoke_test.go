// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// isRevoked reports whether the holder was asked to release the lock.
func isRevoked(h *zklock.Hold) bool {
	synctest.Wait()
	select {
	case <-h.Revoked():
		return true
	default:
		return false
	}
}

// ownerOf reads a node's data as any other program would.
func ownerOf(t *testing.T, srv *zktest.Server, node string) (o struct {
	Label  string
	PID    int
	Revoke bool
}) {
	t.Helper()
	n, ok := srv.Node(node)
	require.True(t, ok)
	require.NoError(t, json.Unmarshal(n.Data, &o), "%s", n.Data)
	return o
}

//zklock:promise P19.5
func TestARevokedHolderRemainsTheHolder(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder, operator := connect(t, srv, "holder", term), connect(t, srv, "operator", term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		next := lockLater(t.Context(), operator.Mutex(path).Lock)
		time.Sleep(time.Second)
		require.False(t, isRevoked(hold))

		require.NoError(t, operate.Revoke(t.Context(), operator, contenderAt(t, operator, 0)))
		require.True(t, isRevoked(hold))
		owner := ownerOf(t, srv, hold.Node())
		require.Equal(t, "holder", owner.Label)
		require.NotZero(t, owner.PID)
		require.True(t, owner.Revoke)
		who := contenderAt(t, operator, 0)
		require.True(t, who.Revoked)
		require.Equal(t, "holder", who.Label)
		require.NoError(t, hold.Confirm(t.Context()))
		require.False(t, next.returned())

		zxid := srv.Zxid()
		require.NoError(t, operate.Revoke(t.Context(), operator, who), "asked once more")
		require.Equal(t, zxid, srv.Zxid(), "and written once more")
		unlock(t, hold)
		<-next.done
		require.NoError(t, next.err)
		require.False(t, isRevoked(next.hold), "the request was for the other")
		unlock(t, next.hold)
		noGhost(t, srv, path)
	})
}

//zklock:promise P19.5
func TestCuratorsRevokerIsUnderstoodAndTheOwnerRemainsReadable(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		holder, raw := connect(t, srv, "holder", term), rawClient(t, srv, term)
		hold, err := holder.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		for range 3 {
			_, err = raw.Set(hold.Node(), []byte("__REVOKE__"), -1)
			require.NoError(t, err)
			require.True(t, isRevoked(hold))
			owner := ownerOf(t, srv, hold.Node())
			require.Equal(t, "holder", owner.Label)
			require.True(t, owner.Revoke)
		}
		require.NoError(t, hold.Confirm(t.Context()))
		unlock(t, hold)
	})
}

//zklock:promise P19.5
func TestTheOwnerIsRestoredThroughAnyFault(t *testing.T) {
	for _, f := range faults {
		if f.name == "the session ends before" {
			continue // then there is no node to write to
		}
		t.Run(f.name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				holder, raw := connect(t, srv, "holder", term), rawClient(t, srv, term)
				hold, err := holder.Mutex(path).Lock(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second)
				var struck atomic.Bool
				srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Client != "holder" || r.Op != zktest.OpSetData || struck.Swap(true) {
						return zktest.Pass
					}
					return f.verdict(srv, r, func() {})
				})
				_, err = raw.Set(hold.Node(), []byte("__REVOKE__"), -1)
				require.NoError(t, err)
				time.Sleep(term)
				require.True(t, struck.Load())
				require.True(t, isRevoked(hold))
				require.Equal(t, "holder", ownerOf(t, srv, hold.Node()).Label)
				unlock(t, hold)
			})
		})
	}
}

//zklock:promise P19.5
func TestACuratorHolderIsRevokedInCuratorsFormat(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator, raw := connect(t, srv, "operator", term), rawClient(t, srv, term)
		for _, name := range []string{curatorName, goName, kazooName} {
			node := createContender(t, raw, path, name, "10.0.0.1")
			require.NoError(t, operate.Revoke(t.Context(), operator, contenderAt(t, operator, 0)))
			n, _ := srv.Node(node)
			require.Equal(t, "__REVOKE__", string(n.Data))
			require.True(t, contenderAt(t, operator, 0).Revoked)
			require.NoError(t, raw.Delete(node, -1))
		}
	})
}

//zklock:promise P19.5
func TestARevokedWaiterIsNotifiedWhenItHolds(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		a, b, operator := connect(t, srv, "a", term), connect(t, srv, "b", term), connect(t, srv, "operator", term)
		hold, err := a.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		var waiting []*attempt
		for range 3 {
			waiting = append(waiting, lockLater(t.Context(), b.Mutex(path).Lock))
			synctest.Wait()
		}
		require.NoError(t, operate.Revoke(t.Context(), operator, contenderAt(t, operator, 2)))
		unlock(t, hold)
		for i, w := range waiting {
			<-w.done
			require.NoError(t, w.err)
			time.Sleep(time.Second)
			require.Equal(t, i == 1, isRevoked(w.hold))
			unlock(t, w.hold)
		}
	})
}

// A LeaderLatch of Curator reacts only to the deletion of its predecessor, and sets no second watch, so a change of data would
// leave it waiting forever.
//
//zklock:promise P17.10
func TestALatchsDataIsNeverWritten(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, raw := connect(t, srv, "a", term), rawClient(t, srv, term)
		hold, err := client.Election(path, &zklock.ElectionOptions{Latch: true}).Campaign(t.Context(), []byte("one"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.ErrorIs(t, operate.Revoke(t.Context(), client, contenderAt(t, client, 0)), zklock.ErrInvalid)
		n, _ := srv.Node(hold.Node())
		require.Zero(t, n.Version)

		_, err = raw.Set(hold.Node(), []byte("__REVOKE__"), -1)
		require.NoError(t, err)
		require.True(t, isRevoked(hold))
		n, _ = srv.Node(hold.Node())
		require.EqualValues(t, 1, n.Version, "put back behind a latch that may watch by now")
		unlock(t, hold)
	})
}

//zklock:promise P19.5
func TestRevokingAMissingContenderReturnsErrNotHeld(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client := connect(t, srv, "a", term)
		hold, err := client.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		who := contenderAt(t, client, 0)
		unlock(t, hold)
		require.ErrorIs(t, operate.Revoke(t.Context(), client, who), zklock.ErrNotHeld)
	})
}

//zklock:promise P19.5
func TestARevocationSurvivesAnotherWriteInBetween(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		operator, raw := connect(t, srv, "operator", term), rawClient(t, srv, term)
		node := createContender(t, raw, path, curatorName, "")
		who := contenderAt(t, operator, 0)
		var writes atomic.Int32
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op == zktest.OpSetData && r.Client == "operator" && writes.Load() < 2 {
				writes.Add(1)
				_, err := raw.Set(node, []byte("busy"), -1)
				assert.NoError(t, err)
			}
			return zktest.Pass
		})
		require.NoError(t, operate.Revoke(t.Context(), operator, who))
		require.EqualValues(t, 2, writes.Load())
		n, _ := srv.Node(node)
		require.Equal(t, "__REVOKE__", string(n.Data))
	})
}

//zklock:promise P13.5
func TestAHoldOfSeveralLocksIsRevokedThroughAny(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, operator := connect(t, srv, "a", term), connect(t, srv, "operator", term)
		hold, err := client.LockAll(t.Context(), client.Mutex("/locks/one"), client.Mutex(path), client.Mutex("/locks/two"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.False(t, isRevoked(hold))
		require.NoError(t, operate.Revoke(t.Context(), operator, contenderAt(t, operator, 0)))
		require.True(t, isRevoked(hold))
		unlock(t, hold)
	})
}

//zklock:promise P19.5
func TestRevokeEndsWithItsContextAndWithTheClient(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		client, raw := connect(t, srv, "a", term), rawClient(t, srv, 40*time.Second)
		createContender(t, raw, path, curatorName, "")
		who := contenderAt(t, client, 0)
		srv.Partition("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, operate.Revoke(ctx, client, who), context.DeadlineExceeded)
		require.ErrorIs(t, operate.Evict(ctx, client, "", who), context.DeadlineExceeded)
		done := make(chan error)
		go func() { done <- operate.Revoke(t.Context(), client, who) }()
		time.Sleep(time.Second)
		client.Close()
		require.ErrorIs(t, <-done, zklock.ErrClosed)
		require.ErrorIs(t, operate.Evict(t.Context(), client, "", who), zklock.ErrClosed)
		_, err := operate.Inspect(t.Context(), client, path)
		require.ErrorIs(t, err, zklock.ErrClosed)
	})
}
