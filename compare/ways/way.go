// Package ways puts every way to lock that is compared behind one small interface.
//
// Each is used as its own documentation shows, through its own client library, with one lease time for all.
package ways

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease is how long a crashed holder keeps the lock, wherever a way lets one choose. Unless a program sets another
// before it opens anything, it is the shortest session that a ZooKeeper server with default settings grants.
var Lease = 4 * time.Second

// Poll is how often the ways without a notification ask again, where their library does not say.
const Poll = 10 * time.Millisecond

// Info says what a reader should know about a way.
type Info struct {
	Name   string `json:"name"`
	Family string `json:"family"` // the server it needs
	How    string `json:"how"`    // one line
	Token  bool   `json:"token"`  // a grant carries a number that grows
	Check  string `json:"check"`  // how the holder learns that the lock is gone; "" if it does not
}

// Endpoints is where the servers are.
type Endpoints struct {
	Postgres  string   `json:"postgres,omitempty"`
	Redis     string   `json:"redis,omitempty"`
	Redlock   []string `json:"redlock,omitempty"`
	Memcached string   `json:"memcached,omitempty"`
	Etcd      []string `json:"etcd,omitempty"`
	ZooKeeper []string `json:"zookeeper,omitempty"`
}

// Way is a way to lock.
type Way interface {
	Info() Info
	// Prepare makes what must exist on the servers before the first session, such as tables.
	Prepare(ctx context.Context) error
	// Open opens a client with a session of its own, where the way knows sessions.
	Open(ctx context.Context) (Session, error)
	// Close ends what the way itself runs, after all sessions.
	Close() error
}

// Session is one client. It is safe for many goroutines.
type Session interface {
	// Locker returns a contender for the lock of that name. Two of one session exclude each other like any others.
	Locker(ctx context.Context, name string) (Locker, error)
	Close() error
}

// Locker takes and gives back one lock. It is for one goroutine at a time.
type Locker interface {
	// Lock waits for the lock. Where a library cannot be cancelled, ctx is not heeded.
	Lock(ctx context.Context) error
	// Unlock gives the lock back and waits for the server's word.
	Unlock(ctx context.Context) error
	// Held is what the library tells a holder who asks it right before he writes. Ways without a check say true.
	Held(ctx context.Context) bool
	// Token is the fencing token of the grant, 0 for none.
	Token() int64
	// Close frees what belongs to this contender alone.
	Close() error
}

// ErrLost is what Unlock returns when the lock was not ours any more.
var ErrLost = errors.New("the lock was no longer held")

// makers lists all ways in the order of the page.
var makers = []func(Endpoints) Way{
	newInsert, newForUpdate, newVersion, newAdvisory,
	newMemcached,
	newSetNX, newRedsync, newRedlock, newRedisson, newRueidis,
	newEtcd,
	newGoZooKeeper, newCurator, newKazoo, newZKLock, newLockDelay, newCohort, newUnfencedCohort,
}

// Floors returns the ways that are no locks.
func Floors(at Endpoints) []Way { return []Way{NewFloor(at), NewHandOffFloor(at)} }

// All returns every way.
func All(at Endpoints) []Way {
	var all []Way
	for _, make := range makers {
		all = append(all, make(at))
	}
	return all
}

// Named returns the way of that name, the floors included.
func Named(name string, at Endpoints) (Way, error) {
	for _, w := range append(All(at), Floors(at)...) {
		if w.Info().Name == name {
			return w, nil
		}
	}
	return nil, fmt.Errorf("no way is called %q", name)
}

// pause waits for d or for the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// poll asks again and again until the answer is yes.
func poll(ctx context.Context, ask func() (bool, error)) error {
	for {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		if err := pause(ctx, Poll); err != nil {
			return err
		}
	}
}

// plain is what most ways have in common: nothing to prepare, nothing to close.
type plain struct{ info Info }

func (p plain) Info() Info                    { return p.info }
func (p plain) Prepare(context.Context) error { return nil }
func (p plain) Close() error                  { return nil }
