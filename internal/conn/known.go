// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// known is the servers that a link can dial. Except for turn, it belongs to the goroutine in which the client library connects.
type known struct {
	hosts zk.HostProvider      // the client library's; nil if the link does not know it
	seen  []string             // without hosts: the servers that the client library has dialed, in their order
	turns atomic.Uint32        // how often a name was resolved
	slow  map[string]time.Time // by server: when it last lost a race
}

// lost records that another server has answered before this one.
func (k *known) lost(server string) {
	if k.slow == nil || len(k.slow) >= maxSeen {
		k.slow = map[string]time.Time{}
	}
	k.slow[server] = time.Now()
}

// first returns the server to ask first, if the client library has chosen that one: another one, if that one has lost a race in the
// last d. When the slow server carries out the request that it got then, it takes the session from the connection, which ends. If it
// were asked first each time, that would happen again and again.
func (k *known) first(server string, d time.Duration) string {
	isSlow := func(server string) bool { at, ok := k.slow[server]; return ok && time.Since(at) < d }
	if !isSlow(server) {
		return server
	}
	if other, ok := k.other([]target{{server: server}}, false); ok && !isSlow(other) {
		return other
	}
	return server
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

// isOne reports whether the link knows only one server, or one name.
func (k *known) isOne() bool {
	if k.hosts == nil {
		return len(k.seen) == 1
	}
	return k.hosts.Len() == 1
}

// turn returns which of n addresses of a name is dialed first: another one each time.
func (k *known) turn(n int) int { return int((k.turns.Add(1) - 1) % uint32(n)) }
