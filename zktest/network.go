package zktest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// network is how clients reach the members: the addresses of both, and how long
// bytes take between them.
type network struct {
	latencyOf func(r *rand.Rand, client string, member int) time.Duration // nil for none

	mu        sync.Mutex
	rng       *rand.Rand
	addresses []memberAddress
	hosts     map[string]int // by client: its number among those that have come
	dialed    int
}

// memberAddress is where a member is found.
type memberAddress struct {
	current string // of its socket, if it has one
	virtual string // for Dial
}

func newNetwork(opts *Options) *network {
	n := &network{
		latencyOf: opts.latency(), rng: rand.New(rand.NewPCG(opts.Seed, 1)), hosts: make(map[string]int),
	}
	for i := range opts.Servers {
		// An IP literal, so that the client's host provider needs no name service.
		addr := fmt.Sprintf("127.0.0.%d:2181", i+1)
		n.addresses = append(n.addresses, memberAddress{addr, addr})
	}
	return n
}

// delay draws how long a piece between a client and a member takes.
func (n *network) delay(client string, member int) time.Duration {
	if n.latencyOf == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(1, n.latencyOf(n.rng, client, member))
}

// address is where clients find a member.
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

// route finds the member at an address, 0 for an unknown one, and makes up an
// address for the client.
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

// hostOf returns the address that a client comes from.
func (n *network) hostOf(client string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.number(client)
}

// number gives a client that is new the next address. The caller holds mu.
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
