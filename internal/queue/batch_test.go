package queue

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// threeNodes returns a contender with a batch of three nodes that have no names yet, and what their names begin with.
func threeNodes() (*contender, []string) {
	e, r := engineFor(false), &Recipe{Infix: "-lease-"}
	e.Directories = &session.Directories{ACL: zk.WorldACL(zk.PermAll)}
	t := e.newContender(r, "/a", nil)
	t.batch = &batch{others: []*member{e.newMember(r, "/a", nil), e.newMember(r, "/a", nil)}}
	var prefixes []string
	for x := range t.each {
		x.nameAnew(nil, node.NewGUID(node.GUIDMark))
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

func TestABatchIsRecognisedByOneOfItsNodes(t *testing.T) {
	ours, p := threeNodes()
	first, last := p[0]+"-lease-0000000001", p[2]+"-lease-0000000003"
	ours.recognise([]string{last, "lock-0000000009", first})
	assert.Equal(t, []string{first, p[1] + "-lease-", last}, namesOf(ours), "the second was made and is gone: it has a name that no node has")
}

func TestABatchIsNotRecognisedByTheNodesOfOthers(t *testing.T) {
	ours, p := threeNodes()
	ours.recognise([]string{"", "lock-0000000009", p[0], p[1] + "0-lease-0000000002", p[2][:len(p[2])-1] + "-lease-0000000003"})
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
	assert.GreaterOrEqual(t, ours.c.batchSize(ours.recipe, "/a", data, len(ops)), size)
}
