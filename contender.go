package zklock

import (
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// A note makes a hand-off cost the same in a queue of ten and of a thousand.
//
// A waiter that was k-th knows k nodes ahead of it and watches one of them. When that one
// leaves because it held and released, all before it are gone, but the waiter has seen none
// of them go, and one by one or by a listing it would cost the more the longer the queue. So
// a holder that has waited deletes its node in one transaction with a note in the directory's
// data: its name. To have held it must have been the first: all before the one that a note
// names have left, and so has that one.
//
// The data of a directory may belong to somebody. A note is written only in place of
// nothing or of another note, and only over the very version that was seen. A waiter sees
// it before the holder ahead of it leaves; so that one must not leave a note if this one is
// to. Every second one does, and says that all before it have left, which its successor
// has seen leave by itself.
type note struct {
	may     bool     // nothing or a note was there when we looked, and it is our turn to leave one
	version int32    // of the directory's data, then
	evicted []string // which goes on standing there
}

// count is what a create that counts begins with and finds: see solitude.
type count struct {
	expected solitude
	dir      *zk.Stat  // as it was right after the create; nil if that is not known
	looked   time.Time // when that was known
}

// contender is a node of ours in a queue, from before it is asked for until it is
// certainly gone. One goroutine has it at any time: the acquiring caller, then the hold
// or the clean-up. What its sentinel shares with them is closed channels.
type contender struct {
	ownNode
	c        *engine
	recipe   *recipe
	sentinel *sentinel // nil while the node is not watched

	with []*contender // the others that were made in the same transaction: see newBatch
	led  bool         // it is one of those: its leader removes it

	group     string // the first digits of its guid, if those are given
	guid      string
	created   chan struct{} // closed when the create has its outcome, which is the next two
	createErr error
	entered   bool // the node is certainly of session sess

	held    bool   // it was first once
	note    note   // which it leaves
	counted *count // of the create; nil if that does not count
	unread  int32  // the version of the node's data behind which nobody has asked us; -1 for any
}

func (c *engine) newContender(r *recipe, dir string, data []byte) *contender {
	t := new(contender)
	t.init(c, r, dir, data)
	return t
}

func (t *contender) init(c *engine, r *recipe, dir string, data []byte) {
	t.c, t.recipe, t.unread = c, r, -1
	t.ownNode.init(dir, data, r.fixed)
}

func (t *contender) prefix() string { return namePrefix + t.guid }

// guard has our node watched, after a while, unless it is.
func (t *contender) guard(after time.Duration) {
	if t.sentinel == nil {
		t.sentinel = newSentinel(t.c, &t.ownNode, after)
		yield()
	}
}

// whole returns the contenders that t was made with, itself last.
func (t *contender) whole() []*contender {
	return append(slices.Clone(t.with), t)
}

// each yields what whole returns.
func (t *contender) each(yield func(*contender) bool) {
	for _, x := range t.with {
		if !yield(x) {
			return
		}
	}
	yield(t)
}

// nodes returns the nodes of whole.
func (t *contender) nodes() []*ownNode {
	nodes := make([]*ownNode, 0, len(t.with)+1)
	for _, x := range t.with {
		nodes = append(nodes, &x.ownNode)
	}
	return append(nodes, &t.ownNode)
}

// nameless is the node's path without the number that the server appends.
func (t *contender) nameless() string { return t.dir + "/" + t.prefix() + t.recipe.infix }

func (t *contender) creation(data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: t.nameless(), Data: data, Acl: t.c.acl, Flags: zk.FlagEphemeralSequential}
}
