package conn

import (
	"math/rand/v2"
	"slices"

	"github.com/go-zookeeper/zk"
)

// Hosts returns a provider that gives out what from does and lets a closed connection end:
// the client library looks whether it was closed only where its provider says that a round
// of servers is over.
func (l *Link) Hosts(from zk.HostProvider) zk.HostProvider { return hosts{from, l} }

type hosts struct {
	zk.HostProvider
	link *Link
}

func (h hosts) Next() (string, bool) {
	server, again := h.HostProvider.Next()
	return server, again || h.link.isClosed()
}

// Rotation is a provider that goes through the servers by name, in a random order. The
// dialer resolves a name each time, because addresses change and TLS needs the name.
//
// It never ends a round: the client library would then wait for a second, which a short
// session does not survive. The link's dialer knows better when to wait.
type Rotation struct {
	servers []string
	last    int
}

// Init sets the servers.
func (r *Rotation) Init(servers []string) error {
	r.servers = slices.Clone(servers)
	rand.Shuffle(len(servers), func(i, j int) { r.servers[i], r.servers[j] = r.servers[j], r.servers[i] })
	return nil
}

// Len returns the number of servers.
func (r *Rotation) Len() int { return len(r.servers) }

// Connected does nothing.
func (r *Rotation) Connected() {}

// Next returns the next server. No round ends.
func (r *Rotation) Next() (string, bool) {
	r.last = (r.last + 1) % len(r.servers)
	return r.servers[r.last], false
}
