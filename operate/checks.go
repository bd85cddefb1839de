// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// findings is the state of all servers, from which the checks follow.
type findings struct {
	bridge.Target
	all      []*member
	given    []*member // those that create sessions
	measured []*member // those all of whose properties are known
	site     site
}

func report(t bridge.Target, all []*member, s site) *Report {
	f := findings{Target: t, all: all, site: s}
	r := &Report{}
	for _, m := range all {
		r.Servers = append(r.Servers, m.Server)
		if m.serves() {
			f.given = append(f.given, m)
		}
		if m.answers() {
			f.measured = append(f.measured, m)
		}
	}
	for _, check := range []func() Check{
		f.reach, f.list, f.leader, f.login, f.version, f.ensemble, f.guard, f.multi, f.tick, f.minimum,
		f.timeout, f.resume, f.latency, f.containers, f.chroot, f.access, f.clock,
	} {
		r.Checks = append(r.Checks, f.settle(check()))
	}
	if len(f.given) == len(f.all) {
		r.SessionTimeout, r.TickTime = f.suggest()
	}
	return r
}

// settle returns a check with its status if it has found no problem: OK, or Skipped if no server was asked. It says
// which servers were not.
func (f *findings) settle(c Check) Check {
	if c.Status != Skipped {
		return c
	}
	c.Advice = ""
	asked := f.askedFor(c.ID)
	switch {
	case len(asked) == 0:
		c.Summary = "not checked: no server could be asked"
		return c
	case len(asked) < len(f.all):
		missing, _ := those(f.all, func(m *member) bool { return !slices.Contains(asked, m) }, always(""))
		c.Summary += "; not checked at " + escape.Text(strings.Join(missing, ", "))
	}
	c.Status = OK
	return c
}

// askedFor returns the servers that a check concerns and that could be asked.
func (f *findings) askedFor(id string) []*member {
	switch id {
	case "reach", "list":
		return f.all
	case "leader":
		return slices.DeleteFunc(slices.Clone(f.all), func(m *member) bool { return m.late || m.unreached != nil })
	case "guard", "multi", "containers", "latency":
		return f.measured
	case "chroot", "access":
		return f.allIf(f.site.tried)
	case "clock":
		return f.allIf(f.site.timed)
	}
	return f.given
}

// allIf returns all servers, or none if the one server that is asked for all of them was not.
func (f *findings) allIf(asked bool) []*member {
	if !asked {
		return nil
	}
	return f.all
}

// those returns the servers among members for which has reports true, and what text says about them.
func those(members []*member, has func(*member) bool, text func(*member) string) (servers []string, summary string) {
	var texts []string
	alike := map[string][]string{}
	for _, m := range members {
		if !has(m) {
			continue
		}
		servers = append(servers, m.Addr)
		about := text(m)
		if alike[about] == nil {
			texts = append(texts, about)
		}
		alike[about] = append(alike[about], escape.Text(m.Addr))
	}
	for i, about := range texts {
		names := strings.Join(alike[about], ", ")
		if len(alike[about]) > 1 {
			names = "each of " + names
		}
		texts[i] = names + " " + about
	}
	return servers, strings.Join(texts, "; ")
}

// find returns c with status s and with the servers for which has reports true, or c if there is none.
func (c Check) find(s Status, members []*member, has func(*member) bool, text func(*member) string) Check {
	if servers, summary := those(members, has, text); servers != nil {
		c.Status, c.Servers, c.Summary = s, servers, summary
	}
	return c
}

// always returns a function that returns text.
func always(text string) func(*member) string { return func(*member) string { return text } }

// or returns s if some of n servers have a problem, or none, and Fail if all have it.
func (s Status) or(some, n int) Status {
	if some > 0 && some == n {
		return Fail
	}
	return s
}

// because returns the text of an error for a summary.
func because(err error) string { return escape.Text(err.Error()) }

func (f *findings) reach() Check {
	c := Check{
		ID: "reach", Summary: fmt.Sprintf("servers that can be reached: %d of %d", len(f.all), len(f.all)),
		Why: "A client that loses its server needs another one before its session expires.",
	}
	return f.blame(c, func(m *member) bool { return m.late || m.unreached != nil }, len(f.all))
}

// list checks the list of servers itself.
func (f *findings) list() Check {
	c := Check{
		ID: "list", Summary: "the list has each server once",
		Why:    "A client that loses its server tries the others of its list, and waits before it tries the same one again.",
		Advice: "List each server of the ensemble once.",
	}
	c = c.find(Warn, f.all, func(m *member) bool { return f.site.listed[m.Addr] > 1 },
		func(m *member) string { return fmt.Sprintf("is in the list %d times", f.site.listed[m.Addr]) })
	if len(f.all) > 1 {
		return c
	}
	return c.find(Warn, f.given, func(m *member) bool { return m.Mode == "leader" || m.Mode == "follower" || m.Mode == "observer" },
		func(m *member) string {
			return "is one server of an ensemble (a " + m.Mode + "); the others are not in the list"
		})
}

func (f *findings) leader() Check {
	c := Check{
		ID: "leader", Summary: "every server that can be reached creates sessions",
		Why: "A server without a leader neither grants nor releases locks.",
	}
	return f.blame(c, func(m *member) bool { return m.barred != nil && !m.late }, len(f.askedFor(c.ID)))
}

// blame returns c with the servers for which has reports true, what is wrong with each, and what to do about it. If all
// n servers are among them, the check has failed.
func (f *findings) blame(c Check, has func(*member) bool, n int) Check {
	c = c.find(Warn, f.all, has, func(m *member) string { return f.causeOf(m).text })
	c.Status = c.Status.or(len(c.Servers), n)
	var advice []string
	for _, m := range f.all {
		if has(m) {
			advice = append(advice, f.causeOf(m).advice)
		}
	}
	slices.Sort(advice)
	c.Advice = strings.Join(slices.Compact(advice), " ")
	return c
}

func (f *findings) login() Check {
	return Check{
		ID: "login", Summary: "no server refuses the credentials",
		Why:    "A server that refuses a client's credentials executes none of its requests.",
		Advice: "Correct Options.Auth or Options.Login.",
	}.find(Fail, f.given, func(m *member) bool { return m.refused != nil },
		func(m *member) string { return "does not accept the client: " + because(m.refused) })
}

func (f *findings) version() Check {
	c := Check{
		ID: "version", Summary: "no version with a known problem",
		Why:    "Some versions delay commits until the next request (ZOOKEEPER-4537), and versions before 3.5.3 have no container nodes.",
		Advice: "Upgrade to the newest release of ZooKeeper.",
	}
	if servers, _ := those(f.given, func(m *member) bool { return m.Version == "" }, always("")); servers != nil {
		c.Servers, c.Summary = servers, "the servers do not show their version (srvr is not in 4lw.commands.whitelist)"
	}
	c = c.find(Warn, f.given, func(m *member) bool { return m.Mode == "read-only" }, always("is read-only: it has no quorum"))
	return c.find(Warn, f.given, func(m *member) bool { return isTroubled(m.Version) },
		func(m *member) string { return "has version " + escape.Text(m.Version) })
}

// isTroubled reports whether a version has a known problem that matters for locks.
func isTroubled(version string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n < 3 || major != 3 {
		return false
	}
	switch minor {
	case 6:
		return patch <= 3
	case 7:
		return patch <= 1
	case 8:
		return patch == 0
	}
	return minor < 5 || minor == 5 && patch < 3
}

func (f *findings) ensemble() Check {
	c := Check{
		ID: "ensemble", Summary: "the servers resume each other's sessions",
		Why:    "Clients of different ensembles can hold the same lock at the same time.",
		Advice: "List the servers of one ensemble only. If they are one ensemble, set localSessionsEnabled=false.",
	}
	c = c.find(Fail, f.given, func(m *member) bool { return m.stranger != "" },
		func(m *member) string { return "does not resume a session of " + escape.Text(m.stranger) })
	heads, summary := those(f.given, func(m *member) bool { return m.Mode == "leader" || m.Mode == "standalone" },
		func(m *member) string { return "is " + m.Mode })
	if len(heads) > 1 {
		c.Status, c.Servers, c.Summary = Fail, heads, summary
	}
	return c
}

func (f *findings) guard() Check {
	return Check{
		ID: "guard", Summary: "a check of a missing node is refused",
		Why:    "A transaction of Hold.Multi or Hold.Guard would commit although the lock is lost.",
		Advice: "Use ZooKeeper: this server does not execute checks.",
	}.find(Fail, f.given, func(m *member) bool { return m.void }, always("accepts a check of a node that does not exist"))
}

func (f *findings) multi() Check {
	return Check{
		ID: "multi", Summary: "transactions work",
		Why:    "Locks create and delete several nodes in one transaction.",
		Advice: "Use ZooKeeper 3.5 or later.",
	}.find(Fail, f.given, func(m *member) bool { return m.noMulti != nil },
		func(m *member) string { return "does not execute transactions: " + because(m.noMulti) })
}

// granted returns the session timeout that a server grants to the client.
func (f *findings) granted(m *member) time.Duration {
	return min(max(f.SessionTimeout, m.MinSession), m.MaxSession)
}

// ticks returns the different ticks that are known, sorted, and whether all are known.
func (f *findings) ticks() (all []time.Duration, known bool) {
	known = true
	for _, m := range f.given {
		tick, ok := m.tick()
		known = known && ok
		if ok {
			all = append(all, tick)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), known
}

// shortest returns the shortest timeout that any server grants to the client.
func (f *findings) shortest() time.Duration {
	least := f.SessionTimeout
	for i, m := range f.given {
		if g := f.granted(m); i == 0 || g < least {
			least = g
		}
	}
	return least
}

const whyTick = "The leader learns twice per tick which sessions are alive: if the tick is above half the session timeout, two clients can hold the same lock."

func (f *findings) tick() Check {
	ticks, _ := f.ticks()
	c := Check{ID: "tick", Summary: "no server's tickTime is known", Why: whyTick}
	if len(ticks) == 0 {
		return c
	}
	largest := ticks[len(ticks)-1]
	timeout, tick := f.suggest()
	c.Advice = fmt.Sprintf("Give all servers the same tickTime. Until then, set Options.SessionTimeout to at least %v and Options.TickTime to %v.", max(timeout, 2*largest), max(tick, largest))
	c.Summary = fmt.Sprintf("tickTime is %v", largest)
	byTick := func(m *member) string { return fmt.Sprintf("has a tickTime of %v", m.TickTime) }
	known := func(m *member) bool { _, ok := m.tick(); return ok }
	unsafe := f.TickTime == 0 && largest > f.shortest()/2 || f.TickTime > 0 && f.TickTime < largest
	switch {
	case unsafe:
		c = c.find(Fail, f.given, known, byTick)
		c.Summary = fmt.Sprintf("tickTime is too long for a session timeout of %v%s: %s", f.shortest(), f.andTick(), c.Summary)
	case len(ticks) > 1:
		c = c.find(Warn, f.given, known, byTick)
	}
	return c
}

// andTick names Options.TickTime if it is set.
func (f *findings) andTick() string {
	if f.TickTime == 0 {
		return ""
	}
	return fmt.Sprintf(" and Options.TickTime %v", f.TickTime)
}

func (f *findings) minimum() Check {
	c := Check{
		ID: "minimum", Summary: "no server grants less than two ticks", Why: whyTick,
		Advice: "Set Options.TickTime to the largest tickTime in the servers' zoo.cfg, or remove minSessionTimeout there.",
	}
	if f.TickTime > 0 {
		c.Summary = fmt.Sprintf("Options.TickTime is set to %v", f.TickTime)
		return c
	}
	return c.find(Warn, f.given, func(m *member) bool { return m.MinSession < 2*(m.MaxSession/20) },
		func(m *member) string {
			return fmt.Sprintf("grants from %v to %v, so its minimum may be below two ticks", m.MinSession, m.MaxSession)
		})
}

func (f *findings) timeout() Check {
	suggested, _ := f.suggest()
	c := Check{
		ID: "timeout", Summary: fmt.Sprintf("every server grants a session timeout of %v", f.SessionTimeout),
		Why:    "A lock of a client that has crashed remains taken for a session timeout.",
		Advice: fmt.Sprintf("Request %v, or change minSessionTimeout and maxSessionTimeout on the servers.", suggested),
	}
	c = c.find(Warn, f.given, func(m *member) bool { return f.granted(m) != f.SessionTimeout },
		func(m *member) string { return fmt.Sprintf("grants %v instead of %v", f.granted(m), f.SessionTimeout) })
	return c.find(Fail, f.given, func(m *member) bool {
		return !lease.New(nil, f.granted(m), lease.Tick{}).CanProve(lease.TickOf(f.TickTime))
	},
		func(m *member) string {
			return fmt.Sprintf("grants %v, which is too short for Options.TickTime %v", f.granted(m), f.TickTime)
		})
}

func (f *findings) resume() Check {
	return Check{
		ID: "resume", Summary: "a session survives a reconnect",
		Why:    "A hold ends with its session: with such servers, every lost connection ends all holds.",
		Advice: "Use ZooKeeper if holds are to survive a lost connection.",
	}.find(Warn, f.given, func(m *member) bool { return m.forgets }, always("gives a client that reconnects another session"))
}

// Round trips above these fractions of the session timeout cause losses or prevent grants: see P7 in
// docs/promises.md.
const (
	slowRound  = 0.10 // above it, holds are lost
	noGrant    = 0.13 // above it, no lock is granted
	slowCommit = 0.25 // the same, if only commits are slow
)

func (f *findings) latency() Check {
	c := Check{
		ID: "latency", Summary: "no server was measured",
		Why:    "A hold lasts only as long as heartbeats are answered in time.",
		Advice: "Request a longer session timeout, or find out why the servers are slow (disks, network).",
	}
	part := func(took time.Duration, m *member) float64 { return took.Seconds() / f.granted(m).Seconds() }
	measured := f.measured
	if len(measured) > 0 {
		by := func(pick func(*member) time.Duration) time.Duration {
			return pick(slices.MaxFunc(measured, func(a, b *member) int { return cmp.Compare(pick(a), pick(b)) }))
		}
		c.Summary = fmt.Sprintf("a sync takes at most %v, a write %v", round(by(func(m *member) time.Duration { return m.Sync.Worst })),
			round(by(func(m *member) time.Duration { return m.Write.Worst })))
	}
	text := func(m *member) string {
		return fmt.Sprintf("takes %v for a sync (at most %v) and %v for a write (at most %v), with a session timeout of %v",
			round(m.Sync.Median), round(m.Sync.Worst), round(m.Write.Median), round(m.Write.Worst), f.granted(m))
	}
	c = c.find(Warn, measured, func(m *member) bool { return part(max(m.Sync.Worst, m.Write.Worst), m) > slowRound }, text)
	return c.find(Fail, measured, func(m *member) bool {
		return part(m.Sync.Median, m) > noGrant || part(m.Write.Median, m) > slowCommit
	}, text)
}

// round shortens a duration for a text.
func round(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

func (f *findings) containers() Check {
	return Check{
		ID: "containers", Summary: "container nodes are supported",
		Why:    "Without container nodes, the directories of unused locks remain.",
		Advice: "Use few paths, or delete the empty directories of unused locks periodically.",
	}.find(Warn, f.given, func(m *member) bool { return m.flat }, always("has no container nodes"))
}

func (f *findings) chroot() Check {
	c := Check{
		ID: "chroot", Summary: "the list of servers has no chroot",
		Why:    "zklock creates a missing chroot. If it is mistyped, these clients and those with the right one can hold the same lock.",
		Advice: "Correct the chroot, or create it.",
	}
	if f.Chroot != "" {
		c.Summary = "the chroot " + escape.Text(f.Chroot) + " exists"
	}
	if f.site.unmade {
		c.Status, c.Summary = Warn, "the chroot "+escape.Text(f.Chroot)+" does not exist"
	}
	return c
}

func (f *findings) access() Check {
	c := Check{
		ID: "access", Summary: "a lock can be used below " + escape.Text(f.site.path),
		Why:    "A client that may not create, read and delete its nodes gets no lock, or blocks the other clients.",
		Advice: "Grant the client create, read and delete on the node, or correct Options.ACL.",
	}
	switch {
	case !f.site.tried:
	case f.site.refused != nil:
		c.Status, c.Summary = Fail, because(f.site.refused)
		if errors.Is(f.site.refused, frames.ErrQuota) {
			c.Advice = "Raise the quota, or use another path."
		}
	}
	return c
}

// mostSkew is the difference between clocks that is no problem: a slot may begin one period after the leader's time, and
// a minute is the shortest period of a crontab.
const mostSkew = time.Minute

func (f *findings) clock() Check {
	c := Check{
		ID: "clock", Summary: "the leader's clock could not be read",
		Why:    "Leases do not depend on the time of day, but a slot that begins more than its period after the leader's time is refused, and the ages that are shown are wrong.",
		Advice: "Synchronize the clocks of this host and of the servers.",
	}
	if f.site.timed {
		ahead, side := f.site.ahead.Round(time.Millisecond), "ahead of"
		if ahead < 0 {
			ahead, side = -ahead, "behind"
		}
		if ahead > mostSkew {
			ahead = ahead.Round(time.Second)
		}
		c.Summary = fmt.Sprintf("the leader's clock is %v %s this host's", ahead, side)
		if ahead > mostSkew {
			c.Status = Warn
		}
	}
	return c
}

// suggest returns the values for Options: the session timeout that is nearest to the requested one
// among those that all servers grant and that are two ticks or longer, and the largest tick.
func (f *findings) suggest() (timeout, tick time.Duration) {
	timeout, tick = f.SessionTimeout, f.TickTime
	ticks, known := f.ticks()
	if len(ticks) > 0 {
		largest := ticks[len(ticks)-1]
		timeout = max(timeout, 2*largest)
		forgets := slices.ContainsFunc(f.given, func(m *member) bool { return m.forgets })
		if known && !forgets || tick > 0 {
			tick = max(tick, largest)
		}
	}
	for _, m := range f.given {
		timeout = max(timeout, m.MinSession)
	}
	for _, m := range f.given {
		timeout = min(timeout, m.MaxSession)
	}
	return timeout, tick
}
