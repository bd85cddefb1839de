// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// blind denies one client the permission to read the other contenders' nodes of a lock for a while, and in most cases also the
// lock's directories.
func blind(f *fleet, r *rand.Rand) reach {
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
	p.deny(nodes, zktest.PermRead, around(r, pick(r, 100*time.Millisecond, f.plan.Tick, p.spec.Session)))
	return only(p.name)
}

// withhold denies one client the permission to create or delete nodes, or both, in a lock's directories for a while. During this
// time the client cannot acquire the lock, or its nodes remain after a release. The promises to other clients still apply.
func withhold(f *fleet, r *rand.Rand) reach {
	p, l := f.anyone(r), f.plan.Locks[r.IntN(len(f.plan.Locks))]
	perms := pick(r, zktest.PermCreate, zktest.PermDelete, zktest.PermDelete, zktest.PermCreate|zktest.PermDelete)
	p.deny(slices.Compact([]string{l.queue(), l.waiting()}), perms, around(r, pick(r, f.plan.Tick, p.spec.Session)))
	return only(p.name)
}

// deny withholds permissions on nodes from the process for the duration d. It returns when all servers have the permissions
// again, including lagging ones.
func (p *process) deny(nodes []string, perms int32, d time.Duration) {
	p.addDenied(1)
	p.f.permit(nodes, allBut(lab.HostOf(p.f.srv, p.name), perms))
	time.Sleep(d)
	p.f.permit(nodes, nil)
	for zxid := p.f.srv.Zxid(); !p.f.isShown(zxid); {
		time.Sleep(p.f.plan.Tick / 4)
	}
	p.addDenied(-1)
}

// isShown reports whether every server has applied a transaction, or the ensemble was restored to a state before it.
func (f *fleet) isShown(zxid int64) bool {
	shown := true
	for i := range f.plan.Servers {
		shown = shown && lab.Shows(f.srv.Member(i), zxid)
	}
	return shown || f.srv.Zxid() < zxid
}

// waiting returns the directory of the waiters' nodes.
func (l Lock) waiting() string {
	if l.Recipe == history.Semaphore {
		return l.Path + "/locks"
	}
	return l.queue()
}

// permit sets the ACL of the nodes that exist; nil means no restrictions. It waits for a quorum.
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

// allBut returns an ACL that denies the given permissions to one host and grants everyone else everything. To match everyone else,
// it has an entry for each prefix that differs from the host's address in its last bit.
func allBut(host string, denied int32) []zktest.ACL {
	addr := netip.MustParseAddr(host)
	acl := []zktest.ACL{{Perms: zktest.PermAll &^ denied, Scheme: "ip", ID: host}}
	for bit := range 32 {
		other := addr.As4()
		other[bit/8] ^= 0x80 >> (bit % 8)
		prefix := netip.PrefixFrom(netip.AddrFrom4(other), bit+1).Masked()
		acl = append(acl, zktest.ACL{Perms: zktest.PermAll, Scheme: "ip", ID: fmt.Sprint(prefix)})
	}
	return acl
}

// isOf reports whether the session belongs to the process.
func (f *fleet) isOf(p *process, session int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[session] == p.name
}
