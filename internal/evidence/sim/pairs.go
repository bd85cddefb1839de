// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
)

// A dimension is something in which runs differ, with the values that it can have.
type dimension struct {
	name   string
	values []option
}

type option struct {
	name string
	set  func(p *Plan, r *rand.Rand)
}

// How options of clients differ.
const (
	unset = "unset"
	all   = "all"
	some  = "some"
)

// What callers do.
const (
	wayLock   = "Lock"
	wayTry    = "TryLock"
	wayDo     = "Do"
	wayNested = "nested"
	wayAll    = "LockAll"
	wayClose  = "Close in the middle"
)

// Which server a fault hits: that of a holder, the leader, or another one.
const (
	atOwn     = "the client's"
	atLeader  = "the leader"
	atAnother = "another"
)

// dimensions are set in this order. The first sets the recipe only, which Focus uses.
var dimensions = []dimension{
	{"recipe", recipeValues()},
	{"session", []option{sessionOf(1.5), sessionOf(2), sessionOf(4), sessionOf(10)}},
	{"connection", []option{
		{"own", nil},
		{"1", shareOf(1, false)}, {"2", shareOf(2, false)}, {"5", shareOf(5, false)},
		{"comes and goes", shareOf(2, true)},
	}},
	{"tick time", []option{
		{"set", nil},
		{unset, func(p *Plan, _ *rand.Rand) { p.Mixed.TickTime = unset }},
		{some, func(p *Plan, _ *rand.Rand) { p.Mixed.TickTime = some }},
	}},
	{"lock-delay", []option{
		{"none", nil},
		{all, func(p *Plan, r *rand.Rand) { p.Delay = pick(r, p.Tick, p.Timeout) }},
		{some, func(p *Plan, r *rand.Rand) { p.Delay, p.Mixed.LockDelay = pick(r, p.Tick, p.Timeout), some }},
	}},
	{"untrusted", []option{
		{"none", nil},
		{all, func(p *Plan, _ *rand.Rand) { p.Mixed.Untrusted = all }},
		{some, func(p *Plan, _ *rand.Rand) { p.Mixed.Untrusted = some }},
	}},
	{"credentials", []option{
		{"none", nil},
		{"digest", func(p *Plan, _ *rand.Rand) { p.Restricted = true }},
		{"sasl", func(p *Plan, _ *rand.Rand) { p.Logins = true }},
		{"TLS", func(p *Plan, _ *rand.Rand) { p.TLS = true }},
	}},
	{"root", []option{
		{"none", nil},
		{all, func(p *Plan, _ *rand.Rand) { p.Mixed.Root = all }},
		{some, func(p *Plan, _ *rand.Rand) { p.Mixed.Root = some }},
	}},
	{"hosts", []option{
		{library, func(p *Plan, _ *rand.Rand) { p.Provider = library }},
		{inRounds, func(p *Plan, _ *rand.Rand) { p.Provider = inRounds }},
		{oneServer, func(p *Plan, _ *rand.Rand) { p.Provider = oneServer }},
	}},
	{"way", wayValues()},
	{"at the path", []option{
		{"none", nil},
		{"another recipe", func(p *Plan, _ *rand.Rand) { p.Locks[0].Beside = true }},
		{"curator", func(p *Plan, _ *rand.Rand) { p.Hostile.Curator = true; p.Only += "|curator" }},
	}},
	{"observer", []option{
		{"fast", nil},
		{slow, func(p *Plan, _ *rand.Rand) { p.Watcher = slow }},
		{panics, func(p *Plan, _ *rand.Rand) { p.Watcher = panics }},
	}},
	{"bulk", []option{{"none", nil}, {"own", func(p *Plan, _ *rand.Rand) { p.Bulk = true }}}},
	{"server", []option{
		{atOwn, func(p *Plan, _ *rand.Rand) { p.Aim = atOwn }},
		{atLeader, func(p *Plan, _ *rand.Rand) { p.Aim = atLeader }},
		{atAnother, func(p *Plan, _ *rand.Rand) { p.Aim = atAnother }},
	}},
	{"fault", []option{
		{"none", nil},
		only1("^drop"), only1("restart"), only1("^stop"), only1("freeze"), only1("cut off"), only1("usurp|elect"), only1("^lag|behind"), only1("refuse$"),
		only1("partition"), only1("lost"), only1("delays"), only1("crash"), only1("^delete|parents"), only1("expire"),
		{"evict", func(p *Plan, _ *rand.Rand) { p.Only, p.Hostile.Evicts = p.Only+"|evict", true }},
		{"throttled", func(p *Plan, _ *rand.Rand) { p.Only, p.Hostile.Throttle = p.Only+"|throttled", true }},
	}},
}

func recipeValues() (values []option) {
	for recipe := range strings.FieldsSeq(everyRecipe) {
		values = append(values, option{recipe, func(p *Plan, _ *rand.Rand) { p.Focus(history.Recipe(recipe)) }})
	}
	return values
}

func wayValues() (values []option) {
	for _, way := range []string{wayLock, wayTry, wayDo, wayNested, wayAll, wayClose} {
		values = append(values, option{way, func(p *Plan, _ *rand.Rand) {
			p.Way = way
			switch way {
			case wayNested:
				p.Locks = append(p.Locks, Lock{Recipe: history.Mutex, Path: "/locks/inner"})
			case wayAll:
				second := p.Locks[0]
				second.Path += "-also"
				p.Locks = append(p.Locks, second)
			case wayClose:
				p.Only += "|^close$"
			}
		}})
	}
	return values
}

// sessionOf returns the value for session timeouts of that many ticks.
func sessionOf(ticks float64) option {
	return option{fmt.Sprint(ticks, " ticks"), func(p *Plan, _ *rand.Rand) {
		p.Timeout = time.Duration(ticks * float64(p.Tick))
		if ticks < 2 {
			p.MinSession = p.Tick / 2
		}
		p.Latency = min(p.Latency, p.Timeout/250-1) // so that no hold is lost without a fault
		for i := range p.Clients {
			p.Clients[i].Session = p.Timeout
		}
	}}
}

// shareOf returns the function that lets so many users of each client share a connection.
func shareOf(users int, visits bool) func(p *Plan, _ *rand.Rand) {
	return func(p *Plan, _ *rand.Rand) {
		p.share(users, visits)
	}
}

// only1 returns the value for one fault.
func only1(pattern string) option {
	return option{pattern, func(p *Plan, _ *rand.Rand) { p.Only += "|" + pattern }}
}

// A row has the index of a value for each dimension.
type row []int

// String returns the values' names.
func (w row) String() string {
	var names []string
	for i, v := range w {
		names = append(names, dimensions[i].name+"="+dimensions[i].values[v].name)
	}
	return strings.Join(names, ", ")
}

// plan returns the plan of a row. Details that the row does not determine are drawn from the seed.
func (w row) plan(seed uint64, name string) *Plan {
	r := stream(seed, name)
	p := &Plan{
		Seed: seed, Servers: 3, Tick: pick(r, time.Second, 2*time.Second), SyncLimit: 3, Latency: pick(r, time.Millisecond, 20*time.Millisecond),
		ContainerCheck: time.Minute, Locks: make([]Lock, 1), Only: "^none$", Before: 2 * time.Second, After: 2 * time.Second,
	}
	p.Locks[0].Permits = 1 + r.IntN(2)
	for c := range 2 {
		p.Clients = append(p.Clients, Client{Name: fmt.Sprintf("c%d", c), Workers: 1 + r.IntN(2)})
	}
	for i, v := range w {
		if set := dimensions[i].values[v].set; set != nil {
			set(p, r)
		}
	}
	p.Hold = p.Tick / time.Duration(pick(r, 1, 2, 4))
	p.Think = p.Hold * time.Duration(pick(r, 1, 2, 3))
	p.Pause = p.Tick * time.Duration(pick(r, 1, 2, 4))
	p.During = 20*p.Tick + 2*p.Timeout
	if p.Only == "^none$" {
		p.Before, p.During = p.Before+p.During, 0
	}
	if p.Only == "^none$" && p.Watcher != slow && !p.Bulk {
		p.Healthy, p.Remaining = true, 0.4
		if p.Mixed.TickTime == some && slices.ContainsFunc(p.Clients, func(c Client) bool { return c.Share > 1 || c.Visits }) {
			p.Remaining = 0.001 // a client that joins a connection with a longer tick leaves less, but no hold may be lost
		} else {
			p.Remaining -= p.slow(4, p.Timeout.Seconds()/p.Tick.Seconds())
		}
	}
	return p
}

// number returns a number of a user, so that neighbors differ.
func (p *Plan) number(spec Client, seat int) int {
	return seat + slices.IndexFunc(p.Clients, func(c Client) bool { return c.Name == spec.Name })
}

// tickOf returns Options.TickTime of a user. If some users do not set the longest tick, each connection has one that does, or it needs
// none.
func (p *Plan) tickOf(spec Client, seat int) time.Duration {
	n := p.number(spec, seat)
	switch {
	case p.Mixed.TickTime == unset, p.Mixed.TickTime == some && seat%2 == 1:
		return 0
	case p.Mixed.TickTime == some && seat > 0:
		return p.Tick / 4
	case p.Mixed.TickTime == some && n%2 == 1 && spec.Session >= 2*p.Tick:
		return 0
	case p.Mixed.TickTime == some && n%2 == 1:
		return p.Tick * 6 / 5
	}
	return p.Tick
}

// delayOf returns Options.LockDelay of a user.
func (p *Plan) delayOf(spec Client, seat int) time.Duration {
	if p.Mixed.LockDelay == some && p.number(spec, seat)%2 == 1 {
		return p.longestDelay()
	}
	return p.Delay
}

// longestDelay returns the longest lock-delay of a client.
func (p *Plan) longestDelay() time.Duration {
	if p.Mixed.LockDelay == some {
		return 2 * p.Delay
	}
	return p.Delay
}

// isUntrusted returns Options.Untrusted of a user.
func (p *Plan) isUntrusted(spec Client, seat int) bool {
	return p.Hostile.Forged || p.Mixed.Untrusted == all || p.Mixed.Untrusted == some && p.number(spec, seat)%2 == 1
}

// rootOf returns Options.Root of a user.
func (p *Plan) rootOf(spec Client, seat int) string {
	if p.Mixed.Root == all || p.Mixed.Root == some && p.number(spec, seat)%2 == 1 {
		return "/locks"
	}
	return ""
}

// never is a number that kind does not get from its caller.
const never = -1

// kind returns what a caller does, which is drawn unless the plan says it. The arguments are what was drawn, and the numbers that stand
// for a try and for Do.
func (p *user) kind(drawn, try, do int) int {
	switch p.f.plan.Way {
	case wayTry:
		return try
	case wayDo:
		return do
	case wayLock, wayNested, wayClose:
		return never - 1
	}
	return drawn
}

// nest acquires another lock under a hold.
func (p *user) nest(r *rand.Rand, hold *zklock.Hold) {
	inner := p.f.plan.Locks[1]
	m := p.client.Mutex(p.local(inner.Path))
	p.take(r, taking{op: history.Op{Recipe: inner.Recipe, Path: inner.Path}, lock: m.Lock, under: hold.Context()})
}

// takeBeside uses a lock with a recipe that is not its own.
func takeBeside(p *user, l Lock, r *rand.Rand) {
	switch l.Recipe {
	case history.RW:
		l.Recipe = history.Mutex
	default:
		l.Recipe = history.RW
	}
	takers[l.Recipe](p, l, r)
}

// arrays has the covering array of each strength.
var arrays = map[int]func() []row{2: sync.OnceValue(func() []row { return cover(2) }), 3: sync.OnceValue(func() []row { return cover(3) })}
