// SPDX-License-Identifier: Apache-2.0

// Package zkcron runs each job of a github.com/robfig/cron/v3 schedule once in a fleet.
//
//	client, err := zklock.Connect(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"}, nil)
//	...
//	fleet := zkcron.New(client, "/cron", nil)
//	c := cron.New(cron.WithLocation(time.UTC))
//	schedule, err := cron.ParseStandard("0 1 * * *")
//	...
//	fleet.Schedule(c, "report", schedule, report)
//	c.Start()
package zkcron

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
)

// Fleet runs the jobs of a cron once in a fleet. Each host of the fleet has a Fleet of its own, with
// the same directory. It does not need to be closed: a run ends with its job or with the client.
type Fleet struct {
	client *zklock.Client
	dir    string
	opts   Options
}

// Options configure a Fleet. Nil means the defaults.
type Options struct {
	// Context is the parent of the contexts of jobs. Default context.Background. When it is done,
	// jobs that are running should stop, and later runs do not start on this host.
	Context context.Context
	// AtMostOnce marks a run as done before its job starts. The run is not repeated even if the job
	// fails or its host dies. By default a run is marked after its job has returned nil; until then
	// another host that comes to the same run starts it again.
	AtMostOnce bool
	// OnError is called with the error of a run that did not succeed on this host: the job's own
	// error, a lock that was lost, servers that did not answer. It is not called if another host has
	// done the run. Default: the error is dropped, as cron does with the outcome of its jobs.
	OnError func(name string, due time.Time, err error)
}

// New returns a Fleet whose locks are below dir, one for each job. It sends nothing; an invalid path
// is reported by the first run.
func New(client *zklock.Client, dir string, opts *Options) *Fleet {
	f := &Fleet{client: client, dir: dir}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.Context == nil {
		f.opts.Context = context.Background()
	}
	return f
}

// Schedule adds a job to c. Its name must be unique in the fleet's directory and the same on all
// hosts, and all hosts must use the same schedule and location.
//
// A run is identified by the time for which it was scheduled: see slots.Due. It is done once, however
// late it starts and however much the hosts' clocks differ, as long as they differ by less than an
// hour from the servers'. Each host that comes to the run waits for the lock, so a run whose host
// dies is done by another host, unless Options.AtMostOnce is set. A job must stop when its context is
// done. Its hold, and so its token, is zklock.HoldAt(ctx, slots.Path(dir, name)).
func (f *Fleet) Schedule(c *cron.Cron, name string, schedule cron.Schedule, job func(context.Context) error) cron.EntryID {
	planned := &planned{Schedule: schedule}
	return c.Schedule(planned, cron.FuncJob(func() {
		due, ok := planned.take()
		if !ok {
			return // an earlier run has taken it
		}
		if err := f.run(name, due, job); err != nil && !errors.Is(err, slots.ErrDone) && f.opts.OnError != nil {
			f.opts.OnError(name, due, err)
		}
	}))
}

// run does a run unless the fleet has done it.
func (f *Fleet) run(name string, due time.Time, job func(context.Context) error) error {
	path := slots.Path(f.dir, name)
	run := slots.Due(f.client, path, due)
	if !f.opts.AtMostOnce {
		return run.Do(f.opts.Context, job)
	}
	if err := run.Open(f.opts.Context); err != nil {
		return err
	}
	return f.client.Mutex(path).Do(f.opts.Context, func(ctx context.Context) error {
		if err := run.Mark(ctx, zklock.HoldOf(ctx)); err != nil {
			return err
		}
		return job(ctx)
	})
}

// planned records for which times cron has planned runs. cron calls Next when it starts, and each
// time it has started a run.
type planned struct {
	cron.Schedule

	mu    sync.Mutex
	times []time.Time // guarded by mu: in their order; no run has taken them
}

func (p *planned) Next(now time.Time) time.Time {
	next := p.Schedule.Next(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.times); n == 0 || p.times[n-1].Before(next) {
		p.times = append(p.times, next)
	}
	return next
}

// take returns the time for which the run that starts now was planned: the newest that has come. It
// returns false if there is none. Earlier ones were skipped by cron.
func (p *planned) take() (due time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for now := time.Now(); len(p.times) > 0 && !p.times[0].After(now); p.times = p.times[1:] {
		due, ok = p.times[0], true
	}
	return due, ok
}
