package queue

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// A note makes a hand-off cost the same in a queue of ten and of a thousand.
//
// A waiter that was k-th knows k nodes ahead of it and watches one of them. When that one
// leaves because it held and released, all before it are gone. But the waiter has seen none of
// them go, and to look for them, one by one or by a listing, would cost the more the longer the
// queue. So a holder that has waited deletes its node in one transaction with a note in the
// directory's data, which is its name. A holder was the first, so the node that a note names
// has left, and so have all before it.
//
// The data of a directory may belong to another program. A note replaces only nothing or
// another note, and only the version that was seen. A waiter sees that version before the
// holder ahead of it leaves, so of two neighbours only one can leave a note. Every second
// holder does. Its successor has seen that holder itself leave.
type note struct {
	may     bool     // there was nothing or a note when we looked, and it is our turn to leave one
	version int32    // of the directory's data at that time
	evicted []string // what the data says about evictions, and must go on saying
}

// count is what a create that counts expects and what it finds: see solitude.
type count struct {
	expected solitude
	dir      *zk.Stat  // as it was right after the create; nil if that is not known
	looked   time.Time // when that was known
}

// claim is what a contender has written into its lock's record.
type claim struct {
	sent bool      // the record may say that we hold
	at   *recordAt // the record when we last saw it; nil if it may have changed since
}

// contender is a node of ours in a queue, from before it is asked for until it is certainly
// gone. It belongs to one goroutine at a time: the acquiring caller's, then the clean-up's.
// Only its OwnNode is shared, with the watch on it, the heartbeats and the hold.
type contender struct {
	session.OwnNode
	c      *Engine
	recipe *Recipe
	self   *selfWatch // nil while the node is not watched

	with []*contender // the others of the same transaction, which it leads: see newBatch
	led  bool         // it is one of the others, and its leader removes it

	replaces *contender // the transaction that creates our node deletes this one's; nil for none, and when that has happened

	group     string // the first digits of its guid; empty for random ones
	guid      string
	created   <-chan struct{} // closed when the create has its outcome, which is the next two
	createErr error
	entered   bool // the node certainly belongs to sess

	held    bool   // it was first once
	lost    bool   // its hold has ended without a release
	claim   claim  // what the lock's record says of it
	note    note   // which it leaves
	counted *count // of the create; nil if that does not count
	unread  int32  // the newest version of the node's data that we have read; -1 if it does not matter
}

func (c *Engine) newContender(r *Recipe, dir string, data []byte) *contender {
	t := &contender{c: c, recipe: r, unread: -1}
	t.Init(dir, data, r.Fixed)
	return t
}

// prefix returns what the node's name begins with. No other node's name does.
func (t *contender) prefix() string { return node.NamePrefix + t.guid }

// delay returns the lock-delay of the contender's lock, or zero for none.
func (t *contender) delay() time.Duration {
	if t.recipe.Delays {
		return t.c.Delay
	}
	return 0
}

// mark returns what the contender's guid begins with.
func (t *contender) mark() string {
	if t.delay() > 0 {
		return node.DelayMark
	}
	return node.GUIDMark
}

// isToNote reports whether we held and it is our turn to leave a note: see note.
func (t *contender) isToNote() bool {
	return t.held && t.note.may && t.recipe.exclusive() && t.c.MayNote(t.Dir, nil)
}

// writeNote returns the operation that leaves our note. There is one attempt: another holder's
// note may have come between.
func (t *contender) writeNote() *zk.SetDataRequest {
	t.note.may = false
	return &zk.SetDataRequest{Path: t.Dir, Data: node.Board{Last: t.Name, Evicted: t.note.evicted}.Encode(), Version: t.note.version}
}

// noteOfOld returns the operation that leaves the note of the node that ours takes the place of,
// nil for none. Where we expect nobody else, nobody would read it.
func (t *contender) noteOfOld() *zk.SetDataRequest {
	if t.replaces == nil || t.counted != nil || !t.replaces.isToNote() {
		return nil
	}
	return t.replaces.writeNote()
}

// watchSelf has our node watched, beginning after that time, unless it is watched already.
func (t *contender) watchSelf(after time.Duration) {
	if t.self == nil {
		t.self = newSelfWatch(t.c, &t.OwnNode, after)
		session.Yield()
	}
}

// isThere makes sure, if the node is watched, that it was there when whatever was seen so far happened.
func (t *contender) isThere(ctx context.Context) error {
	if t.self == nil {
		return nil
	}
	_, err := t.self.await(ctx)
	return err
}

// stands reports whether nothing has happened to the node, as far as it is watched.
func (t *contender) stands() bool { return !t.IsGone() && (t.self == nil || t.self.stands()) }

// whole returns the contenders that are made together with t, and t as the last.
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
func (t *contender) nodes() []*session.OwnNode {
	nodes := make([]*session.OwnNode, 0, len(t.with)+1)
	for _, x := range t.with {
		nodes = append(nodes, &x.OwnNode)
	}
	return append(nodes, &t.OwnNode)
}

// nameless returns the node's path without the number that the server appends.
func (t *contender) nameless() string { return t.Dir + "/" + t.prefix() + t.recipe.Infix }

func (t *contender) creation(data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: t.nameless(), Data: data, Acl: t.c.ACL, Flags: zk.FlagEphemeralSequential}
}
