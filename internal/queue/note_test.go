// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/zktest"
)

// TestEverySecondContenderWritesANote has a queue whose front leaves one by one: of two neighbors only one writes a note.
func TestEverySecondContenderWritesANote(t *testing.T) {
	wa := func(known int) *waiter {
		p := new(waiter)
		for i := range known {
			p.nearest.ahead = append(p.nearest.ahead, node.Entry{Name: fmt.Sprint(i)})
		}
		return p
	}
	require.True(t, wa(2).isTurnToNote(-1, 0))
	require.False(t, wa(2).isTurnToNote(-1, 1), "the contender ahead writes it")
	require.True(t, wa(2).isTurnToNote(-1, 2))
	for known := 1; known <= 4; known++ {
		for named := range known {
			mine, next := wa(known).isTurnToNote(named, 0), wa(known+1).isTurnToNote(named, 0)
			require.NotEqual(t, mine, next, "%d of %d", named, known)
			require.Equal(t, (known-named)%2 == 0, mine)
		}
	}
}

func TestANoteCountsIfItIsNewerThanTheListingAndAsOldAsAChild(t *testing.T) {
	p := &waiter{listed: 5}
	for _, c := range []struct {
		written, child int64
		timely         bool
	}{{5, 9, false}, {6, 9, true}, {6, 6, true}, {7, 6, false}, {4, 4, false}} {
		require.Equal(t, c.timely, p.isTimely(&zk.Stat{Mzxid: c.written, Pzxid: c.child}), "%+v", c)
	}
}

// The directory has data of another program: no note replaces it, and the queue moves on.
func TestDataOfOthersIsNotReplacedByANote(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		require.NoError(t, srv.PutNode(testDir, []byte("value")))
		var all []*obtaining
		for range 6 {
			all = append(all, later(func() (*Grant, error) { return lockIn(e)(t.Context()) }))
			time.Sleep(time.Second)
		}
		for _, o := range all {
			o.release(t)
			time.Sleep(time.Second)
			n, _ := srv.Node(testDir)
			require.Equal(t, "value", string(n.Data))
		}
	})
}
