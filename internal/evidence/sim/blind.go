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

// withhold takes CREATE, DELETE or both from one client for a while, in a lock's directories. It gets nothing, or what it
// releases stays, until it may again; what is promised to others stands.
func withhold(f *fleet, r *rand.Rand) reach {
	p, l := f.anyone(r), f.plan.Locks[r.IntN(len(f.plan.Locks))]
	perms := pick(r, zktest.PermCreate, zktest.PermDelete, zktest.PermDelete, zktest.PermCreate|zktest.PermDelete)
	p.deny(slices.Compact([]string{l.queue(), l.waiting()}), perms, around(r, pick(r, f.plan.Tick, p.spec.Session)))
	return only(p.name)
}

// deny takes rights on nodes from the process, for a while. That is over when no server refuses it any more: one that lags
// has the old access list.
func (p *process) deny(nodes []string, perms int32, d time.Duration) {
	p.addDenied(1)
	p.f.permit(nodes, allBut(p.f.srv.HostOf(p.name), perms))
	time.Sleep(d)
	p.f.permit(nodes, nil)
	for zxid := p.f.srv.Zxid(); !p.f.isShown(zxid); {
		time.Sleep(p.f.plan.Tick / 4)
	}
	p.addDenied(-1)
}

// isShown reports whether every server shows a transaction, or the ensemble was replaced by one that never had it.
func (f *fleet) isShown(zxid int64) bool {
	shown := true
	for i := range f.plan.Servers {
		shown = shown && f.srv.Member(i).Shows(zxid)
	}
	return shown || f.srv.Zxid() < zxid
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

// allBut is an access list that lets everybody do everything, but denies that host these: what the prefixes name that
// differ from its address in one bit is everybody else.
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

// isOf reports whether the session was one of the process's.
func (f *fleet) isOf(p *process, session int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[session] == p.name
}
