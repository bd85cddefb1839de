// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

// engineFor returns an engine without a connection.
func engineFor(untrusted bool) *Engine { return &Engine{Unnoted: NewUnnoted(untrusted)} }

//zklock:promise P9.1 A19
func TestACreateCountsOnlyIfWeWereAloneBefore(t *testing.T) {
	were := func(c *Engine) { c.alone.put("/a", lastAlone{version: 7}) }
	for name, c := range map[string]struct {
		recipe    Recipe
		untrusted bool
		before    func(*Engine)
		counts    bool
	}{
		"we were alone":                    {before: were, counts: true},
		"nothing is known":                 {before: func(*Engine) {}},
		"the data is a number":             {recipe: Recipe{limited: true}, before: were},
		"what others write is not trusted": {untrusted: true, before: were},
		"others have come":                 {before: func(c *Engine) { c.alone.put("/a", lastAlone{shared: true}) }},
		"writing was refused": {before: func(c *Engine) {
			were(c)
			c.Unnoted.MayNote("/a", []zk.MultiResponse{{}, {Error: zk.ErrNoAuth}})
		}},
	} {
		e := engineFor(c.untrusted)
		c.before(e)
		co := e.newContender(&c.recipe, "/a", nil)
		expected := co.expectAlone()
		assert.Equal(t, c.counts, expected != nil, name)
		if expected != nil {
			assert.Equal(t, int32(7), expected.version, name)
			assert.Nil(t, co.expectAlone(), "one attempt has used it")
		}
	}
}

func TestAFailedCountShowsOtherContenders(t *testing.T) {
	for name, c := range map[string]struct {
		of   creation
		want bool
	}{
		"it did not count":              {creation{err: zk.ErrBadVersion}, false},
		"it counted, and saw others":    {creation{expected: new(lastAlone), dir: new(zk.Stat)}, true},
		"they have written since":       {creation{expected: new(lastAlone), err: zk.ErrBadVersion}, true},
		"it was refused":                {creation{expected: new(lastAlone), err: zk.ErrNoAuth}, false},
		"nothing was seen, nor refused": {creation{expected: new(lastAlone)}, false},
	} {
		e := engineFor(false)
		e.newContender(new(Recipe), "/a", nil).noticeOthers(&c.of)
		_, noticed := e.alone.get("/a", sharedLife)
		assert.Equal(t, c.want, noticed, name)
		assert.False(t, e.mayBeAlone("/a"), name)
	}
}

// TestAListingThatShowsOursAloneIsRemembered has directories without data, which need not be read.
//
//zklock:promise P9.1 A19
func TestAListingThatShowsOursAloneIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		names     []string
		recipe    Recipe
		untrusted bool
		want      bool
	}{
		"ours alone":                       {names: []string{"ours"}, want: true},
		"two":                              {names: []string{"ours", "another"}},
		"none":                             {},
		"the data is a number":             {names: []string{"ours"}, recipe: Recipe{limited: true}},
		"what others write is not trusted": {names: []string{"ours"}, untrusted: true},
	} {
		e := engineFor(c.untrusted)
		e.newContender(&c.recipe, "/a", nil).rememberAlone(session.Listing{Names: c.names, Stat: &zk.Stat{Version: 7}})
		s, known := e.alone.take("/a")
		assert.Equal(t, c.want, known, name)
		if known {
			assert.Equal(t, lastAlone{version: 7}, s, name)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		e := engineFor(false)
		co := e.newContender(new(Recipe), "/a", nil)
		co.noticeOthers(&creation{expected: new(lastAlone), dir: new(zk.Stat)})
		for _, remembers := range []bool{false, true} {
			co.rememberAlone(session.Listing{Names: []string{"ours"}, Stat: new(zk.Stat)})
			assert.Equal(t, remembers, e.mayBeAlone("/a"), "after a meeting")
			time.Sleep(sharedLife)
		}
	})
	e := engineFor(false)
	long := zk.Stat{DataLength: maxRewritten + 1}
	e.newContender(new(Recipe), "/a", nil).rememberAlone(session.Listing{Names: []string{"ours"}, Stat: &long})
	assert.False(t, e.alone.has("/a", recentLife), "too much to write again")
}

// TestClientsThatComeAndGoWriteLittle has two clients that each use the lock every 50 ms, and are almost always alone. An acquire takes
// two writes, to create and to delete its node. The rest are creates that were refused because the other client has written.
func TestClientsThatComeAndGoWriteLittle(t *testing.T) {
	halfTrip := func(*rand.Rand) time.Duration { return time.Millisecond / 2 }
	virtual(t, zktest.Options{Latency: halfTrip}, func(t *testing.T, srv *zktest.Server) {
		const acquires = 500
		var writes atomic.Int64
		engines := []*Engine{startEngine(t, srv, "a", nil), startEngine(t, srv, "b", nil)}
		require.NoError(t, srv.PutNode(testDir, nil))
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Op != zktest.OpGetChildren2 && !isHeartbeat(r) {
				writes.Add(1)
			}
			return zktest.Pass
		})
		var using sync.WaitGroup
		for i, e := range engines {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			using.Go(func() { // the test waits for it
				for range acquires {
					time.Sleep(time.Duration(random.ExpFloat64() * 50 * float64(time.Millisecond)))
					g, err := e.Obtain(t.Context(), wantLock(testDir))
					if assert.NoError(t, err) {
						time.Sleep(time.Millisecond)
						assert.NoError(t, outcomeOf(g, false))
					}
				}
			})
		}
		using.Wait()
		assert.Less(t, float64(writes.Load())/(2*acquires), 2.15)
	})
}
