// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/internal/testclock"
)

// launch starts the n-th process of a client, unless the run ends before it has a session.
func (f *fleet) launch(spec Client, n int) {
	p := &process{f: f, spec: spec, name: fmt.Sprintf("%s.%d", spec.Name, n), open: map[*history.Handle]struct{}{},
		guests: map[string]*zklock.Hold{}, granted: map[string]time.Duration{}}
	p.eventCheck = &eventCheck{report: f.report, now: f.rec.Now, name: p.name}
	p.alive, p.die = context.WithCancel(f.end)
	r := stream(f.plan.Seed, p.name)
	p.cohort = drawCohort(stream(f.plan.Seed, p.name+"/cohort"))
	servers := f.srv.Addrs()
	if len(servers) > 1 && r.IntN(3) == 0 && !f.plan.Failing {
		i := r.IntN(len(servers))
		servers = servers[i : i+1] // the client knows only one server
	}
	p.servers = servers
	ctx := testclock.With(p.alive, func() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) })
	opts := &zklock.Options{
		SessionTimeout: spec.Session, TickTime: f.plan.Tick, Label: p.name, Dialer: f.srv.DialFrom(p.name), Auth: f.plan.credentials(),
		ACL:       f.plan.acl(),
		LockDelay: f.plan.Delay, Untrusted: f.plan.Hostile.Forged, Observer: p.eventCheck,
	}
	client, err := zklock.Connect(ctx, servers, opts)
	for errors.Is(err, zk.ErrAuthFailed) && p.rest(time.Second) {
		client, err = zklock.Connect(ctx, servers, opts)
	}
	if err != nil {
		p.die()
		return
	}
	p.client = client
	f.mu.Lock()
	f.eventChecks = append(f.eventChecks, p.eventCheck)
	if n == 0 {
		f.procs = append(f.procs, p)
	} else {
		for i, old := range f.procs {
			if old.spec.Name == spec.Name {
				f.procs[i] = p
			}
		}
	}
	f.mu.Unlock()
	for i := range spec.Workers {
		f.wg.Add(1)
		// Owned by the fleet; ends when stop is closed or the process dies; finish waits for it.
		go p.work(stream(f.plan.Seed, fmt.Sprintf("%s/%d", p.name, i)))
	}
}

// work acquires and releases locks, one after the other.
func (p *process) work(r *rand.Rand) {
	defer p.f.wg.Done()
	for p.rest(around(r, p.f.plan.Think)) {
		if all := p.f.plan.together(); len(all) > 1 && r.IntN(8) == 0 {
			takeAll(p, all, r)
			continue
		}
		l := p.f.plan.Locks[r.IntN(len(p.f.plan.Locks))]
		if p.f.plan.Cohorts && p.cohort != nil && p.f.plan.Delay == 0 && suitsCohort(l, r) { // a cohort has no lock-delay
			takeCohort(p, l, r)
			continue
		}
		takers[l.Recipe](p, l, r)
	}
}
