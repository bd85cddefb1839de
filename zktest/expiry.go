// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"container/heap"
	"time"
)

// expiryQueue orders sessions by the time to examine them. A touch does not move a
// session in the queue: the session is examined, found alive and pushed again.
type expiryQueue []expiryItem

type expiryItem struct {
	at   time.Duration
	sess *session
}

func (q expiryQueue) Len() int { return len(q) }

func (q expiryQueue) Less(i, j int) bool { return q[i].at < q[j].at }

func (q expiryQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *expiryQueue) Push(x any) { *q = append(*q, x.(expiryItem)) }

// Pop implements heap.Interface.
func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	item := (*q)[last]
	(*q)[last] = expiryItem{}
	*q = (*q)[:last]
	return item
}

func (q *expiryQueue) put(sess *session) { heap.Push(q, expiryItem{sess.wakeAt, sess}) }

// takeDue removes and returns the first item if it is due.
func (q *expiryQueue) takeDue(now time.Duration) (expiryItem, bool) {
	if q.next() > now {
		return expiryItem{}, false
	}
	return heap.Pop(q).(expiryItem), true
}

// next returns the time of the first item, or never.
func (q *expiryQueue) next() time.Duration {
	if len(*q) == 0 {
		return never
	}
	return (*q)[0].at
}
