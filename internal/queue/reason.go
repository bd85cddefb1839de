// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/lease"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// A progress says what one acquire waits for now. The acquire's goroutine sets it; Client.String and
// the other goroutines of a cohort read it. All attempts of the acquire share it. The zero value is
// ready for use.
type progress struct {
	mu     sync.Mutex       // guards the fields below
	begun  time.Time        // when the acquire first had a reason; zero before
	own    *session.OwnNode // our node in the queue, which has a name; nil before the first reason
	reason reason           // nil while the acquire waits only for a connection or for a reply
}

// A reason is what an acquire waits for. Its text follows "waited for".
type reason interface{ String() string }

// blockingContender is the reason of a contender that waits for another one.
type blockingContender struct {
	others int    // how many contenders block it in addition to the one that it watches
	name   string // of the node that it watches
	data   []byte // of that node; nil if it was not read yet
}

// String describes the contender by its owner or, for other libraries, by its node's name.
func (b blockingContender) String() string {
	by := b.name
	if o, ok := node.ReadOwner(b.data); ok {
		by = o.String()
	}
	if b.others > 0 {
		by += fmt.Sprintf(" and %d more", b.others)
	}
	return node.Printable(by)
}

// missingPermits is the reason of a caller that is first in the queue for permits.
type missingPermits struct{ wanted, free, limit int }

func (l missingPermits) String() string {
	noun := "permits"
	if l.wanted == 1 {
		noun = "permit"
	}
	return fmt.Sprintf("%d %s, first in the queue: %d of %d are free", l.wanted, noun, l.free, l.limit)
}

// pendingDelay is the reason of a contender that waits for the lock-delay to pass.
type pendingDelay struct {
	lost  string // the node of the hold that was lost
	until time.Time
}

func (d pendingDelay) String() string {
	return fmt.Sprintf("the lock-delay after %s was lost, first in the queue: %v remaining", node.Printable(d.lost), time.Until(d.until).Round(time.Millisecond))
}

// pendingProof is the reason of a contender that waits until its lease proves that its session lives.
type pendingProof struct{ lease *lease.Lease }

func (u pendingProof) String() string {
	return fmt.Sprintf("proof that its session is alive, first in the queue; %s: %v", u.lease.Replies(), u.lease)
}

// pendingReply is the reason of a contender that no other contender blocks and that waits for a reply.
type pendingReply struct{}

func (pendingReply) String() string { return "a reply from the servers, first in the queue" }

// set sets the reason. own is the contender's node; an attempt is known by the first one, which for
// permits is the node in the queue.
func (pr *progress) set(own *session.OwnNode, r reason) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.begun.IsZero() {
		pr.begun = time.Now()
	}
	if pr.own == nil {
		pr.own = own
	}
	pr.reason = r
}

// becomeFirst replaces the reason, if there is one, when no contender blocks the acquire any longer.
func (pr *progress) becomeFirst() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.reason != nil {
		pr.reason = pendingReply{}
	}
}

// clear is called before another attempt.
func (pr *progress) clear() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.own, pr.reason = nil, nil
}

// text returns what the acquire waits for, or "" if that is only a connection or a reply.
func (pr *progress) text() string {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.reason == nil {
		return ""
	}
	return pr.reason.String()
}

// line returns what Client.String shows of the acquire, or "" if the acquire has no node.
func (pr *progress) line() string {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.own == nil {
		return ""
	}
	return fmt.Sprintf("%s has waited %v for %v, %v", pr.own.Path(), time.Since(pr.begun).Round(time.Millisecond), pr.reason, pr.own.Sess.Lease)
}

// acquires are the acquires of a client that wait. The zero value is ready for use.
type acquires struct {
	mu   sync.Mutex
	live map[*progress]struct{} // guarded by mu
}

// add registers pr until remove is called.
func (ac *acquires) add(pr *progress) {
	ac.mu.Lock()
	defer ac.mu.Unlock()
	if ac.live == nil {
		ac.live = map[*progress]struct{}{}
	}
	ac.live[pr] = struct{}{}
}

func (ac *acquires) remove(pr *progress) {
	ac.mu.Lock()
	defer ac.mu.Unlock()
	delete(ac.live, pr)
}

// lines returns a line for each waiting acquire.
func (ac *acquires) lines() []string {
	ac.mu.Lock()
	all := slices.Collect(maps.Keys(ac.live))
	ac.mu.Unlock()
	var lines []string
	for _, pr := range all {
		if line := pr.line(); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// refusals are our nodes that servers refuse to delete. The zero value is ready for use.
type refusals struct {
	mu   sync.Mutex
	live map[*refusal]struct{} // guarded by mu
}

// A refusal never changes.
type refusal struct {
	node  string
	since time.Time
	err   error
}

// add registers a refusal until remove is called with it.
func (rf *refusals) add(node string, err error) *refusal {
	r := &refusal{node, time.Now(), err}
	rf.mu.Lock()
	defer rf.mu.Unlock()
	if rf.live == nil {
		rf.live = map[*refusal]struct{}{}
	}
	rf.live[r] = struct{}{}
	return r
}

func (rf *refusals) remove(r *refusal) {
	rf.mu.Lock()
	defer rf.mu.Unlock()
	delete(rf.live, r)
}

// lines returns a line for each node.
func (rf *refusals) lines() []string {
	rf.mu.Lock()
	defer rf.mu.Unlock()
	var lines []string
	for r := range rf.live {
		lines = append(lines, fmt.Sprintf("%s cannot be deleted since %v: %v", r.node, time.Since(r.since).Round(time.Millisecond), r.err))
	}
	return lines
}
