// Package leaderelection lets programs made for Kubernetes elect their leader in ZooKeeper:
// Lock is what client-go's LeaderElector and a manager of controller-runtime take as their
// lock, and Runnable is work for such a manager that runs under a leadership of its own.
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
// zklock.ErrLost or zklock.ErrReleased, so that the elector cannot be elected anew while the
// work of its first term still runs. Use another Lock, with another elector, to stand again.
//
// Renewing writes nothing: the session does that. A candidate asks every RetryPeriod, and
// is in the queue only while there is no leader, so the order of asking is not kept.
type Lock struct {
	client   *zklock.Client
	election *zklock.Election
	path     string
	identity string

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
	l := &Lock{client: client, election: client.Election(path, nil), path: path, identity: identity}
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
// run: leave that false.
func (l *Lock) Release(ctx context.Context) error {
	hold := l.Hold()
	if hold == nil {
		l.finish(zklock.ErrReleased)
		return nil
	}
	l.finish(zklock.ErrReleased)
	return hold.Unlock(ctx)
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

// stand leads if nobody else does. Another candidate may come between the look and the
// campaign, so that has a limit.
func (l *Lock) stand(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	_, raw, err := withRaw(record)
	if err != nil {
		return err
	}
	switch leader, err := l.election.Leader(ctx); {
	case err == nil:
		return fmt.Errorf("%w: %s leads at %s", zklock.ErrLocked, recordOf(leader).HolderIdentity, l.path)
	case !errors.Is(err, zklock.ErrNoLeader):
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.client.SessionTimeout())
	defer cancel()
	hold, err := l.election.Campaign(ctx, raw)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold, l.last = hold, record
	context.AfterFunc(hold.Context(), func() { l.finish(context.Cause(hold.Context())) })
	return nil
}

// RecordEvent does nothing: events are objects of Kubernetes.
func (l *Lock) RecordEvent(string) {}

// Identity returns the candidate's.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the election's path.
func (l *Lock) Describe() string { return "zookeeper:" + l.path }
