// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

// A story is what the engines of a test send, one line for each step of the test.
type story struct {
	srv   *zktest.Server
	steps []string
	mu    sync.Mutex
	sent  []string // since the last step; guarded by mu
}

var numbered = regexp.MustCompile(`_c_[0-9a-f]{32}-(lock-|lease-|__READ__|__WRIT__)(\d*)`)

// shortPath names a contender by its number, and a path by its last element below the lock's.
func shortPath(path string) string {
	path = strings.TrimPrefix(path, testDir)
	path = numbered.ReplaceAllStringFunc(path, func(name string) string {
		digits := numbered.FindStringSubmatch(name)[2]
		return "#" + strings.TrimLeft(digits, "0")
	})
	return path
}

func newStory(srv *zktest.Server) *story {
	s := &story{srv: srv}
	names := map[zktest.Op]string{
		zktest.OpCreate: "create", zktest.OpCreateContainer: "make", zktest.OpDelete: "delete", zktest.OpExists: "stat", zktest.OpGetData: "get",
		zktest.OpSetData: "set", zktest.OpGetChildren2: "list", zktest.OpCheck: "check",
	}
	srv.Intercept(func(r *zktest.Request) zktest.Verdict {
		if isHeartbeat(r) {
			return zktest.Pass
		}
		ops, paths := r.Ops, r.Paths
		if r.Op != zktest.OpMulti {
			ops, paths = []zktest.Op{r.Op}, []string{r.Path}
		}
		var parts []string
		for i, op := range ops {
			parts = append(parts, names[op]+" "+shortPath(paths[i]))
		}
		line := r.Client + " " + strings.Join(parts, "+")
		if r.Watch {
			line += "!"
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, line)
		return zktest.Pass
	})
	return s
}

// step runs a step and records what is sent until nothing happens any more.
func (s *story) step(name string, do func()) {
	do()
	time.Sleep(200 * time.Millisecond)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.sent) // requests of several goroutines have no certain order
	s.steps = append(s.steps, name+": "+strings.Join(s.sent, ", "))
	s.sent = nil
}

var update = flag.Bool("update", false, "rewrite what the tests send")

// play plays a story with the engines a, b and so on, and compares what they send with the file of the test in testdata/requests. Run the test
// with -update to rewrite the file.
func play(t *testing.T, engines int, configure func(*Engine), story func(t *testing.T, s *story, e []*Engine)) {
	// No two engines get a reply at the same instant.
	apart := func(_ *rand.Rand, client string, _ int) time.Duration {
		return time.Duration(client[0]-'a'+1) * 97 * time.Microsecond
	}
	virtual(t, lab.With(zktest.Options{TickTime: time.Second}, lab.Options{LatencyOf: apart}), func(t *testing.T, srv *zktest.Server) {
		require.NoError(t, srv.PutNode(testDir, nil))
		var e []*Engine
		for i := range engines {
			e = append(e, startEngine(t, srv, string(rune('a'+i)), configure))
		}
		s := newStory(srv)
		story(t, s, e)
		text, file := strings.Join(s.steps, "\n")+"\n", filepath.Join("testdata", "requests", t.Name()+".txt")
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), text)
	})
}

var (
	testReader = &Recipe{Name: "read", Infix: node.ReaderInfix, Rule: node.AfterExclusive, Shared: true, Passes: node.IsDowngraded}
	testWriter = &Recipe{Name: "write", Infix: node.WriterInfix, Rule: node.AfterAll}
)

func (en *Engine) wants(t *testing.T, r *Recipe) *obtaining {
	return later(func() (*Grant, error) {
		return en.Obtain(t.Context(), &Want{Recipe: r, Path: testDir, Dir: testDir, Data: node.OwnerData("test", true)})
	})
}

func TestOneClientSendsTwoRequestsAnAcquire(t *testing.T) {
	play(t, 1, nil, func(t *testing.T, s *story, e []*Engine) {
		for range 3 {
			var o *obtaining
			s.step("acquire", func() { o = e[0].wants(t, testLock) })
			s.step("release", func() { o.release(t) })
		}
		require.NoError(t, s.srv.PutNode(testDir, []byte("data of others")))
		time.Sleep(recentLife)
		for range 2 {
			var o *obtaining
			s.step("acquire", func() { o = e[0].wants(t, testLock) })
			s.step("watch", func() { o.grant.WatchSelf(); time.Sleep(aloneGrace) })
			s.step("release", func() { o.release(t) })
		}
	})
}

func TestAHandOffCostsTheSameInEveryQueue(t *testing.T) {
	play(t, 6, nil, func(t *testing.T, s *story, e []*Engine) {
		var all []*obtaining
		for i, x := range e {
			s.step("queue", func() { all = append(all, x.wants(t, testLock)) })
			require.Equal(t, i == 0, session.IsClosed(all[i].done))
		}
		for _, o := range all {
			require.True(t, session.IsClosed(o.done))
			s.step("release", func() { o.release(t) })
		}
	})
}

func TestWaitersThatGiveUpAreNoticed(t *testing.T) {
	play(t, 5, nil, func(t *testing.T, s *story, e []*Engine) {
		var all []*obtaining
		var ends []context.CancelFunc
		for _, x := range e {
			ctx, end := context.WithCancel(t.Context())
			ends = append(ends, end)
			all = append(all, later(func() (*Grant, error) { return x.Obtain(ctx, wantLock(testDir)) }))
			time.Sleep(100 * time.Millisecond)
		}
		s.step("all queue", func() {})
		s.step("c gives up", ends[2])
		s.step("b gives up", ends[1])
		s.step("a releases", func() { all[0].release(t) })
		s.step("d releases", func() { all[3].release(t) })
		s.step("e releases", func() { all[4].release(t) })
		require.ErrorIs(t, all[1].err, context.Canceled)
		require.ErrorContains(t, all[2].err, "waited for test and 1 more")
	})
}

func TestReadersWaitForTheNearestWriter(t *testing.T) {
	play(t, 5, nil, func(t *testing.T, s *story, e []*Engine) {
		var all []*obtaining
		for i, r := range []*Recipe{testReader, testWriter, testReader, testReader, testWriter} {
			s.step(r.Name, func() { all = append(all, e[i].wants(t, r)) })
		}
		s.step("a reader leaves", func() { all[0].release(t) })
		s.step("the writer becomes a reader", func() {
			n := all[1].grant.Nodes()[0]
			sess, err := e[1].session(t.Context())
			require.NoError(t, err)
			_, err = e[1].Requests.Set(t.Context(), sess, n.Path(), node.Owner{PID: 1, Shared: true}.Encode(), 0)
			require.NoError(t, err)
		})
		require.True(t, session.IsClosed(all[2].done) && session.IsClosed(all[3].done) && !session.IsClosed(all[4].done))
		s.step("a reader tries", func() {
			g, err := e[0].TryObtain(t.Context(), &Want{Recipe: testReader, Path: testDir, Dir: testDir, Data: node.OwnerData("test", true)})
			require.EqualError(t, err, "already locked")
			require.Nil(t, g)
		})
		for _, i := range []int{3, 1, 2, 4} {
			s.step("leave", func() { all[i].release(t) })
		}
	})
}

func TestATryQueuesOnlyIfTheLockLooksFree(t *testing.T) {
	play(t, 2, nil, func(t *testing.T, s *story, e []*Engine) {
		try := func(x *Engine) (g *Grant) {
			s.step("try", func() { g, _ = x.TryObtain(t.Context(), wantLock(testDir)) })
			return g
		}
		g := try(e[0])
		require.NotNil(t, g)
		require.Nil(t, try(e[1]))
		s.step("release", func() { release(t, g) })
		g = try(e[0])
		require.NotNil(t, g)
		s.step("release", func() { release(t, g) })
		g = try(e[1])
		require.NotNil(t, g)
		s.step("release", func() { release(t, g) })
	})
}

func TestANodeIsReplacedByItsSuccessor(t *testing.T) {
	play(t, 2, nil, func(t *testing.T, s *story, e []*Engine) {
		var first, other, next *obtaining
		s.step("acquire", func() { first = e[0].wants(t, testLock) })
		replace := func(g *Grant) {
			g.Retire()
			w := wantLock(testDir)
			w.Replaces = g
			next = later(func() (*Grant, error) { return e[0].Obtain(t.Context(), w) })
		}
		s.step("replace", func() { replace(first.grant) })
		s.step("another queues", func() { other = e[1].wants(t, testLock) })
		s.step("replace", func() { replace(next.grant) })
		s.step("the other releases", func() { other.release(t) })
		s.step("the replaced node is gone", func() {
			require.NoError(t, s.srv.DeleteNode(next.grant.Nodes()[0].Path()))
			replace(next.grant)
		})
		s.step("release", func() { next.release(t) })
	})
}

func TestPermitsAreTakenInTurn(t *testing.T) {
	play(t, 4, nil, func(t *testing.T, s *story, e []*Engine) {
		var all []*obtaining
		for i, k := range []int{2, 2, 1} {
			s.step(fmt.Sprint("acquire ", k), func() { all = append(all, obtainLater(t, permitsOf(e[i], 3), k)) })
		}
		require.True(t, session.IsClosed(all[0].done) && !session.IsClosed(all[1].done))
		s.step("try 1", func() {
			_, err := permitsOf(e[3], 3).TryObtain(t.Context(), 1)
			require.EqualError(t, err, "already locked")
		})
		s.step("resize", func() { require.NoError(t, permitsOf(e[3], 4).Resize(t.Context())) })
		require.True(t, session.IsClosed(all[1].done) && !session.IsClosed(all[2].done))
		for _, o := range all {
			s.step("release", func() { o.release(t) })
		}
		var g *Grant
		s.step("try 4", func() { g, _ = permitsOf(e[3], 0).TryObtain(t.Context(), 4) })
		s.step("release", func() { release(t, g) })
	})
}

func TestTheRecordOfALockFollowsItsHolds(t *testing.T) {
	play(t, 3, func(e *Engine) { e.Delay = testDelay }, func(t *testing.T, s *story, e []*Engine) {
		var a, b, c *obtaining
		s.step("acquire", func() { a = e[0].wants(t, testLock) })
		s.step("release", func() { a.release(t) })
		s.step("acquire", func() { a = e[0].wants(t, testLock) })
		s.step("b queues", func() { b = e[1].wants(t, testLock) })
		s.step("c queues", func() { c = e[2].wants(t, testLock) })
		s.step("release", func() { a.release(t) })
		s.step("b loses its hold", func() {
			require.NoError(t, s.srv.DeleteNode(b.grant.Nodes()[0].Path()))
			require.NoError(t, outcomeOf(b.grant, true))
		})
		require.False(t, session.IsClosed(c.done))
		s.step("a tries", func() {
			_, err := e[0].TryObtain(t.Context(), wantLock(testDir))
			require.EqualError(t, err, "already locked")
		})
		s.step("the delay passes", func() { time.Sleep(testDelay) })
		s.step("c releases", func() { c.release(t) })
	})
}
