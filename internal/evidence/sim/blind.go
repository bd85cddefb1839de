package sim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

// blind takes READ from one client for a while, on what others have in a lock's directories, and mostly on these too.
func blind(f *fleet, r *rand.Rand) {
	p, l := f.anyone(r), f.plan.Locks[r.IntN(len(f.plan.Locks))]
	dirs := slices.Compact([]string{l.queue(), l.waiting()})
	var nodes []string
	for _, dir := range dirs {
		for _, name := range f.srv.Children(dir) {
			node, ok := f.srv.Node(dir + "/" + name)
			if ok && contends("/"+name) && !f.isOf(p, node.EphemeralOwner) {
				nodes = append(nodes, dir+"/"+name)
			}
		}
	}
	if r.IntN(3) > 0 {
		nodes = append(nodes, dirs...)
	}
	p.setBlind(true)
	f.permit(nodes, allBut(f.srv.HostOf(p.name)))
	time.Sleep(around(r, pick(r, 100*time.Millisecond, f.plan.Tick, p.spec.Session)))
	f.permit(nodes, nil)
	p.setBlind(false)
}

// waiting is the directory of the nodes of those that wait.
func (l Lock) waiting() string {
	if l.queue() == l.Path {
		return l.Path
	}
	return l.Path + "/locks"
}

// permit sets the access list of nodes that exist; nil is open to all. It waits for a quorum.
func (f *fleet) permit(nodes []string, acl []zktest.ACL) {
	for _, node := range nodes {
		for f.srv.Apply(zktest.Step{Op: zktest.OpSetACL, Path: node, ACL: acl}) != nil {
			if _, there := f.srv.Node(node); !there {
				break
			}
			time.Sleep(f.plan.Tick / 4)
		}
	}
}

// allBut is an access list that lets everybody do everything, but that host not read: what the prefixes name that
// differ from its address in one bit is everybody else.
func allBut(host string) []zktest.ACL {
	addr := netip.MustParseAddr(host)
	acl := []zktest.ACL{{Perms: zktest.PermAll &^ zktest.PermRead, Scheme: "ip", ID: host}}
	for bit := range 32 {
		other := addr.As4()
		other[bit/8] ^= 0x80 >> (bit % 8)
		prefix := netip.PrefixFrom(netip.AddrFrom4(other), bit+1).Masked()
		acl = append(acl, zktest.ACL{Perms: zktest.PermAll, Scheme: "ip", ID: fmt.Sprint(prefix)})
	}
	return acl
}

// isOf reports whether the session was one of the process's.
func (f *fleet) isOf(p *process, session int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[session] == p.name
}

func (p *process) setBlind(blind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blind, p.seeing = blind, p.f.rec.Now()
}

// wasBlind reports whether there were nodes since then that the process may not read.
func (p *process) wasBlind(since time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blind || p.seeing >= since
}
