package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// longest is how long one run may take on a busy machine: what takes longer never ends.
const longest = 20 * time.Minute

// explore walks seeds and schedules until the budget is spent.
func explore(ctx context.Context, s *settings) error {
	m, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	w := &walk{s: s, until: time.Now().Add(s.budget)}
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
		return fmt.Errorf("%d of %d runs show a broken promise", w.failures, w.runs)
	}
	return nil
}

// walk is where explore is.
type walk struct {
	s     *settings
	until time.Time

	mu       sync.Mutex
	given    int // guarded by mu
	runs     int // guarded by mu
	failures int // guarded by mu
}

// next returns the next job: all seeds with one schedule, then all with the next.
func (w *walk) next() (Job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	job := w.s.job
	switch n := uint64(w.given); {
	case w.s.seeds > 0:
		job.Seed += n % uint64(w.s.seeds)
		job.Schedule += n / uint64(w.s.seeds)
	default:
		job.Seed += n
	}
	w.given++
	return job, time.Now().Before(w.until)
}

// report notes the end of a job, and what it found, if anything.
func (w *walk) report(job Job, found string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs++
	if found != "" {
		w.failures++
		fmt.Printf("%s\n\tagain: %s\n", found, job.Command())
	}
}

// examine does one job and returns what it found, or nothing.
func examine(ctx context.Context, m runner, job Job, dir string) string {
	// A run cannot be stopped from outside: one that never ends ends the whole.
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
		name := filepath.Join(dir, fmt.Sprintf("seed-%d-schedule-%d.jsonl", job.Seed, job.Schedule))
		if err := os.WriteFile(name, res.Text, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "replay:", err)
		}
	}
	return res.Verdict[0].String()
}
