// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/node"
)

// someQueue returns n contenders in their order, of all kinds.
func someQueue(rnd *rand.Rand, n int) (entries []node.Entry) {
	infixes := []string{node.LockInfix, node.ReaderInfix, node.WriterInfix}
	for i := range n {
		mark := node.GUIDMark
		if rnd.IntN(2) == 0 {
			mark = node.DelayMark
		}
		name := fmt.Sprintf("%s%s%s%010d", node.NamePrefix, node.NewGUID(mark), infixes[rnd.IntN(3)], i)
		e, _ := node.ParseEntry(name)
		entries = append(entries, e)
	}
	return entries
}

// inTheWay returns those that a rule makes a newcomer wait for.
func inTheWay(rule node.Rule, ahead []node.Entry) (names []string) {
	for i := rule(ahead); i >= 0; i = rule(ahead[:i]) {
		names = append(names, ahead[i].Name)
	}
	return names
}

// Whatever the queue, the nearest of those in the way are known by name, and whether there are more.
func TestAPlaceKnowsTheNearestAndWhetherThereAreMore(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		ahead := someQueue(rnd, rnd.IntN(12))
		for name, rule := range map[string]node.Rule{"mutex": node.AfterAll, "reader": node.AfterExclusive} {
			p := &nearest{window: 1 + rnd.IntN(6)}
			p.selectBlockers(rule, ahead)
			want := inTheWay(rule, ahead)
			require.Equal(t, len(ahead), p.seen)
			require.Len(t, p.ahead, min(p.window, len(want)), name)
			for i, e := range p.ahead {
				require.Equal(t, want[len(p.ahead)-1-i], e.Name, name)
			}
			more := len(want) - len(p.ahead)
			require.Equal(t, more > 0, p.beyond > 0, name)
			require.GreaterOrEqual(t, p.beyond, more, name)
		}
	}
}

// If no known contender blocks us and there are more, each listing shows twice as many, so the number of listings is bounded.
func TestAPlaceWhoseNearestHaveLeftKeepsMore(t *testing.T) {
	p := &nearest{window: 2}
	queue := someQueue(rand.New(rand.NewPCG(1, 2)), 100)
	listings := 0
	for p.selectBlockers(node.AfterAll, queue); p.beyond > 0; p.selectBlockers(node.AfterAll, queue) {
		p.growWindow()
		require.Equal(t, 2<<listings, p.window, "some are left")
		p.ahead = nil
		p.growWindow()
		listings++
		require.Less(t, listings, 10)
	}
	p.ahead = nil
	p.growWindow()
	require.Equal(t, 128, p.window, "there are no more")
}

// What a place with a lock-delay keeps of those that were ahead at first tells as much as all of them.
func TestInitialAheadFindsTheUnrecordedContender(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		ahead := someQueue(rnd, rnd.IntN(8))
		kept := newInitialAhead(ahead)
		require.Equal(t, len(ahead) > 0, len(kept) > 0)
		require.NotNil(t, kept)
		for _, e := range append(ahead, node.Entry{Name: "another"}) {
			require.Equal(t, initialAhead(ahead).unrecordedBehind(e.Name), kept.unrecordedBehind(e.Name))
		}
	}
	require.Len(t, newInitialAhead(recorded(50)), 1, "all stand in the record")
}

// recorded returns n contenders that stand in the lock's record when they hold.
func recorded(n int) (entries []node.Entry) {
	for i := range n {
		entries = append(entries, node.Entry{Name: node.NamePrefix + node.NewGUID(node.DelayMark), Seq: int32(i)})
	}
	return entries
}
