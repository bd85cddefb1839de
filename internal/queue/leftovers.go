// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// leftovers are the contenders of a connection whose removal nobody waits for, because their client was closed meanwhile or because the
// servers refuse the deletion. The hub keeps trying until they are gone. A program's session outlives the clients that share it, and so
// would the nodes that they have left in a queue.
type leftovers struct {
	sweeper *session.Sweeper

	mu  sync.Mutex
	all map[*leftover]struct{} // guarded by mu
}

// leftover is a contender among the leftovers, which own it. One goroutine at a time uses its fields.
type leftover struct {
	co      *contender
	refusal *refusal // why the servers refuse the deletion; nil if they do not
	pace    session.Pace
	next    time.Time // when to try again
}

func newLeftovers(h *session.Hub) *leftovers {
	lo := new(leftovers)
	lo.sweeper = h.NewSweeper(func() bool { return len(lo.list()) > 0 }, lo.sweep)
	return lo
}

// add takes over a contender whose removal has failed with err.
func (lo *leftovers) add(co *contender, err error) {
	co.isLeft = true
	l := &leftover{co: co}
	l.failed(err)
	lo.mu.Lock()
	if lo.all == nil {
		lo.all = map[*leftover]struct{}{}
	}
	lo.all[l] = struct{}{}
	lo.mu.Unlock()
	lo.sweeper.Wake()
}

func (lo *leftovers) list() []*leftover {
	lo.mu.Lock()
	defer lo.mu.Unlock()
	return slices.Collect(maps.Keys(lo.all))
}

func (lo *leftovers) drop(l *leftover) {
	lo.mu.Lock()
	defer lo.mu.Unlock()
	delete(lo.all, l)
}

// sweep tries once more to remove what is due, and returns the time until something else is, or zero if nothing is left.
func (lo *leftovers) sweep(ctx context.Context, _ *session.Session) time.Duration {
	now := time.Now()
	due := slices.DeleteFunc(lo.list(), func(l *leftover) bool { return l.next.After(now) })
	lo.sweeper.SideBySide(len(due), func(i int) {
		if due[i].retry(ctx) {
			lo.drop(due[i])
		}
	})
	left := lo.list()
	if len(left) == 0 {
		return 0
	}
	first := slices.MinFunc(left, func(a, b *leftover) int { return cmp.Compare(a.next.UnixNano(), b.next.UnixNano()) })
	return max(time.Until(first.next), time.Millisecond)
}

// retry tries once more to delete the contender's nodes, and reports whether they are gone.
func (l *leftover) retry(ctx context.Context) (gone bool) {
	err := l.co.tryClear(ctx)
	if err != nil {
		l.failed(err)
		return false
	}
	if l.refusal != nil {
		l.co.engine.refused.remove(l.refusal)
	}
	return true
}

// failed handles the error of an attempt. A refusal may be temporary.
func (l *leftover) failed(err error) {
	en := l.co.engine
	if !outcome.IsRefusal(err) {
		l.next = time.Now().Add(l.pace.Longer())
		return
	}
	l.next = time.Now().Add(max(l.co.Sess.Lease.Term()/4, time.Second))
	if l.refusal == nil {
		l.refusal = en.refused.add(l.co.anyPath(), err)
		en.Requests.Log.Warn("zklock: deletion of own node refused, trying again", "path", en.Requests.CallerPath(l.co.Dir), "node", node.BaseName(l.co.anyPath()), "err", err)
	}
}
