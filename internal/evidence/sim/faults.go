// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/lab"
	"github.com/zklock-go/zklock/zktest"
)

// fault is one kind of fault. do causes it, waits, and ends it before it returns.
type fault struct {
	name string
	do   func(f *fleet, r *rand.Rand) reach
}

// reach says which clients a fault affects. The zero reach is all clients, for the whole duration.
type reach struct {
	only  []string      // the affected clients, or empty for all
	after time.Duration // until this time, all clients are affected
}

// nobody is the name of no client. It makes only a non-empty list.
const nobody = "nobody"

// only returns the reach of a fault that affects only these clients.
func only(clients ...string) reach { return reach{only: append(clients, nobody)} }

// everybody returns the function of a fault that affects all clients.
func everybody(do func(f *fleet, r *rand.Rand)) func(f *fleet, r *rand.Rand) reach {
	return func(f *fleet, r *rand.Rand) reach {
		do(f, r)
		return reach{}
	}
}

// owner returns the client that owns the node, or nobody if there is none.
func (f *fleet) owner(node string) string {
	n, ok := f.srv.Node(node)
	f.mu.Lock()
	defer f.mu.Unlock()
	if name := f.sessions[n.EphemeralOwner]; ok && name != "" {
		return name
	}
	return nobody
}

// troubles has the usual streams of faults. Faults of a stream follow one another; faults of different streams can overlap.
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

// failures are the faults of a plan in which one follower after the other fails.
var failures = []fault{
	{"follower, frozen", everybody(failing(onItself((*zktest.Member).Freeze, (*zktest.Member).Thaw)))},
	{"follower, cut off", everybody(failing(onItself((*zktest.Member).CutOff, (*zktest.Member).Rejoin)))},
	{"follower, stopped", everybody(failing(onItself((*zktest.Member).Stop, (*zktest.Member).Start)))},
	{"follower, mute", everybody(failing(mute))},
	{"follower, throttled", everybody(failing(overload))},
}

// dialings are the faults of a plan in which clients lose their connections, and the servers that they dial next take long.
var dialings = []fault{
	{"silent servers", everybody(silentServers)},
	{"slow handshakes", everybody(slowHandshakes)},
}

// silentServers freezes one or two followers, which still accept connections, and drops all connections. Each client has more servers.
func silentServers(f *fleet, r *rand.Rand) {
	var frozen []*zktest.Member
	for _, i := range r.Perm(f.plan.Servers)[:1+r.IntN(2)] {
		if m := f.srv.Member(i); m != f.srv.Leader() {
			m.Freeze()
			frozen = append(frozen, m)
		}
	}
	f.srv.DropConnections()
	time.Sleep(around(r, 2*f.plan.Timeout))
	for _, m := range frozen {
		m.Thaw()
	}
	time.Sleep(f.plan.Timeout)
}

// slowHandshakes drops all connections while each TLS handshake takes longer than the client library's limit for a dial.
func slowHandshakes(f *fleet, r *rand.Rand) {
	f.handshake.Store(int64(1100*time.Millisecond) + r.Int64N(int64(f.plan.Timeout/20)))
	f.srv.DropConnections()
	time.Sleep(f.plan.Timeout)
	f.handshake.Store(0)
	time.Sleep(f.plan.Timeout)
}

// frozenServer freezes the server of a holder, which still accepts connections, and drops all connections while the other servers refuse
// new ones. When these serve again, each client must find one of them while the first server remains frozen.
func frozenServer(f *fleet, r *rand.Rand) reach {
	m := f.member(r)
	refuse := func(refuses bool) {
		for i := range f.plan.Servers {
			if x := f.srv.Member(i); x != m {
				x.Refuse(refuses)
			}
		}
	}
	refuse(true)
	m.Freeze()
	f.srv.DropConnections()
	time.Sleep(f.plan.Timeout * time.Duration(2+r.IntN(3)) / 4)
	refuse(false)
	hit := only()
	hit.after = f.rec.Now() + 1
	time.Sleep(f.plan.Wake() + 4*f.plan.Timeout)
	m.Thaw()
	time.Sleep(f.plan.Timeout)
	return hit
}

// onItself returns a function that causes a fault of a member, and returns the function that ends it.
func onItself(harm, mend func(*zktest.Member)) func(f *fleet, i int) func() {
	return func(f *fleet, i int) func() {
		harm(f.srv.Member(i))
		return func() { mend(f.srv.Member(i)) }
	}
}

// mute makes a member stop replying to requests, while it still sends events. It returns the function that ends this.
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

// overload makes a member refuse a part of the requests. It returns the function that ends this.
func overload(f *fleet, i int) func() {
	all := newThrottle(stream(f.plan.Seed, "throttle"), f.refusals)
	return f.srv.Intercept(func(q *zktest.Request) zktest.Verdict {
		if q.Member == i {
			return all.judge(q)
		}
		return zktest.Pass
	})
}

// failing causes a fault of a follower for a while, and pauses after it.
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

// usurp cuts off the leader and makes the other servers elect a new one, which the old leader does not notice.
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

// long draws a duration that is often longer than members and sessions survive.
func (f *fleet) long(r *rand.Rand) time.Duration {
	limit := time.Duration(f.plan.SyncLimit) * f.plan.Tick
	return around(r, pick(r, f.plan.Tick, limit, limit+f.plan.Timeout))
}

func onMember(harm, mend func(*zktest.Member)) func(f *fleet, r *rand.Rand) {
	return func(f *fleet, r *rand.Rand) {
		m := f.member(r)
		harm(m)
		time.Sleep(f.long(r))
		mend(m)
	}
}

// retick restarts a server with another tick, and makes it the leader half of the time.
func retick(f *fleet, r *rand.Rand) {
	i := r.IntN(f.plan.Servers)
	m := f.srv.Member(i)
	m.Stop()
	time.Sleep(around(r, f.plan.Tick))
	lab.SetTickTime(m, f.plan.drawTick(r))
	m.Start()
	time.Sleep(f.plan.Tick) // so that it joins the others
	if r.IntN(2) == 0 {
		f.srv.ElectLeader(i)
	}
}

// standstill suspends a server for a while, which can be longer than a session. Followers report their live clients to a leader
// only when it asks. So after a pause, a leader can expire sessions of clients that have been connected all the time, right after
// it has replied to them.
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

// longestMove is how long a leader stands still at most when its machine is moved: see assumption A4.
const longestMove = time.Second

// moveLeader moves the leader's machine at a touch of a holder on another server. The leader stands still together with its clock, so its
// next ping comes late. When the holder has proven its session, it is partitioned and its server is cut off, so that the leader does not
// hear of what that server has not reported yet.
func moveLeader(f *fleet, r *rand.Rand) {
	time.Sleep(2 * f.plan.Timeout) // until slow replies are forgotten: a lag is shorter after them
	p := f.holder(r)
	touch, ok := f.next(p, func(q *zktest.Request) bool { return q.Op == zktest.OpExists })
	leader := f.srv.Leader()
	if !ok || leader == nil || leader == f.srv.Member(touch.Member) {
		return
	}
	resume := lab.StandStill(leader)
	time.Sleep(longestMove - time.Duration(r.IntN(int(longestMove/2))))
	resume()
	if _, ok := f.next(p, func(q *zktest.Request) bool { return q.Op == zktest.OpMulti && isBeat(q) }); !ok {
		return
	}
	time.Sleep(10 * f.plan.Latency) // until it is answered
	own := f.srv.Member(touch.Member)
	own.CutOff()
	p.cutOff(2 * f.plan.Timeout)
	own.Rejoin()
}

// next returns the next request of a process for which is returns true. ok is false if there is none within a session timeout.
func (f *fleet) next(p *process, is func(*zktest.Request) bool) (found zktest.Request, ok bool) {
	met := make(chan zktest.Request, 1)
	defer f.srv.Intercept(func(q *zktest.Request) zktest.Verdict {
		if q.Client == p.name && is(q) {
			select {
			case met <- *q:
			default:
			}
		}
		return zktest.Pass
	})()
	select {
	case found = <-met:
		return found, true
	case <-time.After(f.plan.Timeout):
		return found, false
	}
}

// lag makes a member apply transactions late. Half of the time it is the leader, and then followers show changes before the leader
// does. Clients that lose their connections meanwhile look for the result of a request on a server that does not show it yet.
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

// behind drops replies while followers lag: a client that reconnects looks for the result of a request on a server that does not
// show it yet.
func behind(f *fleet, r *rand.Rand) {
	for i := range f.plan.Servers {
		f.srv.Member(i).Lag(around(r, f.plan.Tick))
	}
	flaky(zktest.LoseReply)(f, r)
	for i := range f.plan.Servers {
		f.srv.Member(i).Lag(0)
	}
}

// holder returns a process that probably holds a lock.
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

// flaky makes some requests of all clients fail for a while.
func flaky(v zktest.Verdict) func(f *fleet, r *rand.Rand) {
	return func(f *fleet, r *rand.Rand) {
		f.unsettle(r, func(*rand.Rand) zktest.Verdict { return v }, pick(r, 3, 20))
	}
}

func delays(f *fleet, r *rand.Rand) {
	most := f.plan.Timeout / 4
	f.unsettle(r, func(r *rand.Rand) zktest.Verdict { return zktest.Delay(min(around(r, f.plan.Timeout/6), most)) }, pick(r, 5, 30))
	time.Sleep(most) // until the last delayed request has arrived
}

// unsettle applies a verdict to one in oneIn requests for a while.
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

// crash ends a process, and starts its successor after a while.
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

// wallClock moves one machine's wall clock: forward, as after a suspend, or back.
func wallClock(f *fleet, r *rand.Rand) reach {
	p := f.anyone(r)
	p.skew.Add(int64(around(r, 2*f.plan.Timeout)) * int64(pick(r, 1, 1, -1)))
	return only(p.name)
}

// someNode returns a node in one of the queues, often the first.
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
	_ = f.srv.DeleteNode(node) // its owner may have deleted it first
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

// reapParent deletes a lock's directory and its nodes, as a clean-up script would.
func reapParent(f *fleet, r *rand.Rand) {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	for _, name := range f.srv.Children(l.queue()) {
		_ = f.srv.DeleteNode(l.queue() + "/" + name)
	}
	_ = f.srv.DeleteNode(l.queue())
}

// exhaust sets the sequence counter of a lock's directory near its maximum, once, because a counter never decreases.
func exhaust(f *fleet, r *rand.Rand) {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	defer func() { _ = recover() }() // SetChildCounter panics if the directory was just deleted
	dir, ok := f.srv.Node(l.queue())
	if !ok || f.exhausted[dir.Czxid] {
		return
	}
	f.exhausted[dir.Czxid] = true
	lab.SetChildCounter(f.srv, l.queue(), 1<<31-2-int32(r.IntN(20)))
}

// stranger creates a node in a lock's directory that does not belong to a contender.
func stranger(f *fleet, r *rand.Rand) reach {
	l := f.plan.Locks[r.IntN(len(f.plan.Locks))]
	node := l.queue() + "/" + pick(r, "_c_short", "lost+found", "_c_x-lock-", "x-lock-12", "config", "_c_0123456789abcdef0123456789abcdef-lock-00000000zz")
	_ = f.srv.PutNode(node, []byte("mine"))
	time.Sleep(f.long(r))
	_ = f.srv.DeleteNode(node)
	return only()
}
