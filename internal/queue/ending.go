package queue

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// ending is what a contender leaves behind when its node is deleted.
type ending struct {
	held   bool  // it was first once
	lost   bool  // its hold has ended without a release
	unread int32 // the newest version of the node's data that we have read; -1 if it does not matter
	note   *note // which it leaves in the directory's data, if it was first; nil for none
	claim  claim // what the lock's record says of it
}

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
	version int32    // of the directory's data, when there was nothing or a note
	evicted []string // what the data says about evictions, and must go on saying
}

// wasFirst notes that nobody was ahead of the node.
func (e *ending) wasFirst() { e.held = true }

// lose notes that the hold has ended, and is not to be taken for released.
func (e *ending) lose() { e.lost = true }

// hearAll makes the removal look for a request to let go that nobody has read.
func (e *ending) hearAll() { e.unread = 0 }

// leaveNote decides whether the node leaves a note when it was first, over that version of the directory's data.
func (e *ending) leaveNote(may bool, version int32, evicted []string) {
	if e.note = nil; may {
		e.note = &note{version, evicted}
	}
}

// takeNote returns the note, which is left now.
func (e *ending) takeNote() *note {
	n := e.note
	e.note = nil
	return n
}

// hasRead notes the version of the node's data that we have read.
func (e *ending) hasRead(version int32) { e.unread = version }

// claim is what a contender has written into its lock's record.
type claim struct {
	sent bool      // the record may say that we hold
	at   *recordAt // the record when we last saw it; nil if it may have changed since
}

// saw notes the record as it is.
func (c *claim) saw(r recordAt) { c.at = &r }

// forget notes that the record may have changed.
func (c *claim) forget() { c.at = nil }

// wasRefused takes the refusal of what releaseRecord has returned. Only a record that has changed since
// is worth another attempt.
func (c *claim) wasRefused(err error) {
	c.at = nil
	c.sent = c.sent && errors.Is(err, zk.ErrBadVersion)
}

// willSend notes that the record may say from now on that we hold.
func (c *claim) willSend() { c.sent = true }

// void notes that the record says nothing of us, and never will.
func (c *claim) void() { c.sent = false }
