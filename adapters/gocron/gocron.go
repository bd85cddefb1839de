// Package zkgocron lets the schedulers of a fleet share jobs through ZooKeeper: a Locker
// and an Elector for github.com/go-co-op/gocron/v2 on zklock.
//
//	client, err := zklock.Connect(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"}, nil)
//	...
//	locker, err := zkgocron.NewLocker(client, "/cron", 24*time.Hour, nil) // for daily jobs
//	...
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	...
//	scheduler.NewJob(gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(1, 0, 0))), gocron.NewTask(report), gocron.WithName("report"))
//	scheduler.Start()
//
// # What a day is
//
// A run is known by the slot of time that it is due in (package slots). Slots longer than an hour
// follow the calendar of Options.Location: a day is from midnight to midnight, also where it has 23
// or 25 hours. That location must be the scheduler's, and the same in the whole fleet.
//
// gocron does not say for which time a run was due. So a run that begins late, after midnight,
// counts for the new day. gocron makes up for no runs: this concerns a machine that was asleep.
package zkgocron

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
)

// Locker has each run of a job begin on one scheduler at most, the first one to ask: pass
// it to gocron.WithDistributedLocker or, for one job, gocron.WithDistributedJobLocker.
// While a run lasts, it has the lock of its job: other schedulers skip what is due meanwhile.
//
// A run is known by its time, cut into slots (see slots.At) and marked as
// begun before Lock returns. So it happens once however soon it ends, and however much
// the schedulers' clocks differ. A run whose scheduler dies is not made up for.
//
// gocron does not tell a job that its lock was lost, and zklock.Options.FailStop does not see
// gocron's jobs. A job for which that matters works under the context of Hold(name).
//
// A locker has nothing to close: a lock ends with its run or with the client.
type Locker struct {
	client *zklock.Client
	dir    string
	every  time.Duration
	place  *time.Location

	mu    sync.Mutex
	holds map[string]*zklock.Hold // guarded by mu: by the job's name
}

var _ gocron.Locker = (*Locker)(nil)

// Options are a Locker's. Nil means the defaults.
type Options struct {
	// Location is that of the scheduler: see gocron.WithLocation. Default time.Local, as there.
	Location *time.Location
}

// NewLocker returns a locker whose locks are below dir, one for each job name; the names
// of jobs must differ. All schedulers of the fleet must agree on dir and on every: the
// shortest time between two runs of any job of this locker, of which those that are due
// within one slot of that length happen once. A scheduler that is late by as much can
// run what another one ran in time. Where each scheduler counts from its own start, as
// with gocron.DurationJob, gocron.WithStartAt has them agree.
//
// For jobs of an hour or less, every is their period; for those of whole days or weeks as well:
// see What a day is, above. For others, such as every two hours of a clock that changes twice a
// year, an hour is safe.
func NewLocker(client *zklock.Client, dir string, every time.Duration, opts *Options) (*Locker, error) {
	if every <= 0 {
		return nil, fmt.Errorf("zkgocron: locker at %s: %w: runs every %v", dir, zklock.ErrInvalid, every)
	}
	place := time.Local
	if opts != nil && opts.Location != nil {
		place = opts.Location
	}
	return &Locker{client: client, dir: dir, every: every, place: place, holds: map[string]*zklock.Hold{}}, nil
}

// Lock takes the lock of the job named key or returns an error, which makes gocron skip
// the run: errors.Is(err, zklock.ErrLocked) if another scheduler has it, slots.ErrDone
// if another one has begun this run before. slots.ErrAhead says that this host's clock is
// wrong. It gives up shortly before the next run is due, because gocron plans that one then.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	path := l.dir + "/" + nodeName(key)
	run := slots.At(l.client, path, time.Now().In(l.place).Add(l.early()), l.every)
	ctx, cancel := context.WithTimeout(ctx, l.every-l.early()) // gocron drops a next run that is due before it is planned
	defer cancel()
	if err := run.Open(ctx); err != nil {
		return nil, err
	}
	hold, err := l.client.Mutex(path).TryLock(ctx)
	if err != nil {
		return nil, err
	}
	if err := run.Mark(ctx, hold); err != nil {
		hold.Unlock(context.WithoutCancel(ctx)) // if this fails, the lock is lost, or its release goes on
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[key] = hold
	return &lock{l, key, hold}, nil
}

// early is by how much a run may come too early to belong to its slot all the same: a
// timer that was set for a whole second ends before it where the clock was set back
// meanwhile. Runs are due at whole seconds, so half of one divides them best.
func (l *Locker) early() time.Duration { return min(l.every, time.Second) / 2 }

// keptNames end the names of what the library keeps beside a lock; no lock's path may.
var keptNames = []string{".zklock-slots", ".zklock-delay"}

// nodeName makes a job's name, which may be a function's, fit for a path: another one for each name.
func nodeName(key string) string {
	name := url.PathEscape(key)
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	for _, kept := range keptNames {
		if rest, ok := strings.CutSuffix(name, kept); ok {
			return rest + "%2E" + kept[1:]
		}
	}
	return name
}

// Hold returns what the job named key runs under, nil when it does not run here.
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

// Unlock releases the lock, whether ctx has ended or not. It is called when the run has ended.
func (k *lock) Unlock(ctx context.Context) error {
	k.l.mu.Lock()
	if k.l.holds[k.key] == k.hold {
		delete(k.l.holds, k.key)
	}
	k.l.mu.Unlock()
	return k.hold.Unlock(context.WithoutCancel(ctx))
}

// Elector has one scheduler of the fleet run all jobs: pass it to gocron.WithDistributedElector.
//
// A leader that is asked to let go (operate.Revoke) resigns and stands again,
// behind all others. A job that it runs at that time is not waited for: one for which
// that matters works under the context of Hold().
type Elector struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex   // guards what follows
	leader *zklock.Hold // nil while we do not lead
	err    error        // why we do not stand
}

var _ gocron.Elector = (*Elector)(nil)

// pause is for how long an elector stands back after its member was evicted or refused.
const pause = time.Minute

// NewElector stands for the election at path until Close or the client's end. The value is what others see of us while we lead.
//
// A member that is evicted while it waits, or that a server refuses, stands again a minute later: IsLeader says why until then,
// but gocron tells that to nobody.
func NewElector(client *zklock.Client, path string, value []byte) *Elector {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Elector{cancel: cancel, done: make(chan struct{})}
	election := client.Election(path, nil)
	// Owned by the elector; ends with ctx or the client; Close waits for it.
	go func() {
		defer close(e.done)
		for e.stand(ctx, election, value) {
		}
	}()
	return e
}

// stand stands for election until that fails, and reports, after a pause, whether to stand again.
func (e *Elector) stand(ctx context.Context, election *zklock.Election, value []byte) bool {
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

// ErrNotLeader is IsLeader's answer while another one leads.
var ErrNotLeader = errors.New("zkgocron: not the leader")

// IsLeader is nil if we certainly lead at this moment. It asks no server.
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

// Hold returns the leadership, for its Context and Token; nil while we do not lead.
func (e *Elector) Hold() *zklock.Hold {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// Close resigns and returns when the place is given up. It is to be called after the scheduler's Shutdown.
func (e *Elector) Close() {
	e.cancel()
	<-e.done
}
