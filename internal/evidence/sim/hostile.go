// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// troubles returns the plan's streams of faults.
func (p *Plan) troubles() map[string][]fault {
	all := map[string][]fault{}
	if p.Failing {
		all["followers"] = failures
		if p.Only != "" {
			all["dialing"] = dialings
			keep(all, regexp.MustCompile(p.Only))
		}
		return all
	}
	for name, faults := range troubles {
		all[name] = faults
	}
	if p.Hostile.Streams && p.Servers > 1 {
		// These are in the same stream as the other faults of servers, since an election needs members that reach each other.
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{
			{"late streams", everybody(lateStreams)}, {"late streams, cut", everybody(lateAndCut)}, {"one way", everybody(oneWay)}, {"held requests", everybody(holdForwards)},
		})
	}
	if p.Hostile.Minimums {
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{{"elect and part", electAndPart}})
	}
	if p.Hostile.Ticks && p.Servers > 1 {
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{{"restart with another tick", everybody(retick)}})
	}
	if p.Hostile.Crowds {
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{{"crowd", crowd}})
	}
	if p.Hostile.Backups {
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{{"restore", everybody(restore)}})
	}
	if p.Hostile.Wipes {
		all["wipes"] = []fault{{"several deletes", deleteSeveral}}
	}
	if p.Hostile.Evicts {
		all["evictions"] = []fault{{"evict", evict}}
	}
	if p.Hostile.Forged {
		all["forgers"] = []fault{{"forged note", forge}}
	}
	if p.Hostile.Throttle {
		all["load"] = []fault{{"throttled", throttled}}
	}
	if p.Hostile.Blind {
		all["permissions"] = []fault{{"blind", blind}}
	}
	if p.Hostile.Withheld {
		all["rights"] = []fault{{"withheld", withhold}}
	}
	if p.credentials() != nil {
		all["logins"] = []fault{{"refused logins", refuseLogins}}
	}
	if p.Hostile.Curator && p.credentials() == nil { // the simulated Curator has no credentials
		all["guests"] = []fault{{"curator", curator}}
	}
	if p.Way == wayClose {
		all["closes"] = []fault{{"close", closeOne}}
	}
	if p.Names > 0 {
		all["dialing"] = []fault{{"frozen server", frozenServer}}
	}
	if p.Moves {
		all["moves"] = []fault{{"moved leader", everybody(moveLeader)}}
	}
	if p.Only != "" {
		keep(all, regexp.MustCompile(p.Only))
	}
	return all
}

// keep removes the faults whose names do not match.
func keep(all map[string][]fault, pattern *regexp.Regexp) {
	for name, faults := range all {
		all[name] = slices.DeleteFunc(slices.Clone(faults), func(x fault) bool { return !pattern.MatchString(x.name) })
		if len(all[name]) == 0 {
			delete(all, name)
		}
	}
}

// throttled makes servers refuse half of the requests for a while. This does not excuse a delay of any client.
func throttled(f *fleet, r *rand.Rand) reach {
	serve := f.srv.Intercept(newThrottle(r, f.refusals).judge)
	time.Sleep(f.long(r))
	serve()
	return only()
}

// refuseLogins makes one server, or all of them, reject logins and credentials for a while.
func refuseLogins(f *fleet, r *rand.Rand) reach {
	all, one := r.IntN(2) == 0, r.IntN(f.plan.Servers)
	mend := f.srv.Intercept(func(q *zktest.Request) zktest.Verdict {
		if (q.Op == zktest.OpSASL || q.Op == zktest.OpAuth) && (all || q.Member == one) {
			return zktest.Answer(zktest.CodeAuthFailed)
		}
		return zktest.Pass
	})
	f.srv.DropConnections()
	hit := reach{after: f.rec.Now() + 1, only: f.tied(one)}
	if all {
		hit = reach{}
	}
	time.Sleep(f.long(r))
	mend()
	return hit
}

// tied returns the clients that know only this server.
func (f *fleet) tied(server int) []string {
	names := []string{nobody}
	for _, p := range f.present() {
		if len(p.servers) == 1 && p.servers[0] == f.srv.Addrs()[server] {
			names = append(names, p.name)
		}
	}
	return names
}

// lateStreams delays everything that the leader sends to a member, including PINGs, and often also the other direction.
func lateStreams(f *fleet, r *rand.Rand) {
	m := f.member(r)
	lab.DelayStreams(m, around(r, f.plan.Tick/3), pick(r, 0, around(r, f.plan.Tick/8)))
	time.Sleep(f.long(r))
	lab.DelayStreams(m, 0, 0)
}

// lateAndCut delays PINGs to a member and then cuts the way back, so that committed requests may be answered, but the member's
// touches never reach the leader.
func lateAndCut(f *fleet, r *rand.Rand) {
	m := f.member(r)
	lab.DelayStreams(m, around(r, f.plan.Tick/3), 0)
	time.Sleep(around(r, f.plan.Tick))
	lab.CutStreams(m, false, true)
	time.Sleep(f.long(r))
	lab.CutStreams(m, false, false)
	lab.DelayStreams(m, 0, 0)
}

// crowd makes many goroutines of a client request a lock at the same time. Often the leader changes before they have queued.
func crowd(f *fleet, r *rand.Rand) reach {
	p, l := f.anyone(r), f.plan.Locks[r.IntN(len(f.plan.Locks))]
	u := p.aUser(r)
	var all sync.WaitGroup
	for range 10 + r.IntN(30) {
		own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		// Owned by this call, which waits for it; ends with its turn, or with the process.
		all.Go(func() { takers[l.Recipe](u, l, own) })
	}
	if r.IntN(3) > 0 {
		time.Sleep(around(r, 2*f.plan.Latency))
		elect(f, r)
	}
	hit := reach{after: f.rec.Now() + 1, only: []string{nobody}}
	all.Wait()
	return hit
}

// electAndPart changes the leader, and cuts off a holder before it has found another server.
func electAndPart(f *fleet, r *rand.Rand) reach {
	elect(f, r)
	after := f.rec.Now() + 1
	hit := partition(f, r)
	hit.after = after
	return hit
}

func oneWay(f *fleet, r *rand.Rand) {
	m, down := f.member(r), r.IntN(2) == 0
	lab.CutStreams(m, down, !down)
	time.Sleep(f.long(r))
	lab.CutStreams(m, false, false)
}

// holdForwards delays the requests that a follower forwards to the leader, and drops the clients' connections meanwhile. A node that
// a client looks for on another server may be created only later.
func holdForwards(f *fleet, r *rand.Rand) {
	release := lab.HoldForwards(f.member(r))
	time.Sleep(around(r, f.plan.Timeout/8))
	f.srv.DropConnections()
	time.Sleep(around(r, f.plan.Timeout/2))
	release()
}

// deleteSeveral deletes some adjacent nodes in a queue, in one transaction or the last one first.
func deleteSeveral(f *fleet, r *rand.Rand) reach {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	names := slices.DeleteFunc(f.srv.Children(l.queue()), func(name string) bool { return !contends("/" + name) })
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b[max(0, len(b)-10):], a[max(0, len(a)-10):]) })
	from := r.IntN(len(names) + 1)
	paths, hit := []string{}, only()
	for _, name := range names[from:min(len(names), from+1+r.IntN(4))] {
		paths = append(paths, l.queue()+"/"+name)
		hit.only = append(hit.only, f.owner(l.queue()+"/"+name))
	}
	if r.IntN(2) == 0 {
		_ = f.srv.DeleteNodes(paths...) // fails if an owner has deleted one first
		return hit
	}
	for _, path := range paths {
		_ = f.srv.DeleteNodes(path)
	}
	return hit
}

// restore restores the ensemble to an earlier state, as an operator does in an emergency: all servers are stopped for longer than a
// session timeout, so that all holds have ended, and start with a backup that has no sessions.
func restore(f *fleet, r *rand.Rand) {
	snap := f.srv.Dump()
	snap.Sessions = nil
	maps.DeleteFunc(snap.Nodes, func(_ string, n zktest.Node) bool { return n.EphemeralOwner != 0 })
	for path, n := range snap.Nodes {
		n.ACL = nil // it may be from a fault that has ended by then
		snap.Nodes[path] = n
	}
	time.Sleep(f.long(r))
	for i := range f.plan.Servers {
		f.srv.Member(i).Stop()
	}
	time.Sleep(f.plan.Timeout + f.plan.Tick)
	f.undo(snap)
	f.srv.Restore(snap)
	for i := range f.plan.Servers {
		f.srv.Member(i).Start()
	}
}

// forge writes hand-off notes that name random contenders as the last holder. Clients with Options.Untrusted must ignore them.
func forge(f *fleet, r *rand.Rand) reach {
	dir := f.plan.Locks[r.IntN(len(f.plan.Locks))].waiting()
	for range 1 + r.IntN(20) {
		names := slices.DeleteFunc(f.srv.Children(dir), func(name string) bool { return !contends("/" + name) })
		if len(names) > 0 {
			note := "zklock: last held by " + names[r.IntN(len(names))]
			_ = f.srv.Apply(zktest.Step{Op: zktest.OpSetData, Path: dir, Data: []byte(note)}) // fails if the directory was deleted
		}
		time.Sleep(around(r, f.plan.Hold/2))
	}
	return only()
}
