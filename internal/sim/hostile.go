package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

// Hostile are kinds of servers and trouble beyond the usual ones. Each is drawn from the seed by itself, so that
// switching one on leaves the rest of a plan as it is.
type Hostile struct {
	Streams bool // between a follower and its leader: slow, with late PINGs; broken one way; requests held back
	Buckets bool // many sessions expire one after the other, touches get lost, PINGs after a standstill come late
	Wipes   bool // third parties delete several nodes of a queue, at once or back to front
	Later   bool // servers of ZooKeeper 3.9
	Short   bool // sessions shorter than two ticks
	Closing bool // servers that close the connection on container creates, and on watches that are set again
	Keeper  bool // servers of another make
	Evicts  bool // an operator removes contenders
	Curator bool // another client's writers, some of which become readers
	Backups bool // the ensemble is restored to an earlier state, without its sessions
}

// usual draws the kinds of a seed's plan: those that leave most of a run as it is always, the others for some seeds.
func usual(seed uint64) Hostile {
	r := stream(seed, "kinds")
	streams, short, closing, keeper, backups := r.IntN(3) == 0, r.IntN(4) == 0, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(6) == 0
	return Hostile{
		Buckets: true, Wipes: true, Later: true, Evicts: true, Curator: true,
		Streams: streams, Short: short, Closing: closing, Keeper: keeper, Backups: backups,
	}
}

// Parse switches kinds on by their names in lower case, separated by commas; "all" is all of them.
func (h *Hostile) Parse(names string) error {
	v := reflect.ValueOf(h).Elem()
	for name := range strings.SplitSeq(names, ",") {
		found := name == ""
		for i := range v.NumField() {
			if name == "all" || name == strings.ToLower(v.Type().Field(i).Name) {
				v.Field(i).SetBool(true)
				found = true
			}
		}
		if !found {
			return fmt.Errorf("sim: no kind of trouble %q", name)
		}
	}
	return nil
}

// makeHostile draws what a plan with these kinds has.
func (p *Plan) makeHostile() {
	r := stream(p.Seed, "hostile")
	gap, lose, late := pick(r, 0, 20*time.Millisecond, 80*time.Millisecond), pick(r, 0, 0.007, 0.1), pick(r, 0, 80*time.Millisecond)
	later, closing, watches, keeper := r.IntN(3) == 0, r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(4) == 0
	short := make([]float64, len(p.Clients))
	for i := range short {
		short[i] = pick(r, 0, 1, 1, 1.5) // with less there is hardly time to prove anything
	}
	h := &p.Hostile
	if h.Buckets {
		p.ExpiryGap, p.LoseTouches, p.LatePing = gap, lose, late
	}
	if h.Later && later {
		p.Flavor = zktest.ZooKeeper39
	}
	if h.Keeper && keeper {
		p.Flavor = zktest.Keeper
	}
	if h.Closing && closing {
		p.UnknownOps = []zktest.Op{zktest.OpCreateContainer}
		if watches {
			p.UnknownOps = append(p.UnknownOps, zktest.OpSetWatches)
		}
	}
	if h.Short {
		p.MinSession = p.Tick / 2
		for i, ticks := range short {
			if ticks > 0 {
				p.Clients[i].Session = time.Duration(ticks * float64(p.Tick))
				p.Latency = min(p.Latency, p.Clients[i].Session/50) // else no proof is done before it is over
			}
		}
	}
}

// options are the ensemble's.
func (p *Plan) options() zktest.Options {
	return zktest.Options{
		Servers: p.Servers, TickTime: p.Tick, SyncLimit: p.SyncLimit, Seed: p.Seed, Latency: p.delay,
		WrapCounter: p.WrapCounter, NoContainers: p.NoContainers, ForgetSessions: p.ForgetSessions, ContainerCheck: p.ContainerCheck,
		ExpiryGap: p.ExpiryGap, LoseTouches: p.LoseTouches, LatePing: p.LatePing, Flavor: p.Flavor, UnknownOps: p.UnknownOps,
		MinSessionTimeout: p.MinSession,
	}
}

// troubles are the streams of faults of the plan.
func (p *Plan) troubles() map[string][]fault {
	all := map[string][]fault{}
	for name, faults := range troubles {
		all[name] = faults
	}
	if p.Hostile.Streams && p.Servers > 1 {
		// One after the other with what else befalls servers: an election needs members that hear each other.
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{
			{"late streams", lateStreams}, {"late streams, cut", lateAndCut}, {"one way", oneWay}, {"held requests", holdForwards},
		})
	}
	if p.Hostile.Backups {
		all["ensemble"] = slices.Concat(all["ensemble"], []fault{{"restore", restore}})
	}
	if p.Hostile.Wipes {
		all["wipes"] = []fault{{"several deletes", deleteSeveral}}
	}
	if p.Hostile.Evicts {
		all["evictions"] = []fault{{"evict", evict}}
	}
	if p.Hostile.Curator {
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

func (f *fleet) member(r *rand.Rand) *zktest.Member { return f.srv.Member(r.IntN(f.plan.Servers)) }

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
func deleteSeveral(f *fleet, r *rand.Rand) {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	names := slices.DeleteFunc(f.srv.Children(l.queue()), func(name string) bool { return !contends("/" + name) })
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b[max(0, len(b)-10):], a[max(0, len(a)-10):]) })
	from := r.IntN(len(names) + 1)
	paths := []string{}
	for _, name := range names[from:min(len(names), from+1+r.IntN(4))] {
		paths = append(paths, l.queue()+"/"+name)
	}
	if r.IntN(2) == 0 {
		_ = f.srv.DeleteNodes(paths...) // one that was faster does not matter
		return
	}
	for _, path := range paths {
		_ = f.srv.DeleteNodes(path)
	}
}

// restore puts the ensemble back to an earlier state, as an operator does who has to: all servers are stopped, for longer
// than a session lasts, so that nobody believes to hold any more, and come back with a backup that has no sessions.
func restore(f *fleet, r *rand.Rand) {
	snap := f.srv.Dump()
	snap.Sessions = nil
	maps.DeleteFunc(snap.Nodes, func(_ string, n zktest.Node) bool { return n.EphemeralOwner != 0 })
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
