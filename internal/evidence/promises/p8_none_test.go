// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// Outside a hold HoldOf returns nil, on which its callers call methods.
//
//zklock:promise P8.4
func TestANilHoldIsNotHeld(t *testing.T) {
	for name, hold := range map[string]*zklock.Hold{"nil": zklock.HoldOf(t.Context()), "zero": {}} {
		t.Run(name, func(t *testing.T) {
			if name == "nil" {
				require.Nil(t, hold)
			}
			for range 2 {
				require.ErrorIs(t, hold.Check(), zklock.ErrNotHeld)
				require.ErrorIs(t, hold.Confirm(t.Context()), zklock.ErrNotHeld)
				require.ErrorIs(t, hold.Unlock(t.Context()), zklock.ErrNotHeld)
				require.ErrorIs(t, hold.Downgrade(t.Context()), zklock.ErrInvalid)
			}
			_, err := hold.Multi(&zk.CreateRequest{Path: "/x"})
			require.ErrorIs(t, err, zklock.ErrNotHeld)
			require.ErrorIs(t, hold.Do(t.Context(), func(context.Context) error { t.Error("it was called"); return nil }), zklock.ErrNotHeld)

			require.Error(t, hold.Context().Err())
			require.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrNotHeld)
			<-hold.Context().Done()
			<-hold.Expiring(time.Second)
			require.Zero(t, hold.Remaining())
			require.EqualValues(t, -1, hold.Token())
			require.EqualValues(t, -1, hold.TokenOf(path))
			require.Zero(t, levelsOf(hold))
			require.Empty(t, hold.Path())
			require.Empty(t, hold.Node())
			require.NotEmpty(t, hold.Guard(), "a transaction without a guard would be done")
			require.False(t, isClosed(hold.Revoked()))
		})
	}
}

// Methods of values that were not created by a client return an error that says so.
//
//zklock:promise P8.4
func TestALockNotCreatedByAClientIsInvalid(t *testing.T) {
	var nobody *zklock.Client
	type lock func(context.Context) (*zklock.Hold, error)
	work := func(context.Context) error { t.Error("it was called"); return nil }
	made := func(c *zklock.Client, zero bool) map[string][]lock {
		m, rw, re, s, k, e := c.Mutex(path), c.RWMutex(path), c.Reentrant(path), c.Semaphore(path, 2), c.Cohort(path, nil), c.Election(path, nil)
		if zero {
			m, rw, re, s, k, e = &zklock.Mutex{}, &zklock.RWMutex{}, &zklock.Reentrant{}, &zklock.Semaphore{}, &zklock.Cohort{}, &zklock.Election{}
		}
		none := func(err error) (*zklock.Hold, error) { return nil, err }
		return map[string][]lock{
			"mutex":     {m.Lock, m.TryLock, func(ctx context.Context) (*zklock.Hold, error) { return none(m.Do(ctx, work)) }},
			"rwmutex":   {rw.Lock, rw.TryLock, rw.RLock, rw.TryRLock, rw.Reader().Lock},
			"reentrant": {re.Lock, re.TryLock},
			"semaphore": {
				s.Permits(1).Lock,
				func(ctx context.Context) (*zklock.Hold, error) { return s.TryAcquire(ctx, 1) },
				func(ctx context.Context) (*zklock.Hold, error) { return none(s.Resize(ctx, 3)) },
			},
			"cohort": {k.Lock, k.TryLock, func(ctx context.Context) (*zklock.Hold, error) { return none(k.Do(ctx, work)) }},
			"election": {
				func(ctx context.Context) (*zklock.Hold, error) { return e.Campaign(ctx, nil) },
				func(ctx context.Context) (*zklock.Hold, error) { return e.TryCampaign(ctx, nil) },
				func(ctx context.Context) (*zklock.Hold, error) { return none(e.Run(ctx, nil, work)) },
				func(ctx context.Context) (*zklock.Hold, error) { _, err := e.Leader(ctx); return none(err) },
				func(ctx context.Context) (*zklock.Hold, error) {
					for _, err := range e.Observe(ctx) {
						return none(err)
					}
					return none(nil)
				},
			},
		}
	}
	for what, locks := range map[string]map[string][]lock{
		"zero": made(nobody, true), "of a nil client": made(nobody, false), "of a zero client": made(&zklock.Client{}, false),
	} {
		for name, verbs := range locks {
			for _, lock := range verbs {
				hold, err := lock(t.Context())
				require.ErrorIs(t, err, zklock.ErrInvalid, "%s %s", name, what)
				require.Nil(t, hold)
			}
		}
	}
	virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		for _, l := range []zklock.Locker{nil, &zklock.Mutex{}, &zklock.Cohort{}, (&zklock.Semaphore{}).Permits(1), nobody.Mutex(path), nobody.RWMutex(path).Reader()} {
			_, err := c.LockAll(t.Context(), c.Mutex("/a"), l)
			require.ErrorIs(t, err, zklock.ErrInvalid)
		}
		hold, err := c.Mutex(path).Lock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, new(zklock.Election).Proclaim(hold.Context(), nil), zklock.ErrNotHeld)
		unlock(t, hold)
	})
}

// Methods of operators and slots do, too.
//
//zklock:promise P8.4
func TestAClientNotCreatedByConnectIsInvalid(t *testing.T) {
	who := zklock.Contender{Node: path + "/_c_7a6b6c00000000000000000000000000-lock-0000000000"}
	for name, c := range map[string]*zklock.Client{"nil": nil, "zero": {}} {
		for call, ask := range map[string]func(ctx context.Context) error{
			"inspect": func(ctx context.Context) error { _, err := operate.Inspect(ctx, c, path); return err },
			"queues":  func(ctx context.Context) error { _, err := operate.Queues(ctx, c, "/"); return err },
			"watch": func(ctx context.Context) error {
				for _, err := range operate.Watch(ctx, c, path) {
					return err
				}
				return nil
			},
			"revoke": func(ctx context.Context) error { return operate.Revoke(ctx, c, who) },
			"evict":  func(ctx context.Context) error { return operate.Evict(ctx, c, "", who) },
			"open":   func(ctx context.Context) error { return slots.Named(c, path, "nightly").Open(ctx) },
			"do": func(ctx context.Context) error {
				return slots.At(c, path, time.Now(), time.Hour).Do(ctx, func(context.Context) error { t.Error("it was called"); return nil })
			},
			"all": func(ctx context.Context) error { _, err := c.LockAll(ctx, c.Mutex(path)); return err },
		} {
			require.ErrorIs(t, ask(t.Context()), zklock.ErrInvalid, "%s of a %s client", call, name)
		}
	}
}
