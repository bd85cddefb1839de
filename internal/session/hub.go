// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"log/slog"
	"sync"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/outcome"
)

// A Hub is where the clients of one connection meet. A session has one lease, so it also has one
// schedule of heartbeats, and one watch on each node, however many clients use the session.
type Hub struct {
	Link           *conn.Link
	PendingCreates *PendingCreates
	sweeps         *Tasks // of its Sweepers

	mu     sync.Mutex
	n      int     // guarded by mu: clients that have joined and not left
	shared *Shared // guarded by mu: what they share; nil if n is zero
}

// NewHub returns the Hub of a connection that has no clients yet.
func NewHub(l *conn.Link) *Hub {
	h := &Hub{Link: l, sweeps: NewTasks()}
	h.sweeps.most = 0 // nobody calls Close for a program's connection
	life := context.Background()
	h.PendingCreates = newPendingCreates(h, &Requests{Link: l, Log: slog.New(slog.DiscardHandler), Calls: h.sweeps, Life: life, CleanupCtx: life})
	return h
}

// Close waits for the Sweepers after the link was closed.
func (h *Hub) Close() { <-h.sweeps.Close() }

// Join adds a client, and returns what it shares with the others. The client must call Leave.
func (h *Hub) Join() *Shared {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n++; h.n == 1 {
		h.shared = newShared(h)
	}
	return h.shared
}

// Shared is the heartbeats and the watches of a connection, from the first client that joins to the
// last one that leaves.
type Shared struct {
	hub      *Hub
	requests *Requests // which belong to no client
	end      context.CancelCauseFunc
	unlisten func()
	beats    *beats
	table    *watchTable
}

func newShared(h *Hub) *Shared {
	life, end := context.WithCancelCause(context.Background())
	r := &Requests{Link: h.Link, Log: slog.New(slog.DiscardHandler), Calls: NewTasks(), Life: life, CleanupCtx: life}
	s := &Shared{hub: h, requests: r, end: end, beats: newBeats(r), table: newWatchTable(r)}
	s.unlisten = h.Link.Listen(s.table.onEvent)
	return s
}

// Leave removes a client, whose nodes must have been removed from the heartbeats. It does not wait for
// the other clients, or for a reply. If there is no other client, heartbeats and watches have ended when it returns.
func (s *Shared) Leave() {
	s.hub.mu.Lock()
	s.hub.n--
	last := s.hub.n == 0
	if last {
		s.hub.shared = nil
	}
	s.hub.mu.Unlock()
	if last {
		s.end(outcome.ErrClosed)
		s.unlisten()
		<-s.requests.Calls.Close()
	}
}
