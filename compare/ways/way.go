// SPDX-License-Identifier: Apache-2.0

// Package ways implements one small interface with every way to lock that is compared.
//
// Each way is used as its documentation recommends, through its own client library. All have the same lease.
package ways

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"
)

// Lease is how long a crashed holder keeps the lock, for ways where this can be chosen. The default is the shortest session
// timeout that a ZooKeeper server grants with its default settings. A program can set another one before it opens a session.
var Lease = 4 * time.Second

// Poll is the polling interval of ways without notification whose library has no interval of its own.
const Poll = 10 * time.Millisecond

// Info describes a way for the page.
type Info struct {
	Name   string `json:"name"`
	Family string `json:"family"` // the kind of server
	How    string `json:"how"`    // one line
	Token  bool   `json:"token"`  // each grant has a fencing token
	Check  string `json:"check"`  // how the holder learns that the lock is lost; "" if it does not
}

// Endpoints are the addresses of the servers.
type Endpoints struct {
	Postgres  string   `json:"postgres,omitempty"`
	Redis     string   `json:"redis,omitempty"`
	Redlock   []string `json:"redlock,omitempty"`
	Memcached string   `json:"memcached,omitempty"`
	Etcd      []string `json:"etcd,omitempty"`
	ZooKeeper []string `json:"zookeeper,omitempty"`

	TLS *tls.Config `json:"-"` // for ZooKeeper; only the ways in Go have it
}

// Way is a way to lock.
type Way interface {
	Info() Info
	// Prepare creates the tables or other objects that the way needs on its servers before the first session.
	Prepare(ctx context.Context) error
	// Open opens a client. It has its own session if the way has sessions.
	Open(ctx context.Context) (Session, error)
	// Close ends the processes of the way. Call it after closing all sessions.
	Close() error
}

// Session is one client. It is safe for concurrent use.
type Session interface {
	// Locker returns a contender for the lock of that name. Contenders of the same session exclude each other, too.
	Locker(ctx context.Context, name string) (Locker, error)
	Close() error
}

// Locker is one contender for one lock. It is not safe for concurrent use.
type Locker interface {
	// Lock waits for the lock. If a library cannot be canceled, ctx is ignored.
	Lock(ctx context.Context) error
	// Unlock releases the lock and waits for the server's reply.
	Unlock(ctx context.Context) error
	// Held reports whether the lock is held according to the library. It returns true if the library has no such check.
	Held(ctx context.Context) bool
	// Token returns the fencing token of the grant, or 0 if there is none.
	Token() int64
	// Close releases the resources of this contender.
	Close() error
}

// ErrLost is returned by Unlock if the lock was no longer ours.
var ErrLost = errors.New("the lock was no longer held")

// makers lists all ways in the order of the page.
var makers = []func(Endpoints) Way{
	newInsert, newForUpdate, newVersion, newAdvisory,
	newMemcached,
	newSetNX, newRedsync, newRedlock, newRedisson, newRueidis,
	newEtcd,
	newGoZooKeeper, newCurator, newKazoo, newZKLock, newLockDelay, newCohort,
}

// Floors returns the ways that are not locks, but lower bounds for locks on ZooKeeper.
func Floors(at Endpoints) []Way { return []Way{NewFloor(at), NewHandOffFloor(at)} }

// All returns every way.
func All(at Endpoints) []Way {
	var all []Way
	for _, make := range makers {
		all = append(all, make(at))
	}
	return all
}

// Named returns the way or the floor of that name.
func Named(name string, at Endpoints) (Way, error) {
	for _, w := range append(All(at), Floors(at)...) {
		if w.Info().Name == name {
			return w, nil
		}
	}
	return nil, fmt.Errorf("no way is called %q", name)
}

// Pause waits for d. If ctx is done first, it returns ctx.Err().
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// poll calls ask every Poll until it returns true or an error.
func poll(ctx context.Context, ask func() (bool, error)) error {
	for {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		if err := Pause(ctx, Poll); err != nil {
			return err
		}
	}
}

// plain has the methods of a way that has nothing to prepare and nothing to close.
type plain struct{ info Info }

func (p plain) Info() Info                    { return p.info }
func (p plain) Prepare(context.Context) error { return nil }
func (p plain) Close() error                  { return nil }
