// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/internal/evidence/sim"
)

// shrink reduces a failing plan to a small one, and prints its story.
func shrink(ctx context.Context, s *settings) error {
	m, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	c := &cutter{ctx: ctx, machine: m, schedule: s.job.Schedule, until: time.Now().Add(s.budget)}
	if err := c.begin(s.job); err != nil {
		return err
	}
	c.cut()
	if s.native {
		if err := c.confirm(s); err != nil {
			return err
		}
	}
	if s.out != "" {
		b := bug{Showed: c.last.Verdict[0].String(), Found: "make shrink", Mutant: s.mutant, Schedule: c.schedule, Plan: c.best}
		if err := b.save(s.out); err != nil {
			return err
		}
	}
	fmt.Printf("%d runs; %d clients, %d locks and %d faults are left; schedule %d\n", c.runs, len(c.best.Clients), len(c.best.Locks), len(c.best.Steps), c.schedule)
	return history.Story(os.Stdout, c.last.History, c.last.Verdict)
}

// cutter looks for a small plan that still breaks the same promise.
type cutter struct {
	ctx      context.Context
	machine  runner
	until    time.Time
	rule     string
	schedule uint64
	best     sim.Plan // the smallest failing plan so far
	last     *Result  // the result of best
	runs     int
}

// begin runs the whole plan, and lists its faults.
func (c *cutter) begin(job Job) error {
	res, err := c.machine.Run(c.ctx, job)
	if err != nil {
		return err
	}
	if len(res.Verdict) == 0 {
		return fmt.Errorf("nothing to shrink: the plan breaks no promise")
	}
	plan, err := sim.PlanOf(res.History)
	if err != nil {
		return err
	}
	c.rule, c.best, c.last = res.Verdict[0].Rule, *plan, res
	listed := *plan
	listed.Steps = stepsOf(res.History)
	if !c.try(listed) {
		return fmt.Errorf("the plan does not fail (%s) with its faults listed", c.rule)
	}
	return nil
}

// confirm looks for a schedule with which a plan that was reduced natively fails as well.
func (c *cutter) confirm(s *settings) error {
	m, err := Build(c.ctx, s.root, s.defects()...)
	if err != nil {
		return err
	}
	defer m.Close(c.ctx)
	c.machine, c.schedule, c.until = m, s.job.Schedule, time.Now().Add(s.budget)
	for range 8 {
		if c.try(c.best) {
			return nil
		}
		c.schedule += 2
	}
	return fmt.Errorf("the plan fails natively (%s), but with none of the schedules from %d on", c.rule, s.job.Schedule)
}

// stepsOf lists the faults of a run.
func stepsOf(h *history.History) []sim.Step {
	steps := []sim.Step{}
	for _, w := range h.Faults {
		steps = append(steps, sim.Step{Stream: w.Stream, Number: w.Number, At: w.From, Kind: w.Kind})
	}
	slices.SortFunc(steps, func(a, b sim.Step) int { return cmp.Compare(a.At, b.At) })
	return steps
}

// try reports whether the plan also breaks the promise, with the same schedule or with the next one. If so, it becomes c.best.
func (c *cutter) try(p sim.Plan) bool {
	text, err := json.Marshal(p)
	if err != nil {
		return false
	}
	for _, schedule := range []uint64{c.schedule, c.schedule + 1} {
		if time.Now().After(c.until) {
			return false
		}
		c.runs++
		res, err := c.machine.Run(c.ctx, Job{Plan: text, Schedule: schedule})
		if err != nil {
			continue
		}
		if i := slices.IndexFunc(res.Verdict, func(v history.Violation) bool { return v.Rule == c.rule }); i >= 0 {
			res.Verdict = res.Verdict[i : i+1]
			c.best, c.last, c.schedule = p, res, schedule
			fmt.Fprintf(os.Stderr, "%v: %d clients, %d locks, %d faults, %v\n", res.Verdict[0].Rule, len(p.Clients), len(p.Locks), len(p.Steps), p.Virtual())
			return true
		}
	}
	return false
}

// cut tries smaller plans until none of them fails, or the budget is spent.
func (c *cutter) cut() {
	c.cutEnd()
	for before := 0; before != c.size(); {
		before = c.size()
		c.cutSteps()
		c.cutActors()
		c.cutBeginning()
		c.cutEnd()
	}
	c.simplify()
}

func (c *cutter) size() int {
	workers := 0
	for _, client := range c.best.Clients {
		workers += client.Workers
	}
	return len(c.best.Steps) + workers + len(c.best.Locks) + int(c.best.Virtual()/time.Minute)
}

// cutEnd tries to end the run soon after the promise is broken.
func (c *cutter) cutEnd() {
	at := c.last.Verdict[0].At
	for _, rest := range []time.Duration{0, c.best.Wake()} {
		p := c.best
		p.Before = min(p.Before, at)
		p.During = min(p.During, at-p.Before)
		p.After = rest
		p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s sim.Step) bool { return s.At > at })
		if p.Virtual() < c.best.Virtual() && c.try(p) {
			return
		}
	}
}

// cutBeginning tries to shorten the time before the faults.
func (c *cutter) cutBeginning() {
	for _, part := range []time.Duration{1, 2, 4} {
		p := c.best
		by := p.Before / part
		p.Before -= by
		p.Steps = slices.Clone(p.Steps)
		for i := range p.Steps {
			p.Steps[i].At = max(0, p.Steps[i].At-by)
		}
		if by > 0 && c.try(p) {
			return
		}
	}
}

// cutSteps tries to leave out faults: many at once at first, then fewer.
func (c *cutter) cutSteps() {
	for n := max(1, len(c.best.Steps)/2); ; n /= 2 {
		for from := 0; from < len(c.best.Steps); {
			p := c.best
			p.Steps = slices.Delete(slices.Clone(p.Steps), from, min(from+n, len(p.Steps)))
			if !c.try(p) {
				from += n
			}
		}
		if n <= 1 {
			return
		}
	}
}

// cutActors tries to leave out clients, workers and locks.
func (c *cutter) cutActors() {
	for i := len(c.best.Clients) - 1; i >= 0; i-- {
		p := c.best
		if p.Clients = slices.Delete(slices.Clone(p.Clients), i, i+1); len(p.Clients) > 0 && c.try(p) {
			continue
		}
		for c.best.Clients[i].Workers > 1 {
			p := c.best
			p.Clients = slices.Clone(p.Clients)
			if p.Clients[i].Workers--; !c.try(p) {
				break
			}
		}
	}
	for i := len(c.best.Locks) - 1; i >= 0; i-- {
		p := c.best
		if p.Locks = slices.Delete(slices.Clone(p.Locks), i, i+1); len(p.Locks) > 0 {
			c.try(p)
		}
	}
}

// simplify tries to replace unusual settings of the servers by the usual ones.
func (c *cutter) simplify() {
	for _, change := range []func(*sim.Plan){
		func(p *sim.Plan) { p.Servers = 1 },
		func(p *sim.Plan) { p.Servers = min(p.Servers, 3) },
		func(p *sim.Plan) { p.ForgetSessions, p.WrapCounter, p.NoContainers = false, false, false },
		func(p *sim.Plan) { p.ExpiryGap, p.LoseTouches, p.LatePing = 0, 0, 0 },
		func(p *sim.Plan) { p.Flavor, p.UnknownOps = 0, nil },
		func(p *sim.Plan) { p.Latency = min(p.Latency, time.Millisecond) },
	} {
		p := c.best
		change(&p)
		before, _ := json.Marshal(c.best)
		if after, _ := json.Marshal(p); string(before) != string(after) {
			c.try(p)
		}
	}
}
