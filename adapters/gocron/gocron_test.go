package zkgocron_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	zkgocron "github.com/zklock-go/zklock/adapters/gocron"
	"github.com/zklock-go/zklock/internal/evidence/everystep"
	"github.com/zklock-go/zklock/operate"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

func connect(t *testing.T, srv *zktest.Server, name string) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{
		Dialer: srv.DialFrom(name), Label: name,
		FailStop: func(err error) { t.Errorf("%s: %v", name, err) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// lockers returns n lockers of as many clients, for jobs that run at most that often.
func lockers(t *testing.T, srv *zktest.Server, n int, every time.Duration) []*zkgocron.Locker {
	all := make([]*zkgocron.Locker, n)
	for i := range all {
		var err error
		all[i], err = zkgocron.NewLocker(connect(t, srv, fmt.Sprint("scheduler ", i)), "/cron", every, nil)
		require.NoError(t, err)
	}
	return all
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
		for _, locker := range lockers(t, srv, 5, time.Minute) {
			scheduler(t, func() { runs.Add(1) }, gocron.WithDistributedLocker(locker))
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		assert.EqualValues(t, 10, runs.Load())
	})
}

func TestAJobCanSeeThatItsLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		locker := lockers(t, srv, 1, time.Minute)[0]
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

func TestARunBeginsOnceHoweverLateTheOthersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		l := lockers(t, srv, 2, time.Minute)
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		got, err := l[0].Lock(t.Context(), "pkg/path.job")
		require.NoError(t, err)
		_, err = l[1].Lock(t.Context(), "pkg/path.job")
		assert.ErrorIs(t, err, slots.ErrDone, "it has begun")
		require.NoError(t, got.Unlock(t.Context()))
		for range 5 {
			time.Sleep(10 * time.Second)
			_, err = l[1].Lock(t.Context(), "pkg/path.job")
			assert.ErrorIs(t, err, slots.ErrDone, "it has run")
		}
		time.Sleep(10*time.Second - 100*time.Millisecond)
		got, err = l[1].Lock(t.Context(), "pkg/path.job")
		require.NoError(t, err, "the next run, by a clock that was set back while it slept")
		require.NoError(t, got.Unlock(t.Context()))
		time.Sleep(time.Second)
		_, err = l[0].Lock(t.Context(), "pkg/path.job")
		assert.ErrorIs(t, err, slots.ErrDone)
	})
}

func TestNoRunOfAFastJobIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var runs atomic.Int32
		for _, locker := range lockers(t, srv, 3, time.Second) {
			s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithLocation(time.UTC))
			require.NoError(t, err)
			_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() { runs.Add(1) }), gocron.WithName("tick"))
			require.NoError(t, err)
			s.Start()
			t.Cleanup(func() { s.Shutdown() })
		}
		time.Sleep(time.Minute + 700*time.Millisecond)
		assert.EqualValues(t, 60, runs.Load())
	})
}

func TestEachNameOfAJobHasALockOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		l := lockers(t, srv, 1, time.Minute)[0]
		names := []string{"eu/report", "eu_report", "eu%2Freport", "report", "report.zklock-slots", "report%2Ezklock-slots", "report.zklock-delay", ".", "..", "%2E", "a b", "\x00"}
		for _, name := range names {
			got, err := l.Lock(t.Context(), name)
			require.NoError(t, err, "%q", name)
			defer got.Unlock(context.Background())
		}
		assert.NotNil(t, l.Hold("eu/report"))
		assert.Len(t, srv.Children("/cron"), 2*len(names), "each has a lock and marks")
	})
}

func TestAHangingJobKeepsOthersOffUntilTheClientIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "hangs")
		hangs, err := zkgocron.NewLocker(client, "/cron", time.Minute, nil)
		require.NoError(t, err)
		other := lockers(t, srv, 1, time.Minute)[0]
		_, err = hangs.Lock(t.Context(), "report")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		_, err = other.Lock(t.Context(), "report")
		assert.ErrorIs(t, err, zklock.ErrLocked)
		require.NoError(t, client.Close())
		time.Sleep(time.Minute)
		got, err := other.Lock(t.Context(), "report")
		require.NoError(t, err)
		require.NoError(t, got.Unlock(t.Context()))
	})
}

func TestALockThatCannotBeHadInTimeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		l := lockers(t, srv, 1, time.Minute)[0]
		srv.Partition("scheduler 0")
		defer srv.HealClient("scheduler 0")
		start := time.Now()
		_, err := l.Lock(t.Context(), "report")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute-500*time.Millisecond, time.Since(start))
	})
}

// late is a locker that is asked a little after a run is due, as all are where time is not virtual.
type late struct{ gocron.Locker }

func (l late) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	time.Sleep(time.Millisecond)
	return l.Locker.Lock(ctx, key)
}

func TestALockThatIsGivenUpCostsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		locker := lockers(t, srv, 1, time.Minute)[0]
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 30*time.Second)))
		start := time.Now()
		var runs []time.Duration
		scheduler(t, func() { runs = append(runs, time.Since(start).Truncate(time.Minute)) }, gocron.WithDistributedLocker(late{locker}))
		srv.Partition("scheduler 0")
		time.Sleep(time.Minute + 40*time.Second) // beyond the second run
		srv.HealClient("scheduler 0")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []time.Duration{time.Minute, 2 * time.Minute}, runs)
	})
}

func TestALockerNeedsToKnowHowOftenJobsRun(t *testing.T) {
	_, err := zkgocron.NewLocker(nil, "/cron", 0, nil)
	assert.ErrorIs(t, err, zklock.ErrInvalid)
}

func TestALeaderThatIsAskedToLetGoResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "first")
		first := zkgocron.NewElector(client, "/leader", []byte("first"))
		defer first.Close()
		synctest.Wait()
		second := zkgocron.NewElector(connect(t, srv, "second"), "/leader", []byte("second"))
		defer second.Close()
		synctest.Wait()
		hold := first.Hold()
		require.NotNil(t, hold)

		for _, next := range []*zkgocron.Elector{second, first} {
			leader, err := client.Election("/leader", nil).Leader(t.Context())
			require.NoError(t, err)
			require.NoError(t, operate.Revoke(t.Context(), client, leader))
			time.Sleep(time.Second)
			assert.NoError(t, next.IsLeader(t.Context()))
		}
		assert.ErrorIs(t, second.IsLeader(t.Context()), zkgocron.ErrNotLeader)
		assert.ErrorIs(t, hold.Context().Err(), context.Canceled, "a job of the first term is told")
	})
}

// gocron tells nobody that an elector has stood down for good: the others' end would then be the end of all runs.
func TestAnEvictedSchedulerStandsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "first")
		first := zkgocron.NewElector(client, "/leader", nil)
		defer first.Close()
		synctest.Wait()
		second := zkgocron.NewElector(connect(t, srv, "second"), "/leader", nil)
		defer second.Close()
		synctest.Wait()
		queue, err := operate.Inspect(t.Context(), client, "/leader")
		require.NoError(t, err)
		require.NoError(t, operate.Evict(t.Context(), client, queue.Contenders[1]))
		synctest.Wait()
		assert.ErrorIs(t, second.IsLeader(t.Context()), zklock.ErrEvicted)
		time.Sleep(2 * time.Minute)
		first.Close()
		time.Sleep(time.Second)
		assert.NoError(t, second.IsLeader(t.Context()))
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

// TestADailyJobRunsOnceADay has the clocks of Berlin go forward on the second of three days.
func TestADailyJobRunsOnceADay(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, hour := range []uint{1, 23} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Date(2000, 3, 25, 0, 30, 0, 0, berlin)))
			srv := zktest.Start(t)
			var runs atomic.Int32
			for i := range 2 {
				locker, err := zkgocron.NewLocker(connect(t, srv, fmt.Sprint("scheduler ", i)), "/cron", 24*time.Hour, &zkgocron.Options{Location: berlin})
				require.NoError(t, err)
				s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithLocation(berlin))
				require.NoError(t, err)
				_, err = s.NewJob(gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(hour, 0, 0))), gocron.NewTask(func() { runs.Add(1) }), gocron.WithName("report"))
				require.NoError(t, err)
				s.Start()
				t.Cleanup(func() { s.Shutdown() })
			}
			time.Sleep(time.Until(time.Date(2000, 3, 28, 0, 0, 0, 0, berlin)))
			assert.EqualValues(t, 3, runs.Load(), "at %d o'clock", hour)
		})
	}
}

// TestGocronsOwnSchedulersShareOneRun has the cases of gocron's own test of distributed schedulers.
func TestGocronsOwnSchedulersShareOneRun(t *testing.T) {
	for name, c := range map[string]struct {
		all  func(t *testing.T, client *zklock.Client) gocron.SchedulerOption // nil for none
		job  func(t *testing.T, client *zklock.Client) []gocron.JobOption
		runs int32
	}{
		"elector": {runs: 1, all: func(t *testing.T, client *zklock.Client) gocron.SchedulerOption {
			e := zkgocron.NewElector(client, "/leader", nil)
			t.Cleanup(e.Close)
			synctest.Wait()
			return gocron.WithDistributedElector(e)
		}},
		"locker": {runs: 1, all: func(t *testing.T, client *zklock.Client) gocron.SchedulerOption {
			return gocron.WithDistributedLocker(locker(t, client))
		}},
		"locker of the job": {runs: 1, job: func(t *testing.T, client *zklock.Client) []gocron.JobOption {
			return []gocron.JobOption{gocron.WithDistributedJobLocker(locker(t, client))}
		}},
		"locker that the job does not use": {runs: 3, all: func(t *testing.T, client *zklock.Client) gocron.SchedulerOption {
			return gocron.WithDistributedLocker(locker(t, client))
		}, job: func(*testing.T, *zklock.Client) []gocron.JobOption {
			return []gocron.JobOption{gocron.WithDisabledDistributedJobLocker(true)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				var runs atomic.Int32
				for i := range 3 {
					client := connect(t, srv, fmt.Sprint("scheduler ", i))
					all, job := []gocron.SchedulerOption{gocron.WithLocation(time.UTC)}, []gocron.JobOption{gocron.WithName("report"), gocron.WithStartAt(gocron.WithStartImmediately())}
					if c.all != nil {
						all = append(all, c.all(t, client))
					}
					if c.job != nil {
						job = append(job, c.job(t, client)...)
					}
					s, err := gocron.NewScheduler(all...)
					require.NoError(t, err)
					_, err = s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func() { runs.Add(1); time.Sleep(time.Second) }), job...)
					require.NoError(t, err)
					s.Start()
					t.Cleanup(func() { s.Shutdown() })
				}
				time.Sleep(30 * time.Second)
				assert.Equal(t, c.runs, runs.Load())
			})
		})
	}
}

func locker(t *testing.T, client *zklock.Client) *zkgocron.Locker {
	l, err := zkgocron.NewLocker(client, "/cron", time.Hour, nil)
	require.NoError(t, err)
	return l
}

// TestARunBeginsOnceWhateverHappens breaks each request of a scheduler's, from the lock to its release.
func TestARunBeginsOnceWhateverHappens(t *testing.T) {
	everystep.Through(t, 5, func(t *testing.T, srv *zktest.Server, over func()) {
		struck, other := locker(t, connect(t, srv, everystep.Client)), locker(t, connect(t, srv, "other"))
		runs := 0
		for _, l := range []*zkgocron.Locker{struck, other, struck} {
			lock, err := l.Lock(t.Context(), "report")
			if err == nil {
				runs++
				_ = lock.Unlock(t.Context())
				assert.Nil(t, l.Hold("report"))
			}
			over()
			time.Sleep(2 * time.Minute) // the session of one that is cut off has ended
		}
		assert.LessOrEqual(t, runs, 1)
		time.Sleep(time.Hour)
		lock, err := other.Lock(t.Context(), "report")
		require.NoError(t, err, "the next run")
		require.NoError(t, lock.Unlock(t.Context()))
		assert.Empty(t, srv.Children("/cron/report"))
	})
}

// TestALeaderOfASchedulerIsTheOnlyOneWhateverHappens breaks each request of an elector's.
func TestALeaderOfASchedulerIsTheOnlyOneWhateverHappens(t *testing.T) {
	everystep.Through(t, 5, func(t *testing.T, srv *zktest.Server, over func()) {
		struck := zkgocron.NewElector(connect(t, srv, everystep.Client), "/leader", nil)
		other := zkgocron.NewElector(connect(t, srv, "other"), "/leader", nil)
		leaders := 0
		for i := range 400 {
			if i == 3 {
				over()
			}
			leaders = 0
			for _, e := range []*zkgocron.Elector{struck, other} {
				if e.IsLeader(t.Context()) == nil {
					leaders++
				}
			}
			assert.LessOrEqual(t, leaders, 1)
			time.Sleep(300 * time.Millisecond)
		}
		assert.Equal(t, 1, leaders)
		struck.Close()
		other.Close()
		time.Sleep(2 * time.Minute)
		assert.Empty(t, srv.Children("/leader"))
	})
}
