// SPDX-License-Identifier: Apache-2.0

// Package sim runs fleets of clients against a faulty ensemble in virtual time and looks for broken promises.
//
// A Plan is drawn from a seed: the ensemble, the clients, the locks, the clients' behavior and the faults. Run executes it
// inside a testing/synctest bubble, with the unmodified client library and the in-process server, and returns the history,
// which package history checks. The same seed gives the same schedule of faults. At each instant of virtual time, the Go
// scheduler chooses the order of the goroutines, so two runs of a seed are similar but not identical.
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

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// Plan describes one run. All of it is drawn from Seed.
type Plan struct {
	Seed           uint64
	Servers        int
	Tick           time.Duration
	SyncLimit      int
	Latency        time.Duration // upper limit of the usual one-way delay
	NoContainers   bool
	ForgetSessions bool
	WrapCounter    bool
	ContainerCheck time.Duration
	Hostile        Hostile
	ExpiryGap      time.Duration
	LoseTouches    float64
	LatePing       time.Duration
	Flavor         zktest.Flavor
	Existing       int // the number of locks whose directories exist at the beginning
	UnknownOps     []zktest.Op
	Logins         bool // servers require a SASL login
	Restricted     bool // clients have a credential, and create nodes that only they may use
	MinSession     time.Duration
	MinSessions    []time.Duration // by server: its shortest session timeout, if servers differ; 0 for the usual one
	Ticks          []time.Duration // by server: its tick, if servers differ; Tick is the longest, and the clients' TickTime
	Cohorts        bool            // goroutines of a process may acquire mutexes through a Cohort
	Preferred      bool            // members of elections prefer those with larger names
	Delay          time.Duration   // the lock-delay of all clients, or zero
	Healthy        bool            // there are no faults, and the remaining time of holds is measured
	Failing        bool            // like Healthy, but one follower after the other fails
	Only           string          // a pattern of the faults that happen; "" means all
	Locks          []Lock
	Clients        []Client
	Hold           time.Duration // average duration of a hold
	Think          time.Duration // average pause of a worker between two acquires
	Before         time.Duration // duration of the first phase, without faults
	During         time.Duration // duration of the phase with faults
	After          time.Duration // duration of the last phase, without faults
	Pause          time.Duration // average pause between two faults of a stream
	Timeout        time.Duration // the longest session timeout

	// The following is used by the plans of pairs.
	Mixed     Mixed
	Provider  string  // the clients' host provider: "" to draw whether it knows one server or all
	Names     int     // how many addresses each server's name has, for clients without a dialer of their own; 0 for clients with one
	OneName   bool    // whether all servers are the addresses of one name instead, if Names is not 0
	TLS       bool    // connections are encrypted
	Aim       string  // which server a fault hits: "" to draw it
	Way       string  // what callers do: "" to draw it
	Watcher   string  // how the observers behave: "" if they return at once
	Bulk      bool    // processes also write much data over their connections
	Moves     bool    // the leader's machine is moved, and stands still meanwhile together with its clock
	Uplink    int     // how many bytes per second a process with Bulk can send; 0 for the usual number
	Remaining float64 // the least share of the timeout that remains of a hold at any time; 0 if it is not measured
}

// Mixed has options that clients can have in different ways.
type Mixed struct {
	TickTime, LockDelay, Untrusted, Root string // "" for the usual, all, or some
}

// Lock is one lock for which the workers contend.
type Lock struct {
	Recipe  history.Recipe
	Path    string
	Permits int  // for a semaphore
	Beside  bool // some callers use another recipe at the path
}

// guestName is the name of another library's clients in the history.
const guestName = "curator"

// queue returns the directory whose nodes determine the holders; of a fleet, that of one shard.
func (l Lock) queue() string {
	switch l.Recipe {
	case history.Semaphore:
		return l.Path + "/leases"
	case history.Shards:
		return l.one().Path
	}
	return l.Path
}

// shard returns the path of a fleet's shard.
func (l Lock) shard(number int) string { return fmt.Sprintf("%s/%04d", l.Path, number) }

// one returns the lock itself or, for a fleet, one of its shards.
func (l Lock) one() Lock {
	if l.Recipe == history.Shards {
		return Lock{Recipe: history.Mutex, Path: l.shard(0)}
	}
	return l
}

// electionOptions returns the options of all elections.
func (p *Plan) electionOptions() *zklock.ElectionOptions {
	if !p.Preferred {
		return nil
	}
	return &zklock.ElectionOptions{Prefer: func(a, b []byte) bool { return string(a) > string(b) }}
}

// Client is one process.
type Client struct {
	Name    string
	Session time.Duration
	Workers int  // of each of its users
	Share   int  // number of users that share a connection of the program; 0 for one user with its own connection
	Visits  bool // all users but the first come and go
}

// stream returns a random stream for a seed and a name. With separate streams, results do not depend on the order of drawing.
func stream(seed uint64, name string) *rand.Rand {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}

// NewPlan draws a plan. The average run takes about four virtual hours.
func NewPlan(seed uint64) *Plan { return NewHostilePlan(seed, usual(seed)) }

// NewHostilePlan draws a plan with the given kinds of faults.
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
		p.Clients = append(p.Clients, Client{Name: fmt.Sprintf("c%d", i), Session: time.Duration(ticks) * p.Tick, Workers: 1 + r.IntN(3)})
	}
	for _, c := range p.Clients {
		p.Timeout = max(p.Timeout, c.Session)
	}
	p.makeHostile()
	p.Cohorts = stream(seed, "cohorts").IntN(4) == 0
	for i := range 1 + r.IntN(2) {
		k := Recipes[r.IntN(len(Recipes))]
		p.Locks = append(p.Locks, Lock{Recipe: k, Path: fmt.Sprintf("/locks/%s-%d", k, i), Permits: 1 + r.IntN(p.mostPermits())})
	}
	p.addFleet()
	p.pace(r)
	return p
}

// addFleet gives some plans a fleet with shards in place of a lock, and some a preference in elections.
func (p *Plan) addFleet() {
	r := stream(p.Seed, "fleet")
	if r.IntN(8) == 0 {
		last := &p.Locks[len(p.Locks)-1]
		last.Recipe, last.Path = history.Shards, fmt.Sprintf("/locks/%s-%d", history.Shards, len(p.Locks)-1)
	}
	p.Preferred = r.IntN(2) == 0
}

// PlanOf returns the plan of a run from its saved history.
func PlanOf(h *history.History) (*Plan, error) {
	var p Plan
	if err := json.Unmarshal([]byte(h.Meta["plan"]), &p); err != nil {
		return nil, fmt.Errorf("sim: the plan in the history: %w", err)
	}
	return &p, nil
}

// pace draws the durations, so that the locks are contended and all runs have a similar number of events.
func (p *Plan) pace(r *rand.Rand) {
	workers := 0
	for _, c := range p.Clients {
		workers += c.Workers
	}
	// Most of the cost is heartbeats and pings, whose number depends on the tick. So runs with short ticks are short.
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

// isDense reports whether a session is so short that heartbeats follow one another without a pause, with up to ten times as many
// requests per tick as usual. Such runs are shorter, with shorter holds and pauses between faults.
func (p *Plan) isDense() bool {
	return slices.ContainsFunc(p.Clients, func(c Client) bool { return c.Session < 2*p.Tick })
}

// busy draws a factor for the number of acquires in a run. With long holds, most faults affect holders and waiters; with short
// ones, acquires and hand-offs.
func busy(seed uint64) time.Duration {
	return pick(stream(seed, "busy"), time.Duration(1), 4, 12)
}

// mostPermits returns the largest number of permits with which semaphores are contended.
func (p *Plan) mostPermits() int { return min(3, len(p.Clients)) }

// Wake returns the time limit without a fault, see history.Limits: two session timeouts (one to notice a loss, one for the nodes
// of a lost session), the time until a cut-off server stops serving, and retries.
func (p *Plan) Wake() time.Duration {
	return 3*p.Timeout + time.Duration(p.SyncLimit)*p.Tick + p.longestDelay() + 10*time.Second
}

// Prompt returns the time limit if there has been no fault for long, see history.Limits: a heartbeat, the time until it proves
// the hold, and some round trips, each of which may take five times as long as usual. Throttling excuses no delay, but a throttled
// request is sent up to four times.
func (p *Plan) Prompt() time.Duration {
	sent := 1
	if p.Hostile.Throttle {
		sent = 1 + maxRefusals
	}
	return p.longestDelay() + p.Timeout/3 + p.Tick + time.Duration(24*sent)*p.Latency + p.transfers() + time.Second
}

// shortest returns the shortest session timeout.
func (p *Plan) shortest() time.Duration {
	return slices.MinFunc(p.Clients, func(a, b Client) int { return cmp.Compare(a.Session, b.Session) }).Session
}

// Limits returns the limits for history.Check.
func (p *Plan) Limits() history.Limits {
	shortest := p.shortest()
	return history.Limits{
		Wake: p.Wake(), Prompt: p.Prompt(), Delay: p.Delay, LongestDelay: p.longestDelay(), Stranger: guestName, Foreign: p.Timeout,
		Notice: 12*p.Latency + 1500*time.Millisecond, Redial: time.Second,
		// An idle client's lease starts, at a grant, with the ping before the last one. So a ninth of the timeout remains for the
		// round trips of the create and of the first heartbeat, each of which may take five times as long as usual.
		// With a session shorter than a tick, there is hardly time for the next proof.
		Lossless: 250*p.Latency < shortest && shortest >= p.Tick,
	}
}

// Shorten makes the run n times shorter, with the same rate of faults.
func (p *Plan) Shorten(n int) {
	for _, d := range []*time.Duration{&p.Before, &p.During, &p.After} {
		*d = max(*d/time.Duration(n), 40*p.Hold)
	}
}

// Focus sets the recipe of all locks. "cohort" stands for mutexes that are acquired through a Cohort.
func (p *Plan) Focus(recipe history.Recipe) {
	if recipe == "cohort" {
		recipe, p.Cohorts = history.Mutex, true
	}
	for i := range p.Locks {
		if p.Way == wayNested && i > 0 {
			continue // the inner lock
		}
		p.Locks[i].Recipe, p.Locks[i].Path = recipe, fmt.Sprintf("/locks/%s-%d", recipe, i)
	}
}

// Virtual returns the minimum virtual time of the run.
func (p *Plan) Virtual() time.Duration { return p.Before + p.During + p.After }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// around draws a duration with about the given mean and at most five times that. A random part makes durations distinct.
func around(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(min(r.ExpFloat64(), 5)*float64(mean)) + time.Duration(1+r.IntN(1000))
}

// together returns the locks that LockAll accepts.
func (p *Plan) together() []Lock {
	return slices.DeleteFunc(slices.Clone(p.Locks), func(l Lock) bool { return l.Recipe == history.Election || l.Recipe == history.Shards })
}

// Recipes are the recipes from which plans draw.
var Recipes = []history.Recipe{history.Mutex, history.Mutex, history.Reentrant, history.Election, history.RW, history.Semaphore}

// Hostile selects kinds of servers and faults in addition to the usual ones. Each is drawn separately from the seed, so switching
// one on does not change the rest of a plan.
type Hostile struct {
	Streams  bool // the connection between a follower and its leader is slow, broken in one direction, or delays requests
	Buckets  bool // sessions expire one after the other, touches get lost, the leader's PINGs come late after a pause
	Wipes    bool // third parties delete several nodes of a queue, at once or back to front
	Later    bool // servers of ZooKeeper 3.9
	Short    bool // sessions shorter than two ticks
	Closing  bool // servers that close the connection on creates of containers and on SetWatches
	Keeper   bool // ClickHouse Keeper
	Evicts   bool // an operator evicts contenders
	Curator  bool // writers of Curator, some of which are downgraded
	Backups  bool // the ensemble is restored to an earlier state, without its sessions
	Logins   bool // servers require a SASL login, and sometimes reject it
	Delays   bool // all clients have a lock-delay
	Forged   bool // clients have Options.Untrusted, and hand-off notes are forged
	Blind    bool // one client may not read a lock's nodes for a while, and gets no events for them
	Withheld bool // one client may not create, or not delete, in a lock's directories for a while
	Secret   bool // clients have a credential, and create nodes that only they may use
	Crowds   bool // many goroutines of one client request a lock at the same time, often while the leader changes
	Looks    bool // an operator inspects queues all the time
	Throttle bool // servers are sometimes overloaded, and then refuse half of the requests
	Minimums bool // servers have different shortest session timeouts, so that a client's timeout can grow
	Ticks    bool // servers have different ticks, and restart with another one
}

// usual draws the kinds for a seed's plan. Kinds with a small effect on a run are always on, the others only for some seeds.
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
	ticks := r.IntN(4) == 0
	return Hostile{
		Buckets: true, Wipes: true, Later: true, Evicts: true, Curator: true,
		Streams: streams, Short: short, Closing: closing, Keeper: keeper, Backups: backups, Logins: logins,
		Delays: delays, Blind: blind, Forged: forged, Withheld: withheld, Secret: secret, Minimums: minimums, Crowds: crowds, Looks: looks, Throttle: throttle, Ticks: ticks,
	}
}

// Parse switches kinds on. names is a comma-separated list of their names in lower case, or "all".
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
			return fmt.Errorf("sim: unknown kind of faults %q", name)
		}
	}
	return nil
}

// makeHostile draws the settings for the plan's kinds of faults.
func (p *Plan) makeHostile() {
	r := stream(p.Seed, "hostile")
	gap, lose, late := pick(r, 0, 20*time.Millisecond, 80*time.Millisecond), pick(r, 0, 0.007, 0.1), pick(r, 0, 80*time.Millisecond)
	later, closing, watches, keeper := r.IntN(3) == 0, r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(4) == 0
	short := make([]float64, len(p.Clients))
	for i := range short {
		short[i] = pick(r, 0, 1, 1, 1.5) // in ticks; a shorter session has hardly time for a heartbeat
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
	p.Logins = h.Logins && p.Flavor != zktest.Keeper // Keeper has no SASL
	p.Restricted = h.Secret && p.Flavor != zktest.Keeper
	if p.Restricted && p.Logins { // a client can have only one of them
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
	if h.Ticks && p.Servers > 1 {
		p.drawTicks(stream(p.Seed, "ticks"))
	}
	if h.Short {
		p.MinSession = p.Tick / 2
		for i, ticks := range short {
			if ticks > 0 {
				p.Clients[i].Session = time.Duration(ticks * float64(p.Tick))
				p.Latency = min(p.Latency, p.Clients[i].Session/50) // so that a heartbeat is answered in time
			}
		}
	}
}

// expiryTogether returns how long the leader may take to close sessions that expire together: see assumption A5.
func (p *Plan) expiryTogether() time.Duration {
	return min(time.Second, p.shortest()/4) - time.Millisecond
}

// drawTicks gives some servers a shorter tick than Tick.
func (p *Plan) drawTicks(r *rand.Rand) {
	for range p.Servers {
		p.Ticks = append(p.Ticks, p.drawTick(r))
	}
}

// drawTick draws the tick of a server: Tick, or a shorter one.
func (p *Plan) drawTick(r *rand.Rand) time.Duration { return p.Tick / pick(r, time.Duration(1), 2, 4) }

// disagree gives some servers another shortest session timeout, which is no longer than the longest of the clients' timeouts. A
// client reconnects with the timeout that it was granted, so timeouts only grow. The servers' longest timeouts must not differ:
// then a timeout could shrink without the client's knowledge.
func (p *Plan) disagree(r *rand.Rand) {
	for range p.Servers {
		p.MinSessions = append(p.MinSessions, min(time.Duration(pick(r, 0, 0, 3, 6, 12))*p.Tick, p.Timeout))
	}
}
