// SPDX-License-Identifier: Apache-2.0

package zkgocron_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
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

// lockers returns n lockers of as many clients.
func lockers(t *testing.T, srv *zktest.Server, n int) []*zkgocron.Locker {
	all := make([]*zkgocron.Locker, n)
	for i := range all {
		all[i] = zkgocron.NewLocker(connect(t, srv, fmt.Sprint("scheduler ", i)), "/cron")
	}
	return all
}

// options returns the options of a scheduler and those of a job with that name.
func options(name string, opts []any) (all []gocron.SchedulerOption, one []gocron.JobOption) {
	all, one = append(all, gocron.WithLocation(time.UTC)), append(one, gocron.WithName(name))
	for _, opt := range opts {
		switch opt := opt.(type) {
		case gocron.SchedulerOption:
			all = append(all, opt)
		case gocron.JobOption:
			one = append(one, opt)
		}
	}
	return all, one
}

// start starts a scheduler with a job of that name. It uses the locker, if there is one.
func start(t *testing.T, locker *zkgocron.Locker, name string, when gocron.JobDefinition, job func(), opts ...any) gocron.Job {
	all, one := options(name, opts)
	if locker != nil {
		all = append(all, gocron.WithDistributedLocker(locker))
	}
	s, err := gocron.NewScheduler(all...)
	require.NoError(t, err)
	if locker != nil {
		locker.Use(s)
	}
	made, err := s.NewJob(when, gocron.NewTask(job), one...)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown() })
	return made
}

var (
	everyMinute = gocron.CronJob("* * * * *", false)
	everySecond = gocron.CronJob("* * * * * *", true)
)

// collect returns a listener for errors of the locker, and a function that returns the received errors.
func collect() (gocron.JobOption, func() []error) {
	var mu sync.Mutex
	var all []error
	return gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, err)
		})), func() []error {
			mu.Lock()
			defer mu.Unlock()
			return all
		}
}

// dues returns the due times that are marked as done for a job.
func dues(t *testing.T, srv *zktest.Server, job string) (times []string) {
	node, ok := srv.Node("/cron/" + job + ".zklock-slots")
	require.True(t, ok)
	var marks struct {
		Periods []struct{ Done []struct{ Slot string } }
	}
	require.NoError(t, json.Unmarshal(node.Data, &marks))
	require.Len(t, marks.Periods, 1)
	for _, done := range marks.Periods[0].Done {
		at, err := time.Parse("2006-01-02T15:04:05.000000000Z", done.Slot)
		require.NoError(t, err)
		times = append(times, at.Format("15:04:05.999"))
	}
	return times
}

func TestEachRunHappensOnceInAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var runs atomic.Int32
		heard, errors := collect()
		for _, locker := range lockers(t, srv, 3) {
			start(t, locker, "report", everyMinute, func() { runs.Add(1) }, heard)
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		assert.EqualValues(t, 10, runs.Load())
		assert.Equal(t, []string{"00:01:00", "00:02:00", "00:03:00", "00:04:00", "00:05:00", "00:06:00", "00:07:00", "00:08:00", "00:09:00", "00:10:00"}, dues(t, srv, "report"))
		assert.Len(t, errors(), 20)
		for _, err := range errors() {
			assert.True(t, isSkip(err), "%v", err)
		}
	})
}

func isSkip(err error) bool { return errors.Is(err, slots.ErrDone) || errors.Is(err, zklock.ErrLocked) }

// TestADueTimeIsThatOfTheRun uses jobs that last longer than their period, in all ways in which gocron lets runs overlap.
func TestADueTimeIsThatOfTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		opts []any
		want []string // the due times of the runs
	}{
		"skipped while it is held":   {nil, []string{"00:01:00", "00:04:00"}},
		"singleton that reschedules": {[]any{gocron.WithSingletonMode(gocron.LimitModeReschedule)}, []string{"00:01:00", "00:04:00"}},
		"limit that reschedules":     {[]any{gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule)}, []string{"00:01:00", "00:04:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				start(t, lockers(t, srv, 1)[0], "report", everyMinute, func() { time.Sleep(150 * time.Second) }, c.opts...)
				time.Sleep(6*time.Minute + 45*time.Second) // until all runs have ended
				assert.Equal(t, c.want, dues(t, srv, "report"))
			})
		})
	}
}

// lateBy is a locker that delays each call of Lock.
type lateBy struct {
	gocron.Locker
	by time.Duration
}

func (l lateBy) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	select {
	case <-time.After(l.by):
		return l.Locker.Lock(ctx, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Hosts start the run of 23:59 late, some of them after midnight. It counts for its own day on each of them, and the next day's run is not skipped.
func TestARunAfterMidnightCountsForItsOwnDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(23*time.Hour + 50*time.Minute)
		srv := zktest.Start(t)
		var runs atomic.Int32
		heard, errors := collect()
		for i, locker := range lockers(t, srv, 3) {
			at := gocron.NewAtTimes(gocron.NewAtTime(23, 59, 0))
			s, err := gocron.NewScheduler(gocron.WithDistributedLocker(lateBy{locker, time.Duration(i+1) * 45 * time.Second}), gocron.WithLocation(time.UTC))
			require.NoError(t, err)
			locker.Use(s)
			_, err = s.NewJob(gocron.DailyJob(1, at), gocron.NewTask(func() { runs.Add(1) }), gocron.WithName("report"), heard)
			require.NoError(t, err)
			s.Start()
			t.Cleanup(func() { s.Shutdown() })
			if i == 0 {
				srv.Partition("scheduler 0") // on the first day the others do it, after midnight
			}
		}
		time.Sleep(20 * time.Minute)
		srv.HealClient("scheduler 0")
		time.Sleep(24 * time.Hour)
		assert.Equal(t, []string{"23:59:00", "23:59:00"}, dues(t, srv, "report"))
		assert.EqualValues(t, 2, runs.Load())
		for _, err := range errors() {
			assert.True(t, isSkip(err), "%v", err)
		}
	})
}

func TestALockBeforeUseReturnsAHelpfulError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		locker := lockers(t, srv, 1)[0]
		_, err := locker.Lock(t.Context(), "report")
		assert.ErrorIs(t, err, zklock.ErrInvalid)
		assert.ErrorContains(t, err, "call Locker.Use with the scheduler before its Start")
		start(t, locker, "report", everyMinute, func() {})
		_, err = locker.Lock(t.Context(), "other")
		assert.ErrorIs(t, err, gocron.ErrJobNotFound)
		assert.ErrorContains(t, err, `lock of job "other"`)
	})
}

func TestNamesOfJobsMustDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		locker := lockers(t, srv, 1)[0]
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		require.NoError(t, err)
		locker.Use(s)
		for range 2 {
			_, err = s.NewJob(everyMinute, gocron.NewTask(func() {}), gocron.WithName("report"))
			require.NoError(t, err)
		}
		defer s.Shutdown()
		_, err = locker.Lock(t.Context(), "report")
		assert.ErrorIs(t, err, zklock.ErrInvalid)
	})
}

// TestTimesThatDifferOnEachHostAreRefused plans runs at times that no other host plans, so that they would run on each host.
func TestTimesThatDifferOnEachHostAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		when gocron.JobDefinition
		opts []any
	}{
		"from its own start": {when: gocron.DurationJob(time.Hour)},
		"at its own start":   {everyMinute, []any{gocron.WithStartAt(gocron.WithStartImmediately())}},
		"random":             {when: gocron.DurationRandomJob(time.Minute, time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				heard, errors := collect()
				time.Sleep(12345678 * time.Nanosecond)
				start(t, lockers(t, srv, 1)[0], "report", c.when, func() { t.Error("it runs") }, append(c.opts, heard)...)
				time.Sleep(59 * time.Second) // before the next whole minute
				if name != "at its own start" {
					time.Sleep(time.Hour)
				}
				require.NotEmpty(t, errors())
				assert.ErrorIs(t, errors()[0], zklock.ErrInvalid)
			})
		})
	}
}

func TestDurationsFromTheSameStartAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var runs atomic.Int32
		from := time.Now().Add(time.Minute)
		for _, locker := range lockers(t, srv, 3) {
			start(t, locker, "report", gocron.DurationJob(90*time.Second), func() { runs.Add(1) }, gocron.WithStartAt(gocron.WithStartDateTime(from)))
			time.Sleep(12345678 * time.Nanosecond)
		}
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []string{"00:01:00", "00:02:30", "00:04:00", "00:05:30", "00:07:00", "00:08:30", "00:10:00"}, dues(t, srv, "report"))
		assert.EqualValues(t, 7, runs.Load())
	})
}

// TestARunOfNowIsNoPlannedRun checks that RunNow does not affect planned runs, unless one is due within a minute.
func TestARunOfNowIsNoPlannedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var runs atomic.Int32
		var jobs []gocron.Job
		for _, locker := range lockers(t, srv, 2) {
			jobs = append(jobs, start(t, locker, "report", gocron.CronJob("0 * * * *", false), func() { runs.Add(1); time.Sleep(time.Second) }))
		}
		now := func(n int32) {
			for _, job := range jobs {
				require.NoError(t, job.RunNow())
			}
			time.Sleep(10 * time.Second)
			assert.Equal(t, n, runs.Load())
		}
		now(1) // the other scheduler finds the lock held
		now(2)
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + 30*time.Second)))
		assert.EqualValues(t, 3, runs.Load())
		assert.Equal(t, []string{"01:00:00"}, dues(t, srv, "report"))
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour - 30*time.Second)))
		now(4)
		now(4)
		time.Sleep(time.Minute)
		assert.EqualValues(t, 4, runs.Load())
		assert.Equal(t, []string{"01:00:00", "02:00:00"}, dues(t, srv, "report"))
	})
}

func TestAJobCanSeeThatItsLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		locker := lockers(t, srv, 1)[0]
		told := make(chan error, 1)
		start(t, locker, "report", everyMinute, func() {
			hold := locker.Hold("report")
			srv.DeleteNode(hold.Node())
			<-hold.Context().Done()
			told <- context.Cause(hold.Context())
		})
		assert.ErrorIs(t, <-told, zklock.ErrLost)
		synctest.Wait()
		assert.Nil(t, locker.Hold("report"))
	})
}

// TestARunBeginsOnceHoweverLateTheOthersAre uses schedulers that start runs that others have done, each later than the previous
// one.
func TestARunBeginsOnceHoweverLateTheOthersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var runs atomic.Int32
		heard, errors := collect()
		l := lockers(t, srv, 5)
		for i, late := range []time.Duration{0, time.Millisecond, time.Second, 40 * time.Second, 59*time.Second + 900*time.Millisecond} {
			s, err := gocron.NewScheduler(gocron.WithDistributedLocker(lateBy{l[i], late}), gocron.WithLocation(time.UTC))
			require.NoError(t, err)
			l[i].Use(s)
			_, err = s.NewJob(everyMinute, gocron.NewTask(func() { runs.Add(1) }), gocron.WithName("report"), heard)
			require.NoError(t, err)
			s.Start()
			t.Cleanup(func() { s.Shutdown() })
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		assert.EqualValues(t, 10, runs.Load())
		assert.Len(t, dues(t, srv, "report"), 10)
		assert.NotEmpty(t, errors())
		for _, err := range errors() {
			assert.True(t, isSkip(err), "%v", err)
		}
	})
}

func TestNoRunOfAFastJobIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var runs atomic.Int32
		for _, locker := range lockers(t, srv, 3) {
			start(t, locker, "tick", everySecond, func() { runs.Add(1) })
		}
		time.Sleep(time.Minute + 700*time.Millisecond)
		assert.EqualValues(t, 60, runs.Load())
	})
}

func TestEachNameOfAJobHasALockOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		l := lockers(t, srv, 1)[0]
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(l), gocron.WithLocation(time.UTC))
		require.NoError(t, err)
		l.Use(s)
		names := []string{"eu/report", "eu_report", "eu%2Freport", "report", "report.zklock-slots", "report-lock-0000000001", "..", "\x00"}
		var runs atomic.Int32
		for _, name := range names {
			_, err = s.NewJob(everyMinute, gocron.NewTask(func() { runs.Add(1); time.Sleep(time.Second) }), gocron.WithName(name))
			require.NoError(t, err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown() })
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 500*time.Millisecond)))
		assert.EqualValues(t, len(names), runs.Load())
		assert.NotNil(t, l.Hold("eu/report"))
		assert.Len(t, srv.Children("/cron"), 2*len(names), "each has a lock and marks")
		time.Sleep(time.Second) // until the runs have ended
	})
}

func TestAHangingJobKeepsOthersOffUntilTheClientIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "hangs")
		start(t, zkgocron.NewLocker(client, "/cron"), "report", everyMinute, func() { time.Sleep(time.Hour) })
		time.Sleep(61 * time.Second)
		var runs atomic.Int32
		heard, errors := collect()
		start(t, lockers(t, srv, 1)[0], "report", everyMinute, func() { runs.Add(1) }, heard)
		time.Sleep(30 * time.Minute)
		assert.Zero(t, runs.Load())
		assert.ErrorIs(t, errors()[10], zklock.ErrLocked)
		require.NoError(t, client.Close())
		time.Sleep(time.Minute)
		assert.NotZero(t, runs.Load())
		time.Sleep(time.Hour) // until the job has ended
	})
}

func TestALockThatCannotBeHadInTimeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		l := lockers(t, srv, 1)[0]
		heard, errors := collect()
		start(t, l, "report", everyMinute, func() { t.Error("it runs") }, heard)
		srv.Partition("scheduler 0")
		defer srv.HealClient("scheduler 0")
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(2*time.Minute - 501*time.Millisecond)))
		assert.Empty(t, errors())
		time.Sleep(2 * time.Millisecond)
		require.Len(t, errors(), 1)
		assert.ErrorIs(t, errors()[0], context.DeadlineExceeded)
	})
}

func TestALockThatIsGivenUpCostsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		locker := lockers(t, srv, 1)[0]
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 30*time.Second)))
		begin := time.Now()
		var runs []time.Duration
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(lateBy{locker, time.Millisecond}), gocron.WithLocation(time.UTC))
		require.NoError(t, err)
		locker.Use(s)
		_, err = s.NewJob(everyMinute, gocron.NewTask(func() { runs = append(runs, time.Since(begin).Truncate(time.Minute)) }), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown() })
		srv.Partition("scheduler 0")
		time.Sleep(time.Minute + 40*time.Second) // beyond the second run
		srv.HealClient("scheduler 0")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []time.Duration{time.Minute, 2 * time.Minute}, runs)
	})
}

func TestARevokedLeaderResigns(t *testing.T) {
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
		assert.ErrorIs(t, hold.Context().Err(), context.Canceled, "a job of the first term learns of the loss")
	})
}

// gocron does not report that an elector is no longer a candidate. If the others also stop, no scheduler runs jobs.
func TestAnEvictedSchedulerCampaignsAgain(t *testing.T) {
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
		require.NoError(t, operate.Evict(t.Context(), client, "", queue.Contenders[1]))
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
			start(t, nil, "report", everyMinute, func() { runs[i].Add(1) }, gocron.WithDistributedElector(electors[i]))
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

// TestADailyJobRunsOnceADay sets Berlin's clocks forward on the second of three days.
func TestADailyJobRunsOnceADay(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, hour := range []uint{1, 23} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Date(2000, 3, 25, 0, 30, 0, 0, berlin)))
			srv := zktest.Start(t)
			var runs atomic.Int32
			for i := range 2 {
				locker := zkgocron.NewLocker(connect(t, srv, fmt.Sprint("scheduler ", i)), "/cron")
				s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithLocation(berlin))
				require.NoError(t, err)
				locker.Use(s)
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

// TestGocronsOwnSchedulersShareOneRun runs the cases of gocron's own test of distributed schedulers.
func TestGocronsOwnSchedulersShareOneRun(t *testing.T) {
	for name, c := range map[string]struct {
		opts func(t *testing.T, client *zklock.Client, locker *zkgocron.Locker) []any
		runs int32
	}{
		"elector": {runs: 1, opts: func(t *testing.T, client *zklock.Client, _ *zkgocron.Locker) []any {
			e := zkgocron.NewElector(client, "/leader", nil)
			t.Cleanup(e.Close)
			synctest.Wait()
			return []any{gocron.WithDistributedElector(e)}
		}},
		"locker": {runs: 1, opts: func(_ *testing.T, _ *zklock.Client, locker *zkgocron.Locker) []any {
			return []any{gocron.WithDistributedLocker(locker)}
		}},
		"locker of the job": {runs: 1, opts: func(_ *testing.T, _ *zklock.Client, locker *zkgocron.Locker) []any {
			return []any{gocron.WithDistributedJobLocker(locker)}
		}},
		"locker that the job does not use": {runs: 3, opts: func(_ *testing.T, _ *zklock.Client, locker *zkgocron.Locker) []any {
			return []any{gocron.WithDistributedLocker(locker), gocron.WithDisabledDistributedJobLocker(true)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				var runs atomic.Int32
				for i := range 3 {
					client := connect(t, srv, fmt.Sprint("scheduler ", i))
					locker := zkgocron.NewLocker(client, "/cron")
					job := func() { runs.Add(1); time.Sleep(time.Second) }
					opts := append(c.opts(t, client, locker), gocron.WithStartAt(gocron.WithStartImmediately()))
					all, one := options("report", opts)
					s, err := gocron.NewScheduler(all...)
					require.NoError(t, err)
					locker.Use(s)
					_, err = s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(job), one...)
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

// hourly is a scheduler with one job, planned for due and every hour after that.
type hourly struct {
	gocron.Scheduler
	gocron.Job
	due time.Time
}

func (h hourly) Jobs() []gocron.Job           { return []gocron.Job{h} }
func (h hourly) Name() string                 { return "report" }
func (h hourly) Schedule() gocron.JobSchedule { return gocron.DurationJobSchedule{Duration: time.Hour} }
func (h hourly) NextRuns(n int) (times []time.Time, err error) {
	for i := range n {
		times = append(times, h.due.Add(time.Duration(i)*time.Hour))
	}
	return times, nil
}

// TestARunBeginsOnceUnderAnyFault uses a scheduler's lock, from Lock to Unlock, with a fault at each request.
func TestARunBeginsOnceUnderAnyFault(t *testing.T) {
	everystep.Through(t, 5, func(t *testing.T, srv *zktest.Server, over func()) {
		struck, other := zkgocron.NewLocker(connect(t, srv, everystep.Client), "/cron"), zkgocron.NewLocker(connect(t, srv, "other"), "/cron")
		due := time.Now()
		struck.Use(hourly{due: due})
		other.Use(hourly{due: due})
		runs := 0
		for _, l := range []*zkgocron.Locker{struck, other, struck} {
			lock, err := l.Lock(t.Context(), "report")
			if err == nil {
				runs++
				_ = lock.Unlock(t.Context())
				assert.Nil(t, l.Hold("report"))
			}
			over()
			time.Sleep(2 * time.Minute) // until the session of a client that was cut off has ended
		}
		assert.LessOrEqual(t, runs, 1)
		time.Sleep(time.Until(due.Add(time.Hour)))
		other.Use(hourly{due: due.Add(time.Hour)})
		lock, err := other.Lock(t.Context(), "report")
		require.NoError(t, err, "the next run")
		require.NoError(t, lock.Unlock(t.Context()))
		assert.Empty(t, srv.Children("/cron/report"))
	})
}

// TestTheNewestTimeThatHasComeIsTheRuns covers a scheduler that was suspended, one whose clock was set back, and one that has
// planned no runs.
func TestTheNewestTimeThatHasComeIsTheRuns(t *testing.T) {
	for name, c := range map[string]struct {
		planned time.Duration // from now to the first time
		want    string
	}{
		"on time":                   {0, "12:00:00"},
		"late":                      {-59*time.Minute - 59*time.Second, "11:00:01"},
		"late by three periods":     {-3 * time.Hour, "12:00:00"},
		"later than is remembered":  {-200 * time.Hour, "11:00:00"}, // the 128th
		"clock set back by seconds": {10 * time.Second, "12:00:10"},
		"not planned":               {61 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(12 * time.Hour)
				srv := zktest.Start(t)
				locker := lockers(t, srv, 1)[0]
				locker.Use(hourly{due: time.Now().Add(c.planned)})
				lock, err := locker.Lock(t.Context(), "report")
				require.NoError(t, err)
				require.NoError(t, lock.Unlock(t.Context()))
				if c.want == "" {
					assert.Len(t, srv.Children("/cron"), 1, "a lock, and no marks")
					return
				}
				assert.Equal(t, []string{c.want}, dues(t, srv, "report"))
			})
		})
	}
}

// TestASchedulerHasOneLeaderUnderAnyFault uses an elector with a fault at each request.
func TestASchedulerHasOneLeaderUnderAnyFault(t *testing.T) {
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

// After a night without a quorum, the newest run happens once, as with slots.Scheduled.
//
//zklock:promise P10.12
func TestAfterAnOutageTheNewestRunHappensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var runs atomic.Int32
		for _, locker := range lockers(t, srv, 3) {
			start(t, locker, "report", gocron.CronJob("*/5 * * * *", false), func() { runs.Add(1) })
		}
		time.Sleep(12 * time.Minute)
		require.EqualValues(t, 2, runs.Load())
		srv.Member(0).Stop()
		time.Sleep(8 * time.Hour)
		require.EqualValues(t, 2, runs.Load())
		srv.Member(0).Start()
		time.Sleep(time.Minute)
		require.EqualValues(t, 3, runs.Load())
		newest := time.Now().UTC().Truncate(5 * time.Minute).Format("15:04:05")
		assert.Equal(t, []string{"00:05:00", "00:10:00", newest}, dues(t, srv, "report"))
		time.Sleep(10 * time.Minute)
		require.EqualValues(t, 5, runs.Load())
	})
}
