// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
)

// A Schedule says when a job is due. The schedules of most cron libraries have its method.
type Schedule interface {
	// Next returns the first time after now at which the job is due, or the zero time if there is
	// none.
	Next(now time.Time) time.Time
}

// Every returns a schedule with the given period that counts from the clock, so that it is the same on
// every host: Every(15 * time.Minute) is due at 0:00, 0:15, 0:30 and so on. Periods that do not divide
// a day count from Monday, 1 January of the year 1, at midnight UTC.
func Every(period time.Duration) Schedule { return every(period) }

type every time.Duration

func (e every) Next(now time.Time) time.Time {
	return now.Truncate(time.Duration(e)).Add(time.Duration(e))
}

// Job is a job that a fleet runs once for each time of a schedule. Pass it to a cron library twice, as
// the schedule and as the job:
//
//	report, err := slots.Scheduled(client, "/cron", "report", schedule, work)
//	if err != nil {
//		return err
//	}
//	c := cron.New(cron.WithLocation(time.UTC))
//	c.Schedule(report, report)
//
// It does not need to be closed: a run ends with its function or with the client.
type Job struct {
	client   *zklock.Client
	path     string
	schedule Schedule
	work     func(ctx context.Context, due time.Time) error
	opts     JobOptions
	planned  planned
}

// JobOptions configures a Job. They can be left out; of several, the last ones count.
type JobOptions struct {
	// Context is the parent of the contexts of runs. Default context.Background. When it is done,
	// runs should stop, and later runs do not start on this host.
	Context context.Context
	// AtMostOnce marks a run as done before it starts. The run is not repeated even if it fails or
	// its host dies. By default a run is marked after it has returned nil; until then another host
	// that waits for the same run starts it again.
	AtMostOnce bool
	// OnError is called with the error of a run that did not succeed on this host: the error that
	// the function returned, a lock that was lost, ErrLate. It is not called if another host has done
	// the run, or for a run that ended because Context was done or the client was closed. The default
	// writes the error to the client's Options.Logger, or to slog.Default if the client has none.
	OnError func(due time.Time, err error)
}

// Scheduled returns a job with its lock at Path(dir, name). It sends nothing. All hosts of the fleet
// must use the same dir, name, schedule and location.
//
// A run is identified by the time for which it is due: see Due. It is done once, however late it
// starts and however much the hosts' clocks differ, as long as they differ by less than an hour from
// the servers'. Each host waits for the lock, so a run whose host dies is done by another host. A host
// gives up a run, with ErrLate, if it has not begun when the next one is due. So after an outage of any
// length the newest run is done once, and earlier ones are not made up.
//
// work gets the time for which the run is due. It must stop when its context is done;
// zklock.HoldAt(ctx, Path(dir, name)) returns its hold, and so its token. If work panics, the lock is released and the slot stays open
// before the panic continues in Run.
//
// Scheduled returns zklock.ErrInvalid for a schedule whose times depend on when Next is called. "@every
// 3s" of most cron libraries counts from the start of each host, so hosts cannot agree on a run: use
// Every. It also returns ErrInvalid for an invalid path, an empty name, and a nil schedule or work.
func Scheduled(c *zklock.Client, dir, name string, schedule Schedule, work func(ctx context.Context, due time.Time) error, opts ...*JobOptions) (*Job, error) {
	j := &Job{client: c, path: Path(dir, name), schedule: schedule, work: work}
	for _, o := range opts {
		if o != nil {
			j.opts = *o
		}
	}
	if j.opts.Context == nil {
		j.opts.Context = context.Background()
	}
	if err := j.check(name); err != nil {
		return nil, fmt.Errorf("zklock: schedule job %q of %s: %w", name, node.Printable(dir), err)
	}
	return j, nil
}

func (j *Job) check(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: empty name", zklock.ErrInvalid)
	case j.schedule == nil:
		return fmt.Errorf("%w: no schedule given", zklock.ErrInvalid)
	case j.work == nil:
		return fmt.Errorf("%w: no function given", zklock.ErrInvalid)
	}
	if err := node.CheckPath(j.path); err != nil {
		return err
	}
	return checkSchedule(j.schedule, time.Now())
}

// checkedTimes is how many of its next times checkSchedule compares.
const checkedTimes = 3

// checkSchedule returns ErrInvalid if the schedule's next times after now depend on when Next is called:
// each must be the same if the schedule is asked right before it.
func checkSchedule(s Schedule, now time.Time) error {
	if period, ok := s.(every); ok && period <= 0 {
		return fmt.Errorf("%w: period %v is not positive", zklock.ErrInvalid, time.Duration(period))
	}
	for range checkedTimes {
		due := s.Next(now)
		switch {
		case due.IsZero():
			return nil
		case !due.After(now):
			return fmt.Errorf("%w: the schedule's next time after %v is %v", zklock.ErrInvalid, now, due)
		case !s.Next(due.Add(-1)).Equal(due):
			return fmt.Errorf("%w: the schedule's times depend on when it is asked, as those of \"@every\" do, so hosts would plan different runs: use slots.Every", zklock.ErrInvalid)
		}
		now = due
	}
	return nil
}

// Next returns the next time at which the job is due, and remembers it for Run. It implements the
// Schedule of cron libraries.
func (j *Job) Next(now time.Time) time.Time {
	next := j.schedule.Next(now)
	j.planned.add(next, time.Now())
	return next
}

// Run does the run for the newest time that Next has returned and that has come, unless the fleet has
// done it. It returns when that run has ended or was given up. If there is no such time, because
// earlier calls have taken all, Run does nothing. It implements the Job of cron libraries.
//
// Next plans the runs, so the job must be passed to the cron library as the schedule, too. If Next was never
// called, JobOptions.OnError is called with zklock.ErrInvalid, and the zero time.
func (j *Job) Run() {
	due, ok := j.planned.take(time.Now())
	if !ok {
		if !j.planned.hasBegun() {
			j.report(time.Time{}, fmt.Errorf("zklock: run job of %s: %w: Next was never called: pass the job as the schedule, too", node.Printable(j.path), zklock.ErrInvalid))
		}
		return
	}
	if err := j.run(due); err != nil && !errors.Is(err, ErrDone) && !j.isStop(err) {
		j.report(due, err)
	}
}

// run does the run that is due at that time. The function may run for longer than until the next run is
// due, but it does not begin later.
func (j *Job) run(due time.Time) error {
	slot := Due(j.client, j.path, due)
	slot.inOrder = true
	begin := j.opts.Context
	if next := j.schedule.Next(due); !next.IsZero() {
		var cancel context.CancelFunc
		begin, cancel = context.WithDeadlineCause(begin, next, ErrLate)
		defer cancel()
	}
	hold, err := slot.begin(begin)
	if err != nil {
		return err
	}
	work := func(ctx context.Context) error { return j.work(ctx, due) }
	if j.opts.AtMostOnce {
		return hold.Do(j.opts.Context, func(ctx context.Context) error {
			if err := slot.Mark(ctx, hold); err != nil {
				return err
			}
			return work(ctx)
		})
	}
	return slot.under(j.opts.Context, hold, work)
}

// isStop reports whether a run failed only because the program stops.
func (j *Job) isStop(err error) bool {
	stopped := j.opts.Context.Err()
	return errors.Is(err, zklock.ErrClosed) || stopped != nil && errors.Is(err, stopped)
}

// report passes on the error of a run.
func (j *Job) report(due time.Time, err error) {
	if j.opts.OnError != nil {
		j.opts.OnError(due, err)
		return
	}
	log := bridge.ClientOf(j.client).Requests.Log
	if !log.Enabled(context.Background(), slog.LevelError) {
		log = slog.Default()
	}
	if errors.Is(err, ErrLate) {
		log.Warn("zklock: scheduled run given up", "path", j.path, "due", due, "err", err)
		return
	}
	log.Error("zklock: scheduled run failed", "path", j.path, "due", due, "err", err)
}

// planned are the times for which runs are planned, and which no run has taken.
type planned struct {
	mu    sync.Mutex
	times []time.Time // guarded by mu: in their order
	begun bool        // guarded by mu: add was called
}

// add adds a time, unless it is known. Of the times that have come it keeps the newest.
func (p *planned) add(next, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = true
	if n := len(p.times); !next.IsZero() && (n == 0 || p.times[n-1].Before(next)) {
		p.times = append(p.times, next)
	}
	for len(p.times) > 1 && !p.times[1].After(now) {
		p.times = p.times[1:]
	}
}

func (p *planned) hasBegun() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// take returns the newest time that has come. It returns false if there is none.
func (p *planned) take(now time.Time) (due time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; len(p.times) > 0 && !p.times[0].After(now); p.times = p.times[1:] {
		due, ok = p.times[0], true
	}
	return due, ok
}
