// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// member is one node of a contender: its own, or another of its batch.
type member struct {
	session.OwnNode
	engine *Engine                   // never changes
	guid   string                    // in the node's name, and unique; empty before the node is requested
	self   atomic.Pointer[selfWatch] // the watch on the node; nil while there is none; set by the goroutine that owns the contender
}

// A batch holds the nodes that one transaction creates together with a contender's own: all or
// none, with no other contender between them. So two callers that want several permits each can
// never hold a part each and wait for the rest. The contender's own node is the last, and the
// contender is settled and removed for all of them.
type batch struct {
	others []*member // in queue order; never empty
}

func (en *Engine) newMember(r *Recipe, dir string, data []byte) *member {
	x := &member{engine: en}
	x.Init(dir, data, r.Fixed)
	return x
}

// prefix returns the prefix of the node's name, which no other node's name has.
func (m *member) prefix() string { return node.NamePrefix + m.guid }

// watchSelf watches our node, unless it does already.
func (m *member) watchSelf() { m.beginWatch((*selfWatch).start) }

// watchSelfWith is like watchSelf, but adds the request for the watch to b.
func (m *member) watchSelfWith(b *session.Bundle) {
	m.beginWatch(func(g *selfWatch) { g.startWith(b) })
}

// watchSelfAfter is like watchSelf, but begins after the given time.
func (m *member) watchSelfAfter(d time.Duration) {
	m.beginWatch(func(g *selfWatch) { g.startAfter(d) })
}

func (m *member) beginWatch(start func(*selfWatch)) {
	if m.self.Load() == nil {
		m.self.Store(newSelfWatch(m.engine, &m.OwnNode))
		start(m.self.Load())
	}
}

// isThere verifies, if the node is watched, that it still existed when the events seen so far
// happened.
func (m *member) isThere(ctx context.Context) error {
	self := m.self.Load()
	if self == nil {
		return nil
	}
	return self.await(ctx)
}

// goneIfSeen returns a channel that is closed when the node is found to be gone, or nil while
// nothing checks the node. Most waiters of a long queue are in that state, and the channel would
// take a twentieth of a waiter's memory.
func (m *member) goneIfSeen() <-chan struct{} {
	if m.self.Load() == nil && !m.Kept {
		return nil
	}
	return m.Gone.Done()
}

// isIntact reports whether the node is intact, as far as a watch shows.
func (m *member) isIntact() bool { return !m.IsGone() && (m.self.Load() == nil || m.isWatched()) }

// isWatched reports whether a watch would report the node's deletion before anything else can
// reveal it. Any goroutine may call it.
func (m *member) isWatched() bool {
	self := m.self.Load()
	return self != nil && self.isActive()
}
