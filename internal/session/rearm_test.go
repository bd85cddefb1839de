// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestTheChildrenOfADirectoryWhoseCounterHasEndedAreReadOneByOne(t *testing.T) {
	w, _ := aWatch(t, Set)
	require.True(t, w.isListed())
	w.view.Stat = &zk.Stat{Cversion: -2 - 5} // 2^31-1 creates, five children
	require.True(t, w.isListed(), "its data changes as ever")
	w.key.children = true
	require.False(t, w.isListed())
}

func TestWatchesThatDoNotFitIntoOneRequestAreSetByMore(t *testing.T) {
	var watches []*watch
	for range 3000 {
		watches = append(watches, &watch{key: watchKey{path: strings.Repeat("x", 100)}})
	}
	n, all := 0, 0
	for chunk := range inChunks(watches) {
		require.LessOrEqual(t, len(chunk)*104, maxWatchBytes)
		n, all = n+1, all+len(chunk)
	}
	require.Equal(t, len(watches), all)
	require.Equal(t, 3, n)
	for range inChunks(nil) {
		t.Fatal("nothing is set")
	}
	for range inChunks([]*watch{{key: watchKey{path: strings.Repeat("x", 2*maxWatchBytes)}}}) {
		n--
	}
	require.Equal(t, 2, n)
}

// Each watch is first compared with a separate read. After that, one request checks it together with others.
func TestWatchesAreCheckedTogetherFromTheirSecondCheckOn(t *testing.T) {
	r := &rearming{}
	r.sets.known = true
	w, s := aWatch(t, Set)
	w.addWaiters(1)
	watches := []*watch{w}
	round := func() (alone, together int) {
		one, many := r.due(watches)
		for _, of := range many {
			together += len(of)
		}
		return len(one), together
	}
	require.Empty(t, first(round()), "it was set a moment ago")
	alone, together := round()
	require.Equal(t, []int{1, 0}, []int{alone, together})
	w.confirm(7)
	round()
	_, many := r.due(watches)
	require.Equal(t, map[int64][]*watch{7: {w}}, many)
	r.sets.known = false
	round()
	alone, together = round()
	require.Equal(t, []int{1, 0}, []int{alone, together}, "servers may not know the request")
	s.Reattach()
	round()
	alone, together = round()
	require.Zero(t, alone+together, "it is about to be set again")
}

func first(n, _ int) []int { return make([]int, n) }
