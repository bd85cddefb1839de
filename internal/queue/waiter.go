// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/zklock-go/zklock/internal/session"
)

// waiter is a contender together with its position in the queue. Only the goroutine that acquires
// uses it; other goroutines get the contender or its node.
type waiter struct {
	*contender
	nearest      nearest       // the contenders that may block this one
	progress     *progress     // what its acquire waits for
	waited       bool          // it has waited for a contender ahead
	watched      *session.View // of a contender ahead, whose watch is requested before it is waited for; nil if there is none
	initialAhead initialAhead  // the contenders ahead in the first listing, if the lock has a delay; nil before that listing
	listed       int64         // zxid of the last write to the directory's data before the last listing
	looked       time.Time     // when our node was last known to exist
	proving      time.Duration // how long it waited, once first in the queue, until the lease was proven
}

// newWaiter returns a waiter for a node that is not yet requested. What it waits for is shown in pr.
func (en *Engine) newWaiter(r *Recipe, dir string, data []byte, pr *progress) *waiter {
	return &waiter{contender: en.newContender(r, dir, data), nearest: nearest{window: nearestKept}, progress: pr}
}

// newBatch returns a waiter for n nodes that are created together.
func (en *Engine) newBatch(r *Recipe, dir string, data []byte, n int, pr *progress) *waiter {
	wa := en.newWaiter(r, dir, data, pr)
	var others []*member
	for range n - 1 {
		others = append(others, en.newMember(r, dir, data))
	}
	if others != nil {
		wa.batch = &batch{others}
	}
	return wa
}

// becomeFirst is called when no other contender blocks this one any longer.
func (wa *waiter) becomeFirst() { wa.progress.becomeFirst() }

// setReason sets what the contender waits for now.
func (wa *waiter) setReason(r reason) {
	wa.engine.acquires.add(wa.progress)
	wa.progress.set(&wa.OwnNode, r)
}
