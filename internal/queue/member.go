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
	c    *Engine                   // never changes
	guid string                    // in the node's name, unlike any other; empty before the node is asked for
	self atomic.Pointer[selfWatch] // on the node; nil while that is not watched; set by whom the contender belongs to
}

// A batch is the nodes that one transaction creates with a contender's own: all or none, with no
// other contender between them. So two callers that want several permits each can never hold a
// part each and wait for the rest. The contender, whose node is the last, is settled and removed
// for all of them.
type batch struct {
	others []*member // in the order of the queue; never empty
}

func (c *Engine) newMember(r *Recipe, dir string, data []byte) *member {
	x := &member{c: c}
	x.Init(dir, data, r.Fixed)
	return x
}

// nameAnew gives the node, which is to be made under s, another guid. It has no name until it is made.
func (m *member) nameAnew(s *session.Session, guid string) { m.Sess, m.Name, m.guid = s, "", guid }

// prefix returns what the node's name begins with. No other node's name does.
func (m *member) prefix() string { return node.NamePrefix + m.guid }

// watchSelf has our node watched, beginning after that time, unless it is watched already.
func (m *member) watchSelf(after time.Duration) {
	if m.self.Load() == nil {
		m.self.Store(newSelfWatch(m.c, &m.OwnNode, after))
		session.Yield()
	}
}

// isThere makes sure, if the node is watched, that it was there when whatever was seen so far happened.
func (m *member) isThere(ctx context.Context) error {
	self := m.self.Load()
	if self == nil {
		return nil
	}
	return self.await(ctx)
}

// goneIfSeen returns a channel that is closed when the node is found gone; nil while nothing looks at it.
// Most of a long queue waits so, and the channel would be a twentieth of what a waiter takes.
func (m *member) goneIfSeen() <-chan struct{} {
	if m.self.Load() == nil && !m.Kept {
		return nil
	}
	return m.Gone.Done()
}

// stands reports whether nothing has happened to the node, as far as it is watched.
func (m *member) stands() bool { return !m.IsGone() && (m.self.Load() == nil || m.isWatched()) }

// isWatched reports whether a watch tells of the node's end before anybody can see it in another way. All may ask.
func (m *member) isWatched() bool {
	self := m.self.Load()
	return self != nil && self.stands()
}
