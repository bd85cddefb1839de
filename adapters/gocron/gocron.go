// Package zkgocron lets the schedulers of a fleet share jobs through ZooKeeper: a Locker
// and an Elector for github.com/go-co-op/gocron/v2 on zklock.
package zkgocron

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/zklock-go/zklock"
)

// ErrClosed says that the Locker or Elector was closed.
var ErrClosed = errors.New("zkgocron: closed")

// Locker has each run of a job happen on one scheduler, the first one to ask: pass it
// to gocron.WithDistributedLocker or, for one job, gocron.WithDistributedJobLocker.
//
// The others skip that run. A job that ends sooner than the schedulers' clocks agree
// would run again on a later one, which finds the lock free: so a lock is kept for
// LockerOptions.AtLeast, however fast the job was.
//
// gocron does not tell a job that its lock was lost. A job for which that matters works
// under the context of Hold(name).
type Locker struct {
	client *zklock.Client
	dir    string
	keep   time.Duration

	closed chan struct{}
	kept   sync.WaitGroup // locks on their way to be released

	mu      sync.Mutex              // guards what follows
	holds   map[string]*zklock.Hold // by the job's name
	stopped bool
}

// LockerOptions are a Locker's. Nil means the defaults.
type LockerOptions struct {
	// AtLeast is how long a lock is held from when it was taken. It must be more than
	// the schedulers' clocks differ, and less than the time between two runs. Default 5 s.
	AtLeast time.Duration
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a locker whose locks are below dir, one for each job name. The
// names of jobs must differ; slashes in them are replaced.
func NewLocker(client *zklock.Client, dir string, opts *LockerOptions) *Locker {
	l := &Locker{client: client, dir: dir, keep: 5 * time.Second, closed: make(chan struct{}), holds: map[string]*zklock.Hold{}}
	if opts != nil && opts.AtLeast > 0 {
		l.keep = opts.AtLeast
	}
	return l
}

// Lock takes the lock of the job named key or returns an error, which makes gocron skip
// the run: errors.Is(err, zklock.ErrLocked) if another scheduler has it.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	hold, err := l.client.Mutex(l.dir + "/" + nodeName(key)).TryLock(ctx)
	if err != nil {
		return nil, err
	}
	if !l.enlist(key, hold) {
		hold.Unlock(ctx)
		return nil, ErrClosed
	}
	return &lock{l, key, hold, time.Now().Add(l.keep)}, nil
}

func (l *Locker) enlist(key string, hold *zklock.Hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	l.kept.Add(1)
	l.holds[key] = hold
	return true
}

// nodeName makes a job's name, which may be a function's, fit for a path.
func nodeName(key string) string {
	name := strings.ReplaceAll(key, "/", "_")
	if strings.Trim(name, ".") == "" {
		name += "_"
	}
	return name
}

// Hold returns what the job named key runs under, nil when it does not run here.
func (l *Locker) Hold(key string) *zklock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds[key]
}

// Close releases the locks of jobs that have ended and waits for those that run. It is
// to be called after the scheduler's Shutdown.
func (l *Locker) Close() {
	l.mu.Lock()
	if !l.stopped {
		l.stopped = true
		close(l.closed)
	}
	l.mu.Unlock()
	l.kept.Wait()
}

type lock struct {
	l     *Locker
	key   string
	hold  *zklock.Hold
	until time.Time
}

// Unlock returns at once; the lock is released when its time has come.
func (k *lock) Unlock(context.Context) error {
	k.l.mu.Lock()
	if k.l.holds[k.key] == k.hold {
		delete(k.l.holds, k.key)
	}
	k.l.mu.Unlock()
	// Owned by the Locker; ends when the time has come, at the latest with Close, which waits for it.
	go k.release()
	return nil
}

func (k *lock) release() {
	defer k.l.kept.Done()
	timer := time.NewTimer(time.Until(k.until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.l.closed:
	case <-k.hold.Context().Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.l.client.SessionTimeout())
	defer cancel()
	k.hold.Unlock(ctx) // if that fails, the lock ends with the session
}

// Elector has one scheduler of the fleet run all jobs: pass it to gocron.WithDistributedElector.
type Elector struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex   // guards what follows
	leader *zklock.Hold // nil while we do not lead
	err    error        // why we no longer stand
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector stands for the election at path until Close. The value is what others see of us while we lead.
func NewElector(client *zklock.Client, path string, value []byte) *Elector {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Elector{cancel: cancel, done: make(chan struct{})}
	election := client.Election(path, nil)
	// Owned by the elector; ends with ctx or the client; Close waits for it.
	go func() {
		defer close(e.done)
		e.set(nil, election.Run(ctx, value, e.lead))
	}()
	return e
}

func (e *Elector) lead(ctx context.Context) {
	e.set(zklock.HoldOf(ctx), nil)
	<-ctx.Done()
	e.set(nil, nil)
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
