// SPDX-License-Identifier: Apache-2.0

// Package zkgocron lets the schedulers of a fleet share jobs through ZooKeeper. It provides
// a Locker and an Elector for github.com/go-co-op/gocron/v2 with zklock.
//
//	client, err := zklock.Connect(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"}, nil)
//	...
//	locker := zkgocron.NewLocker(client, "/cron")
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithLocation(time.UTC))
//	...
//	locker.Use(scheduler)
//	scheduler.NewJob(gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(1, 0, 0))), gocron.NewTask(report), gocron.WithName("report"))
//	scheduler.Start()
package zkgocron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
)

// Locker ensures that each run of a job starts on at most one scheduler, the first one that
// requests it. Pass it to gocron.WithDistributedLocker or, for one job, to
// gocron.WithDistributedJobLocker, and call Use. During a run, the scheduler holds the job's lock,
// and other schedulers skip runs that become due in that time.
//
// A run is identified by the time for which gocron planned it (see slots.Due), which is marked as
// done before Lock returns. The run therefore happens once, however soon it ends, however late
// a scheduler starts it, and however much the schedulers' clocks differ, as long as they differ by
// less than an hour from the servers'. If a scheduler dies, its run is not repeated.
//
// All schedulers must plan a job for the same times. They need the same location
// (gocron.WithLocation). A job that counts from its own start, such as a gocron.DurationJob or a
// gocron.DailyJob for every second day, needs the same gocron.WithStartAt. Lock refuses runs whose
// times are certainly different on each scheduler.
//
// A run that Job.RunNow starts has no time. It happens under the job's lock, unless the job's next run is
// due within a minute: then it counts as that run.
//
// gocron does not tell a job that its lock was lost, and zklock.Options.FailStop does not apply
// to gocron's jobs. A job that needs to know must use the context of Hold(name).
//
// A locker does not need to be closed: a lock ends with its run or with the client.
type Locker struct {
	client *zklock.Client
	dir    string

	mu        sync.Mutex
	scheduler gocron.Scheduler        // guarded by mu: nil before Use
	holds     map[string]*zklock.Hold // guarded by mu: by job name
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a locker whose locks are below dir, one for each job name. Job names must be
// unique. All schedulers of the fleet must use the same dir. It sends nothing; an invalid dir is
// reported by the first run.
func NewLocker(client *zklock.Client, dir string) *Locker {
	return &Locker{client: client, dir: dir, holds: map[string]*zklock.Hold{}}
}

// Use sets the scheduler whose jobs the locker locks, and from which it learns for which time a run was
// planned. Call it before the scheduler's Start. Each scheduler needs a locker of its own.
func (l *Locker) Use(scheduler gocron.Scheduler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scheduler = scheduler
}

// Lock acquires the lock of the job named key. If it returns an error, gocron skips the run, and
// calls the job's AfterLockError listener. The error is zklock.ErrLocked if another scheduler holds
// the lock, slots.ErrDone if another one has already started this run, slots.ErrAhead if this
// host's clock is wrong, and zklock.ErrInvalid if Use was not called or the schedulers cannot plan
// the job for the same times (use errors.Is). Lock gives up shortly before the next run is due,
// because gocron plans that run then.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	due, next, err := l.plan(key)
	if err != nil {
		return nil, fmt.Errorf("zkgocron: lock of job %q: %w", key, err)
	}
	if !next.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience(due, next)) // gocron drops a next run that is due before it is planned
		defer cancel()
	}
	hold, err := l.begin(ctx, slots.Path(l.dir, key), due)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[key] = hold
	return &lock{l, key, hold}, nil
}

// begin acquires the lock at path for the run that is due at that time, and marks the run as done. A run
// without a time has no mark.
func (l *Locker) begin(ctx context.Context, path string, due time.Time) (*zklock.Hold, error) {
	if due.IsZero() {
		return l.client.Mutex(path).TryLock(ctx)
	}
	run := slots.Due(l.client, path, due)
	if err := run.Open(ctx); err != nil {
		return nil, err
	}
	hold, err := l.client.Mutex(path).TryLock(ctx)
	if err != nil {
		return nil, err
	}
	if err := run.Mark(ctx, hold); err != nil {
		hold.Unlock(context.WithoutCancel(ctx)) // if this fails, the lock is lost, or its release continues in the background
		return nil, err
	}
	return hold, nil
}

// patience returns how long the lock of the run that is due at that time may take. It leaves gocron half a
// second to plan the next run, or half of the period if that is shorter.
func patience(due, next time.Time) time.Duration {
	spare := time.Second / 2
	if !due.IsZero() {
		spare = min(spare, next.Sub(due)/2)
	}
	return max(time.Until(next)-spare, spare)
}

// plan returns for which time the run of the named job that starts now was planned, or zero if nobody has
// planned it, and when the next one is due, or zero if there is none.
func (l *Locker) plan(name string) (due, next time.Time, err error) {
	job, err := l.job(name)
	if err != nil {
		return due, next, err
	}
	if _, random := job.Schedule().(gocron.DurationRandomJobSchedule); random {
		return due, next, fmt.Errorf("%w: the schedulers of a fleet cannot plan a DurationRandomJob for the same times", zklock.ErrInvalid)
	}
	times, err := job.NextRuns(remembered)
	if err != nil {
		return due, next, err
	}
	due, next = dueAt(times, time.Now())
	if due.Nanosecond()%int(time.Millisecond) != 0 {
		return due, next, fmt.Errorf("%w: no other scheduler plans a run for %v: use gocron.WithStartAt with the same time in the whole fleet", zklock.ErrInvalid, due.Round(0))
	}
	return due, next, nil
}

// job returns the scheduler's job of that name.
func (l *Locker) job(name string) (found gocron.Job, err error) {
	l.mu.Lock()
	scheduler := l.scheduler
	l.mu.Unlock()
	if scheduler == nil {
		return nil, fmt.Errorf("%w: call Locker.Use with the scheduler before its Start", zklock.ErrInvalid)
	}
	for _, job := range scheduler.Jobs() {
		if job.Name() != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: the scheduler has two jobs of that name", zklock.ErrInvalid)
		}
		found = job
	}
	if found == nil {
		return nil, fmt.Errorf("%w: the scheduler given to Locker.Use has no such job", gocron.ErrJobNotFound)
	}
	return found, nil
}

const (
	// remembered is the number of due times kept per job (see slots.Due). A scheduler that was
	// suspended can miss more runs than that.
	remembered = 128
	// early is by how much a planned run may come before its time. gocron's timers do not notice that
	// the clock is set back.
	early = time.Minute
)

// dueAt returns for which of the times of a job the run that starts now was planned, and the time after
// it. times are those that gocron has planned, followed by later ones. gocron keeps times whose runs it
// has skipped, and those of queued runs. The newest that has come counts.
func dueAt(times []time.Time, now time.Time) (due, next time.Time) {
	for i, at := range times {
		switch {
		case i > 0 && !at.After(times[i-1]): // gocron has no more times, and begins again
			return due, next
		case !at.After(now) || i == 0 && !at.After(now.Add(early)):
			due = at
		default:
			return due, at
		}
	}
	return due, next
}

// Hold returns the hold under which the job named key runs, or nil if it does not run in this process.
func (l *Locker) Hold(key string) *zklock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds[key]
}

type lock struct {
	l    *Locker
	key  string
	hold *zklock.Hold
}

// Unlock releases the lock, even if ctx is done. gocron calls it when the run has ended.
func (k *lock) Unlock(ctx context.Context) error {
	k.l.mu.Lock()
	if k.l.holds[k.key] == k.hold {
		delete(k.l.holds, k.key)
	}
	k.l.mu.Unlock()
	return k.hold.Unlock(context.WithoutCancel(ctx))
}

// Elector ensures that one scheduler of the fleet runs all jobs. Pass it to
// gocron.WithDistributedElector.
//
// A leader that is asked to release its leadership (operate.Revoke) resigns and campaigns again,
// behind all other candidates. It does not wait for jobs that are running at that time. A job
// that needs to know must use the context of Hold().
type Elector struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex   // guards the fields below
	leader *zklock.Hold // nil if this process does not lead
	err    error        // why this process is not a candidate
}

var _ gocron.Elector = (*Elector)(nil)

// pause is how long an elector waits before it campaigns again after it was evicted or refused.
const pause = time.Minute

// NewElector campaigns in the election at path until Close is called or the client is closed. Others see value while this
// process leads.
//
// If the candidate is evicted while it waits, or refused by a server, it campaigns again a minute later. Until then IsLeader
// returns the reason, but gocron does not report it.
func NewElector(client *zklock.Client, path string, value []byte) *Elector {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Elector{cancel: cancel, done: make(chan struct{})}
	election := client.Election(path)
	// Owned by the elector; ends with ctx or the client; Close waits for it.
	go func() {
		defer close(e.done)
		for e.campaign(ctx, election, value) {
		}
	}()
	return e
}

// campaign campaigns until that fails. After a pause, it reports whether to campaign again.
func (e *Elector) campaign(ctx context.Context, election *zklock.Election, value []byte) bool {
	e.set(nil, nil)
	err := election.Run(ctx, value, e.lead)
	e.set(nil, err)
	if errors.Is(err, zklock.ErrClosed) || errors.Is(err, zklock.ErrInvalid) {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *Elector) lead(ctx context.Context) error {
	leader := zklock.HoldOf(ctx)
	e.set(leader, nil)
	select {
	case <-ctx.Done():
	case <-leader.Revoked():
	}
	e.set(nil, nil)
	return nil
}

func (e *Elector) set(leader *zklock.Hold, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leader, e.err = leader, err
}

// ErrNotLeader is returned by IsLeader if this process does not lead.
var ErrNotLeader = errors.New("zkgocron: not the leader")

// IsLeader returns nil if this process certainly leads at this moment. It sends no request to a server.
func (e *Elector) IsLeader(context.Context) error {
	e.mu.Lock()
	leader, err := e.leader, e.err
	e.mu.Unlock()
	switch {
	case leader != nil:
		return leader.Check()
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	return ErrNotLeader
}

// Hold returns the hold while this process leads, and nil otherwise.
func (e *Elector) Hold() *zklock.Hold {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// Close resigns, and returns once the candidate's node is released. Call it after the scheduler's Shutdown.
func (e *Elector) Close() {
	e.cancel()
	<-e.done
}
