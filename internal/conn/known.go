// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// known is the servers that a link can dial. Except for turn, it belongs to the goroutine in which the client library connects.
type known struct {
	hosts zk.HostProvider // the client library's; nil if the link does not know it
	seen  []string        // without hosts: the servers that the client library has dialed, in their order
	turns atomic.Uint32   // how often a name was resolved
}

// maxSeen is how many servers a link remembers.
const maxSeen = 16

// see records that the client library dials a server. It reports whether that is the first time.
func (k *known) see(server string) (isNew bool) {
	if k.hosts != nil || slices.Contains(k.seen, server) {
		return false
	}
	k.seen = append(k.seen, server)
	k.seen = k.seen[max(0, len(k.seen)-maxSeen):]
	return true
}

// other returns a server to ask in addition to those that were tried. failed means that all of these have failed: then the client
// library asks its provider for the next one. If the link does not know the provider, the library may wait before it dials the next one.
func (k *known) other(tried []target, failed bool) (server string, ok bool) {
	isTried := func(server string) bool {
		return slices.ContainsFunc(tried, func(t target) bool { return t.server == server })
	}
	if k.hosts == nil {
		first := slices.Index(k.seen, tried[0].server) + 1
		for _, server := range slices.Concat(k.seen[first:], k.seen[:first]) {
			if !isTried(server) {
				return server, true
			}
		}
		return "", false
	}
	for range k.hosts.Len() {
		if failed {
			break
		}
		if server, _ := k.hosts.Next(); !isTried(server) {
			return server, true
		}
	}
	return "", false
}

// isOne reports whether the link knows only one server.
func (k *known) isOne() bool {
	if k.hosts == nil {
		return len(k.seen) == 1
	}
	return k.hosts.Len() == 1
}

// turn returns which of n addresses of a name is dialed first: another one each time.
func (k *known) turn(n int) int { return int((k.turns.Add(1) - 1) % uint32(n)) }
