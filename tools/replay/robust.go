// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/zklock-go/zklock/internal/evidence/sim"
)

// robust runs a plan under many schedules and prints in how many of them it breaks a promise. With -native, the schedules
// differ by themselves.
func robust(ctx context.Context, s *settings) error {
	return s.count(ctx, "schedules", func(job *Job, n uint64) error {
		job.Schedule += n
		return nil
	})
}

// spread runs a plan with many seeds, and prints with how many of them it breaks a promise. The seed determines everything that
// the plan leaves open.
func spread(ctx context.Context, s *settings) error {
	return s.count(ctx, "seeds", func(job *Job, n uint64) error {
		if job.Plan == nil {
			job.Seed += n
			return nil
		}
		var p sim.Plan
		if err := json.Unmarshal(job.Plan, &p); err != nil {
			return fmt.Errorf("the plan: %w", err)
		}
		p.Seed += n
		text, err := json.Marshal(p)
		job.Plan = text
		return err
	})
}

// count runs a job many times, each time with a change, and prints how often it breaks a promise, by rule.
func (s *settings) count(ctx context.Context, what string, change func(*Job, uint64) error) error {
	m, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	shown, first, rules := 0, uint64(0), map[string]int{}
	for n := range uint64(s.runs) {
		job := s.job
		if err := change(&job, n); err != nil {
			return err
		}
		res, err := m.Run(ctx, job)
		if err != nil {
			return err
		}
		if len(res.Verdict) > 0 {
			if shown++; shown == 1 {
				first = n
			}
			rules[res.Verdict[0].Rule]++
		}
	}
	fmt.Printf("in %d of %d %s: %v; the first is number %d\n", shown, s.runs, what, rules, first+1)
	return nil
}
