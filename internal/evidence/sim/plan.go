// Package sim runs whole fleets of clients against a faulty ensemble in virtual time and looks for a broken promise.
//
// A Plan is drawn from a seed: the ensemble, the clients, the locks, how everybody behaves and when what goes wrong.
// Run carries it out inside a testing/synctest bubble, with the unmodified client library and the in-process server,
// and returns the history, which package history checks. The same seed gives the same fault schedule. The order in
// which goroutines run within one instant is the scheduler's: natively two runs of a seed are alike. Compiled to
// WebAssembly, with one thread and a random number generator of a known seed, they are identical (tools/replay).
package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// Plan is one run, all drawn from Seed.
type Plan struct {
	Seed           uint64
	Servers        int
	Tick           time.Duration
	SyncLimit      int
	Latency        time.Duration // the usual one-way delay lies below it
	NoContainers   bool
	ForgetSessions bool
	WrapCounter    bool
	ContainerCheck time.Duration
	Hostile        Hostile
	ExpiryGap      time.Duration
	LoseTouches    float64
	LatePing       time.Duration
	Flavor         zktest.Flavor
	UnknownOps     []zktest.Op
	Logins         bool // servers require a login by SASL
	Restricted     bool // only clients with a credential may use what they create
	MinSession     time.Duration
	MinSessions    []time.Duration // of servers that do not agree about it; 0 for one that does
	Cohorts        bool            // mutexes are taken by goroutines whose process has one place for all
	Delay          time.Duration   // the lock-delay of all clients, or zero
	Healthy        bool            // nothing goes wrong, and what remains of holds is measured
	Failing        bool            // so it is, while one follower after the other fails
	Only           string          // a pattern of the faults that happen; "" means all
	Steps          []Step          // the faults, none if it is empty; nil if they are to be drawn
	Locks          []Lock
	Clients        []Client
	Hold           time.Duration // how long a lock is held, on average
	Think          time.Duration // how long a worker rests between two acquires, on average
	Before         time.Duration // the time without faults at first
	During         time.Duration // the time with faults
	After          time.Duration // the time without faults at last
	Pause          time.Duration // between two faults of one kind of trouble, on average
	Timeout        time.Duration // the longest session timeout
}

// Lock is one lock that the workers contend for.
type Lock struct {
	Recipe  history.Recipe
	Path    string
	Permits int // a semaphore's
}

// Step is one fault of a plan. Its details are drawn from its stream's name and its number.
type Step struct {
	Stream string
	Number int
	At     time.Duration
	Kind   string // the fault's name; "" means that it is drawn as well
}

// guestName is what clients of another library are called in the history.
const guestName = "curator"

// queue is the directory of the nodes that show the holders.
func (l Lock) queue() string {
	if l.Recipe == history.Semaphore {
		return l.Path + "/leases"
	}
	return l.Path
}

// Client is one process.
type Client struct {
	Name    string
	Session time.Duration
	Workers int
}

// stream returns one of 2^64 streams of a seed, so that what is drawn does not depend on the order of drawing.
func stream(seed uint64, name string) *rand.Rand {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}

// NewPlan draws a run. Its length is about four virtual hours on average.
func NewPlan(seed uint64) *Plan { return NewHostilePlan(seed, usual(seed)) }

// NewHostilePlan draws a run with the given kinds of trouble.
func NewHostilePlan(seed uint64, hostile Hostile) *Plan {
	r := stream(seed, "plan")
	p := &Plan{
		Seed:           seed,
		Hostile:        hostile,
		Servers:        pick(r, 1, 3, 3, 3, 5),
		Tick:           pick(r, 500*time.Millisecond, time.Second, 2*time.Second, 3*time.Second, 6*time.Second, 10*time.Second),
		SyncLimit:      pick(r, 3, 5, 8),
		NoContainers:   r.IntN(4) == 0,
		ForgetSessions: r.IntN(10) == 0,
		WrapCounter:    r.IntN(8) == 0,
		ContainerCheck: pick(r, 5*time.Second, time.Minute),
	}
	p.Latency = pick(r, time.Millisecond, 20*time.Millisecond, p.Tick/8)
	for i := range 2 + r.IntN(4) {
		ticks := pick(r, 2, 3, 4, 6, 10, 20)
		p.Clients = append(p.Clients, Client{fmt.Sprintf("c%d", i), time.Duration(ticks) * p.Tick, 1 + r.IntN(3)})
	}
	for _, c := range p.Clients {
		p.Timeout = max(p.Timeout, c.Session)
	}
	p.makeHostile()
	p.Cohorts = stream(seed, "cohorts").IntN(4) == 0
	for i := range 1 + r.IntN(2) {
		k := Recipes[r.IntN(len(Recipes))]
		p.Locks = append(p.Locks, Lock{k, fmt.Sprintf("/locks/%s-%d", k, i), 1 + r.IntN(p.mostPermits())})
	}
	p.pace(r)
	return p
}

// PlanOf is the plan of a run whose history was saved.
func PlanOf(h *history.History) (*Plan, error) {
	var p Plan
	if err := json.Unmarshal([]byte(h.Meta["plan"]), &p); err != nil {
		return nil, fmt.Errorf("sim: the plan in the history: %w", err)
	}
	return &p, nil
}

// pace draws the times: so that the locks are contended, and that the run takes its share of events.
func (p *Plan) pace(r *rand.Rand) {
	workers := 0
	for _, c := range p.Clients {
		workers += c.Workers
	}
	// What costs is heartbeats and pings, so many a tick: short ticks get short runs.
	total := 15*time.Minute + time.Duration(p.Tick.Seconds()*(1.05+r.Float64()*0.48)*float64(time.Hour))
	if p.isDense() {
		total /= 4
	}
	p.Hold = max(total/800/busy(p.Seed), p.Tick/2)
	p.Think = p.Hold * time.Duration(workers) / time.Duration(pick(r, 1, 2, 4)*len(p.Locks))
	p.Before, p.After = total/6, total/4
	p.During = total - p.Before - p.After
	p.Pause = max(p.During/time.Duration(40+r.IntN(80)), 2*p.Timeout)
}

// isDense reports whether a session is so short that heartbeats follow one another at once: up to ten times as many requests a
// tick as usual. Holds and pauses between faults follow the length of the run, so that little of either is lost in a short one.
func (p *Plan) isDense() bool {
	return slices.ContainsFunc(p.Clients, func(c Client) bool { return c.Session < 2*p.Tick })
}

// busy draws how many times more than at least the locks of a run are taken: with long holds most faults meet holders and
// waiters, with short ones acquires and hand-offs.
func busy(seed uint64) time.Duration {
	return pick(stream(seed, "busy"), time.Duration(1), 4, 12)
}

// mostPermits bounds a semaphore, so that it is contended.
func (p *Plan) mostPermits() int { return min(3, len(p.Clients)) }

// Wake is the bound on everything that has one, where nothing is broken: two timeouts (one to notice, one for what a
// lost session left behind), the time a cut-off server takes to give up, and retries.
func (p *Plan) Wake() time.Duration {
	return 3*p.Timeout + time.Duration(p.SyncLimit)*p.Tick + p.Delay + 10*time.Second
}

// Prompt is the same where nothing has been broken for that long: a heartbeat, the time until it proves something, and some
// ways there and back, each of which may take five times the usual.
func (p *Plan) Prompt() time.Duration {
	return p.Delay + p.Timeout/3 + p.Tick + 24*p.Latency + time.Second
}

// shortest is the shortest session timeout.
func (p *Plan) shortest() time.Duration {
	return slices.MinFunc(p.Clients, func(a, b Client) int { return cmp.Compare(a.Session, b.Session) }).Session
}

// Limits are the bounds for the checker.
func (p *Plan) Limits() history.Limits {
	shortest := p.shortest()
	return history.Limits{
		Wake: p.Wake(), Prompt: p.Prompt(), Delay: p.Delay, Stranger: guestName, Foreign: p.Timeout, Notice: 12*p.Latency + 1500*time.Millisecond,
		// A client that was idle knows of its session, at the grant, from the ping before the last: a ninth of the timeout is left for
		// the create and the first heartbeat, there and back, each of which may take five times the usual.
		// With less than a tick there is hardly time for the next proof.
		Lossless: 250*p.Latency < shortest && shortest >= p.Tick,
	}
}

// Shorten makes the run n times shorter, with the same trouble per hour.
func (p *Plan) Shorten(n int) {
	for _, d := range []*time.Duration{&p.Before, &p.During, &p.After} {
		*d = max(*d/time.Duration(n), 40*p.Hold)
	}
}

// Focus makes every lock one of this recipe; "cohort" is a mutex that processes have one place for, and "readers" is one for
// readers and writers with a place for all that read.
func (p *Plan) Focus(recipe history.Recipe) {
	switch recipe {
	case "cohort":
		recipe, p.Cohorts = history.Mutex, true
	case "readers":
		recipe, p.Cohorts = history.RW, true
	}
	for i := range p.Locks {
		p.Locks[i].Recipe, p.Locks[i].Path = recipe, fmt.Sprintf("/locks/%s-%d", recipe, i)
	}
}

// Virtual is how much time the run simulates, at least.
func (p *Plan) Virtual() time.Duration { return p.Before + p.During + p.After }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// around draws a time with the given mean, seldom far above it, and never two alike.
func around(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(min(r.ExpFloat64(), 5)*float64(mean)) + time.Duration(1+r.IntN(1000))
}

// together are the locks that LockAll can take.
func (p *Plan) together() []Lock {
	return slices.DeleteFunc(slices.Clone(p.Locks), func(l Lock) bool { return l.Recipe == history.Election })
}

// Recipes are those that plans draw from.
var Recipes = []history.Recipe{history.Mutex, history.Mutex, history.Reentrant, history.Election, history.RW, history.Semaphore}

// Hostile are kinds of servers and trouble beyond the usual ones. Each is drawn from the seed by itself, so that
// switching one on leaves the rest of a plan as it is.
type Hostile struct {
	Streams  bool // between a follower and its leader: slow, with late PINGs; broken one way; requests held back
	Buckets  bool // many sessions expire one after the other, touches get lost, PINGs after a standstill come late
	Wipes    bool // third parties delete several nodes of a queue, at once or back to front
	Later    bool // servers of ZooKeeper 3.9
	Short    bool // sessions shorter than two ticks
	Closing  bool // servers that close the connection on container creates, and on watches that are set again
	Keeper   bool // servers of another make
	Evicts   bool // an operator removes contenders
	Curator  bool // another client's writers, some of which become readers
	Backups  bool // the ensemble is restored to an earlier state, without its sessions
	Logins   bool // servers require a login by SASL, and refuse it now and then
	Delays   bool // all clients have a lock-delay
	Forged   bool // clients trust nobody, and notes are forged
	Blind    bool // one client may not read a lock's nodes for a while, and is told of nothing that happens to them
	Withheld bool // one client may not create in a lock's directories, or not delete there, for a while
	Secret   bool // only clients with a credential may use what they create
	Crowds   bool // many goroutines of one client ask for a lock at once, often while the leader changes
	Looks    bool // an operator looks at queues all the time
	Throttle bool // servers have too many requests now and then, and do not carry out half of them
	Minimums bool // servers have different shortest timeouts, so that a session's grows where its client comes by
}

// usual draws the kinds of a seed's plan: those that leave most of a run as it is always, the others for some seeds.
func usual(seed uint64) Hostile {
	r := stream(seed, "kinds")
	streams, short, closing, keeper, backups := r.IntN(3) == 0, r.IntN(4) == 0, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(6) == 0
	logins, delays, blind := r.IntN(8) == 0, r.IntN(4) == 0, r.IntN(3) == 0
	forged := r.IntN(6) == 0
	withheld := r.IntN(3) == 0
	secret := r.IntN(4) == 0
	minimums := r.IntN(4) == 0
	crowds := r.IntN(4) == 0
	looks := r.IntN(3) == 0
	throttle := r.IntN(4) == 0
	return Hostile{
		Buckets: true, Wipes: true, Later: true, Evicts: true, Curator: true,
		Streams: streams, Short: short, Closing: closing, Keeper: keeper, Backups: backups, Logins: logins,
		Delays: delays, Blind: blind, Forged: forged, Withheld: withheld, Secret: secret, Minimums: minimums, Crowds: crowds, Looks: looks, Throttle: throttle,
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
	p.Logins = h.Logins && p.Flavor != zktest.Keeper // which has no SASL
	p.Restricted = h.Secret && p.Flavor != zktest.Keeper
	if p.Restricted && p.Logins { // a client has one of both
		p.Restricted = stream(p.Seed, "secret").IntN(2) == 0
		p.Logins = !p.Restricted
	}
	if h.Closing && closing {
		p.UnknownOps = []zktest.Op{zktest.OpCreateContainer}
		if watches {
			p.UnknownOps = append(p.UnknownOps, zktest.OpSetWatches)
		}
	}
	if h.Delays {
		p.Delay = pick(stream(p.Seed, "delay"), p.Tick, p.Timeout)
	}
	if h.Minimums && p.Servers > 1 {
		p.disagree(stream(p.Seed, "minimums"))
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

// disagree gives some servers a shortest timeout of their own, no longer than the longest of the clients'. A client asks again with
// what it was given, so that a session's timeout only grows; with different longest ones it could shrink without its client's knowing.
func (p *Plan) disagree(r *rand.Rand) {
	for range p.Servers {
		p.MinSessions = append(p.MinSessions, min(time.Duration(pick(r, 0, 0, 3, 6, 12))*p.Tick, p.Timeout))
	}
}
