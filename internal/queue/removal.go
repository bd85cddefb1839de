// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/zklock-go/zklock/internal/node"

// removal describes what a contender leaves behind when its node is deleted.
type removal struct {
	held   bool  // it was first in the queue
	lost   bool  // its hold ended without a release
	unread int32 // the newest version of the node's data that we have read; -1 if it does not matter
	note   *note // the note to write in the directory's data, if it was first; nil if there is none
}

// A note makes the cost of a hand-off independent of the length of the queue.
//
// A waiter that was k-th knows k nodes ahead of it and watches one of them. When that one leaves
// because it held and released, all nodes before it are gone. But the waiter has not seen them go,
// and checking them, one by one or with a listing, would cost more the longer the queue is. So a
// holder that has waited deletes its node in one transaction with a note in the directory's data,
// which is the name of the node. A holder was the first in the queue, so the node that a note names
// has left, and so have all before it.
//
// The data of a directory may belong to another program. A note replaces only empty data or another
// note, and only the version that was seen. A waiter sees that version before the holder ahead of
// it leaves, so of two neighbors only one can write a note. Every second holder does; its
// successor has seen that holder itself leave.
type note struct {
	version int32           // of the directory's data, when it was empty or a note
	evicted []node.Eviction // what the data says about evictions, which the note must preserve
}

// planNote decides whether the node writes a note if it was first, over the given version of the
// directory's data.
func (re *removal) planNote(may bool, version int32, evicted []node.Eviction) {
	re.note = nil
	if may {
		re.note = &note{version, evicted}
	}
}

// takeNote returns the note, which is written now, and clears it.
func (re *removal) takeNote() *note {
	n := re.note
	re.note = nil
	return n
}

// writtenRecord tracks what a contender has written in its lock's record.
type writtenRecord struct {
	sent      bool      // the record may say that we hold
	at        *recordAt // the record when we last saw it; nil if it may have changed since
	isAssumed bool      // at is not read, but assumed: see waiter.verify
	isNeeded  bool      // another contender may need the record of our release: see released
}

// fateRefused handles the refusal of the operations that releaseRecord returned. moved means that
// the record has changed; otherwise another attempt makes no sense.
func (c *writtenRecord) wasRefused(moved bool) {
	c.at = nil
	c.sent = c.sent && moved
}
