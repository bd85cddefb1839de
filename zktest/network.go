// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// network holds the addresses of clients and members, and the latencies between
// them.
type network struct {
	latencyOf func(r *rand.Rand, client string, member int) time.Duration // nil means none

	mu        sync.Mutex
	rng       *rand.Rand
	addresses []memberAddress
	hosts     map[string]int // client numbers, by name
	dialed    int
	uploads   map[string]*upload // by client name; nil if no client has a limit
}

// upload is the limit on what a client can send.
type upload struct {
	rate int           // bytes per second; zero means no limit
	free time.Duration // when everything that was sent so far has arrived
}

// memberAddress holds a member's addresses.
type memberAddress struct {
	current string // the address of its socket if it has one, otherwise virtual
	virtual string // the address for Dial
}

func newNetwork(opts *Options) *network {
	n := &network{
		latencyOf: opts.latency(), rng: rand.New(rand.NewPCG(opts.Seed, 1)), hosts: make(map[string]int),
	}
	for i := range opts.Servers {
		// An IP literal, so that the client's host provider needs no name resolution. No socket
		// reaches it: a test that forgets to set the dialer must not use another server.
		addr := fmt.Sprintf("233.252.0.%d:2181", i+1)
		n.addresses = append(n.addresses, memberAddress{addr, addr})
	}
	return n
}

// delay draws the latency for data between a client and a member.
func (n *network) delay(client string, member int) time.Duration {
	if n.latencyOf == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(1, n.latencyOf(n.rng, client, member))
}

// limitUpload sets how many bytes per second a client can send. Zero means no limit.
func (n *network) limitUpload(client string, rate int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.uploads == nil {
		n.uploads = make(map[string]*upload)
	}
	n.uploads[client] = &upload{rate: rate}
}

// arrival returns when bytes that a client sends now have all arrived, or 0 if its upload is not
// limited.
func (n *network) arrival(client string, bytes int, now time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	u := n.uploads[client]
	if u == nil || u.rate == 0 {
		return 0
	}
	u.free = max(u.free, now) + time.Duration(bytes)*time.Second/time.Duration(u.rate)
	return u.free
}

// address returns a member's current address.
func (n *network) address(member int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addresses[member].current
}

func (n *network) setAddress(member int, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses[member].current = address
}

// route returns the member at an address, or 0 if the address is unknown, and
// invents an address for the client.
func (n *network) route(client, address string) (member int, remote string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed++
	remote = fmt.Sprintf("%s:%d", n.number(client), 30000+n.dialed%30000)
	for i, a := range n.addresses {
		if address == a.current || address == a.virtual || address == fmt.Sprintf("zk%d:2181", i+1) {
			return i, remote
		}
	}
	return 0, remote
}

// hostOf returns the address that a client connects from.
func (n *network) hostOf(client string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.number(client)
}

// number returns a client's address. A new client gets the next one. The caller must hold mu.
func (n *network) number(client string) string {
	if client == "" {
		return "127.0.0.1"
	}
	i, known := n.hosts[client]
	if !known {
		i = len(n.hosts) + 1
		n.hosts[client] = i
	}
	return fmt.Sprintf("127.1.%d.%d", i>>8&0xff, i&0xff)
}
