// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/zklock-go/zklock"
	zkleader "github.com/zklock-go/zklock/adapters/leaderelection"
	"github.com/zklock-go/zklock/zktest"
)

// replica is a process with a manager.
type replica struct {
	lock  *zkleader.Lock
	led   chan struct{} // closed when its work begins
	after error         // what another replica's hold said when the work ended; written before ended
	ended chan error    // the result of Run
}

// startReplica starts a manager with leader election, whose work ends a while after its context.
func startReplica(ctx context.Context, t *testing.T, srv *zktest.Server, name string, alone func() error) *replica {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(name), SessionTimeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	r := &replica{lock: zkleader.NewLock(client, "/leaders/controller", name), led: make(chan struct{}), ended: make(chan error, 1)}
	mgr, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionResourceLockInterface: r.lock,
	})
	require.NoError(t, err)
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		close(r.led)
		<-ctx.Done()
		r.after = alone()
		return nil
	})))
	go func() { r.ended <- r.lock.Run(ctx, mgr.Start) }() // ends with ctx or the leadership; each test waits for it
	return r
}

func TestAManagerLeadsUnderTheLock(t *testing.T) {
	srv := zktest.Run(t, zktest.Options{TickTime: 100 * time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var next *replica
	first := startReplica(ctx, t, srv, "a", func() error {
		if next.lock.Hold() != nil {
			return errors.New("the next one leads before the work of the first one has ended")
		}
		return nil
	})
	<-first.led
	next = startReplica(t.Context(), t, srv, "b", func() error { return nil })
	stop()
	require.NoError(t, <-first.ended, "its context has ended")
	require.NoError(t, first.after)
	<-next.led // it need not wait for the end of a session

	srv.Partition("b")
	err := <-next.ended
	require.ErrorIs(t, err, zklock.ErrLost)
	assert.ErrorContains(t, err, "/leaders/controller")
}

// start returns nil when its context ends, as a manager does. Run tells a loss from the end of the program.
func TestRunReturnsWhatEndedIt(t *testing.T) {
	srv := zktest.Run(t, zktest.Options{TickTime: 100 * time.Millisecond})
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("a")})
	require.NoError(t, err)
	defer client.Close()
	lead := func(t *testing.T) *zkleader.Lock {
		lock := zkleader.NewLock(client, "/leaders/controller", "a")
		require.NoError(t, lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}))
		return lock
	}
	free := func(t *testing.T) {
		_, err := client.Election("/leaders/controller").Leader(t.Context())
		require.ErrorIs(t, err, zklock.ErrNoLeader)
	}

	failed := errors.New("no")
	require.ErrorIs(t, lead(t).Run(t.Context(), func(context.Context) error { return failed }), failed)
	free(t)
	require.NoError(t, lead(t).Run(t.Context(), func(context.Context) error { return nil }))
	free(t)
	require.PanicsWithValue(t, "x", func() { _ = lead(t).Run(t.Context(), func(context.Context) error { panic("x") }) })
	free(t)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, lead(t).Run(ctx, func(ctx context.Context) error { cancel(); <-ctx.Done(); return nil }))
	free(t)
	lock := lead(t)
	err = lock.Run(t.Context(), func(ctx context.Context) error {
		require.NoError(t, srv.DeleteNode(lock.Hold().Node()))
		<-ctx.Done()
		return nil
	})
	require.ErrorIs(t, err, zklock.ErrLost)
	free(t)
}
