// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// A trial has the faults that could break one promise. Its plans have no other faults, one lock, a few clients, and last about a
// minute.
type trial struct {
	promise string
	name    string
	faults  string // a pattern of the faults that happen
	recipes string // the recipes of the lock, for Focus
	shape   func(p *Plan, r *rand.Rand)
}

const (
	everyRecipe = "mutex reentrant election rw semaphore cohort"
	everyLock   = "mutex reentrant rw semaphore" // the recipes that LockAll accepts
)

var trials = []trial{
	{"P1", "contention", "^none$", everyRecipe, func(p *Plan, _ *rand.Rand) { p.Before = time.Minute }},
	{"P1", "sessions", "expire|partition", "mutex election rw semaphore", nil},
	{"P1", "curator", "curator", "mutex rw cohort", func(p *Plan, _ *rand.Rand) { p.Hostile.Curator = true }},
	{"P1", "numbers", "counter|stranger", "mutex rw semaphore", func(p *Plan, r *rand.Rand) { p.WrapCounter = r.IntN(2) == 0 }},
	{"P2", "standstills", "freeze|cut off|usurp|partition|delays", everyRecipe, standstills},
	{"P2", "clocks", "wall clock|partition", "mutex", nil},
	{"P2", "short sessions", "freeze|cut off|lost replies", "mutex rw", short},
	{"P2", "minimums", "elect and part", "mutex rw", minimums},
	{"P2", "ticks", "another tick|cut off|usurp", "mutex rw", differentTicks},
	{"P2", "deletes", "delete|expire|parents", everyRecipe, func(p *Plan, _ *rand.Rand) { p.Hostile.Wipes = true }},
	{"P4", "forged notes", "forged|delete", "mutex rw", func(p *Plan, _ *rand.Rand) { p.Hostile.Forged = true }},
	{"P5", "lost answers", "lost|drop|held requests", everyRecipe, func(p *Plan, _ *rand.Rand) { p.Hostile.Streams = true }},
	{"P5", "servers behind", "^lag$|behind|elect", everyRecipe, nil},
	{"P7", "servers down", "stop|restart|refuse|crash", everyRecipe, nil},
	{"P7", "streams", "late streams|one way|held", "mutex semaphore", func(p *Plan, _ *rand.Rand) { p.Hostile.Streams = true }},
	{"P7", "restorations", "restore|crash", "mutex semaphore", func(p *Plan, _ *rand.Rand) { p.Hostile.Backups = true }},
	{"P5", "forgotten sessions", "drop|lost replies", "mutex rw semaphore", func(p *Plan, _ *rand.Rand) { p.ForgetSessions = true }},
	{"P7", "blind clients", "blind", "mutex rw semaphore election", func(p *Plan, _ *rand.Rand) { p.Hostile.Blind = true }},
	{"P7", "other servers", "drop|restart", "mutex semaphore", others},
	{"P7", "crowds", "crowd", everyRecipe, func(p *Plan, _ *rand.Rand) { p.Hostile.Crowds, p.Hold = true, p.Tick/40 }},
	{"P8", "evictions", "evict", everyRecipe, func(p *Plan, _ *rand.Rand) { p.Hostile.Evicts = true }},
	{"P8", "looks", "delete|expire|^lag$|behind", everyRecipe, func(p *Plan, _ *rand.Rand) { p.Hostile.Looks = true }},
	{"P8", "requests", "drop|expire|^lag$|lost replies", everyRecipe, func(p *Plan, _ *rand.Rand) {
		p.Hostile.Looks, p.Hold, p.During = true, 3*p.Tick, 3*time.Minute
	}},
	{"P8", "withheld rights", "withheld|crash", "mutex semaphore", func(p *Plan, _ *rand.Rand) { p.Hostile.Withheld = true }},
	{"P7", "throttled servers", "throttled", everyRecipe, func(p *Plan, _ *rand.Rand) { p.Hostile.Throttle = true }},
	{"P7", "throttled connections", "throttled|drop|lost replies", "mutex rw semaphore", func(p *Plan, _ *rand.Rand) {
		p.Hostile.Throttle, p.Pause, p.During = true, p.Tick/4, 3*time.Minute
	}},
	{"P8", "logins", "refused logins|drop", "mutex", func(p *Plan, _ *rand.Rand) { p.Hostile.Logins, p.Logins = true, true }},
	{"P8", "credentials", "refused logins|drop", "mutex semaphore", func(p *Plan, _ *rand.Rand) { p.Hostile.Secret, p.Restricted = true, true }},
	{"P8", "several locks", "drop|expire", everyLock, several},
	{"P2", "visits", "^none$", "mutex rw semaphore", visits},
	{"P2", "ticks of neighbors", "cut off", "mutex rw", neighborsTicks},
	{"P2", "moved leaders", "moved leader", "mutex rw election", movedLeaders},
	{"P2", "dialing", "silent servers|slow handshakes", "mutex rw", dialing},
	{"P7", "frozen servers", "frozen server", "mutex rw", frozenServers},
	{"P2", "uplinks", "^none$", "mutex semaphore", uplinks},
	{"P2", "closing", "partition|^close$", "mutex election rw", closing},
	{"P5", "leaving", "^stop$|^close$", "mutex rw semaphore", leaving},
	{"P1", "neighbors", "^delete|several deletes|evict", "mutex election rw", func(p *Plan, _ *rand.Rand) {
		p.Hostile.Wipes, p.Hostile.Evicts, p.Pause = true, true, p.Tick/4
		p.share(4, false)
	}},
	{"P11", "lock-delays", "crash|expire|partition|stop|usurp|delays", "mutex election rw", func(p *Plan, r *rand.Rand) {
		p.Hostile.Delays, p.Delay = true, pick(r, p.Tick, p.Timeout)
	}},
}

// standstills sets servers that expire sessions late, lose touches and send late PINGs.
func standstills(p *Plan, r *rand.Rand) {
	p.ExpiryGap, p.LoseTouches, p.LatePing = pick(r, 0, 80*time.Millisecond), pick(r, 0, 0.1), pick(r, 0, 80*time.Millisecond)
}

// share lets so many users of each client share a connection.
func (p *Plan) share(users int, visits bool) {
	for i := range p.Clients {
		p.Clients[i].Share, p.Clients[i].Visits, p.Clients[i].Workers = users, visits, 1
	}
}

// visits sets users that come and go on connections without a fault, on which no hold may lose more of its lease than usual.
func visits(p *Plan, r *rand.Rand) {
	p.share(pick(r, 2, 5), true)
	p.Healthy, p.Remaining, p.Latency = true, 0.4, time.Millisecond
	p.Timeout = 4 * p.Tick
	for i := range p.Clients {
		p.Clients[i].Session = p.Timeout
	}
	p.Hold, p.Before, p.During = 2*p.Timeout, 2*time.Minute, 0
	p.Logins = r.IntN(2) == 0
}

// neighborsTicks sets users of which only the first knows the longest tick, and the others come and go.
func neighborsTicks(p *Plan, r *rand.Rand) {
	p.share(pick(r, 2, 4), true)
	p.Servers, p.MinSession, p.Latency, p.Mixed.TickTime = 3, p.Tick/2, time.Millisecond, some
	p.Timeout = p.Tick
	for i := range p.Clients {
		p.Clients[i].Session = p.Timeout
	}
	p.Ticks, p.Aim = []time.Duration{p.Tick, p.Tick / 4, p.Tick / 4}, atOwn // the first leads
	p.Hold, p.Think, p.Pause, p.During = 4*p.Timeout, p.Timeout/8, 2*p.Tick, time.Minute
}

// movedLeaders sets leaders whose machines are moved. The lag allows for a leader that stands still if the session has many ticks.
func movedLeaders(p *Plan, r *rand.Rand) {
	p.Servers, p.Moves, p.Latency, p.Tick = 3, true, time.Millisecond, time.Second
	p.Timeout = p.Tick * time.Duration(pick(r, 10, 20))
	for i := range p.Clients {
		p.Clients[i].Session = p.Timeout
	}
	p.Hold, p.Think, p.Pause, p.During = 2*p.Timeout, p.Tick, p.Timeout, 16*p.Timeout
}

// dialing sets clients that lose their connections while servers that they dial take long. No hold may be lost.
func dialing(p *Plan, r *rand.Rand) {
	p.Servers, p.Failing, p.Remaining, p.Latency = 5, true, 0.001, time.Millisecond
	p.Provider = pick(r, library, inRounds)
	if p.TLS = r.IntN(2) == 0; !p.TLS {
		p.Only = "silent servers"
		if r.IntN(2) == 0 {
			p.share(2, false)
		}
	}
	p.Tick = time.Second
	p.Timeout = p.Tick * time.Duration(pick(r, 6, 8, 10))
	for i := range p.Clients {
		p.Clients[i].Session = p.Timeout
	}
	p.Hold, p.Think, p.Pause, p.During = 2*p.Timeout, p.Tick/4, p.Timeout, 2*time.Minute
}

// frozenServers sets clients without a dialer of their own, whose servers freeze while the other servers refuse connections for a moment.
func frozenServers(p *Plan, r *rand.Rand) {
	p.Servers, p.Names, p.Aim, p.Latency = 3, 1, atOwn, time.Millisecond
	p.Provider = pick(r, library, inRounds)
	p.Hold, p.Think, p.Pause, p.During = p.Timeout, p.Tick/4, p.Timeout, 3*time.Minute
	p.OneName = pick(r, false, true)
}

// uplinks sets processes that write much more under their holds than their uplinks carry at once. No hold may be lost.
func uplinks(p *Plan, r *rand.Rand) {
	p.Bulk, p.Healthy, p.Remaining, p.Latency = true, true, 0.001, time.Millisecond
	p.Tick = 2 * time.Second
	ticks, mbits := 2, 10
	if r.IntN(2) == 0 {
		ticks, mbits = 5, 4
	}
	p.Timeout, p.Uplink = p.Tick*time.Duration(ticks), mbits*1_000_000/8
	p.Clients = p.Clients[:2]
	for i := range p.Clients {
		p.Clients[i].Session, p.Clients[i].Workers = p.Timeout, 3
	}
	p.Locks[0].Permits = 4
	p.Hold, p.Before, p.During = p.Timeout, 2*time.Minute, 0
}

// closing sets clients that are closed while an observer delays it, and that may be cut off meanwhile.
func closing(p *Plan, r *rand.Rand) {
	if r.IntN(2) == 0 {
		p.share(2, false)
	}
	p.Way, p.Watcher, p.Pause, p.Hold, p.During = wayClose, slow, p.Tick, p.Timeout, 2*time.Minute
}

// leaving sets users of shared connections that close their clients while no server runs, which lasts longer than Close waits. The
// sessions of the connections live on.
func leaving(p *Plan, r *rand.Rand) {
	p.share(pick(r, 2, 3), false)
	p.Servers, p.Way, p.Pause, p.During = 1, wayClose, p.Tick/2, 3*time.Minute
}

// minimums sets servers with different shortest session timeouts, so that timeouts grow when clients reconnect.
func minimums(p *Plan, r *rand.Rand) {
	p.Servers, p.Timeout, p.Hostile.Minimums = 3, 4*p.Timeout, true
	p.disagree(r)
	p.MinSessions[r.IntN(3)], p.MinSessions[r.IntN(3)] = p.Timeout, 0
	p.Hold, p.Pause, p.During = p.Timeout, p.Tick, 2*time.Minute
}

// differentTicks sets servers whose ticks differ, and which restart with another tick.
func differentTicks(p *Plan, r *rand.Rand) {
	p.Servers, p.Hostile.Ticks = 3, true
	p.drawTicks(r)
	p.Hold, p.Pause, p.During = p.Timeout, p.Tick, 2*time.Minute
}

func short(p *Plan, r *rand.Rand) {
	p.MinSession = p.Tick / 2
	for i := range p.Clients {
		p.Clients[i].Session = p.Tick * time.Duration(pick(r, 2, 3)) / 2
	}
	p.Latency = time.Millisecond
}

// several sets two locks, for which most workers wait all the time.
func several(p *Plan, _ *rand.Rand) {
	p.Locks, p.Hold = append(p.Locks, p.Locks[0]), p.Tick/4
	p.Think = p.Hold
	for i := range p.Clients {
		p.Clients[i].Workers = 3
	}
}

func others(p *Plan, r *rand.Rand) {
	p.Flavor = pick(r, zktest.ZooKeeper39, zktest.Keeper)
	if r.IntN(2) == 0 {
		p.UnknownOps = []zktest.Op{zktest.OpCreateContainer, zktest.OpSetWatches}
	}
}

// MadePlans returns the names of the made plans: each trial with each of its recipes.
func MadePlans() (names []string) {
	for _, t := range trials {
		for recipe := range strings.FieldsSeq(t.recipes) {
			names = append(names, t.name+"/"+recipe)
		}
	}
	return names
}

// MadePlan returns the plan of that name. Details that the trial does not determine are drawn from the seed.
func MadePlan(name string, seed uint64) (*Plan, error) {
	if p := rowPlan(name, seed); p != nil {
		return p, nil
	}
	what, recipe, _ := strings.Cut(name, "/")
	i := slices.IndexFunc(trials, func(t trial) bool { return t.name == what })
	if i < 0 || !slices.Contains(strings.Fields(trials[i].recipes), recipe) {
		return nil, fmt.Errorf("sim: no made plan %q", name)
	}
	t, r := trials[i], stream(seed, "made "+name)
	p := &Plan{
		Seed: seed, Servers: pick(r, 1, 3, 3), Tick: pick(r, time.Second, 2*time.Second), SyncLimit: 3, Latency: pick(r, time.Millisecond, 20*time.Millisecond),
		ContainerCheck: time.Minute, Only: t.faults, Locks: make([]Lock, 1),
		Before: 2 * time.Second, During: time.Minute, After: 2 * time.Second,
	}
	session := p.Tick * time.Duration(pick(r, 2, 3, 4))
	for c := range 2 + r.IntN(3) {
		p.Clients = append(p.Clients, Client{Name: fmt.Sprintf("c%d", c), Session: session, Workers: 1 + r.IntN(2)})
	}
	p.Timeout, p.Locks[0].Permits = session, 1+r.IntN(p.mostPermits())
	p.Hold = p.Tick / time.Duration(pick(r, 1, 2, 4))
	p.Think = p.Hold * time.Duration(pick(r, 1, 2, 3))
	p.Pause = p.Tick * time.Duration(pick(r, 1, 2, 4))
	if t.shape != nil {
		t.shape(p, r)
	}
	p.Focus(history.Recipe(recipe))
	return p, nil
}
