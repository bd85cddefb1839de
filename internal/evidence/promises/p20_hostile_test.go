// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// Tests with clients that may write in a queue's directory or to nodes of zklock.

// TestAForgedSequenceNumberCostsNewcomersNothing adds a node with the largest possible number to a queue of many.
//
//zklock:promise P9.4
func TestAForgedSequenceNumberCostsNewcomersNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		const others = 500
		c := connect(t, srv, "a", term)
		unlockSoon(t, c)
		for i := range others {
			require.NoError(t, srv.PutNode(fmt.Sprintf("%s/lock-%010d", path, i), nil))
		}
		lab.SetChildCounter(srv, path, others)
		for _, number := range []string{"2147483647", "-000000001"} {
			require.NoError(t, srv.PutNode(path+"/lock-"+number, nil))
		}
		resetCounts(srv)
		waiting := lockLater(t.Context(), c.Mutex(path).Lock)
		require.False(t, waiting.returned())
		require.LessOrEqual(t, srv.RequestCount(), 4, "%v", srv.Requests())
		for i := range others {
			require.NoError(t, srv.DeleteNode(fmt.Sprintf("%s/lock-%010d", path, i)))
		}
		time.Sleep(time.Second)
		<-waiting.done
		require.NoError(t, waiting.err, "who has such a number came later")
		unlock(t, waiting.hold)
	})
}

// line is a queue of clients for a mutex, of which the first holds.
type line struct {
	clients []*zklock.Client
	all     []*attempt
	giveUps []context.CancelFunc
	nodes   []string // by name
}

// newLine queues the clients one after the other. If before is not nil, it is called before the last one queues.
func newLine(t *testing.T, srv *zktest.Server, before func(l *line), clients ...*zklock.Client) *line {
	t.Helper()
	l := &line{clients: clients}
	for i, c := range clients {
		if i == len(clients)-1 && before != nil {
			before(l)
		}
		ctx, giveUp := context.WithCancel(t.Context())
		t.Cleanup(giveUp)
		l.all, l.giveUps = append(l.all, lockLater(ctx, c.Mutex(path).Lock)), append(l.giveUps, giveUp)
		time.Sleep(time.Second)
		for _, name := range queue(srv, path) {
			if !slices.Contains(l.nodes, name) {
				l.nodes = append(l.nodes, name)
			}
		}
		require.Len(t, l.nodes, i+1)
	}
	<-l.all[0].done
	require.NoError(t, l.all[0].err)
	return l
}

// giveUp cancels the wait of the i-th client.
func (l *line) giveUp(t *testing.T, i int) {
	t.Helper()
	l.giveUps[i]()
	time.Sleep(time.Second)
	require.True(t, l.all[i].returned())
	require.ErrorIs(t, l.all[i].err, context.Canceled)
}

// lastWaitsFor checks that the last client is granted when holder has released, and not before.
func (l *line) lastWaitsFor(t *testing.T, holder *attempt) {
	t.Helper()
	last := l.all[len(l.all)-1]
	time.Sleep(time.Second)
	require.False(t, last.returned(), "granted together with a holder")
	require.NoError(t, holder.hold.Check())
	unlock(t, holder.hold)
	<-last.done
	require.NoError(t, last.err)
	unlock(t, last.hold)
}

// some returns n clients.
func some(t *testing.T, srv *zktest.Server, n int) (clients []*zklock.Client) {
	for i := range n {
		clients = append(clients, connect(t, srv, string(rune('a'+i)), term))
	}
	return clients
}

// TestAForgedNoteGrantsNothing forges notes that name a waiter. The last client reads them when that waiter gives up. Then the
// waiter between them gives up, and the last client must not take this for its turn.
//
//zklock:promise P4.4 A14
func TestAForgedNoteGrantsNothing(t *testing.T) {
	note := func(name string) []byte { return []byte("zklock: last held by " + name) }
	t.Run("written before", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			l := newLine(t, srv, func(l *line) { require.NoError(t, srv.PutNode(path, note(l.nodes[1]))) }, some(t, srv, 4)...)
			l.giveUp(t, 1)
			l.giveUp(t, 2)
			l.lastWaitsFor(t, l.all[0])
		})
	})
	t.Run("written afterwards", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			l := newLine(t, srv, nil, some(t, srv, 4)...)
			read := false
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Client == "d" && r.Op == zktest.OpGetData && r.Path == path {
					read = true
					assert.NoError(t, srv.PutNode(path, note(l.nodes[1])))
				}
				return zktest.Pass
			})
			l.giveUp(t, 1)
			require.True(t, read)
			l.giveUp(t, 2)
			l.lastWaitsFor(t, l.all[0])
		})
	})
	t.Run("written in the transaction that deletes, where nothing is trusted", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			last := connectWith(t, srv, &zklock.Options{Label: "last", SessionTimeout: term, Untrusted: true})
			l := newLine(t, srv, nil, append(some(t, srv, 3), last)...)
			require.NoError(t, srv.Apply(
				zktest.Step{Op: zktest.OpDelete, Path: path + "/" + l.nodes[1]},
				zktest.Step{Op: zktest.OpSetData, Path: path, Data: note(l.nodes[1])}))
			time.Sleep(time.Second)
			l.giveUps[1]()
			l.giveUp(t, 2)
			l.lastWaitsFor(t, l.all[0])
		})
	})
}

// TestAWaiterThatGivesUpAfterAReleaseWritesNoNote uses a waiter that gives up after it has seen a holder leave. Had it held, it would
// have written a note.
//
//zklock:promise P4.4
func TestAWaiterThatGivesUpAfterAReleaseWritesNoNote(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		l := newLine(t, srv, nil, some(t, srv, 5)...)
		unlock(t, l.all[0].hold)
		<-l.all[1].done
		require.NoError(t, l.all[1].err)
		time.Sleep(time.Second)
		l.giveUp(t, 2)
		dir, _ := srv.Node(path)
		require.Empty(t, dir.Data)
		l.giveUp(t, 3)
		l.lastWaitsFor(t, l.all[1])
	})
}

// TestAClientThatTrustsNothingWritesNoNotes checks many hand-offs.
//
//zklock:promise P20.4 A14
func TestAClientThatTrustsNothingWritesNoNotes(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		var all []*attempt
		for i := range 5 {
			c := connectWith(t, srv, &zklock.Options{Label: string(rune('a' + i)), SessionTimeout: term, Untrusted: true})
			all = append(all, inTurn(t, c.Mutex(path).Lock)...)
		}
		for _, a := range all {
			<-a.done
			require.NoError(t, a.err)
			time.Sleep(time.Second)
			unlock(t, a.hold)
		}
		dir, ok := srv.Node(path)
		require.True(t, ok)
		require.Empty(t, dir.Data)
	})
}

//zklock:promise P20.5
func TestADowngradeByAThirdPartyIsALoss(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		forged := []byte(`{"pid":1,"shared":true}`)
		m := connect(t, srv, "a", term).RWMutex(path)
		hold, err := m.Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		next := lockLater(t.Context(), connect(t, srv, "b", term).RWMutex(path).Lock)
		time.Sleep(time.Second)
		require.NoError(t, srv.PutNode(hold.Node(), forged))
		time.Sleep(time.Second)
		require.ErrorIs(t, hold.Check(), zklock.ErrLost)
		<-next.done
		require.NoError(t, next.err)

		// A waiter that was next in line has lost its place.
		waiting := lockLater(t.Context(), m.Lock)
		time.Sleep(time.Second)
		first := queue(srv, path)
		for _, name := range first {
			if path+"/"+name != next.hold.Node() {
				require.NoError(t, srv.PutNode(path+"/"+name, forged))
			}
		}
		time.Sleep(time.Second)
		unlock(t, next.hold)
		<-waiting.done
		require.NoError(t, waiting.err)
		for _, name := range first {
			require.NotEqual(t, path+"/"+name, waiting.hold.Node())
		}
		unlock(t, waiting.hold)
		noGhost(t, srv, path)
	})
}

// TestInspectKeepsTheBeginningOfLongNames uses contenders with long labels.
//
//zklock:promise P9.6
func TestInspectKeepsTheBeginningOfLongNames(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		long := strings.Repeat("ö", 200_000)
		for i := range 5 {
			data, err := json.Marshal(map[string]any{"host": long, "pid": 1, "label": "x" + long})
			require.NoError(t, err)
			require.NoError(t, srv.PutNode(fmt.Sprintf("%s/_c_7a6b6c0123456789abcdef01234567a%d-lock-%010d", path, i, i), data))
		}
		q, err := operate.Inspect(t.Context(), connect(t, srv, "a", term), path)
		require.NoError(t, err)
		require.Len(t, q.Contenders, 5)
		for _, who := range q.Contenders {
			require.LessOrEqual(t, len(who.Host), 1024)
			require.LessOrEqual(t, len(who.Label), 1024)
			require.Greater(t, len(who.Host)+len(who.Label), 2000)
			require.True(t, utf8.ValidString(who.Host+who.Label))
		}
	})
}
