// SPDX-License-Identifier: Apache-2.0

// Package leaderelection lets programs written for Kubernetes elect their leader in
// ZooKeeper. Lock can be used as the lock of client-go's LeaderElector and of a
// controller-runtime manager. Runnable is work for such a manager that has its own election.
//
//	client, err := zklock.Connect(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"}, nil)
//	...
//	lock := leaderelection.NewLock(client, "/leaders/controller", hostname)
//	mgr, err := ctrl.NewManager(config, ctrl.Options{LeaderElection: true, LeaderElectionResourceLockInterface: lock})
//	...
//	err = lock.Run(ctrl.SetupSignalHandler(), mgr.Start) // an error that wraps zklock.ErrLost after a loss
//
// Reconcilers then run in the leader alone, as with Kubernetes' own leases. A manager without
// LeaderElection runs them in every process; use Runnable there for work of one process.
//
// client-go's elector checks every two seconds, and when it learns that it no longer leads, it
// acts as leader for up to ten more seconds (RenewDeadline). So run the manager or the elector
// with Lock.Run or Lock.Context, which end before anyone else leads; otherwise there are two
// leaders.
package leaderelection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zklock-go/zklock"
)

// Lock is a resourcelock.Interface that uses a zklock.Election. It serves one term: once the
// leadership was lost or released, every call fails with zklock.ErrLost or
// zklock.ErrReleased. This prevents the elector from being elected again while the work of its
// first term is still running. To campaign again, use another Lock with another elector.
//
// Renewing writes nothing, because the session keeps the leadership. A candidate checks every
// RetryPeriod, and joins the queue only while there is no leader, so leaders are not elected
// first come, first served.
type Lock struct {
	election *zklock.Election
	path     string
	identity string

	turn chan struct{} // capacity 1; full while the lock campaigns

	// No method of the hold is called with mu held: the end of the hold calls finish.
	mu       sync.Mutex
	contexts map[*context.CancelCauseFunc]struct{} // guarded by mu: cancel what Context has returned
	hold     *zklock.Hold                          // guarded by mu: nil before the election
	last     resourcelock.LeaderElectionRecord     // guarded by mu: the record that the elector wrote last
	spent    error                                 // guarded by mu: why the term is over
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock returns a lock for the election at path. identity must be unique among the candidates.
func NewLock(client *zklock.Client, path, identity string) *Lock {
	return &Lock{
		election: client.Election(path), path: path, identity: identity, turn: make(chan struct{}, 1),
		contexts: map[*context.CancelCauseFunc]struct{}{},
	}
}

// Context returns a copy of parent that is also canceled when the leadership ends, before
// anyone else can lead. Run the elector, or start the manager, with it:
//
//	ctx, cancel := lock.Context(ctx)
//	defer cancel()
//	leaderelection.RunOrDie(ctx, config)
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent != nil {
		cancel(l.spent)
	}
	l.contexts[&cancel] = struct{}{}
	return ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.contexts, &cancel)
		cancel(context.Canceled)
	}
}

// releasePatience limits how long Run waits for the release.
const releasePatience = 10 * time.Second

// Run calls start with a context of Context, and releases the leadership when start returns or panics:
//
//	err := lock.Run(ctx, mgr.Start)
//
// If the leadership was lost, the error wraps zklock.ErrLost even if start returns nil, as a manager
// does when its context ends. The process should then exit, and be restarted. Otherwise Run returns the
// error of start. A release whose outcome is unknown continues, and is no error.
func (l *Lock) Run(ctx context.Context, start func(ctx context.Context) error) (err error) {
	leading, cancel := l.Context(ctx)
	defer cancel()
	defer func() {
		_, _, ended := l.state()
		releaseCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
		defer stop()
		released := l.Release(releaseCtx)
		switch {
		case errors.Is(ended, zklock.ErrLost), errors.Is(ended, zklock.ErrClosed):
			err = errors.Join(fmt.Errorf("run %s: %w", l.path, ended), err)
		case !errors.Is(released, zklock.ErrUncertain) && !errors.Is(released, context.DeadlineExceeded):
			err = errors.Join(err, released)
		}
	}()
	return start(leading)
}

// Hold returns the hold of the leadership, for example for its token, or nil before the election.
func (l *Lock) Hold() *zklock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold
}

// Release releases the leadership and cancels the contexts returned by Context. Call it when
// the work has ended. Leave the elector's ReleaseOnCancel false: it does the same while the
// work may still be running. If the lock is campaigning, Release ends that first.
func (l *Lock) Release(ctx context.Context) error {
	l.finish(zklock.ErrReleased)
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done(): // if the lock is elected after this, it releases the leadership at once
		return fmt.Errorf("release %s: %w", l.path, context.Cause(ctx))
	}
	if hold := l.Hold(); hold != nil {
		return hold.Unlock(ctx)
	}
	return nil
}

// finish ends the term, unless it has ended.
func (l *Lock) finish(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent == nil {
		l.spent = why
	}
	for cancel := range l.contexts {
		(*cancel)(l.spent)
	}
}

// Get returns the leader's record. RenewTime is the current time, because according to
// ZooKeeper this leader still leads.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	hold, record, err := l.state()
	switch {
	case err != nil:
		return nil, nil, err
	case hold != nil:
		return withRaw(record)
	}
	leader, err := l.election.Leader(ctx)
	if errors.Is(err, zklock.ErrNoLeader) {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Group: "zklock", Resource: "elections"}, l.path)
	}
	if err != nil {
		return nil, nil, err
	}
	record = recordOf(leader)
	record.RenewTime = metav1.NewTime(time.Now())
	return withRaw(record)
}

// state returns the hold with its record, or an error that says why the term is over.
func (l *Lock) state() (*zklock.Hold, resourcelock.LeaderElectionRecord, error) {
	if hold := l.Hold(); hold != nil {
		if err := hold.Check(); err != nil {
			l.finish(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold, l.last, l.spent
}

func withRaw(record resourcelock.LeaderElectionRecord) (*resourcelock.LeaderElectionRecord, []byte, error) {
	raw, err := json.Marshal(record)
	return &record, raw, err
}

// recordOf returns a leader's record. For a leader that was not elected through a Lock, it builds one.
func recordOf(leader zklock.Contender) (record resourcelock.LeaderElectionRecord) {
	if json.Unmarshal(leader.Data, &record) == nil && record.HolderIdentity != "" {
		return record
	}
	record = resourcelock.LeaderElectionRecord{HolderIdentity: leader.Node, AcquireTime: metav1.NewTime(leader.Since)}
	if utf8.Valid(leader.Data) && len(leader.Data) > 0 {
		record.HolderIdentity = string(leader.Data)
	}
	return record
}

// Create campaigns, like Update.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update confirms the leadership, or campaigns. If the record does not name this
// candidate as the holder, Update releases the leadership.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	hold, _, err := l.state()
	switch {
	case err != nil:
		return err
	case hold == nil && record.HolderIdentity != l.identity:
		return fmt.Errorf("%w: %s does not lead at %s", zklock.ErrNotHeld, l.identity, l.path)
	case hold == nil:
		return l.campaign(ctx, record)
	case record.HolderIdentity != l.identity:
		return l.Release(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = record
	return nil
}

// campaign acquires the leadership if there is no other candidate. If the term ends in the meantime, it releases it again.
func (l *Lock) campaign(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	_, raw, err := withRaw(record)
	if err != nil {
		return err
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	default:
		return fmt.Errorf("%w: %s is already campaigning at %s", zklock.ErrLocked, l.identity, l.path)
	}
	ctx, stop := l.Context(ctx)
	defer stop()
	hold, err := l.election.TryCampaign(ctx, raw)
	if err != nil {
		return err
	}
	if err := l.begin(hold, record); err != nil {
		return errors.Join(err, hold.Unlock(context.WithoutCancel(ctx)))
	}
	hold.OnEnd(l.finish)
	return nil
}

// begin records the leadership, unless the term is over.
func (l *Lock) begin(hold *zklock.Hold, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent == nil {
		l.hold, l.last = hold, record
	}
	return l.spent
}

// RecordEvent does nothing, because events are Kubernetes objects.
func (l *Lock) RecordEvent(string) {}

// Identity returns the candidate's identity.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the election's path.
func (l *Lock) Describe() string { return "zookeeper:" + l.path }
