// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// Hosts returns a provider that returns the servers of from. It reports the end of a round of servers only
// to let a closed connection end: the client library checks whether it was closed only then. Otherwise the
// client library would wait for a second, which a session with a short timeout does not survive. The link's
// dialer decides when to wait.
func (l *Link) Hosts(from zk.HostProvider) zk.HostProvider {
	l.servers.hosts = from
	return hosts{from, l}
}

type hosts struct {
	zk.HostProvider
	link *Link
}

func (h hosts) Next() (string, bool) {
	server, _ := h.HostProvider.Next()
	return server, h.link.isClosed()
}

// Rotation is a provider that cycles through the servers by name, in random order. The dialer
// resolves a name each time, because addresses change and TLS needs the name.
type Rotation struct {
	servers []string // set by Init

	mu     sync.Mutex // guards the fields below, because a program can pass one provider to two connections
	last   int
	failed int // how many servers it has returned since Connected
}

// Init sets the servers.
func (r *Rotation) Init(servers []string) error {
	r.servers = slices.Clone(servers)
	rand.Shuffle(len(servers), func(i, j int) { r.servers[i], r.servers[j] = r.servers[j], r.servers[i] })
	return nil
}

// Servers returns the servers.
func (r *Rotation) Servers() []string { return r.servers }

// Len returns the number of servers.
func (r *Rotation) Len() int { return len(r.servers) }

// Connected implements zk.HostProvider.
func (r *Rotation) Connected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = 0
}

// maxRounds is how many rounds of servers a Rotation returns before it reports the end of one: see Hosts. A connection that its program
// has closed ends then.
const maxRounds = 3

// Next returns the next server.
func (r *Rotation) Next() (server string, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = (r.last + 1) % len(r.servers)
	r.failed++
	return r.servers[r.last], r.failed > maxRounds*len(r.servers)
}
