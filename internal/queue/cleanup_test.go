package queue

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

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
