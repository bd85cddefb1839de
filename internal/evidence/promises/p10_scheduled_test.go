// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// sinceAsked is a schedule that counts from the time at which it is asked, as @every of robfig/cron does.
type sinceAsked time.Duration

func (d sinceAsked) Next(now time.Time) time.Time {
	return now.Add(time.Duration(d) - time.Duration(now.Nanosecond()))
}

// never is a schedule without a time.
type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

// backwards is a schedule whose next time is not later.
type backwards struct{}

func (backwards) Next(now time.Time) time.Time { return now }

// jittered is a schedule with random times.
type jittered struct{}

func (jittered) Next(now time.Time) time.Time {
	return now.Add(time.Minute + time.Duration(rand.Int64N(int64(time.Second))))
}

// cronOf runs a job as cron libraries do: it asks for the next time when it starts, and after each start of a run. It ends with
// ctx, and waits for the runs. The first time it asks is later by skew than on a host whose clock is right.
func cronOf(ctx context.Context, job *slots.Job, skew time.Duration) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			next := job.Next(time.Now())
			if next.IsZero() {
				return
			}
			select {
			case <-time.After(time.Until(next) + skew):
				wg.Go(job.Run)
			case <-ctx.Done():
				return
			}
		}
	})
	return wg.Wait
}

// runsByDue counts the runs of each due time, and collects errors.
type runsByDue struct {
	mu   sync.Mutex
	runs map[time.Time]int // guarded by mu
	all  []time.Time       // guarded by mu: in the order in which they began
	errs []error           // guarded by mu
}

// began records the start of a run, and returns how many there were.
func (r *runsByDue) began(due time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = map[time.Time]int{}
	}
	r.runs[due.UTC()]++
	r.all = append(r.all, due.UTC())
	return len(r.all)
}

func (r *runsByDue) failed(_ time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// work returns a function that takes that long.
func (r *runsByDue) work(d time.Duration) func(context.Context, time.Time) error {
	return func(ctx context.Context, due time.Time) error {
		r.began(due)
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// order returns the due times of the runs in the order in which they began.
func (r *runsByDue) order() []time.Time {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// errors returns the errors of runs.
func (r *runsByDue) errors() []error {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.errs)
}

// once requires that each run was done once, and returns how many there were.
func (r *runsByDue) once(t *testing.T) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for due, n := range r.runs {
		require.Equal(t, 1, n, due)
	}
	return len(r.runs)
}

// A fleet of three hosts that started at different times does each run once, and the job learns which one it is.
//
//zklock:promise P10.11
func TestAScheduledJobRunsOnceForEachTimeInAFleet(t *testing.T) {
	t.Parallel()
	for _, once := range []bool{false, true} {
		virtual(t, three, func(t *testing.T, srv *zktest.Server) {
			ctx, cancel := context.WithCancel(t.Context())
			var r runsByDue
			var waits []func()
			begin := time.Now()
			for i := range 3 {
				job, err := slots.Scheduled(connect(t, srv, fmt.Sprint("host ", i), term), "/cron", "report", slots.Every(3*time.Second), r.work(time.Second), &slots.JobOptions{Context: ctx, AtMostOnce: once, OnError: r.failed})
				require.NoError(t, err)
				time.Sleep(1100 * time.Millisecond)
				waits = append(waits, cronOf(ctx, job, time.Duration(i)*100*time.Millisecond))
			}
			time.Sleep(60*time.Second - time.Since(begin))
			cancel()
			for _, wait := range waits {
				wait()
			}
			assert.InDelta(t, 20, r.once(t), 1)
			assert.Empty(t, r.errors(), "a stop is no error, and neither is a run that another host has done")
			for _, due := range r.order() {
				assert.Zero(t, due.Second()%3)
				assert.Zero(t, due.Nanosecond())
			}
		})
	}
}

// A cron library that gets the job alone, with a schedule of its own, runs it without planning a run. That must not be silent.
//
//zklock:promise P10.11
func TestAJobThatIsNotItsOwnScheduleIsReported(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var r runsByDue
		var failed error
		job, err := slots.Scheduled(connect(t, srv, "a", term), "/cron", "report", slots.Every(3*time.Second), r.work(0), &slots.JobOptions{OnError: func(due time.Time, err error) {
			require.True(t, due.IsZero())
			failed = err
		}})
		require.NoError(t, err)
		job.Run()
		require.ErrorIs(t, failed, zklock.ErrInvalid)
		require.ErrorContains(t, failed, "Next was never called")
		failed = nil
		job.Next(time.Now())
		job.Run()
		require.NoError(t, failed, "no run is due")
	})
}

// Hosts cannot agree on a run if its time depends on when each of them asked.
//
//zklock:promise P10.11
func TestAScheduleThatDependsOnWhenItIsAskedIsRefused(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		nothing := func(context.Context, time.Time) error { return nil }
		for range 20 {
			time.Sleep(time.Duration(rand.Int64N(int64(time.Minute)))) // at any fraction of a second
			for _, s := range []slots.Schedule{sinceAsked(3 * time.Second), sinceAsked(90 * time.Minute), jittered{}, backwards{}, slots.Every(0), slots.Every(-1), nil} {
				_, err := slots.Scheduled(c, "/cron", "report", s, nothing, nil)
				require.ErrorIs(t, err, zklock.ErrInvalid, "%T", s)
			}
			for _, s := range []slots.Schedule{slots.Every(1), slots.Every(3 * time.Second), slots.Every(7 * time.Hour), sinceAsked(time.Second), never{}} {
				_, err := slots.Scheduled(c, "/cron", "report", s, nothing, nil)
				require.NoError(t, err, "%T", s)
			}
		}
		_, err := slots.Scheduled(c, "/cron", "", slots.Every(time.Second), nothing, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
		_, err = slots.Scheduled(c, "cron", "report", slots.Every(time.Second), nothing, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
		_, err = slots.Scheduled(c, "/cron", "report", slots.Every(time.Second), nil, nil)
		require.ErrorIs(t, err, zklock.ErrInvalid)
		idle, err := slots.Scheduled(c, "/cron", "report", never{}, nothing, nil)
		require.NoError(t, err)
		require.True(t, idle.Next(time.Now()).IsZero())
		idle.Run() // no time has come
	})
}

// A night without a quorum: no run is made up but the newest.
//
//zklock:promise P10.12
func TestAfterAnOutageTheNewestRunIsDoneOnce(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		var r runsByDue
		var waits []func()
		for i := range 3 {
			job, err := slots.Scheduled(connect(t, srv, fmt.Sprint("host ", i), term), "/cron", "report", slots.Every(5*time.Minute), r.work(time.Second), &slots.JobOptions{Context: ctx, OnError: r.failed})
			require.NoError(t, err)
			waits = append(waits, cronOf(ctx, job, 0))
		}
		time.Sleep(12 * time.Minute)
		require.Equal(t, 2, r.once(t))
		require.Empty(t, r.errors())
		srv.Member(0).Stop()
		srv.Member(1).Stop()
		down := time.Now()
		time.Sleep(8 * time.Hour)
		require.Equal(t, 2, r.once(t))
		missed := len(r.errors()) / 3
		require.InDelta(t, 8*12, missed, 2)
		for _, err := range r.errors() {
			require.ErrorIs(t, err, slots.ErrLate)
		}
		srv.Member(0).Start()
		srv.Member(1).Start()
		time.Sleep(time.Minute)
		require.Equal(t, 3, r.once(t), "the newest")
		newest := r.order()[2]
		require.Equal(t, time.Now().UTC().Truncate(5*time.Minute), newest)
		require.Greater(t, newest.Sub(down), 7*time.Hour)
		time.Sleep(10 * time.Minute)
		require.Equal(t, 5, r.once(t))
		cancel()
		for _, wait := range waits {
			wait()
		}
		require.Len(t, r.errors(), 3*missed)
	})
}

// A host that has not noticed yet that the next run is due does not begin the earlier one after it.
//
//zklock:promise P10.12
func TestAnEarlierRunDoesNotBeginAfterALaterOne(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var r runsByDue
		job := func(name string) *slots.Job {
			j, err := slots.Scheduled(connect(t, srv, name, term), "/cron", "report", slots.Every(time.Hour), r.work(0), &slots.JobOptions{OnError: r.failed})
			require.NoError(t, err)
			return j
		}
		right, behind := job("right"), job("behind")
		early := behind.Next(time.Now())
		late := right.Next(early)
		time.Sleep(time.Until(late) - time.Minute)
		client := connect(t, srv, "ahead", term) // its clock is a minute ahead
		hold, err := client.Mutex(slots.Path("/cron", "report")).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, slots.Due(client, hold.Path(), late).Mark(t.Context(), hold))
		unlock(t, hold)
		behind.Run()
		require.Empty(t, r.order())
		require.Len(t, r.errors(), 1)
		require.ErrorIs(t, r.errors()[0], slots.ErrLate)
	})
}

// A run may take longer than a period. It does not begin twice, and runs that come due meanwhile are given up, except the newest.
//
//zklock:promise P10.12
func TestARunThatTakesLongDelaysTheNewestOnly(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		var r runsByDue
		var waits []func()
		for i := range 3 {
			job, err := slots.Scheduled(connect(t, srv, fmt.Sprint("host ", i), term), "/cron", "report", slots.Every(time.Minute), r.work(150*time.Second), &slots.JobOptions{Context: ctx, OnError: r.failed})
			require.NoError(t, err)
			waits = append(waits, cronOf(ctx, job, 0))
		}
		time.Sleep(10*time.Minute + time.Second)
		cancel()
		for _, wait := range waits {
			wait()
		}
		require.Equal(t, 4, r.once(t))
		for i := 1; i < len(r.order()); i++ {
			require.True(t, r.order()[i-1].Before(r.order()[i]))
		}
		for _, err := range r.errors() {
			require.ErrorIs(t, err, slots.ErrLate)
		}
	})
}

// The run of a host that dies, or whose function fails, is done by another host that waits.
//
//zklock:promise P10.11
func TestAScheduledRunWhoseHostDiesIsDoneByAnother(t *testing.T) {
	t.Parallel()
	for _, once := range []bool{false, true} {
		virtual(t, three, func(t *testing.T, srv *zktest.Server) {
			ctx, cancel := context.WithCancel(t.Context())
			var r runsByDue
			var waits []func()
			broken := errors.New("broken")
			for i := range 2 {
				name := fmt.Sprint("host ", i)
				job, err := slots.Scheduled(connect(t, srv, name, term), "/cron", "report", slots.Every(time.Hour), func(ctx context.Context, due time.Time) error {
					switch r.began(due) {
					case 1: // partitioned
						srv.Partition(name)
						<-ctx.Done()
						srv.HealClient(name)
						return context.Cause(ctx)
					case 3:
						return broken
					}
					return nil
				}, &slots.JobOptions{Context: ctx, AtMostOnce: once, OnError: r.failed})
				require.NoError(t, err)
				waits = append(waits, cronOf(ctx, job, 0))
			}
			time.Sleep(150 * time.Minute)
			cancel()
			for _, wait := range waits {
				wait()
			}
			if once {
				require.Len(t, r.order(), 2)
				require.Len(t, r.errors(), 1)
			} else {
				require.Len(t, r.order(), 4)
				require.Len(t, r.errors(), 2)
				require.ErrorIs(t, r.errors()[1], broken)
			}
			require.ErrorIs(t, r.errors()[0], zklock.ErrLost)
		})
	}
}

// Errors of runs are not dropped. A stop is none.
//
//zklock:promise P10.11
func TestErrorsOfScheduledRunsAreLogged(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		var log bytes.Buffer
		var mu sync.Mutex
		c := connectWith(t, srv, &zklock.Options{Label: "a", Logger: slog.New(slog.NewTextHandler(&lockedWriter{&mu, &log}, nil))})
		ctx, cancel := context.WithCancelCause(t.Context())
		results := make(chan error)
		job, err := slots.Scheduled(c, "/cron", "report", slots.Every(time.Minute), func(ctx context.Context, _ time.Time) error {
			select {
			case err := <-results:
				return err
			case <-ctx.Done():
				return fmt.Errorf("save: %w", context.Cause(ctx))
			}
		}, &slots.JobOptions{Context: ctx})
		require.NoError(t, err)
		wait := cronOf(ctx, job, 0)
		time.Sleep(61 * time.Second)
		results <- errors.New("disk is full")
		time.Sleep(time.Minute)
		cancel(nil)
		wait()
		job.Next(time.Now())
		time.Sleep(time.Minute)
		job.Run() // does not begin
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		require.Len(t, lines, 1, log.String())
		require.Contains(t, lines[0], "zklock: scheduled run failed")
		require.Contains(t, lines[0], "disk is full")
		require.Contains(t, lines[0], "/cron/report")
	})
}

// A panic of the function releases the lock and continues in Run.
//
//zklock:promise P10.11
func TestAScheduledRunThatPanicsLeavesItsSlotOpen(t *testing.T) {
	t.Parallel()
	virtual(t, three, func(t *testing.T, srv *zktest.Server) {
		c := connect(t, srv, "a", term)
		job, err := slots.Scheduled(c, "/cron", "report", slots.Every(time.Minute), func(context.Context, time.Time) error { panic("oh") }, nil)
		require.NoError(t, err)
		due := job.Next(time.Now())
		time.Sleep(time.Until(due))
		require.PanicsWithValue(t, "oh", job.Run)
		done, err := isDone(t, slots.Due(c, slots.Path("/cron", "report"), due))
		require.NoError(t, err)
		require.False(t, done)
		hold, err := c.Mutex(slots.Path("/cron", "report")).TryLock(t.Context())
		require.NoError(t, err)
		unlock(t, hold)
	})
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
