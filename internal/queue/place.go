// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/zklock-go/zklock/internal/session"
)

// place is a contender together with its position in the queue. Only the goroutine that acquires
// uses it; other goroutines get the contender or its node.
type place struct {
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

// newPlace returns a place for a node that is not yet requested. What it waits for is shown in pr.
func (en *Engine) newPlace(r *Recipe, dir string, data []byte, pr *progress) *place {
	return &place{contender: en.newContender(r, dir, data), nearest: nearest{window: nearestKept}, progress: pr}
}

// newBatch returns a place for n nodes that are created together.
func (en *Engine) newBatch(r *Recipe, dir string, data []byte, n int, pr *progress) *place {
	t := en.newPlace(r, dir, data, pr)
	var others []*member
	for range n - 1 {
		others = append(others, en.newMember(r, dir, data))
	}
	if others != nil {
		t.batch = &batch{others}
	}
	return t
}

// becomeFirst is called when no other contender blocks this one any longer.
func (pl *place) becomeFirst() { pl.progress.becomeFirst() }

// setReason sets what the contender waits for now.
func (pl *place) setReason(r reason) {
	pl.engine.acquires.add(pl.progress)
	pl.progress.set(&pl.OwnNode, r)
}
