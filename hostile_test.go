package zklock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

// What those can do who may write into a queue's directory, or into nodes of ours.

// TestANumberThatNoCounterGaveCostsNewcomersNothing has a node with the last of all numbers among many.
func TestANumberThatNoCounterGaveCostsNewcomersNothing(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		const others = 500
		c := connect(t, srv, "a", term)
		unlockSoon(t, c)
		for i := range others {
			require.NoError(t, srv.PutNode(fmt.Sprintf("%s/lock-%010d", path, i), nil))
		}
		srv.SetChildCounter(path, others)
		for _, number := range []string{"2147483647", "-000000001"} {
			require.NoError(t, srv.PutNode(path+"/lock-"+number, nil))
		}
		srv.ResetCounts()
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

// behindOneThatGivesUp has a holder, one behind it that can give up, and a client's waiter behind both.
func behindOneThatGivesUp(t *testing.T, srv *zktest.Server, before func(between string), c *zklock.Client) (holder *zklock.Hold, between string, giveUp func(), waiting *attempt) {
	t.Helper()
	holder, err := connect(t, srv, "holder", term).Mutex(path).Lock(t.Context())
	require.NoError(t, err)
	time.Sleep(time.Second)
	ctx, giveUp := context.WithCancel(t.Context())
	t.Cleanup(giveUp)
	lockLater(ctx, connect(t, srv, "between", term).Mutex(path).Lock)
	time.Sleep(time.Second)
	for _, name := range queue(srv, path) {
		if path+"/"+name != holder.Node() {
			between = name
		}
	}
	before(between)
	waiting = lockLater(t.Context(), c.Mutex(path).Lock)
	time.Sleep(time.Second)
	return holder, between, giveUp, waiting
}

func TestAForgedNoteGrantsNothing(t *testing.T) {
	forge := func(t *testing.T, srv *zktest.Server, name string) {
		require.NoError(t, srv.PutNode(path, []byte("zklock: last held by "+name)))
	}
	stays := func(t *testing.T, holder *zklock.Hold, waiting *attempt) {
		time.Sleep(time.Second)
		require.False(t, waiting.returned(), "granted beside a holder")
		unlock(t, holder)
		<-waiting.done
		require.NoError(t, waiting.err)
		unlock(t, waiting.hold)
	}
	t.Run("written before", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			holder, _, giveUp, waiting := behindOneThatGivesUp(t, srv, func(name string) { forge(t, srv, name) }, connect(t, srv, "a", term))
			giveUp()
			stays(t, holder, waiting)
		})
	})
	t.Run("written afterwards", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			holder, between, giveUp, waiting := behindOneThatGivesUp(t, srv, func(string) {}, connect(t, srv, "a", term))
			srv.Intercept(func(r *zktest.Request) zktest.Verdict {
				if r.Client == "a" && r.Op == zktest.OpGetData && r.Path == path {
					forge(t, srv, between)
				}
				return zktest.Pass
			})
			giveUp()
			stays(t, holder, waiting)
		})
	})
	t.Run("written in the transaction that deletes, where nothing is trusted", func(t *testing.T) {
		virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
			c := connectWith(t, srv, &zklock.Options{Label: "a", SessionTimeout: term, Untrusted: true})
			holder, between, _, waiting := behindOneThatGivesUp(t, srv, func(string) {}, c)
			_, err := rawClient(t, srv, term).Multi(
				&zk.DeleteRequest{Path: path + "/" + between, Version: -1},
				&zk.SetDataRequest{Path: path, Data: []byte("zklock: last held by " + between), Version: -1})
			require.NoError(t, err)
			stays(t, holder, waiting)
		})
	})
}

// TestAClientThatTrustsNothingWritesNoNotes has many hand-offs.
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

func TestADowngradeThatIsNotOursIsALoss(t *testing.T) {
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

		// Who waits and is next in line has lost its place.
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

// TestInspectKeepsTheBeginningOfLongNames has contenders that say a lot of themselves.
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
