// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
)

// queueOf reads a queue from words like "1" (session 1 holds), "-2" (session 2 waits), "r1" (it reads), "p-2" (it waits for a permit).
func queueOf(t *testing.T, path, words string) *operate.Queue {
	q := &operate.Queue{Path: path}
	for i, word := range strings.Fields(words) {
		who := zklock.Contender{Node: fmt.Sprintf("%s/%d", path, i), Kind: operate.KindLock, Holds: true}
		for prefix, kind := range map[string]string{"r": operate.KindRead, "p": operate.KindPermit} {
			if rest, ok := strings.CutPrefix(word, prefix); ok {
				word, who.Kind = rest, kind
			}
		}
		_, err := fmt.Sscan(word, &who.Session)
		require.NoError(t, err)
		if who.Session < 0 {
			who.Session, who.Holds = -who.Session, false
		}
		q.Contenders = append(q.Contenders, who)
	}
	return q
}

// inWords writes cycles as "1 waits at /a, 2 waits at /b".
func inWords(found []Cycle) string {
	var all []string
	for _, c := range found {
		var steps []string
		for _, s := range c {
			word := fmt.Sprintf("%d waits at %s", s.Waits.Session, s.Path)
			if s.Parallel {
				word += " and elsewhere"
			}
			steps = append(steps, word)
		}
		all = append(all, strings.Join(steps, ", "))
	}
	return strings.Join(all, "; ")
}

//zklock:promise P19.9
func TestOnlyCyclesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		queues []string
		want   string
	}{
		"two sessions":                        {[]string{"1 -2", "2 -1"}, "1 waits at /b, 2 waits at /a"},
		"three sessions":                      {[]string{"1 -2", "2 -3", "3 -1"}, "1 waits at /c, 3 waits at /b, 2 waits at /a"},
		"two cycles":                          {[]string{"1 -2", "2 -1", "3 -4", "4 -3"}, "1 waits at /b, 2 waits at /a; 3 waits at /d, 4 waits at /c"},
		"others that wait for it are no part": {[]string{"1 -2 -3", "2 -1", "3 -4"}, "1 waits at /b, 2 waits at /a"},
		"behind one that waits itself":        {[]string{"9 -1 -2", "2 -9"}, "2 waits at /a, 9 waits at /b"},
		"one that only waits ahead":           {[]string{"8 -1 -2", "2 -1"}, ""},
		"a queue":                             {[]string{"1 -2 -3 -4"}, ""},
		"a line":                              {[]string{"1 -2", "2 -3", "3 -4"}, ""},
		"the same order":                      {[]string{"1 -2", "1"}, ""},
		"one session's goroutines":            {[]string{"1 -1", "1 -1"}, ""},
		"through goroutines of one session":   {[]string{"1 -2", "2 -1", "3 -1"}, "1 waits at /b and elsewhere, 2 waits at /a"},
		"readers do not wait for readers":     {[]string{"r1 r-2", "2 -1"}, ""},
		"a reader waits for a writer":         {[]string{"1 r-2", "2 -1"}, "1 waits at /b, 2 waits at /a"},
		"a reader behind a waiting writer":    {[]string{"r3 -1 r-2", "2 -3"}, "1 waits at /a, 3 waits at /b, 2 waits at /a"},
		"a writer waits for every reader":     {[]string{"r1 r2 -3", "3 -2"}, "2 waits at /b, 3 waits at /a"},
		"any permit will do":                  {[]string{"p1 p4 p-2", "2 -1"}, ""},
		"no permit will come":                 {[]string{"p1 p4 p-2", "2 -1", "2 -4"}, "1 waits at /b, 2 waits at /a"},
		"a permit's queue has an order":       {[]string{"p4 p-1 p-2", "2 -4"}, "2 waits at /a, 4 waits at /b"},
		"a node that no session ends":         {[]string{"0 -1", "1 -2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var queues []*operate.Queue
			for i, words := range c.queues {
				queues = append(queues, queueOf(t, "/"+string(rune('a'+i)), words))
			}
			assert.Equal(t, c.want, inWords(Cycles(queues)))
		})
	}
}

// What was put together from different times is not there a second time with the same nodes.
//
//zklock:promise P19.9
func TestOnlyACycleThatIsFoundTwiceIsShown(t *testing.T) {
	first := Cycles([]*operate.Queue{queueOf(t, "/a", "1 -2"), queueOf(t, "/b", "2 -1")})
	require.Len(t, first, 1)
	assert.Len(t, InBoth(first, first), 1)
	later := Cycles([]*operate.Queue{queueOf(t, "/a", "3 1 -2"), queueOf(t, "/b", "2 -1")})
	require.Len(t, later, 1)
	assert.Empty(t, InBoth(first, later), "with other nodes")
	assert.Empty(t, InBoth(first, nil))
}

// naive returns the nodes of waits that are stuck, each asked of all that are ahead of it.
func naive(queues []*operate.Queue) map[string]bool {
	g := &graph{of: map[int64][]*wait{}, with: map[string]*wait{}}
	for _, q := range queues {
		for _, w := range waitsIn(q) {
			w.each = nil
			for _, a := range w.ahead {
				if blocks(a, w.who) {
					w.each = append(w.each, a)
				}
			}
			g.all, g.of[w.who.Session], g.with[w.who.Node] = append(g.all, w), append(g.of[w.who.Session], w), w
		}
	}
	for g.loosen() {
	}
	return stuck(g)
}

func stuck(g *graph) map[string]bool {
	nodes := map[string]bool{}
	for _, w := range g.all {
		if w.stuck {
			nodes[w.who.Node] = true
		}
	}
	return nodes
}

// What is left out because nearer waiters stand for it changes nothing.
func TestNearestWaitersRepresentAllAhead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 5_000 {
		var queues []*operate.Queue
		for p := range 2 + random.IntN(3) {
			kind := []string{"", "r", "p"}[random.IntN(3)]
			var words []string
			waits := false
			for range 1 + random.IntN(5) {
				word := fmt.Sprint(random.IntN(5))
				if waits = waits || len(words) > 0 && random.IntN(2) == 0; waits {
					word = "-" + word
				}
				if kind == "p" || kind == "r" && random.IntN(2) == 0 {
					word = kind + word
				}
				words = append(words, word)
			}
			queues = append(queues, queueOf(t, "/"+string(rune('a'+p)), strings.Join(words, " ")))
		}
		want := naive(queues)
		require.Equal(t, want, stuck(newGraph(queues)))
		require.Equal(t, want, stuck(newGraph(linked(queues))))
		if len(Cycles(queues)) > 0 {
			found++
		}
	}
	assert.Greater(t, found, 250)
}

// A queue of 10,000 is looked at once, not once for each pair.
func BenchmarkCyclesOfALongQueue(b *testing.B) {
	q := &operate.Queue{Path: "/l"}
	for i := range 10_000 {
		q.Contenders = append(q.Contenders, zklock.Contender{Node: fmt.Sprint("/l/", i), Kind: operate.KindLock, Session: int64(i + 1), Holds: i == 0})
	}
	for b.Loop() {
		Cycles([]*operate.Queue{q})
	}
}

func TestATableKnowsWhenAHoldBegan(t *testing.T) {
	start := time.Now()
	table := NewTable(start)
	q := queueOf(t, "/a", "1 -2 -3")
	l := table.Update(q, start.Add(time.Second))
	assert.True(t, l.Longest().AtLeast, "it was there before")
	assert.Equal(t, 2, table.Waiting())

	l = table.Update(queueOf(t, "/b", "4"), start.Add(time.Minute))
	assert.False(t, l.Longest().AtLeast)
	assert.Equal(t, []string{"/a", "/b"}, []string{table.Busiest()[0].Queue.Path, table.Busiest()[1].Queue.Path})

	l = table.Update(queueOf(t, "/a", "1 -2"), start.Add(time.Hour))
	assert.Equal(t, start.Add(time.Second), l.Longest().At, "still the same")
	table.Update(&operate.Queue{Path: "/a"}, start.Add(time.Hour))
	assert.Equal(t, 1, table.Len())
	assert.Nil(t, table.Lock("/a"))
}
