// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
	"github.com/zklock-go/zklock/zktest"
)

// threeNodes returns a contender with a batch of three nodes that have no names yet, and what their names begin with.
func threeNodes() (*contender, []string) {
	e, r := engineFor(false), &Recipe{Infix: "-lease-"}
	e.Directories = &session.Directories{ACL: zk.WorldACL(zk.PermAll)}
	t := e.newContender(r, "/a", nil)
	t.batch = &batch{others: []*member{e.newMember(r, "/a", nil), e.newMember(r, "/a", nil)}}
	var prefixes []string
	for x := range t.each {
		x.Sess, x.Name, x.guid = nil, "", node.NewGUID(node.GUIDMark)
		prefixes = append(prefixes, x.prefix())
	}
	return t, prefixes
}

func namesOf(t *contender) (names []string) {
	for x := range t.each {
		names = append(names, x.Name)
	}
	return names
}

//zklock:promise P7.5
func TestABatchIsRecognizedByOneOfItsNodes(t *testing.T) {
	ours, p := threeNodes()
	first, last := p[0]+"-lease-0000000001", p[2]+"-lease-0000000003"
	ours.findNames([]string{last, "lock-0000000009", first})
	assert.Equal(t, []string{first, p[1] + "-lease-", last}, namesOf(ours), "the second was made and is gone: it has a name that no node has")
}

//zklock:promise P5.3 P7.5
func TestABatchIsNotRecognizedByTheNodesOfOthers(t *testing.T) {
	ours, p := threeNodes()
	ours.findNames([]string{"", "lock-0000000009", p[0], p[1] + "0-lease-0000000002", p[2][:len(p[2])-1] + "-lease-0000000003"})
	assert.Equal(t, []string{"", "", ""}, namesOf(ours))
}

func TestTheSizeOfABatchIsThatOfItsRequestAtLeast(t *testing.T) {
	ours, _ := threeNodes()
	data := []byte("who")
	var ops []any
	for x := range ours.each {
		ops = append(ops, ours.creationOf(x, node.WithRevocation(data)))
	}
	size, err := node.RequestSize(ops)
	assert.NoError(t, err)
	assert.GreaterOrEqual(t, ours.engine.batchSize(ours.recipe, "/a", data, len(ops)), size)
	many := slices.Repeat(ops, 100)
	size, err = node.RequestSize(many)
	assert.NoError(t, err)
	assert.GreaterOrEqual(t, ours.engine.batchSize(ours.recipe, "/a", data, len(many)), size+10*len(many), "with the number of each name")
}

// Listings are shared by all callers that have asked for them.
func TestTheListingIsLeftAsItIsWithoutOurNodes(t *testing.T) {
	ours, p := threeNodes()
	var names []string
	for i, prefix := range p {
		names = append(names, fmt.Sprintf("%s-lease-%010d", prefix, i))
	}
	ours.findNames(names)
	ahead := node.ParseEntries(append([]string{"_c_x-lease-0000000009"}, names[:2]...))
	before := slices.Clone(ahead)
	assert.Equal(t, before[:1], ours.notOurs(ahead))
	assert.Equal(t, before, ahead)
}

func TestTheListingIsLeftAsItIsWhenNumbersDoNotShowTheOrder(t *testing.T) {
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		e := startEngine(t, srv, "a", nil)
		require.NoError(t, srv.PutNode(testDir, nil))
		lab.SetChildCounter(srv, testDir, math.MaxInt32)
		held := obtain(t, e)
		s, err := e.session(t.Context())
		require.NoError(t, err)
		wa := e.newWaiter(testLock, testDir, nil, new(progress))
		require.NoError(t, wa.enter(t.Context(), s))
		l, err := e.Requests.List(t.Context(), s, testDir)
		require.NoError(t, err)
		before := slices.Clone(l.Queue().Entries)
		own, _ := node.ParseEntry(wa.Name)
		ahead, err := wa.order(t.Context(), l.Queue(), &own)
		require.NoError(t, err)
		require.Len(t, ahead, 1)
		require.NotZero(t, ahead[0].Czxid)
		require.Equal(t, before, l.Queue().Entries)
		e.discard(t.Context(), outcome.ErrLocked, wa)
		release(t, held)
	})
}
