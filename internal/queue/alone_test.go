// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"github.com/zklock-go/zklock/internal/session"
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
		"others have come":                 {before: func(c *Engine) { were(c); c.recentlyShared.put("/a", struct{}{}) }},
		"a node of ours is leaving":        {before: func(c *Engine) { were(c); c.deleting.add("/a", 1) }},
		"writing was refused": {before: func(c *Engine) {
			were(c)
			c.Unnoted.MayNote("/a", []zk.MultiResponse{{}, {Error: zk.ErrNoAuth}})
		}},
	} {
		e := engineFor(c.untrusted)
		c.before(e)
		counted := e.newContender(&c.recipe, "/a", nil).expectAlone()
		assert.Equal(t, c.counts, counted != nil, name)
		if counted != nil {
			assert.Equal(t, int32(7), counted.expected.version, name)
		}
	}
}

func TestAFailedCountShowsOtherContenders(t *testing.T) {
	here := &count{dir: new(zk.Stat)}
	for name, c := range map[string]struct {
		of   creation
		want bool
	}{
		"it did not count":              {creation{err: zk.ErrBadVersion}, false},
		"it counted, and saw others":    {creation{counted: here}, true},
		"they have written since":       {creation{counted: new(count), err: zk.ErrBadVersion}, true},
		"it was refused":                {creation{counted: new(count), err: zk.ErrNoAuth}, false},
		"nothing was seen, nor refused": {creation{counted: new(count)}, false},
	} {
		assert.Equal(t, c.want, c.of.showsOthers(), name)
		e := engineFor(false)
		e.newContender(new(Recipe), "/a", nil).noticeOthers(&c.of)
		assert.Equal(t, c.want, e.recentlyShared.has("/a", sharedLife), name)
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
	e := engineFor(false)
	long := zk.Stat{DataLength: maxRewritten + 1}
	e.newContender(new(Recipe), "/a", nil).rememberAlone(session.Listing{Names: []string{"ours"}, Stat: &long})
	assert.False(t, e.alone.has("/a", recentLife), "too much to write again")
}
