package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/zktest"
)

// Result is what came of a run.
type Result struct {
	Plan       *Plan
	History    *history.History
	Violations []history.Violation
	Faults     map[string]int
	Virtual    time.Duration
	Gauge      *gauge // of a healthy run
}

// Broken returns the promises that were broken: all violations but those of the plan.
func (r *Result) Broken() []history.Violation {
	return slices.DeleteFunc(slices.Clone(r.Violations), func(v history.Violation) bool { return v.Rule == idle })
}

// Run carries out a plan. It must run in a synctest bubble; tb ends the server.
func Run(tb zktest.TB, p *Plan) *Result {
	end, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := &fleet{
		plan: p, rec: history.NewRecorder(), stop: make(chan struct{}), end: end,
		sessions: map[int64]string{}, hears: newHearing(p.shortest()), forced: map[int64]bool{}, exhausted: map[int64]bool{}, known: map[string]bool{}, fenced: map[string]int64{},
		said: map[string]int{}, evicted: map[string]time.Duration{}, written: map[string]bool{}, refused: map[string]bool{}, limits: map[string][]limit{}, faults: map[string]int{},
	}
	spec, _ := json.Marshal(p)
	f.rec.Meta("plan", string(spec))
	f.rec.Meta("seed", fmt.Sprint(p.Seed))
	f.srv = zktest.Start(tb, p.options())
	for _, l := range p.Locks {
		if err := f.srv.PutNode(fencePath(l.Path), nil); err != nil {
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
	for _, t := range f.told {
		t.close()
	}

	res := &Result{Plan: p, History: f.rec.History(), Faults: f.faults, Virtual: f.rec.Now(), Gauge: f.gauge}
	res.Violations = f.judge(res.History, healthy, healed, over)
	return res
}

// idle is the rule that a run must have put the locks to the test: what breaks it is the plan, not the library.
const idle = "idle"

// judge checks the history and what a history cannot tell.
func (f *fleet) judge(h *history.History, healthy, healed, over time.Duration) []history.Violation {
	found := append(f.broken, history.Check(h, f.plan.Limits())...)
	for _, phase := range []struct {
		name     string
		from, to time.Duration
	}{{"before", 0, healthy}, {"during", healthy, healed}, {"after", healed, over}} {
		if n := history.Contended(h, phase.from, phase.to); n < 5 {
			found = append(found, history.Violation{Rule: idle, At: phase.to, Text: fmt.Sprintf("only %d contended grants %s the faults: this run proves nothing", n, phase.name)})
		}
	}
	return found
}

// finish lets the workers end what they are at, within a bound, and the clean-up its time.
func (f *fleet) finish() {
	close(f.stop)
	done := make(chan struct{})
	// Owned by this call; ends with the workers.
	go func() { f.wg.Wait(); close(done) }()
	workers := 0
	for _, c := range f.plan.Clients {
		workers += c.Workers
	}
	timer := time.NewTimer(f.plan.Wake() + time.Duration(2*workers)*(6*f.plan.Hold+f.plan.Wake()/4))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		f.report("P7", "", "some who wait do not get the lock after the faults")
	}
	time.Sleep(f.plan.Wake() * 3 / 2)
	f.checkRest()
}

// checkRest is P6 on the server, when all is over: nobody waits any more. A client that looked at an election
// without a leader, or waited for a permit, has a watch on the directory, which the client library cannot take back; one a
// client, not more.
func (f *fleet) checkRest() {
	for _, l := range f.plan.Locks {
		for path, n := range f.srv.Watches() {
			looked := l.Recipe == history.Election || l.Recipe == history.Semaphore
			idle := looked && path == l.queue() && n <= len(f.plan.Clients)
			if strings.HasPrefix(path, l.Path) && !idle {
				f.report("P6", l.Path, fmt.Sprintf("%d watches are left on %s", n, path))
			}
		}
	}
}
