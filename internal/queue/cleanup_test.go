// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// refused is the answer of a server that does not permit a request.
var refused = zktest.Answer(zktest.CodeNoAuth)

// A node whose deletion is refused blocks the lock: the log and the engine's status say so, once,
// until it is gone.
//
//zklock:promise P5.5
func TestANodeThatCannotBeDeletedIsReported(t *testing.T) {
	for name, obtain := range map[string]func(t *testing.T, e *Engine) (*Grant, error){
		"of a mutex":               func(t *testing.T, e *Engine) (*Grant, error) { return e.Obtain(t.Context(), wantLock(testDir)) },
		"in the queue for permits": func(t *testing.T, e *Engine) (*Grant, error) { return permitsOf(e, 3).Obtain(t.Context(), 2) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				var log strings.Builder
				e := startEngine(t, srv, "a", func(e *Engine) { e.Requests.Log = slog.New(slog.NewTextHandler(&log, nil)) })
				allow := srv.Intercept(func(r *zktest.Request) zktest.Verdict {
					if r.Op == zktest.OpDelete && strings.Contains(r.Path, "-lock-") {
						return refused
					}
					return zktest.Pass
				})
				g, err := obtain(t, e)
				require.NoError(t, err)
				released := outcomeOf(g, false)
				time.Sleep(time.Minute)
				synctest.Wait()
				if strings.Contains(g.Nodes()[0].Name, "-lock-") {
					require.ErrorIs(t, released, zk.ErrNoAuth)
				} else {
					require.NoError(t, released)
				}
				require.Equal(t, 1, strings.Count(log.String(), "deletion of own node refused"), log.String())
				require.Len(t, e.Status(), 1)
				require.Regexp(t, `^`+testDir+`(/locks)?/_c_\S+-lock-0000000000 cannot be deleted since 1m0s: zk: not authenticated`, e.Status()[0])
				allow()
				time.Sleep(testTerm)
				require.Empty(t, e.Status())
			})
		})
	}
}

// After Close the session's end deletes the nodes.
func TestAReleaseAfterCloseSendsNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		g := obtain(t, e)
		<-e.Removals.Close()
		srv.ResetCounts()
		require.ErrorIs(t, outcomeOf(g, false), outcome.ErrClosed)
		time.Sleep(time.Second)
		require.Zero(t, srv.Requests()[zktest.OpDelete])
	})
}

// A third party has deleted the node, with and without a note to write.
func TestANodeThatIsGoneIsReleasedWithOneRequest(t *testing.T) {
	play(t, 3, nil, func(t *testing.T, s *story, e []*Engine) {
		var all []*obtaining
		for _, x := range e {
			s.step("queue", func() { all = append(all, x.wants(t, testLock)) })
		}
		for _, o := range all {
			<-o.done
			s.step("the node is deleted", func() { require.NoError(t, s.srv.DeleteNode(o.grant.Nodes()[0].Path())) })
			s.step("release", func() { o.release(t) })
		}
	})
}

// The directory's ACL lets clients create and delete nodes, but not write its data.
func TestANoteThatIsRefusedIsNotTriedAgain(t *testing.T) {
	play(t, 3, nil, func(t *testing.T, s *story, e []*Engine) {
		sess, err := e[0].session(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.srv.DeleteNode(testDir))
		_, err = e[0].Requests.Create(t.Context(), sess, testDir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermCreate|zk.PermRead|zk.PermDelete))
		require.NoError(t, err)
		for range 2 {
			var all []*obtaining
			for _, x := range e {
				s.step("queue", func() { all = append(all, x.wants(t, testLock)) })
			}
			for _, o := range all {
				s.step("release", func() { o.release(t) })
			}
		}
	})
}

// A revocation request arrives in the queue for permits just before the acquire that holds deletes its node there. The connection is
// lost when it reads the request.
func TestARequestThatArrivesBeforeTheDeletionIsForTheHold(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		queued, lost := "", false
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			switch {
			case r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, testDir+node.PermitQueueDir) && queued == "":
				queued = r.Path
				_ = srv.PutNode(queued, node.CuratorRevocation) // the test fails below if it was not written
			case r.Op == zktest.OpGetData && r.Path == queued && !lost:
				lost = true
				return zktest.DropBefore
			}
			return zktest.Pass
		})
		g, err := permitsOf(e, 3).Obtain(t.Context(), 2)
		require.NoError(t, err)
		time.Sleep(testTerm / 2)
		synctest.Wait()
		require.True(t, lost)
		require.True(t, g.Nodes()[0].Revocation.Requested.IsSet())
		_, there := srv.Node(queued)
		require.False(t, there)
		release(t, g)
	})
}
