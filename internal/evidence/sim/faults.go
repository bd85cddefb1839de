package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/zktest"
)

// fault is one kind of trouble: it does its harm, lasts, and is mended again when it returns.
type fault struct {
	name string
	do   func(f *fleet, r *rand.Rand) reach
}

// reach is whom a fault hits. The zero reach is everybody, all the while.
type reach struct {
	only  []string      // these clients
	after time.Duration // from then on; everybody before
}

// nobody is hit by what neither a client nor a server has to do with.
const nobody = "nobody"

// only is the reach of a fault that hits these clients.
func only(clients ...string) reach { return reach{only: append(clients, nobody)} }

// everybody makes a fault of what may hit all clients.
func everybody(do func(f *fleet, r *rand.Rand)) func(f *fleet, r *rand.Rand) reach {
	return func(f *fleet, r *rand.Rand) reach {
		do(f, r)
		return reach{}
	}
}

// owner is the client whose node it is, nobody if it has none.
func (f *fleet) owner(node string) string {
	n, ok := f.srv.Node(node)
	f.mu.Lock()
	defer f.mu.Unlock()
	if name := f.sessions[n.EphemeralOwner]; ok && name != "" {
		return name
	}
	return nobody
}

// Each group is one stream of trouble: faults of a group follow one another, groups overlap.
var troubles = map[string][]fault{
	"ensemble": {
		{"drop", everybody(func(f *fleet, r *rand.Rand) { f.srv.DropConnections() })},
		{"restart", everybody(func(f *fleet, r *rand.Rand) { f.srv.Restart() })},
		{"elect", everybody(elect)},
		{"usurp", everybody(usurp)},
		{"stop", everybody(onMember((*zktest.Member).Stop, (*zktest.Member).Start))},
		{"freeze", everybody(standstill((*zktest.Member).Freeze, (*zktest.Member).Thaw))},
		{"cut off", everybody(standstill((*zktest.Member).CutOff, (*zktest.Member).Rejoin))},
		{"lag", everybody(lag)},
		{"behind", everybody(behind)},
		{"refuse", everybody(onMember(func(m *zktest.Member) { m.Refuse(true) }, func(m *zktest.Member) { m.Refuse(false) }))},
	},
	"network": {
		{"partition", partition},
		{"lost replies", everybody(flaky(zktest.LoseReply))},
		{"lost requests", everybody(flaky(zktest.DropBefore))},
		{"delays", everybody(delays)},
		{"crash", crash},
		{"wall clock", wallClock},
	},
	"operator": {
		{"delete", deleteNode},
		{"expire", expire},
		{"parents", everybody(reapParent)},
		{"counter", everybody(exhaust)},
		{"stranger", stranger},
	},
}

// failures are what happens in a world in which one follower after the other fails, and nothing else.
var failures = []fault{
	{"follower, frozen", everybody(failing(onItself((*zktest.Member).Freeze, (*zktest.Member).Thaw)))},
	{"follower, cut off", everybody(failing(onItself((*zktest.Member).CutOff, (*zktest.Member).Rejoin)))},
	{"follower, stopped", everybody(failing(onItself((*zktest.Member).Stop, (*zktest.Member).Start)))},
	{"follower, mute", everybody(failing(mute))},
	{"follower, throttled", everybody(failing(overload))},
}

// onItself harms a member, and returns what mends it.
func onItself(harm, mend func(*zktest.Member)) func(f *fleet, i int) func() {
	return func(f *fleet, i int) func() {
		harm(f.srv.Member(i))
		return func() { mend(f.srv.Member(i)) }
	}
}

// mute has a member answer nobody, and go on telling of what happens.
func mute(f *fleet, i int) func() {
	answers := make(chan struct{})
	listen := f.srv.Intercept(func(q *zktest.Request) zktest.Verdict {
		if q.Member == i {
			return zktest.Hold(answers)
		}
		return zktest.Pass
	})
	return func() {
		listen()
		close(answers)
	}
}

// overload has a member throttle a part of what it is asked.
func overload(f *fleet, i int) func() {
	all := newThrottle(stream(f.plan.Seed, "throttle"))
	return f.srv.Intercept(func(q *zktest.Request) zktest.Verdict {
		if q.Member == i {
			return all.judge(q)
		}
		return zktest.Pass
	})
}

// failing harms a follower, and lets it rest when it is well again.
func failing(harm func(f *fleet, i int) (mend func())) func(f *fleet, r *rand.Rand) {
	return func(f *fleet, r *rand.Rand) {
		i := r.IntN(f.plan.Servers)
		for f.srv.Member(i) == f.srv.Leader() {
			i = r.IntN(f.plan.Servers)
		}
		mend := harm(f, i)
		time.Sleep(around(r, 2*f.plan.Timeout))
		mend()
		time.Sleep(f.plan.Timeout)
	}
}

func elect(f *fleet, r *rand.Rand) { f.srv.ElectLeader(r.IntN(f.plan.Servers)) }

// usurp has the others elect a leader while the one they had is cut off and does not hear of it.
func usurp(f *fleet, r *rand.Rand) {
	old := f.srv.Leader()
	if old == nil || f.plan.Servers == 1 {
		return
	}
	next := r.IntN(f.plan.Servers)
	if f.srv.Member(next) == old {
		next = (next + 1) % f.plan.Servers
	}
	old.CutOff()
	f.srv.ElectLeader(next)
	time.Sleep(f.long(r))
	old.Rejoin()
}

// long is a time that is often longer than what members and sessions survive.
func (f *fleet) long(r *rand.Rand) time.Duration {
	limit := time.Duration(f.plan.SyncLimit) * f.plan.Tick
	return around(r, pick(r, f.plan.Tick, limit, limit+f.plan.Timeout))
}

func onMember(harm, mend func(*zktest.Member)) func(f *fleet, r *rand.Rand) {
	return func(f *fleet, r *rand.Rand) {
		m := f.srv.Member(r.IntN(f.plan.Servers))
		harm(m)
		time.Sleep(f.long(r))
		mend(m)
	}
}

// standstill takes a server out of the conversation for a while, which can be longer than a session. Followers tell a leader
// which of their clients are alive only when it asks: after a standstill it can end sessions whose clients were in touch all
// the time, right after it has answered them.
func standstill(harm, mend func(*zktest.Member)) func(f *fleet, r *rand.Rand) {
	return func(f *fleet, r *rand.Rand) {
		m, d := f.member(r), f.long(r)
		if m == f.srv.Leader() && d > f.plan.shortest() {
			f.count("leader away for longer than a session")
		}
		harm(m)
		time.Sleep(d)
		mend(m)
	}
}

// lag has a member apply late, every other time the leader: then followers know what its own clients are not told yet. Those who
// lose their connections meanwhile look for what they have asked for where it is committed and does not show.
func lag(f *fleet, r *rand.Rand) {
	m := f.member(r)
	if leader := f.srv.Leader(); leader != nil && r.IntN(2) == 0 {
		m = leader
		f.count("lag of a leader")
	}
	m.Lag(around(r, f.plan.Tick))
	for range r.IntN(4) {
		time.Sleep(around(r, f.plan.Tick))
		f.srv.DropConnections()
	}
	time.Sleep(f.long(r))
	m.Lag(0)
}

// behind loses answers while followers are behind: a client that comes back looks for what it has done on a server that does not know yet.
func behind(f *fleet, r *rand.Rand) {
	for i := range f.plan.Servers {
		f.srv.Member(i).Lag(around(r, f.plan.Tick))
	}
	flaky(zktest.LoseReply)(f, r)
	for i := range f.plan.Servers {
		f.srv.Member(i).Lag(0)
	}
}

// holder is a process that probably holds something.
func (f *fleet) holder(r *rand.Rand) *process {
	if node, ok := f.someNode(r); ok {
		there, _ := f.srv.Node(node)
		f.mu.Lock()
		name := f.sessions[there.EphemeralOwner]
		f.mu.Unlock()
		for _, p := range f.present() {
			if p.name == name {
				return p
			}
		}
	}
	return f.anyone(r)
}

func partition(f *fleet, r *rand.Rand) reach {
	p := f.holder(r)
	p.cutOff(around(r, pick(r, p.spec.Session/4, p.spec.Session, 2*p.spec.Session)))
	return only(p.name)
}

// flaky lets some requests of everybody fail for a while.
func flaky(v zktest.Verdict) func(f *fleet, r *rand.Rand) {
	return func(f *fleet, r *rand.Rand) {
		f.unsettle(r, func(*rand.Rand) zktest.Verdict { return v }, pick(r, 3, 20))
	}
}

func delays(f *fleet, r *rand.Rand) {
	most := f.plan.Timeout / 4
	f.unsettle(r, func(r *rand.Rand) zktest.Verdict { return zktest.Delay(min(around(r, f.plan.Timeout/6), most)) }, pick(r, 5, 30))
	time.Sleep(most) // until what was held back last has come through
}

// unsettle gives one in so many requests a verdict.
func (f *fleet) unsettle(r *rand.Rand, verdict func(*rand.Rand) zktest.Verdict, oneIn int) {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) // guarded by mu
	remove := f.srv.Intercept(func(req *zktest.Request) zktest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if dice.IntN(oneIn) == 0 {
			return verdict(dice)
		}
		return zktest.Pass
	})
	time.Sleep(f.long(r))
	remove()
}

// crash ends a process, and starts another in its place after a while.
func crash(f *fleet, r *rand.Rand) reach {
	p := f.anyone(r)
	f.crash(p)
	time.Sleep(around(r, p.spec.Session))
	n := 1
	if i := strings.LastIndexByte(p.name, '.'); i >= 0 {
		for _, d := range p.name[i+1:] {
			n = 10*(n-1) + int(d-'0') + 1
		}
	}
	f.launch(p.spec, n)
	return only(p.name)
}

// wallClock moves one machine's wall clock: forward as a machine that slept sees it, or back.
func wallClock(f *fleet, r *rand.Rand) reach {
	p := f.anyone(r)
	p.skew.Add(int64(around(r, 2*f.plan.Timeout)) * int64(pick(r, 1, 1, -1)))
	return only(p.name)
}

// someNode is a node in one of the queues, often the first.
func (f *fleet) someNode(r *rand.Rand) (string, bool) {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	names := slices.DeleteFunc(f.srv.Children(l.queue()), func(name string) bool { return !contends("/" + name) })
	if len(names) == 0 {
		return "", false
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):]) })
	if r.IntN(2) == 0 {
		return l.queue() + "/" + names[0], true
	}
	return l.queue() + "/" + names[r.IntN(len(names))], true
}

func deleteNode(f *fleet, r *rand.Rand) reach {
	node, ok := f.someNode(r)
	if !ok {
		return only()
	}
	owner := f.owner(node)
	_ = f.srv.DeleteNode(node) // who was faster does not matter
	return only(owner)
}

func expire(f *fleet, r *rand.Rand) reach {
	sessions := f.srv.Sessions()
	if len(sessions) == 0 {
		return only()
	}
	id := sessions[r.IntN(len(sessions))].ID
	f.mu.Lock()
	f.forced[id] = true
	name := f.sessions[id]
	f.mu.Unlock()
	f.srv.ExpireSession(id)
	return only(name)
}

// reapParent deletes a lock with all that is in it, as a clean-up script would.
func reapParent(f *fleet, r *rand.Rand) {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	for _, name := range f.srv.Children(l.queue()) {
		_ = f.srv.DeleteNode(l.queue() + "/" + name)
	}
	_ = f.srv.DeleteNode(l.queue())
}

// exhaust brings a lock near the end of its sequence numbers, once: a counter never goes back.
func exhaust(f *fleet, r *rand.Rand) {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	defer func() { _ = recover() }() // the directory may have gone this very moment
	dir, ok := f.srv.Node(l.queue())
	if !ok || f.exhausted[dir.Czxid] {
		return
	}
	f.exhausted[dir.Czxid] = true
	f.srv.SetChildCounter(l.queue(), 1<<31-2-int32(r.IntN(20))) // the next number goes into the log of all
}

// stranger puts a node into a lock's directory that is none of its business.
func stranger(f *fleet, r *rand.Rand) reach {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	node := l.queue() + "/" + pick(r, "_c_short", "lost+found", "_c_x-lock-", "x-lock-12", "config", "_c_0123456789abcdef0123456789abcdef-lock-00000000zz")
	_ = f.srv.PutNode(node, []byte("mine"))
	time.Sleep(f.long(r))
	_ = f.srv.DeleteNode(node)
	return only()
}
