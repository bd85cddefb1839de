// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zklock-go/zklock"
	zkleader "github.com/zklock-go/zklock/adapters/leaderelection"
	"github.com/zklock-go/zklock/internal/evidence/everystep"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/zktest"
)

const path = "/leaders/controller"

func connect(t *testing.T, srv *zktest.Server, name string) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{
		Dialer: srv.DialFrom(name), FailStop: func(err error) { t.Errorf("%s: %v", name, err) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// candidate is a process with client-go's elector.
type candidate struct {
	lock    *zkleader.Lock
	started chan context.Context
	stopped chan struct{}
	seen    chan string
	cancel  context.CancelFunc
}

// runCandidate runs a candidate with client-go's defaults.
func runCandidate(t *testing.T, client *zklock.Client, name string, release bool) *candidate {
	c := &candidate{
		lock: zkleader.NewLock(client, path, name), started: make(chan context.Context, 1), stopped: make(chan struct{}), seen: make(chan string, 8),
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { c.started <- ctx },
			OnStoppedLeading: func() { close(c.stopped) },
			OnNewLeader:      func(name string) { c.seen <- name },
		},
	})
	require.NoError(t, err)
	ctx, cancel := c.lock.Context(t.Context())
	c.cancel = cancel
	// Owned by the test, which waits for stopped; ends with ctx.
	go elector.Run(ctx)
	t.Cleanup(func() {
		cancel()
		<-c.stopped
	})
	return c
}

func TestTheElectorLeadsAndAnotherFollowsIt(t *testing.T) {
	for name, release := range map[string]bool{"released by the elector": true, "released when the work has ended": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				first := runCandidate(t, connect(t, srv, "a"), "a", release)
				<-first.started
				second := runCandidate(t, connect(t, srv, "b"), "b", release)
				assert.Equal(t, "a", <-second.seen)
				time.Sleep(5 * time.Minute) // virtual: many leases
				synctest.Wait()
				require.Empty(t, second.started)
				require.NoError(t, first.lock.Hold().Check())
				first.cancel()
				<-first.stopped
				if !release {
					time.Sleep(time.Minute)
					require.Empty(t, second.started, "the place is kept until it is given up")
					require.NoError(t, first.lock.Release(t.Context()))
				}
				<-second.started
				assert.Equal(t, "b", <-second.seen)
				assert.Greater(t, second.lock.Hold().Token(), first.lock.Hold().Token())
			})
		})
	}
}

// ExampleLock waits for its work if there is a hold: a program that ends before it has led would wait forever.
func TestACandidateThatNeverLedHasNoHoldAndNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		first := runCandidate(t, connect(t, srv, "a"), "a", false)
		<-first.started
		second := runCandidate(t, connect(t, srv, "b"), "b", false)
		time.Sleep(time.Minute)
		second.cancel()
		<-second.stopped
		synctest.Wait()
		assert.Empty(t, second.started)
		assert.Nil(t, second.lock.Hold())
		assert.NoError(t, second.lock.Release(t.Context()))
		assert.NotNil(t, first.lock.Hold())
	})
}

// The elector itself would believe in its leadership for ten seconds more.
func TestTheContextEndsBeforeAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		first := runCandidate(t, connect(t, srv, "a"), "a", false)
		leading := <-first.started
		second := runCandidate(t, connect(t, srv, "b"), "b", false)
		srv.Partition("a")
		<-second.started
		require.Error(t, leading.Err())
		<-first.stopped
		srv.HealClient("a")
		_, _, err := first.lock.Get(t.Context())
		assert.ErrorIs(t, err, zklock.ErrLost)
		assert.ErrorIs(t, first.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}), zklock.ErrLost)
		ctx, cancel := first.lock.Context(t.Context())
		defer cancel()
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), zklock.ErrLost)
	})
}

// A goroutine of the same client leads as soon as the leader's node is deleted. The context has ended by then.
func TestTheContextEndsBeforeAnotherGoroutineLeads(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			client := connect(t, srv, "a")
			first := runCandidate(t, client, "a", false)
			leading := <-first.started
			atGrant := make(chan error, 1)
			// Owned by the test, which waits for its answer; ends when it leads.
			go func() {
				_, err := client.Election(path, nil).Campaign(t.Context(), nil)
				assert.NoError(t, err)
				atGrant <- leading.Err()
			}()
			time.Sleep(time.Second)
			require.NoError(t, srv.DeleteNode(first.lock.Hold().Node()))
			require.ErrorIs(t, <-atGrant, context.Canceled)
			<-first.stopped
		})
	}
}

func TestRenewingWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		first := runCandidate(t, connect(t, srv, "a"), "a", false)
		<-first.started
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Zero(t, srv.Requests()[zktest.OpSetData])
		record, raw, err := first.lock.Get(t.Context())
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), record.RenewTime.Time, 3*time.Second)
		var same resourcelock.LeaderElectionRecord
		require.NoError(t, json.Unmarshal(raw, &same))
		assert.Equal(t, "a", same.HolderIdentity)
	})
}

func TestALeaderThatIsNoElectorsIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "other")
		hold, err := client.Election(path, nil).Campaign(t.Context(), []byte("10.0.0.7:80"))
		require.NoError(t, err)
		c := runCandidate(t, connect(t, srv, "a"), "a", true)
		assert.Equal(t, "10.0.0.7:80", <-c.seen)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, c.started)
		require.NoError(t, hold.Unlock(t.Context()))
		<-c.started
	})
}

func TestALockReportsWhyItDoesNotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		a, b := zkleader.NewLock(connect(t, srv, "a"), path, "a"), zkleader.NewLock(connect(t, srv, "b"), path, "b")
		_, _, err := a.Get(t.Context())
		require.True(t, apierrors.IsNotFound(err), err)
		require.Nil(t, a.Hold())
		require.NoError(t, a.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}))
		assert.ErrorIs(t, b.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "b"}), zklock.ErrLocked)
		assert.ErrorIs(t, b.Update(t.Context(), resourcelock.LeaderElectionRecord{}), zklock.ErrNotHeld)
		require.NoError(t, a.Update(t.Context(), resourcelock.LeaderElectionRecord{}), "given up")
		assert.ErrorIs(t, a.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}), zklock.ErrReleased)
		assert.Equal(t, "zookeeper:"+path, a.Describe())
		require.NoError(t, b.Release(t.Context()), "never led")
		assert.ErrorIs(t, b.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "b"}), zklock.ErrReleased)
	})
}

func TestARunnableDoesItsWorkWhileItLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client, other := connect(t, srv, "a"), connect(t, srv, "b")
		failed := errors.New("failed")
		terms := 0
		r := &zkleader.Runnable{Election: client.Election(path, nil), Value: []byte("a"), Work: func(ctx context.Context) error {
			terms++
			if terms == 2 {
				return failed
			}
			<-ctx.Done()
			assert.ErrorIs(t, context.Cause(ctx), zklock.ErrLost)
			return ctx.Err()
		}}
		ended := make(chan error, 1)
		// Owned by the test, which waits for it; ends with the second term.
		go func() { ended <- r.Start(t.Context()) }()
		synctest.Wait()
		leader, err := other.Election(path, nil).Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "a", string(leader.Data))
		require.NoError(t, operate.Evict(t.Context(), other, "", leader))
		assert.ErrorIs(t, <-ended, failed)
		assert.Equal(t, 2, terms)
		_, err = other.Election(path, nil).Leader(t.Context())
		assert.ErrorIs(t, err, zklock.ErrNoLeader, "the place was given up")
		assert.False(t, r.NeedLeaderElection())
	})
}

func TestARunnableEndsWellWithItsManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "a")
		for _, leads := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			began := make(chan struct{}, 1)
			r := &zkleader.Runnable{Election: client.Election(path, nil), Work: func(ctx context.Context) error {
				began <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			}}
			ended := make(chan error, 1)
			// Owned by the test, which waits for it; ends with ctx.
			go func() { ended <- r.Start(ctx) }()
			if leads {
				<-began
				cancel()
				assert.NoError(t, <-ended)
				_, err := client.Election(path, nil).Campaign(t.Context(), []byte("another"))
				require.NoError(t, err, "from here on it waits")
				continue
			}
			synctest.Wait()
			cancel()
			assert.NoError(t, <-ended)
			assert.Empty(t, began)
		}
	})
}

// TestARunnableWithFailStopCampaignsAgain cuts a leader off: FailStop ends its work before the hold is lost.
func TestARunnableWithFailStopCampaignsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "a")
		ctx, cancel := context.WithCancel(t.Context())
		terms := make(chan error, 9)
		r := &zkleader.Runnable{Election: client.Election(path, nil), Work: func(ctx context.Context) error {
			<-ctx.Done()
			terms <- zklock.HoldOf(ctx).Check()
			return nil
		}}
		ended := make(chan error, 1)
		// Owned by the test, which waits for it; ends with ctx.
		go func() { ended <- r.Start(ctx) }()
		time.Sleep(time.Second)
		srv.Partition("a")
		require.NoError(t, <-terms, "the hold is not lost yet")
		time.Sleep(time.Minute)
		srv.HealClient("a")
		time.Sleep(time.Minute)
		require.Empty(t, ended)
		leader, err := client.Election(path, nil).Leader(t.Context())
		require.NoError(t, err, "nobody leads")
		assert.True(t, leader.Holds)
		cancel()
		assert.NoError(t, <-ended)
		assert.NoError(t, <-terms)
	})
}

// TestReleaseEndsACandidacyUnderWay releases a lock between its node and its election.
func TestReleaseEndsACandidacyUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		lock := zkleader.NewLock(connect(t, srv, "a"), path, "a")
		other := connect(t, srv, "b")
		require.NoError(t, other.Mutex(path).Do(t.Context(), func(context.Context) error { return nil }))
		srv.Intercept(func(r *zktest.Request) zktest.Verdict {
			if r.Client == "a" {
				return zktest.Delay(time.Second)
			}
			return zktest.Pass
		})
		stood := make(chan error, 1)
		// Owned by the test, which waits for it; ends when the lock has stood for election.
		go func() { stood <- lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}) }()
		for len(srv.Children(path)) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		require.NoError(t, lock.Release(t.Context()))
		assert.ErrorIs(t, <-stood, zklock.ErrReleased)
		assert.Nil(t, lock.Hold())
		time.Sleep(time.Minute)
		assert.Empty(t, srv.Children(path), "the leadership is leaked")
		hold, err := other.Election(path, nil).TryCampaign(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(t.Context()))
	})
}

// TestOneElectorLeadsUnderAnyFault breaks each request of an elector's, from its first look to its release.
func TestOneElectorLeadsUnderAnyFault(t *testing.T) {
	for name, release := range map[string]bool{"released by the elector": true, "released when the work has ended": false} {
		t.Run(name, func(t *testing.T) {
			everystep.Through(t, 3, func(t *testing.T, srv *zktest.Server, over func()) {
				struck := runCandidate(t, connect(t, srv, everystep.Client), "struck", release)
				other := runCandidate(t, connect(t, srv, "other"), "other", release)
				leads := func(c *candidate) bool { h := c.lock.Hold(); return h != nil && h.Check() == nil }
				for i := range 300 {
					if i == 10 {
						over()
					}
					assert.False(t, leads(struck) && leads(other))
					time.Sleep(300 * time.Millisecond)
				}
				assert.True(t, leads(struck) || leads(other))
				for _, c := range []*candidate{struck, other} {
					c.cancel()
					<-c.stopped
					_ = c.lock.Release(t.Context())
				}
				time.Sleep(2 * time.Minute)
				assert.Empty(t, srv.Children(path))
			})
		})
	}
}

// TestARunnableWorksAloneUnderAnyFault breaks each request of a Runnable's.
func TestARunnableWorksAloneUnderAnyFault(t *testing.T) {
	everystep.Through(t, 3, func(t *testing.T, srv *zktest.Server, over func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var working atomic.Int32
		ended := make(chan error, 2)
		for _, name := range []string{everystep.Client, "other"} {
			r := &zkleader.Runnable{Election: connect(t, srv, name).Election(path, nil), Work: func(ctx context.Context) error {
				time.Sleep(time.Microsecond) // when a server ends a session early, both are notified at the same time
				if ctx.Err() != nil {
					return nil // it was told in the moment in which it began
				}
				assert.EqualValues(t, 1, working.Add(1))
				defer working.Add(-1)
				<-ctx.Done()
				return nil
			}}
			// Owned by the test, which waits for it; ends with ctx.
			go func() { ended <- r.Start(ctx) }()
		}
		time.Sleep(time.Second)
		over()
		time.Sleep(2 * time.Minute)
		assert.EqualValues(t, 1, working.Load())
		require.Empty(t, ended)
		cancel()
		assert.NoError(t, <-ended)
		assert.NoError(t, <-ended)
		time.Sleep(2 * time.Minute)
		assert.Empty(t, srv.Children(path))
	})
}
