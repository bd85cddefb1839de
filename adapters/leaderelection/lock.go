// Package leaderelection lets programs made for Kubernetes elect their leader in ZooKeeper:
// Lock is what client-go's LeaderElector and a manager of controller-runtime take as their
// lock, and Runnable is work for such a manager that runs under a leadership of its own.
//
//	client, err := zklock.Connect(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"}, nil)
//	...
//	mgr, err := ctrl.NewManager(config, ctrl.Options{}) // without LeaderElection
//	...
//	err = mgr.Add(&leaderelection.Runnable{
//		Election: client.Election("/leaders/billing", nil),
//		Work:     func(ctx context.Context) error { return bill(ctx) }, // ctx ends before anybody else leads
//	})
//	...
//	err = mgr.Start(ctrl.SetupSignalHandler())
//
// Prefer Runnable, or zklock.Election itself. client-go's elector asks every two seconds
// and believes itself the leader for ten more (RenewDeadline) when it is told that it is
// not: what runs under it must end with Lock.Context, or two leaders are at work.
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

// Lock is a resourcelock.Interface whose leader is that of a zklock.Election. It serves one
// term of office: when the leadership was lost or given up, every call fails with
// zklock.ErrLost or zklock.ErrReleased. So the elector cannot be elected anew while the work of
// its first term still runs. Use another Lock, with another elector, to stand again.
//
// Renewing writes nothing: the session does that. A candidate asks every RetryPeriod, and
// is in the queue only while there is no leader, so the order of asking is not kept.
type Lock struct {
	election *zklock.Election
	path     string
	identity string

	turn chan struct{} // has room for one, while it stands for election

	mu    sync.Mutex
	ended context.CancelCauseFunc           // ends term
	term  context.Context                   // ends when the leadership has ended
	hold  *zklock.Hold                      // guarded by mu: nil before the election
	last  resourcelock.LeaderElectionRecord // guarded by mu: ours, as the elector has written it
	spent error                             // guarded by mu: why the term is over
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock returns a lock at path. Identity must differ from the other candidates'.
func NewLock(client *zklock.Client, path, identity string) *Lock {
	l := &Lock{election: client.Election(path, nil), path: path, identity: identity, turn: make(chan struct{}, 1)}
	l.term, l.ended = context.WithCancelCause(context.Background())
	return l
}

// Context returns a copy of parent that also ends when the leadership does, before anybody
// else can lead. Run the elector, or start the manager, with it:
//
//	ctx, cancel := lock.Context(ctx)
//	defer cancel()
//	leaderelection.RunOrDie(ctx, config)
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(l.term, func() { cancel(context.Cause(l.term)) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// Hold returns the hold of the leadership, for its token and its guard, or nil before the election.
func (l *Lock) Hold() *zklock.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold
}

// Release gives the leadership up and ends the contexts that Context has made. Call it when
// the work has ended. The elector's ReleaseOnCancel does the same while the work may still
// run: leave that false. If the lock is just standing for election, Release ends that first.
func (l *Lock) Release(ctx context.Context) error {
	l.finish(zklock.ErrReleased)
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done(): // what is elected now is given up at once
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
	l.ended(l.spent)
}

// Get returns the leader's record. Its RenewTime is now: ZooKeeper says that this leader has
// not ended.
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

// state returns the hold with its record, or why the term is over.
func (l *Lock) state() (*zklock.Hold, resourcelock.LeaderElectionRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent == nil && l.hold != nil {
		if err := l.hold.Check(); err != nil {
			l.spent = err
			l.ended(err)
		}
	}
	return l.hold, l.last, l.spent
}

func withRaw(record resourcelock.LeaderElectionRecord) (*resourcelock.LeaderElectionRecord, []byte, error) {
	raw, err := json.Marshal(record)
	return &record, raw, err
}

// recordOf returns what a leader has written, also one that has not been elected by way of a Lock.
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

// Create stands for election, as Update does.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update confirms the leadership, or stands for election. A record without a holder gives
// the leadership up.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	hold, _, err := l.state()
	switch {
	case err != nil:
		return err
	case hold == nil && record.HolderIdentity != l.identity:
		return fmt.Errorf("%w: %s does not lead at %s", zklock.ErrNotHeld, l.identity, l.path)
	case hold == nil:
		return l.stand(ctx, record)
	case record.HolderIdentity != l.identity:
		return l.Release(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = record
	return nil
}

// stand leads if nobody else does, and the term is not over meanwhile.
func (l *Lock) stand(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	_, raw, err := withRaw(record)
	if err != nil {
		return err
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	default:
		return fmt.Errorf("%w: %s is standing for election at %s already", zklock.ErrLocked, l.identity, l.path)
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
	context.AfterFunc(hold.Context(), func() { l.finish(context.Cause(hold.Context())) })
	return nil
}

// begin begins to lead, unless the term is over.
func (l *Lock) begin(hold *zklock.Hold, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent == nil {
		l.hold, l.last = hold, record
	}
	return l.spent
}

// RecordEvent does nothing: events are objects of Kubernetes.
func (l *Lock) RecordEvent(string) {}

// Identity returns the candidate's.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the election's path.
func (l *Lock) Describe() string { return "zookeeper:" + l.path }
