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

// What a waiter with a lock-delay keeps of those that were ahead at first tells as much as all of them.
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

// The first contender from the back that does not appear in the record counts, unless the given one is behind it.
func TestTheNearestUnrecordedContenderIsNamed(t *testing.T) {
	in, out := recorded(2), node.Entry{Name: "x-lock-0000000009"}
	reader := node.Entry{Name: "r" + node.ReaderInfix + "0000000009", Shared: true}
	for _, c := range []struct {
		ahead initialAhead
		name  string
		want  string
	}{
		{nil, "", ""}, {in, "", ""}, {initialAhead{out}, "", out.Name}, {initialAhead{out, in[0]}, "", out.Name}, {initialAhead{out, in[0]}, in[0].Name, ""},
		{initialAhead{in[0], out}, in[0].Name, out.Name}, {initialAhead{out}, out.Name, ""}, {initialAhead{reader}, "", ""}, {initialAhead{out, reader}, "", out.Name},
	} {
		require.Equal(t, c.want, c.ahead.unrecordedBehind(c.name), "%v", c)
	}
	require.Equal(t, initialAhead{out, in[0], in[1]}, newInitialAhead([]node.Entry{in[0], out, in[0], in[1]}))
	require.Equal(t, initialAhead{reader}, newInitialAhead([]node.Entry{in[0], reader}))
}

const (
	foreignGUID = node.NamePrefix + "f3b0c442-98fc-1c14-9afb-f4c8996fb924"
	foreignRead = foreignGUID + node.ReaderInfix + "2147483647"
)

// A writer of another library that has left may have become a reader at its position, which the number of the reader does not show.
func TestAReaderTakesThePositionOfItsWriter(t *testing.T) {
	left := node.Entry{Name: "w", Czxid: 5, Owner: 1}
	reader := func(czxid, owner int64) node.Entry {
		return node.Entry{Name: foreignRead, Shared: true, Czxid: czxid, Owner: owner}
	}
	for name, c := range map[string]struct {
		left node.Entry
		of   node.Entry
		want int64
	}{
		"of the same session": {left, reader(9, 1), 5}, "of another one": {left, reader(9, 2), 9}, "older than the writer": {left, reader(3, 1), 3},
		"the writer's session is unknown": {node.Entry{Name: "w"}, reader(9, 2), 1}, "it has left": {left, reader(0, 1), 0},
		"a writer": {left, node.Entry{Name: foreignGUID + node.WriterInfix + "2147483647", Czxid: 9, Owner: 1}, 9},
		"of ours":  {left, node.Entry{Name: node.NamePrefix + node.NewGUID(node.GUIDMark) + node.ReaderInfix + "2147483647", Shared: true, Czxid: 9, Owner: 1}, 9},
	} {
		n := nearest{replaced: []node.Entry{c.left}}
		n.positionReplaced([]*node.Entry{&c.of})
		require.Equal(t, c.want, c.of.Czxid, name)
	}
}

func TestALeftWriterOfAnotherLibraryMakesAPlaceUnsure(t *testing.T) {
	entry := func(name string) node.Entry {
		e, ok := node.ParseEntry(name)
		require.True(t, ok)
		return e
	}
	ours := node.NamePrefix + node.NewGUID(node.GUIDMark)
	plain, tied := entry(foreignGUID+node.WriterInfix+"0000000001"), entry(foreignGUID+node.WriterInfix+"2147483647")
	others := []node.Entry{entry(ours + node.WriterInfix + "2147483647"), entry(foreignRead), entry(ours + node.LockInfix + "0000000001")}
	n := &nearest{window: 4, ahead: append(others, plain, tied)}
	for _, e := range others {
		n.remove(e)
		n.remove(e)
		require.False(t, n.unsure)
	}
	require.Equal(t, 1, n.others())
	n.remove(plain)
	require.True(t, n.unsure)
	require.Empty(t, n.replaced)
	n.beginListing()
	require.False(t, n.unsure)
	n.remove(tied)
	require.True(t, n.unsure)
	require.Equal(t, []node.Entry{tied}, n.replaced)
	require.Empty(t, n.ahead)

	n.beyond = 1
	n.beginListing()
	require.Equal(t, 8, n.window)
	n.keepAll()
	n.selectBlockers(node.AfterAll, recorded(50))
	require.Len(t, n.ahead, 50)
	n.beyond = 3
	n.dropUpTo(1)
	require.Len(t, n.ahead, 48)
	require.Zero(t, n.beyond)
}
