package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// contender is what we have in a queue, from before its node is asked for until that is certainly
// gone. It belongs to one goroutine at a time: the acquiring caller's, then the clean-up's. Only
// its nodes are shared, with the watches on them, the heartbeats and the hold.
//
// Its fields are of four phases: who it is, how its node comes to be, the batch that it leads, and
// what it leaves behind. The watch on the node, which is the member's, begins before the grant and
// ends before the node is deleted.
type contender struct {
	member
	recipe   *Recipe   // never changes
	group    string    // what guids of the batch begin with, behind the mark; empty if they have nothing in common
	batch    *batch    // what one transaction creates with the node; nil for nothing
	gate     *member   // our node in another queue, without which none of these is created; nil for none
	creation *creation // of the node; nil once the node certainly belongs to Sess
	czxid    int64     // the transaction that has made the nodes, which is the hold's token; zero if it is not known
	owns     int       // how many bytes of what the session owns are ours
	ending
}

func (c *Engine) newContender(r *Recipe, dir string, data []byte) *contender {
	t := &contender{member: member{c: c}, recipe: r, creation: new(creation), ending: ending{unread: -1}}
	t.Init(dir, data, r.Fixed)
	return t
}

// joinGroup makes guids begin with those digits, behind the mark.
func (t *contender) joinGroup(digits string) { t.group = digits }

// enteredQueue is called when the nodes certainly belong to Sess. It returns the attempt that has made them.
func (t *contender) enteredQueue() *creation {
	made := t.creation
	t.creation = nil
	return made
}

// lead makes others, which come before it in the queue, be created with the node.
func (t *contender) lead(others []*member) { t.batch = &batch{others} }

// passThrough makes the nodes be created only while that of gate exists.
func (t *contender) passThrough(gate *member) { t.gate = gate }

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

// nameless returns the path of x, a node of the contender, without the number that the server appends.
func (t *contender) nameless(x *member) string {
	return t.Dir + "/" + node.NamePrefix + x.guid + t.recipe.Infix // in one piece: prefix would make a string more
}

func (t *contender) creationOf(x *member, data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: t.nameless(x), Data: data, Acl: t.c.ACL, Flags: zk.FlagEphemeralSequential}
}

// checkMade returns an error for a path that no server makes of the one that it was asked for.
// The node is then looked for, as after a lost answer.
func (t *contender) checkMade(x *member, path string) error {
	number, ok := strings.CutPrefix(path, t.nameless(x))
	if _, isSeq := node.ParseSeq(number); !ok || !isSeq {
		return fmt.Errorf("%w: it has made %s", frames.ErrMalformed, node.Printable(path))
	}
	return nil
}

// takePath sets the name of the node that was made, by the transaction czxid.
func (t *contender) takePath(path string, czxid int64) error {
	err := t.checkMade(&t.member, path)
	if err == nil {
		t.Name, t.czxid = node.BaseName(path), czxid
	}
	return err
}

// creation is how a contender's node comes to be: by one attempt after the other, until one has made it.
type creation struct {
	replaces *contender     // whose node the transaction that creates ours deletes; nil for none, or when that has left in another way
	counted  *count         // what the attempt counts; nil if it does not
	answered *session.Latch // the attempt has its outcome: the nodes' names if it has made them, or err; nil before the first
	err      error          // set before answered
}

// count is what a create that counts expects and what it finds: see solitude.
type count struct {
	expected solitude
	dir      *zk.Stat  // as it was right after the create; nil if that is not known
	looked   time.Time // when that was known
}

// begin is called before anything is sent.
func (a *creation) begin(counted *count) {
	a.counted, a.answered, a.err = counted, new(session.Latch), nil
}

// sawDir takes the directory as the create has left it.
func (n *count) sawDir(dir *zk.Stat) { n.dir, n.looked = dir, time.Now() }

// showsOthers reports whether there were others where the attempt expected none, or they have written since.
func (a *creation) showsOthers() bool {
	return a.counted != nil && (a.counted.dir != nil || errors.Is(a.err, zk.ErrBadVersion))
}

// replace makes the transaction that creates our node delete that of old.
func (a *creation) replace(old *contender) { a.replaces = old }

// takeReplaced returns what the next attempt is to replace no more.
func (a *creation) takeReplaced() *contender {
	old := a.replaces
	a.replaces = nil
	return old
}

// end gives the attempt its outcome.
func (a *creation) end(err error) {
	a.err = err
	a.answered.Set()
}

// isToNote reports whether we held and it is our turn to leave a note: see note.
func (t *contender) isToNote() bool {
	return t.held && t.note != nil && t.recipe.exclusive() && t.c.MayNote(t.Dir, nil)
}

// writeNote returns the operation that leaves our note. There is one attempt: another holder's
// note may have come between.
func (t *contender) writeNote() *zk.SetDataRequest {
	n := t.takeNote()
	return &zk.SetDataRequest{Path: t.Dir, Data: node.DirData{Last: t.Name, Evicted: n.evicted}.Encode(), Version: n.version}
}

// noteOfOld returns the operation that leaves the note of the node that ours takes the place of,
// nil for none. Where we expect nobody else, nobody would read it.
func (t *contender) noteOfOld() *zk.SetDataRequest {
	old := t.creation.replaces
	if old == nil || t.creation.counted != nil || !old.isToNote() {
		return nil
	}
	return old.writeNote()
}
