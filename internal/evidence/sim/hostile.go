package sim

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

// troubles are the streams of faults of the plan.
func (p *Plan) troubles() map[string][]fault {
	all := map[string][]fault{}
	if p.Failing {
		return map[string][]fault{"followers": failures}
	}
	for name, faults := range troubles {
		all[name] = faults
	}
	if p.Hostile.Streams && p.Servers > 1 {
		// One after the other with what else befalls servers: an election needs members that hear each other.
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{
			{"late streams", everybody(lateStreams)}, {"late streams, cut", everybody(lateAndCut)}, {"one way", everybody(oneWay)}, {"held requests", everybody(holdForwards)},
		})
	}
	if p.Hostile.Minimums {
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{{"elect and part", electAndPart}})
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
	if p.Hostile.Curator && p.credentials() == nil { // that client has none
		all["guests"] = []fault{{"curator", curator}}
	}
	if p.Only != "" {
		keep(all, regexp.MustCompile(p.Only))
	}
	return all
}

// keep leaves the faults whose names match.
func keep(all map[string][]fault, pattern *regexp.Regexp) {
	for name, faults := range all {
		all[name] = slices.DeleteFunc(slices.Clone(faults), func(x fault) bool { return !pattern.MatchString(x.name) })
		if len(all[name]) == 0 {
			delete(all, name)
		}
	}
}

// throttled has servers carry out only a half of what they are asked for, which is nobody's excuse.
func throttled(f *fleet, r *rand.Rand) reach {
	serve := f.srv.Intercept(newThrottle(r).judge)
	time.Sleep(f.long(r))
	serve()
	return only()
}

// refuseLogins has one server, or all, take nobody's login or credential for a while.
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

// tied are the clients that know no other server than this one.
func (f *fleet) tied(server int) []string {
	names := []string{nobody}
	for _, p := range f.present() {
		if len(p.servers) == 1 && p.servers[0] == f.srv.Addrs()[server] {
			names = append(names, p.name)
		}
	}
	return names
}

// lateStreams makes what the leader sends late, its PINGs too, and often what it is sent.
func lateStreams(f *fleet, r *rand.Rand) {
	m := f.member(r)
	m.DelayStreams(around(r, f.plan.Tick/3), pick(r, 0, around(r, f.plan.Tick/8)))
	time.Sleep(f.long(r))
	m.DelayStreams(0, 0)
}

// lateAndCut breaks the way back while a PING is late: what was committed may be answered, and the touches never come.
func lateAndCut(f *fleet, r *rand.Rand) {
	m := f.member(r)
	m.DelayStreams(around(r, f.plan.Tick/3), 0)
	time.Sleep(around(r, f.plan.Tick))
	m.CutStreams(false, true)
	time.Sleep(f.long(r))
	m.CutStreams(false, false)
	m.DelayStreams(0, 0)
}

// crowd has many goroutines of a client ask for a lock at once. Often the leader changes before they stand in its queue.
func crowd(f *fleet, r *rand.Rand) reach {
	p, l := f.anyone(r), f.plan.Locks[r.IntN(len(f.plan.Locks))]
	var all sync.WaitGroup
	for range 10 + r.IntN(30) {
		own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		// Owned by this call, which waits for it; ends with its turn, or with the process.
		all.Go(func() { takers[l.Recipe](p, l, own) })
	}
	if r.IntN(3) > 0 {
		time.Sleep(around(r, 2*f.plan.Latency))
		elect(f, r)
	}
	hit := reach{after: f.rec.Now() + 1, only: []string{nobody}}
	all.Wait()
	return hit
}

// electAndPart has the leader change, and a holder cut off before it has found another server: what has failed is between both.
func electAndPart(f *fleet, r *rand.Rand) reach {
	elect(f, r)
	after := f.rec.Now() + 1
	hit := partition(f, r)
	hit.after = after
	return hit
}

func oneWay(f *fleet, r *rand.Rand) {
	m, down := f.member(r), r.IntN(2) == 0
	m.CutStreams(down, !down)
	time.Sleep(f.long(r))
	m.CutStreams(false, false)
}

// holdForwards keeps back what a follower's clients ask of the leader, and drops their connections meanwhile: what
// they look for elsewhere may be made when they come back.
func holdForwards(f *fleet, r *rand.Rand) {
	release := f.member(r).HoldForwards()
	time.Sleep(around(r, f.plan.Timeout/8))
	f.srv.DropConnections()
	time.Sleep(around(r, f.plan.Timeout/2))
	release()
}

// deleteSeveral deletes some neighbours in a queue, the last first or all at once.
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
		_ = f.srv.DeleteNodes(paths...) // one that was faster does not matter
		return hit
	}
	for _, path := range paths {
		_ = f.srv.DeleteNodes(path)
	}
	return hit
}

// restore puts the ensemble back to an earlier state, as an operator does in an emergency: all servers are stopped, for longer
// than a session lasts, so that nobody believes to hold any more, and come back with a backup that has no sessions.
func restore(f *fleet, r *rand.Rand) {
	snap := f.srv.Dump()
	snap.Sessions = nil
	maps.DeleteFunc(snap.Nodes, func(_ string, n zktest.Node) bool { return n.EphemeralOwner != 0 })
	for path, n := range snap.Nodes {
		n.ACL = nil // may be that of a fault which will be over
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

// forge writes notes as a holder leaves them, which name some of those in the queue, one after the other. Clients that trust
// nobody are not to be moved by them.
func forge(f *fleet, r *rand.Rand) reach {
	dir := f.plan.Locks[r.IntN(len(f.plan.Locks))].waiting()
	for range 1 + r.IntN(20) {
		names := slices.DeleteFunc(f.srv.Children(dir), func(name string) bool { return !contends("/" + name) })
		if len(names) > 0 {
			note := "zklock: last held by " + names[r.IntN(len(names))]
			_ = f.srv.Apply(zktest.Step{Op: zktest.OpSetData, Path: dir, Data: []byte(note)}) // the directory may have gone
		}
		time.Sleep(around(r, f.plan.Hold/2))
	}
	return only()
}
