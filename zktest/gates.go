// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"sync"
	"sync/atomic"
)

// gates block the traffic between clients and members: that of a client while it is
// partitioned, and that of a member while it is frozen.
type gates struct {
	count atomic.Int32 // number of shut gates; at zero, mu is not needed

	mu      sync.Mutex
	clients map[string]chan struct{} // by name; closed when the gate opens
	members map[int]chan struct{}
}

func newGates() *gates {
	return &gates{clients: make(map[string]chan struct{}), members: make(map[int]chan struct{})}
}

func (g *gates) shutClient(name string) { shut(g, g.clients, name) }

func (g *gates) openClient(name string) { open(g, g.clients, name) }

func (g *gates) shutMember(id int) { shut(g, g.members, id) }

func (g *gates) openMember(id int) { open(g, g.members, id) }

func shut[K comparable](g *gates, by map[K]chan struct{}, key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if by[key] == nil {
		by[key] = make(chan struct{})
		g.count.Add(1)
	}
}

func open[K comparable](g *gates, by map[K]chan struct{}, key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gate := by[key]; gate != nil {
		delete(by, key)
		g.count.Add(-1)
		close(gate)
	}
}

// ofClient returns the channel that a client's dial has to wait for, or nil if there is none.
func (g *gates) ofClient(name string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clients[name]
}

// between returns the channel that a client's connection to a member has to wait for, or nil if there is none.
func (g *gates) between(client string, member int) <-chan struct{} {
	if g.count.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if gate := g.clients[client]; gate != nil {
		return gate
	}
	return g.members[member]
}
