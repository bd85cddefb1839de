package zkgocron_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	zkgocron "github.com/zklock-go/zklock/adapters/gocron"
	"github.com/zklock-go/zklock/zktest"
)

func connect(t *testing.T, srv *zktest.Server, name string) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(name), Label: name})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// scheduler runs a job named "report" every minute.
func scheduler(t *testing.T, job func(), opt gocron.SchedulerOption) {
	s, err := gocron.NewScheduler(opt, gocron.WithLocation(time.UTC))
	require.NoError(t, err)
	_, err = s.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(job), gocron.WithName("report"))
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown() })
}

func TestEachRunHappensOnceInAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var runs atomic.Int32
		for i := range 5 {
			locker := zkgocron.NewLocker(connect(t, srv, fmt.Sprint("scheduler ", i)), "/cron", nil)
			t.Cleanup(locker.Close)
			scheduler(t, func() { runs.Add(1) }, gocron.WithDistributedLocker(locker))
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		assert.EqualValues(t, 10, runs.Load())
	})
}

func TestAJobCanSeeThatItsLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		locker := zkgocron.NewLocker(connect(t, srv, "only"), "/cron", nil)
		t.Cleanup(locker.Close)
		told := make(chan error, 1)
		scheduler(t, func() {
			hold := locker.Hold("report")
			srv.DeleteNode(hold.Node())
			<-hold.Context().Done()
			told <- context.Cause(hold.Context())
		}, gocron.WithDistributedLocker(locker))
		assert.ErrorIs(t, <-told, zklock.ErrLost)
		synctest.Wait()
		assert.Nil(t, locker.Hold("report"))
	})
}

func TestALockIsKeptForAWhileAndTheNextRunIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		a := zkgocron.NewLocker(connect(t, srv, "a"), "/cron", &zkgocron.LockerOptions{AtLeast: 10 * time.Second})
		b := zkgocron.NewLocker(connect(t, srv, "b"), "/cron", nil)
		defer a.Close()
		defer b.Close()
		got, err := a.Lock(t.Context(), "pkg/path.job")
		require.NoError(t, err)
		require.NoError(t, got.Unlock(t.Context()))
		time.Sleep(9 * time.Second)
		_, err = b.Lock(t.Context(), "pkg/path.job")
		assert.ErrorIs(t, err, zklock.ErrLocked, "a clock that is 9 s late must not run the job again")
		time.Sleep(2 * time.Second)
		got, err = b.Lock(t.Context(), "pkg/path.job")
		require.NoError(t, err)
		require.NoError(t, got.Unlock(t.Context()))
	})
}

func TestCloseReleasesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		l := zkgocron.NewLocker(connect(t, srv, "a"), "/cron", nil)
		got, err := l.Lock(t.Context(), "job")
		require.NoError(t, err)
		require.NoError(t, got.Unlock(t.Context()))
		start := time.Now()
		l.Close()
		assert.Less(t, time.Since(start), time.Second)
		assert.Empty(t, srv.Children("/cron/job"))
		_, err = l.Lock(t.Context(), "job")
		assert.ErrorIs(t, err, zkgocron.ErrClosed)
		time.Sleep(time.Second)
		assert.Empty(t, srv.Children("/cron/job"))
	})
}

func TestOneSchedulerLeadsAndAnotherTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		runs := make([]atomic.Int32, 3)
		electors := make([]*zkgocron.Elector, 3)
		for i := range electors {
			electors[i] = zkgocron.NewElector(connect(t, srv, fmt.Sprint("scheduler ", i)), "/leader", []byte(fmt.Sprint(i)))
			t.Cleanup(electors[i].Close)
			synctest.Wait() // the first one leads
			scheduler(t, func() { runs[i].Add(1) }, gocron.WithDistributedElector(electors[i]))
		}
		time.Sleep(5*time.Minute + 30*time.Second)
		assert.EqualValues(t, 5, runs[0].Load())
		assert.Zero(t, runs[1].Load()+runs[2].Load())
		assert.NoError(t, electors[0].IsLeader(t.Context()))
		assert.ErrorIs(t, electors[1].IsLeader(t.Context()), zkgocron.ErrNotLeader)

		srv.Partition("scheduler 0")
		defer srv.HealClient("scheduler 0")
		time.Sleep(time.Minute)
		assert.Error(t, electors[0].IsLeader(t.Context()), "who is cut off must know that it no longer leads")
		time.Sleep(4 * time.Minute)
		assert.EqualValues(t, 5, runs[0].Load())
		assert.EqualValues(t, 5, runs[1].Load())
		assert.Zero(t, runs[2].Load())
	})
}
