// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// Result is the result of a run.
type Result struct {
	Plan       *Plan
	History    *history.History
	Violations []history.Violation
	Faults     map[string]int
	Virtual    time.Duration
	Gauge      *gauge // the measurements of a healthy run
}

// Broken returns the violations of promises: all violations except those of the rule idle.
func (r *Result) Broken() []history.Violation {
	return slices.DeleteFunc(slices.Clone(r.Violations), func(v history.Violation) bool { return v.Rule == idle })
}

// Run executes a plan. It must be called in a synctest bubble. The server ends with tb.
func Run(tb zktest.TB, p *Plan) *Result {
	end, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := &fleet{
		plan: p, rec: history.NewRecorder(), refusals: newRefusals(), stop: make(chan struct{}), end: end,
		sessions: map[int64]string{}, contacts: newContacts(p.shortest()), forced: map[int64]bool{}, ended: map[int64]time.Duration{}, ambiguous: map[int64]bool{}, robbed: map[int64]time.Duration{}, exhausted: map[int64]bool{}, known: map[string]int64{}, fenced: map[string]int64{},
		at: map[string]int{}, busy: map[string]time.Duration{}, said: map[string]int{}, evicted: map[string]time.Duration{}, written: map[string]bool{}, refused: map[string]bool{}, limits: map[string][]limit{}, faults: map[string]int{},
	}
	f.until, f.cease = context.WithCancel(end)
	defer f.cease()
	spec, _ := json.Marshal(p)
	f.rec.Meta("plan", string(spec))
	f.rec.Meta("seed", fmt.Sprint(p.Seed))
	f.srv = zktest.Start(tb, p.options())
	f.putBulk(tb)
	for i, l := range p.Locks {
		err := f.srv.PutNode(fencePath(l.Path), nil)
		if i < p.Existing {
			err = errors.Join(err, f.srv.PutNode(l.queue(), nil))
		}
		if err != nil {
			tb.Fatalf("sim: %v", err)
		}
	}
	f.srv.Intercept(f.meet)
	if p.Healthy || p.Failing {
		f.gauge = &gauge{least: map[float64]float64{}}
		f.srv.Intercept(f.gauge.meter)
	}
	f.srv.OnTxn(f.log)
	for _, spec := range p.Clients {
		f.launch(spec, 0)
	}
	if p.Hostile.Looks {
		f.wg.Add(1)
		// Owned by the fleet; ends when stop is closed; finish waits for it.
		go f.onlook(stream(p.Seed, "onlooker"))
	}
	time.Sleep(p.Before)
	healthy := f.rec.Now()
	if p.Healthy {
		time.Sleep(p.During)
	} else {
		f.trouble()
	}
	healed := f.rec.Now()
	time.Sleep(p.After)
	over := f.rec.Now()
	f.finish()
	cancel()
	f.wg.Wait()
	f.closeAll()
	excused := maps.Clone(f.forced)
	maps.Copy(excused, f.ambiguous)
	for _, t := range f.eventChecks {
		t.close(excused, f.ended)
	}

	res := &Result{Plan: p, History: f.rec.History(), Faults: f.faults, Virtual: f.rec.Now(), Gauge: f.gauge}
	res.Violations = f.judge(res.History, healthy, healed, over)
	return res
}

// idle is the rule that a run must have enough contended grants. If it is broken, the plan is unsuitable, not the library faulty.
const idle = "idle"

// judge checks the history, adds the violations that workers have reported, and checks the rule idle.
func (f *fleet) judge(h *history.History, healthy, healed, over time.Duration) []history.Violation {
	found := append(f.broken, history.Check(h, f.plan.Limits())...)
	for _, phase := range []struct {
		name     string
		from, to time.Duration
	}{{"before", 0, healthy}, {"during", healthy, healed}, {"after", healed, over}} {
		if n := history.Contended(h, phase.from, phase.to); n < f.plan.leastContended() {
			found = append(found, history.Violation{Rule: idle, At: phase.to, Text: fmt.Sprintf("only %d contended grants %s the faults", n, phase.name)})
		}
	}
	if f.plan.Remaining > 0 {
		found = append(found, f.gauge.complain(f.plan.Remaining)...)
	}
	return found
}

// leastContended returns how many contended grants each phase of a run must have. A fleet's shards move
// rarely; whether they are held and even is checked at any time.
func (p *Plan) leastContended() int {
	if slices.ContainsFunc(p.Locks, func(l Lock) bool { return l.Recipe == history.Shards }) {
		return 0
	}
	return 5
}

// finish waits, within a limit, until the workers have ended their current operations, and then for clean-up.
func (f *fleet) finish() {
	close(f.stop)
	f.cease()
	done := make(chan struct{})
	// Owned by this call; ends with the workers.
	go func() { f.wg.Wait(); close(done) }()
	workers := 0
	for _, c := range f.plan.Clients {
		workers += c.Workers * max(1, c.Share)
	}
	timer := time.NewTimer(f.plan.Wake() + time.Duration(2*workers)*(6*f.plan.Hold+f.plan.Wake()/4+f.plan.watching()))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		f.report("P7", "", "some waiters are not granted the lock after the faults")
	}
	time.Sleep(f.plan.Wake())
	f.rests()
	time.Sleep(f.plan.Wake() / 2)
	f.checkRest()
}

// rests records that no caller waits or holds, and that what callers have left must be removed. The members of a fleet have places all
// the time.
func (f *fleet) rests() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resting = !slices.ContainsFunc(f.plan.Locks, func(l Lock) bool { return l.Recipe == history.Shards })
}

// mostBusy is for how many session timeouts a process that rests may ask the quorum after it has connected. It searches for lost creates
// then: twice, or, if its session has ended meanwhile, until the servers must have ended it, too, which takes more than two timeouts.
const mostBusy = 4

// checkBeat checks P6 for a request while nobody waits or holds: a process without a node does not ask the quorum, except soon after it
// has connected. That can happen again and again: a process leaves a server whose replies take long. A process that learns late that its
// node is gone has as much time. The caller must hold mu.
func (f *fleet) checkBeat(req *zktest.Request) {
	now := f.rec.Now()
	asks := f.resting && req.Op == zktest.OpMulti && isBeat(req)
	switch {
	case req.Op == zktest.OpCreateSession, asks && f.hasNode(req.Client):
		f.busy[req.Client] = now
	case asks && now-f.busy[req.Client] > mostBusy*f.term(req.Client):
		f.busy[req.Client] = now // it is not reported again at once
		f.broken = append(f.broken, history.Violation{Rule: "P6", At: now, Text: req.Client + " has no node, and asks the quorum all the same"})
	}
}

// hasNode reports whether a session of the client has a contender's node. The caller must hold mu.
func (f *fleet) hasNode(client string) bool {
	for _, owner := range f.known {
		if f.sessions[owner] == client {
			return true
		}
	}
	return false
}

// checkRest checks P6 on the server at the end, when no caller waits. A client that observed an election without a leader, or
// waited for a permit, has a watch on the directory, which the client library cannot remove. There may be one such watch per
// client.
func (f *fleet) checkRest() {
	for _, l := range f.plan.Locks {
		for path, n := range f.srv.Watches() {
			looked := l.Recipe == history.Election || l.Recipe == history.Semaphore
			idle := looked && path == l.queue() && n <= len(f.plan.Clients) || l.Recipe == history.Shards && path == l.Path+"/members" && n <= len(f.plan.Clients)
			if strings.HasPrefix(path, l.Path) && !idle {
				f.report("P6", l.Path, fmt.Sprintf("%d watches remain on %s", n, path))
			}
		}
	}
}
