// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock/internal/evidence/sim"
)

// longest is how long one run may take on a busy machine. A run that takes longer counts as one that never ends.
const longest = 20 * time.Minute

// explore runs seeds and schedules until the budget is spent.
func explore(ctx context.Context, s *settings) error {
	m, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	w := &walk{s: s, made: s.made(), until: time.Now().Add(s.budget)}
	var workers sync.WaitGroup
	for range s.parallel {
		// Owned by this call, which waits for it; ends with the budget.
		workers.Go(func() {
			for {
				job, more := w.next()
				if !more {
					return
				}
				w.report(job, examine(ctx, m, job, s.out))
			}
		})
	}
	workers.Wait()
	fmt.Printf("%d runs, %d failures\n", w.runs, w.failures)
	if w.failures > 0 {
		return fmt.Errorf("%d of %d runs broke a promise", w.failures, w.runs)
	}
	return nil
}

// walk is the progress of explore.
type walk struct {
	s     *settings
	made  []string
	until time.Time

	mu       sync.Mutex
	given    int // guarded by mu
	runs     int // guarded by mu
	failures int // guarded by mu
}

// made returns the names of the made plans that explore runs before drawn ones. If the flags restrict the drawn plans, there
// are none.
func (s *settings) made() []string {
	if s.job.Made != "" {
		return []string{s.job.Made}
	}
	if s.job.Hostile+s.job.Faults+s.job.Focus != "" {
		return nil
	}
	return sim.MadePlans()
}

// next returns the next job. Jobs go through the made plans and all seeds with one schedule, then with the next schedule. Made
// plans have another seed with each schedule.
func (w *walk) next() (Job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	job, n := w.s.job, uint64(w.given)
	made, seeds := uint64(len(w.made)), uint64(w.s.seeds)
	switch {
	case job.Made != "":
		seeds = 0
	case seeds == 0:
		seeds = math.MaxUint64 - made
	}
	round, n := n/(made+seeds), n%(made+seeds)
	job.Schedule += round
	if n < made {
		job.Made, job.Seed = w.made[n], job.Seed+round
	} else {
		job.Made, job.Seed = "", job.Seed+n-made
	}
	w.given++
	return job, time.Now().Before(w.until)
}

// report counts a finished job, and prints its failure if found is not empty.
func (w *walk) report(job Job, found string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs++
	if found != "" {
		w.failures++
		fmt.Printf("%s\n\tagain: %s\n", found, job.Command())
	}
}

// title returns a name for the job, for use in file names.
func (j Job) title() string {
	title := fmt.Sprintf("seed-%d-schedule-%d", j.Seed, j.Schedule)
	if j.Made != "" {
		title = strings.NewReplacer(" ", "-", "/", "-").Replace(j.Made) + "-" + title
	}
	return title
}

// examine runs one job and returns a description of its failure, or "" if it did not fail.
func examine(ctx context.Context, m runner, job Job, dir string) string {
	// A run cannot be stopped from outside, so if it never ends, the program exits.
	alarm := time.AfterFunc(longest, func() {
		fmt.Printf("never ends\n\tagain: %s\n", job.Command())
		os.Exit(1)
	})
	defer alarm.Stop()
	res, err := m.Run(ctx, job)
	if err != nil {
		return err.Error()
	}
	if len(res.Verdict) == 0 {
		return ""
	}
	if dir != "" {
		name := filepath.Join(dir, job.title()+".jsonl")
		if err := os.WriteFile(name, res.Text, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "replay:", err)
		}
	}
	return res.Verdict[0].String()
}
