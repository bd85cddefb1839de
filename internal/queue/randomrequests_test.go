// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/internal/node"
)

// A mix is what callers ask for in a random story.
type mix struct {
	recipes []*Recipe // those of the callers; none means permits
	delay   time.Duration
	counter int32    // the number of the first node
	foreign []string // what the nodes of other libraries have before and after the guid; the guid has dashes
	seeds   int
}

func delayed(r *Recipe) *Recipe {
	d := *r
	d.TakesDelay = true
	return &d
}

var plainLock = &Recipe{Name: "mutex", Infix: node.LockInfix, Rule: node.AfterAll}

// TestRandomStoriesSendTheSame plays stories that the seed decides: callers come, try, give up, release, replace their nodes and lose them, and
// nodes of other libraries come and go.
func TestRandomStoriesSendTheSame(t *testing.T) {
	for name, m := range map[string]mix{
		"locks":                          {recipes: []*Recipe{plainLock}, seeds: 3},
		"locks and others":               {recipes: []*Recipe{plainLock}, foreign: []string{node.LockInfix}, seeds: 2},
		"readers and writers":            {recipes: []*Recipe{testReader, testReader, testWriter}, seeds: 3},
		"readers, writers and others":    {recipes: []*Recipe{testReader, testWriter}, foreign: []string{node.WriterInfix, node.ReaderInfix}, seeds: 2},
		"locks with a delay":             {recipes: []*Recipe{testLock}, delay: 3 * time.Second, seeds: 3},
		"locks with a delay and others":  {recipes: []*Recipe{testLock}, delay: 3 * time.Second, foreign: []string{node.LockInfix}, seeds: 2},
		"readers and writers with delay": {recipes: []*Recipe{delayed(testReader), delayed(testWriter)}, delay: 3 * time.Second, seeds: 3},
		"numbers that do not tell":       {recipes: []*Recipe{testReader, testWriter}, foreign: []string{node.WriterInfix, node.ReaderInfix}, counter: math.MaxInt32 - 3, seeds: 3},
		"permits":                        {seeds: 4},
	} {
		for seed := range uint64(m.seeds) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				play(t, 8, func(e *Engine) { e.Delay = m.delay }, func(t *testing.T, s *story, e []*Engine) {
					if m.counter != 0 {
						lab.SetChildCounter(s.srv, testDir, m.counter)
					}
					c := &crowd{mix: m, story: s, engines: e, rand: rand.New(rand.NewPCG(seed, 1))}
					if m.recipes == nil {
						c.tell("resize to 3", func() { require.NoError(t, permitsOf(e[0], 3).Resize(t.Context())) })
					}
					for range 36 {
						c.act(t)
					}
					c.end(t)
				})
			})
		}
	}
}

// A crowd is the callers of a random story.
type crowd struct {
	mix
	*story
	engines []*Engine
	rand    *rand.Rand
	callers []*someone
	strange []string // the nodes of other libraries
	came    int      // how many other libraries' nodes have come
}

// someone is a caller of an engine.
type someone struct {
	caller
	by     int
	recipe *Recipe // nil for permits
}

func (m *someone) String() string { return string(rune('a' + m.by)) }

// pick returns one of the callers that hold, or one of those that wait, or nil if there is none.
func (c *crowd) pick(holds bool) *someone {
	var all []*someone
	for _, m := range c.callers {
		if _, ok := m.holds(); ok == holds {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[c.rand.IntN(len(all))]
}

// tell plays a step, and adds who holds and what the others wait for.
func (c *crowd) tell(name string, do func()) {
	c.step(name, do)
	line := &c.steps[len(c.steps)-1]
	for _, m := range c.callers {
		if _, ok := m.holds(); ok {
			*line += fmt.Sprint("; ", m, " holds")
		}
	}
	for i, e := range c.engines {
		status := e.Status()
		for j, s := range status {
			s, _, _ = strings.Cut(shortPath(s), ", lease=")
			status[j] = fmt.Sprintf("; %c%s", 'a'+i, hasWaited.ReplaceAllString(s, " waits"))
		}
		slices.Sort(status) // the names have random parts
		*line += strings.Join(status, "")
	}
}

var hasWaited = regexp.MustCompile(`\S* has waited \S+`)

// act plays the next step.
func (c *crowd) act(t *testing.T) {
	switch k := c.rand.IntN(16); {
	case k < 6 && len(c.callers) < len(c.engines):
		c.come(t)
	case k < 9:
		if m := c.pick(true); m != nil {
			c.tell(fmt.Sprint(m, " releases"), func() { c.leave(m) })
		}
	case k < 11:
		if m := c.pick(false); m != nil {
			c.tell(fmt.Sprint(m, " gives up"), func() { c.leave(m) })
		}
	case k == 11:
		c.loseNode(t)
	case k == 12:
		c.tell("time passes", func() { time.Sleep(4 * time.Second) })
	case k == 13 && c.recipes == nil:
		total := 2 + c.rand.IntN(3)
		c.tell(fmt.Sprint("resize to ", total), func() { require.NoError(t, permitsOf(c.engines[0], total).Resize(t.Context())) })
	case k == 13 && c.delay == 0:
		c.replace(t)
	case c.foreign == nil:
		c.try(t)
	case len(c.strange) < 3 && c.rand.IntN(2) == 0:
		c.strangerComes(t)
	case len(c.strange) > 0:
		i := c.rand.IntN(len(c.strange))
		c.tell("a stranger leaves", func() { require.NoError(t, c.srv.DeleteNode(c.strange[i])) })
		c.strange = slices.Delete(c.strange, i, i+1)
	}
}

func (c *crowd) want(recipe *Recipe, by int) *Want {
	return &Want{Recipe: recipe, Path: testDir, Dir: testDir, Data: node.OwnerData(string(rune('a'+by)), true)}
}

// come begins an acquire.
func (c *crowd) come(t *testing.T) {
	m := &someone{by: c.idle()}
	e := c.engines[m.by]
	var ctx context.Context
	ctx, m.end = context.WithCancel(t.Context())
	if c.recipes == nil {
		k := 1 + c.rand.IntN(2)
		c.callers = append(c.callers, m)
		c.tell(fmt.Sprint(m, " queues for ", k), func() {
			m.obtaining = later(func() (*Grant, error) { return watched(permitsOf(e, 0).Obtain(ctx, k)) })
		})
		return
	}
	m.recipe = c.recipes[c.rand.IntN(len(c.recipes))]
	c.callers = append(c.callers, m)
	c.tell(fmt.Sprint(m, " queues for ", m.recipe.Name), func() {
		m.obtaining = later(func() (*Grant, error) { return watched(e.Obtain(ctx, c.want(m.recipe, m.by))) })
	})
}

// idle returns an engine without a caller, or a negative number if there is none: the goroutines of one engine send in no certain order.
func (c *crowd) idle() int {
	var idle []int
	for i := range c.engines {
		if !slices.ContainsFunc(c.callers, func(m *someone) bool { return m.by == i }) {
			idle = append(idle, i)
		}
	}
	if len(idle) == 0 {
		return -1
	}
	return idle[c.rand.IntN(len(idle))]
}

// watched has the grant watch its nodes, as a hold does.
func watched(g *Grant, err error) (*Grant, error) {
	if err == nil {
		g.WatchSelf()
	}
	return g, err
}

// try makes an acquire that does not wait, which holds for a moment.
func (c *crowd) try(t *testing.T) {
	by := c.idle()
	if by < 0 {
		return
	}
	e, what, k := c.engines[by], "permits", 1+c.rand.IntN(2)
	obtain := func() (*Grant, error) { return permitsOf(e, 0).TryObtain(t.Context(), k) }
	if c.recipes != nil {
		recipe := c.recipes[c.rand.IntN(len(c.recipes))]
		what, k = recipe.Name, 1
		obtain = func() (*Grant, error) { return e.TryObtain(t.Context(), c.want(recipe, by)) }
	}
	var err error
	var g *Grant
	c.tell(fmt.Sprintf("%c tries %s %d", 'a'+by, what, k), func() {
		if g, err = obtain(); err == nil {
			release(t, g)
		}
	})
	c.steps[len(c.steps)-1] += fmt.Sprint("; ", err)
}

// loseNode has a third party delete the node of a caller.
func (c *crowd) loseNode(t *testing.T) {
	names := c.srv.Children(testDir)
	if c.recipes == nil {
		names = c.srv.Children(leases)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-min(len(a), 10):], b[len(b)-min(len(b), 10):]) })
	names = slices.DeleteFunc(names, func(name string) bool { return node.GUIDOf(name) == "" })
	if len(names) == 0 || c.counter != 0 { // without numbers there is no order
		return
	}
	name, dir := names[c.rand.IntN(len(names))], testDir
	if c.recipes == nil {
		dir = leases
	}
	c.tell(shortPath(name)+" is deleted", func() { require.NoError(t, c.srv.DeleteNode(dir+"/"+name)) })
	for _, m := range slices.Clone(c.callers) {
		if _, holds := m.holds(); !holds && m.isDone() {
			c.tell(fmt.Sprint(m, " ends"), func() { c.leave(m) })
		}
	}
}

// replace has a holder replace its node.
func (c *crowd) replace(t *testing.T) {
	m := c.pick(true)
	if m == nil {
		return
	}
	c.tell(fmt.Sprint(m, " replaces its node"), func() {
		m.grant.Retire()
		w := c.want(m.recipe, m.by)
		w.Replaces = m.grant
		var ctx context.Context
		ctx, m.end = context.WithCancel(t.Context())
		e := c.engines[m.by]
		m.obtaining = later(func() (*Grant, error) { return watched(e.Obtain(ctx, w)) })
	})
}

// strangerComes adds a node of another library.
func (c *crowd) strangerComes(t *testing.T) {
	dir, there := c.srv.Node(testDir)
	require.True(t, there)
	c.came++
	infix := c.foreign[c.rand.IntN(len(c.foreign))]
	path := fmt.Sprintf("%s/%s%08d-0000-0000-0000-000000000000%s%010d", testDir, node.NamePrefix, c.came, infix, dir.Creates)
	c.strange = append(c.strange, path)
	c.tell("a stranger comes with "+infix, func() { require.NoError(t, c.srv.PutNode(path, nil)) })
}

// leave ends a caller's wait or hold.
func (c *crowd) leave(m *someone) {
	m.leave()
	c.callers = slices.DeleteFunc(c.callers, func(other *someone) bool { return other == m })
}

// end has all callers leave, and looks whether anything is left.
func (c *crowd) end(t *testing.T) {
	for _, path := range c.strange {
		c.tell("a stranger leaves", func() { require.NoError(t, c.srv.DeleteNode(path)) })
	}
	for len(c.callers) > 0 {
		m := c.pick(true)
		if m == nil {
			time.Sleep(time.Second)
			continue
		}
		c.tell(fmt.Sprint(m, " releases"), func() { c.leave(m) })
	}
	time.Sleep(testTerm)
	for path := range c.srv.Tree() {
		require.NotContains(t, path, node.NamePrefix, "left")
	}
	for _, e := range c.engines {
		requireIdle(t, c.srv, e)
	}
}
