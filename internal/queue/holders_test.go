// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/session"
)

// fakeHolder is a holder with one node.
type fakeHolder struct {
	dir     string
	sess    *session.Session
	name    string
	czxid   int64
	shared  bool
	watched bool
	node    *session.OwnNode
}

func (f *fakeHolder) at() (string, *session.Session) { return f.dir, f.sess }
func (f *fakeHolder) made() (string, int64)          { return f.name, f.czxid }
func (f *fakeHolder) isShared() bool                 { return f.shared }
func (f *fakeHolder) nodesHeld(yield func(*session.OwnNode, bool) bool) {
	if f.node == nil {
		f.node = &session.OwnNode{Dir: f.dir, Name: f.name}
	}
	yield(f.node, f.watched)
}

func TestHoldersAreKnownByDirectoryAndSession(t *testing.T) {
	s, other := new(session.Session), new(session.Session)
	a, b, c := &fakeHolder{dir: "/a", sess: s, name: "a"}, &fakeHolder{dir: "/a", sess: s, name: "b"}, &fakeHolder{dir: "/a", sess: s, name: "c"}
	elsewhere, ended := &fakeHolder{dir: "/b", sess: s}, &fakeHolder{dir: "/a", sess: other}
	var h holders
	require.Empty(t, h.others(a))
	for _, x := range []holder{a, b, c, elsewhere, ended} {
		h.add(x)
	}
	require.Equal(t, []holder{b, c}, h.others(a))
	require.Equal(t, []holder{a, b, c}, h.others(&fakeHolder{dir: "/a", sess: s}), "one that does not hold")
	require.Empty(t, h.others(elsewhere))
	for _, x := range []holder{b, elsewhere, ended} {
		h.remove(x)
		h.remove(x)
	}
	require.Equal(t, []holder{c}, h.others(a))
	h.remove(c)
	require.Equal(t, []holder{a}, h.others(c))
	h.remove(a)
	require.Empty(t, h.of)
}

func TestAHoldThatIsMissingFromAListingEnds(t *testing.T) {
	s := new(session.Session)
	for name, c := range map[string]struct {
		other, own fakeHolder
		listed     []string
		ends       bool
	}{
		"older and missing":                   {fakeHolder{name: "x-lock-0000000005", czxid: 4}, fakeHolder{name: "x-lock-0000000001", czxid: 5}, []string{"y"}, true},
		"older and there":                     {fakeHolder{name: "x-lock-0000000005", czxid: 4}, fakeHolder{name: "x-lock-0000000001", czxid: 5}, []string{"x-lock-0000000005"}, false},
		"younger":                             {fakeHolder{name: "x-lock-0000000000", czxid: 6}, fakeHolder{name: "x-lock-0000000001", czxid: 5}, nil, false},
		"of the same transaction":             {fakeHolder{name: "x-lock-0000000000", czxid: 5}, fakeHolder{name: "x-lock-0000000001", czxid: 5}, nil, false},
		"older by its number, zxid unknown":   {fakeHolder{name: "x-lock-0000000000", czxid: 6}, fakeHolder{name: "x-lock-0000000001"}, nil, true},
		"younger by its number, zxid unknown": {fakeHolder{name: "x-lock-0000000002", czxid: 6}, fakeHolder{name: "x-lock-0000000001"}, nil, false},
		"numbers do not tell":                 {fakeHolder{name: "a-lock-2147483647", czxid: 6}, fakeHolder{name: "x-lock-2147483647"}, nil, false},
	} {
		c.other.sess, c.own.sess = s, s
		var h holders
		h.add(&c.other)
		h.add(&c.own)
		for range c.other.nodesHeld {
		}
		h.endMissing(&c.own, func(name string) bool { return slices.Contains(c.listed, name) })
		require.Equal(t, c.ends, c.other.node.IsGone(), name)
	}
}

func TestTheUnwatchedNodesOfHoldersThatExcludeUsAreChecked(t *testing.T) {
	s := new(session.Session)
	for name, c := range map[string]struct {
		others []fakeHolder
		own    fakeHolder
		want   []string
	}{
		"no other holder":               {nil, fakeHolder{name: "own"}, nil},
		"another holds":                 {[]fakeHolder{{name: "a"}}, fakeHolder{name: "own"}, []string{"a", "own"}},
		"it is watched":                 {[]fakeHolder{{name: "a", watched: true}}, fakeHolder{name: "own"}, []string{"own"}},
		"ours is watched":               {[]fakeHolder{{name: "a"}}, fakeHolder{name: "own", watched: true}, []string{"a"}},
		"both are watched":              {[]fakeHolder{{name: "a", watched: true}}, fakeHolder{name: "own", watched: true}, nil},
		"a reader and a writer":         {[]fakeHolder{{name: "a", shared: true}}, fakeHolder{name: "own"}, []string{"a", "own"}},
		"a writer and a reader":         {[]fakeHolder{{name: "a"}}, fakeHolder{name: "own", shared: true}, []string{"a", "own"}},
		"two readers":                   {[]fakeHolder{{name: "a", shared: true}}, fakeHolder{name: "own", shared: true}, nil},
		"a reader and a writer, and us": {[]fakeHolder{{name: "a", shared: true}, {name: "b"}}, fakeHolder{name: "own", shared: true}, []string{"b", "own"}},
	} {
		var h holders
		for i := range c.others {
			c.others[i].sess = s
			h.add(&c.others[i])
		}
		c.own.sess = s
		h.add(&c.own)
		var got []string
		for _, n := range h.unwatched(&c.own) {
			got = append(got, n.Name)
		}
		require.Equal(t, c.want, got, name)
		if len(got) > 0 && got[0] == "a" {
			c.others[0].node.MarkGone(nil)
			require.NotContains(t, h.unwatched(&c.own), c.others[0].node, "%s: it has ended", name)
		}
	}
}
