// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// contender is our entry in a queue, from before its node is requested until the node is certainly
// gone. One goroutine at a time owns it: first the acquiring caller's, then the clean-up's.
// The watches, the heartbeats and the hold share its nodes, and nothing else.
//
// Its fields belong to four phases: its identity, the creation of its node, the batch that it
// leads, and its removal. The watch on the node belongs to the member; it begins before the grant
// and ends before the node is deleted.
//
// Invariants: while creation is not nil, Name may be empty although the node exists. Once it is nil,
// each member has a Name and belongs to Sess. The nodes of a batch were created together or not at
// all. The bytes in counted belong to Sess's total, until the nodes are certainly gone or another contender
// or PendingCreates counts them.
type contender struct {
	member
	recipe    *Recipe       // never changes
	group     string        // prefix of the guids of a batch, after the mark; empty if they share none
	batch     *batch        // the nodes created in one transaction with this one; nil if there are none
	queueNode *member       // our node in another queue, which must exist when these nodes are created; nil if there is none
	creation  *creation     // how the node is created; nil once the node certainly belongs to Sess
	czxid     int64         // the transaction that created the nodes, which is the hold's token; zero if unknown
	counted   int           // its bytes in the total of its session: see own
	record    writtenRecord // its line in the lock's record
	removal   removal       // conditions of its removal
	isLeft    bool          // the hub removes it: see leftovers
	isTaken   bool          // Close has removed it while its goroutine was in a function of the program; used by that goroutine only
}

func (en *Engine) newContender(r *Recipe, dir string, data []byte) *contender {
	co := &contender{member: member{engine: en}, recipe: r, creation: new(creation), removal: removal{unread: -1}}
	co.Init(dir, data, r.Fixed)
	return co
}

// lockDelay returns the lock-delay of the contender's lock, or zero if it has none.
func (co *contender) lockDelay() time.Duration {
	if co.recipe.TakesDelay {
		return co.engine.Delay
	}
	return 0
}

// mark returns the prefix of the contender's guid.
func (co *contender) mark() string {
	if co.lockDelay() > 0 {
		return node.DelayMark
	}
	return node.GUIDMark
}

// nameless returns the path of x, a node of the contender, without the number that the server
// appends.
func (co *contender) nameless(x *member) string {
	return co.Dir + "/" + node.NamePrefix + x.guid + co.recipe.Infix // one expression: calling prefix would allocate another string
}

// anyPath returns the path of our node or, if its name is unknown, the path that was requested.
func (co *contender) anyPath() string {
	if co.Name == "" {
		return co.nameless(&co.member)
	}
	return co.Path()
}

func (co *contender) creationOf(x *member, data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: co.nameless(x), Data: data, Acl: co.engine.Directories.ACL, Flags: zk.FlagEphemeralSequential}
}

// checkMade returns an error if the server returned a path that cannot come from the requested one.
// The caller then searches for the node, as after a lost reply.
func (co *contender) checkMade(x *member, path string) error {
	number, ok := strings.CutPrefix(path, co.nameless(x))
	if _, isSeq := node.ParseSeq(number); !ok || !isSeq {
		return fmt.Errorf("%w: unexpected path of created node %s", frames.ErrMalformed, node.Printable(path))
	}
	return nil
}

// takePath sets the name and the czxid of the created node.
func (co *contender) takePath(path string, czxid int64) error {
	err := co.checkMade(&co.member, path)
	if err == nil {
		co.Name, co.czxid = node.BaseName(path), czxid
	}
	return err
}

// creation describes how a contender's node is created: attempts are made one after another until
// one succeeds.
type creation struct {
	replaces *contender     // its node is deleted by the transaction that creates ours; nil if there is none or it was removed in another way
	expected *lastAlone     // the expected state of the directory; nil if the attempt does not count
	dir      *zk.Stat       // the directory right after a create that counts; nil if unknown
	looked   time.Time      // when dir was received
	answered *session.Latch // set when the outcome of the attempt is known: the nodes have names, or err is set; nil before the first attempt
	err      error          // set before answered
}

// begin starts an attempt. It is called before anything is sent.
func (a *creation) begin(expected *lastAlone) {
	*a = creation{replaces: a.replaces, expected: expected, answered: new(session.Latch)}
}

// takeReplaced returns the contender to replace, and clears it, so that the next attempt replaces
// none.
func (a *creation) takeReplaced() *contender {
	old := a.replaces
	a.replaces = nil
	return old
}

// end records the outcome of the attempt.
func (a *creation) end(err error) {
	a.err = err
	a.answered.Set()
}

// isToNote reports whether we held the lock and should write a note: see note.
func (co *contender) isToNote() bool {
	return co.removal.held && co.removal.note != nil && co.recipe.exclusive() && co.engine.Unnoted.MayNote(co.Dir, nil)
}

// writeNote returns the operation that writes our note. It is tried only once, because another
// holder may have written its note in the meantime.
func (co *contender) writeNote() *zk.SetDataRequest {
	n := co.removal.takeNote()
	return &zk.SetDataRequest{Path: co.Dir, Data: node.DirData{Last: co.Name, Evicted: n.evicted}.Encode(), Version: n.version}
}

// noteOfOld returns the operation that writes the note of the node that ours replaces, or nil if
// there is none. If we expect no other contenders, nobody would read the note.
func (co *contender) noteOfOld() *zk.SetDataRequest {
	old := co.creation.replaces
	if old == nil || co.creation.expected != nil || !old.isToNote() {
		return nil
	}
	return old.writeNote()
}
