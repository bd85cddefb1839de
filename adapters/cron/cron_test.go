// SPDX-License-Identifier: Apache-2.0

package zkcron_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	zkcron "github.com/zklock-go/zklock/adapters/cron"
	"github.com/zklock-go/zklock/zktest"
)

func connect(t *testing.T, srv *zktest.Server, name string) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(name), Label: name})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// runs counts the runs of each minute, and collects errors.
type runs struct {
	mu     sync.Mutex
	times  map[string]int // guarded by mu
	errors []error        // guarded by mu
}

func (r *runs) job(work time.Duration, result error) func(context.Context) error {
	return func(ctx context.Context) error {
		r.mu.Lock()
		r.times[time.Now().Truncate(time.Minute).Format("15:04")]++
		r.mu.Unlock()
		select {
		case <-time.After(work):
			return result
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *runs) failed(_ string, _ time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, err)
}

func newRuns() *runs { return &runs{times: map[string]int{}} }

// host runs a job every minute with its own client.
func host(t *testing.T, srv *zktest.Server, name string, opts *zkcron.Options, job func(context.Context) error) {
	every, err := cron.ParseStandard("* * * * *")
	require.NoError(t, err)
	c := cron.New(cron.WithLocation(time.UTC))
	zkcron.New(connect(t, srv, name), "/cron", opts).Schedule(c, "report", every, job)
	c.Start()
	t.Cleanup(func() { <-c.Stop().Done() })
}

//zklock:promise P10.10
func TestEachRunIsDoneOnceInAFleet(t *testing.T) {
	for _, once := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			r := newRuns()
			for i := range 3 {
				host(t, srv, fmt.Sprint("host ", i), &zkcron.Options{AtMostOnce: once, OnError: r.failed}, r.job(time.Second, nil))
			}
			time.Sleep(10*time.Minute + 30*time.Second)
			r.mu.Lock()
			defer r.mu.Unlock()
			require.Len(t, r.times, 10)
			for at, n := range r.times {
				assert.Equal(t, 1, n, at)
			}
			assert.Empty(t, r.errors)
		})
	}
}

// Schedulers that start a run late find that others have done it long ago.
//
//zklock:promise P10.10
func TestARunThatStartsLateIsNotDoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		r := newRuns()
		host(t, srv, "a", &zkcron.Options{OnError: r.failed}, r.job(0, nil))
		for _, late := range []time.Duration{time.Second, 40 * time.Second, 59 * time.Second} {
			every, err := cron.ParseStandard("* * * * *")
			require.NoError(t, err)
			c := cron.New(cron.WithLocation(time.UTC), cron.WithChain(func(j cron.Job) cron.Job {
				return cron.FuncJob(func() { time.Sleep(late); j.Run() })
			}))
			zkcron.New(connect(t, srv, fmt.Sprint(late)), "/cron", &zkcron.Options{OnError: r.failed}).Schedule(c, "report", every, r.job(0, nil))
			c.Start()
			t.Cleanup(func() { <-c.Stop().Done() })
		}
		time.Sleep(10*time.Minute + 30*time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Len(t, r.times, 10)
		for at, n := range r.times {
			assert.Equal(t, 1, n, at)
		}
		assert.Empty(t, r.errors)
	})
}

func TestARunThatFailsIsDoneByAnotherHost(t *testing.T) {
	for _, once := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			r := newRuns()
			broken := errors.New("broken")
			host(t, srv, "a", &zkcron.Options{AtMostOnce: once, OnError: r.failed}, r.job(0, broken))
			synctest.Wait()
			host(t, srv, "b", &zkcron.Options{AtMostOnce: once, OnError: r.failed}, r.job(0, broken))
			time.Sleep(time.Minute)
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			want := 2
			if once {
				want = 1
			}
			for at, n := range r.times {
				assert.Equal(t, want, n, at)
			}
			require.Len(t, r.errors, want)
			assert.ErrorIs(t, r.errors[0], broken)
		})
	}
}

func TestAHostThatDiesLeavesItsRunToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var started atomic.Int32
		var finished atomic.Int32
		job := func(name string) func(context.Context) error {
			return func(ctx context.Context) error {
				if started.Add(1) == 1 {
					srv.Partition(name) // the first host
					<-ctx.Done()
					return context.Cause(ctx)
				}
				finished.Add(1)
				return nil
			}
		}
		host(t, srv, "a", nil, job("a"))
		host(t, srv, "b", nil, job("b"))
		time.Sleep(time.Minute + 30*time.Second)
		assert.EqualValues(t, 1, finished.Load())
		srv.HealClient("a")
		srv.HealClient("b")
	})
}

func TestNamesOfJobsCanBeAnyText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		every, err := cron.ParseStandard("* * * * *")
		require.NoError(t, err)
		c := cron.New(cron.WithLocation(time.UTC))
		names := []string{"eu/report", "eu%2Freport", "report.zklock-slots", "report%2Ezklock-slots", "report.zklock-delay", "report.zklock-permits", "report-lock-0000000001", "report-lock-000000000%31", ".", "..", "a b"}
		var ran atomic.Int32
		fleet := zkcron.New(connect(t, srv, "a"), "/cron", &zkcron.Options{OnError: func(name string, _ time.Time, err error) { t.Error(name, err) }})
		for _, name := range names {
			fleet.Schedule(c, name, every, func(context.Context) error { ran.Add(1); return nil })
		}
		c.Start()
		time.Sleep(time.Minute + time.Second)
		<-c.Stop().Done()
		assert.EqualValues(t, len(names), ran.Load())
	})
}
