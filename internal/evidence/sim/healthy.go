// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// NewHealthyPlan draws a plan without faults, with the latency of a network within one region.
func NewHealthyPlan(seed uint64) *Plan {
	p := NewHostilePlan(seed, Hostile{})
	p.Healthy = true
	p.Latency = min(p.Latency, 5*time.Millisecond)
	p.ForgetSessions = false
	p.Shorten(4)
	return p
}

// NewKeeperPlan draws a healthy plan on servers of ClickHouse Keeper, where a connection that ends costs all holds. Clients hold other
// locks while they create the directory of the last one.
func NewKeeperPlan(seed uint64) *Plan {
	p := NewHealthyPlan(seed)
	p.Flavor, p.Logins, p.Restricted, p.NoContainers = zktest.Keeper, false, false, false
	p.Existing = len(p.Locks)
	p.Locks = append(p.Locks, Lock{Recipe: history.Mutex, Path: "/locks/new"})
	return p
}

// NewFailingPlan draws a healthy plan in which one follower after the other fails, for longer than a session timeout.
func NewFailingPlan(seed uint64) *Plan {
	p := NewHealthyPlan(seed)
	p.Healthy, p.Failing = false, true
	p.Servers, p.Pause = 3, 2*p.Timeout
	p.During = max(p.During, 12*p.Timeout)
	return p
}

// slow returns the share of a timeout of that many ticks that slow replies can cost, if they take that many additional one-way delays. In
// a short one, the heartbeat that proves more can itself be slow. In others, it is rare that more than two replies are slow.
func (p *Plan) slow(ways, ticks float64) float64 {
	d := ways * slowdown * p.Latency.Seconds() / (ticks * p.Tick.Seconds())
	if ticks <= 3 {
		return d + 1./64
	}
	return min(d, 1./50)
}

// meter counts requests.
func (g *gauge) meter(req *zktest.Request) zktest.Verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case req.Op == zktest.OpPing || req.Session == 0:
	case isBeat(req):
		g.beats++
	default:
		g.requests++
	}
	return zktest.Pass
}

// isBeat reports whether the request belongs to a heartbeat.
func isBeat(req *zktest.Request) bool {
	checks := !slices.ContainsFunc(req.Ops, func(op zktest.Op) bool { return op != zktest.OpCheck })
	return req.Op == zktest.OpSync || req.Op == zktest.OpExists && req.Path == "/" || req.Op == zktest.OpMulti && checks
}

// sample records the hold's Remaining repeatedly until the hold ends.
func (g *gauge) sample(p *process, hold *zklock.Hold) {
	term := p.spec.Session
	ticks := term.Seconds() / p.f.plan.Tick.Seconds()
	g.mu.Lock()
	g.holds++
	g.mu.Unlock()
	// Owned by the fleet, which waits for it; ends with the hold.
	p.f.wg.Go(func() {
		for hold.Context().Err() == nil {
			left := hold.Remaining()
			if hold.Context().Err() == nil {
				g.mu.Lock()
				if least, ok := g.least[ticks]; !ok || left.Seconds()/term.Seconds() < least {
					g.least[ticks] = left.Seconds() / term.Seconds()
				}
				g.mu.Unlock()
			}
			select {
			case <-hold.Context().Done():
			case <-time.After(term / 97):
			}
		}
	})
}

// complain returns the violations of a run in which no hold may be lost, and the given share of the timeout must remain.
func (g *gauge) complain(share float64) (found []history.Violation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost > 0 {
		found = append(found, history.Violation{Rule: "P2", Text: fmt.Sprintf("%d holds were lost without a fault", g.lost)})
	}
	for ticks, least := range g.least {
		if least < share {
			found = append(found, history.Violation{Rule: "P2", Text: fmt.Sprintf("only %.3f of a timeout of %v ticks remained, not %.3f", least, ticks, share)})
		}
	}
	return found
}

// countLoss counts a lost hold. It does nothing if g is nil.
func (g *gauge) countLoss() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost++
}
