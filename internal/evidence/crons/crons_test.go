// SPDX-License-Identifier: Apache-2.0

package crons_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	netresearch "github.com/netresearch/go-cron"
	robfig "github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/slots"
	"github.com/zklock-go/zklock/zktest"
)

// libraries start a cron with one job, and return a function that stops it and waits for its runs.
var libraries = []struct {
	name  string
	parse func(spec string) (slots.Schedule, error)
	start func(job *slots.Job, late time.Duration) (stop func())
}{
	{"robfig/cron", parseRobfig, startRobfig},
	{"netresearch/go-cron", parseNetresearch, startNetresearch},
}

func parseRobfig(spec string) (slots.Schedule, error) {
	return robfig.NewParser(robfig.SecondOptional | robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month | robfig.Dow | robfig.Descriptor).Parse(spec)
}

// startRobfig starts each run that much late, as a chain of the program's may.
func startRobfig(job *slots.Job, late time.Duration) func() {
	c := robfig.New(robfig.WithLocation(time.UTC), robfig.WithChain(func(j robfig.Job) robfig.Job {
		return robfig.FuncJob(func() { time.Sleep(late); j.Run() })
	}))
	c.Schedule(job, job)
	c.Start()
	return func() { <-c.Stop().Done() }
}

func parseNetresearch(spec string) (slots.Schedule, error) {
	parser, err := netresearch.TryNewParser(netresearch.SecondOptional | netresearch.Minute | netresearch.Hour | netresearch.Dom | netresearch.Month | netresearch.Dow | netresearch.Descriptor)
	if err != nil {
		return nil, err
	}
	return parser.Parse(spec)
}

func startNetresearch(job *slots.Job, late time.Duration) func() {
	c := netresearch.New(netresearch.WithLocation(time.UTC))
	if _, err := c.ScheduleJob(job, netresearch.FuncJob(func() { time.Sleep(late); job.Run() })); err != nil {
		panic(err) // a test ends with it
	}
	c.Start()
	return func() { <-c.Stop().Done() }
}

func connect(t *testing.T, srv *zktest.Server, name string) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(name), Label: name})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// runs counts the runs of each due time, and collects errors.
type runs struct {
	mu   sync.Mutex
	due  map[time.Time]int // guarded by mu
	errs []error           // guarded by mu
}

func (r *runs) work(ctx context.Context, due time.Time) error {
	r.mu.Lock()
	if r.due == nil {
		r.due = map[time.Time]int{}
	}
	r.due[due.UTC()]++
	r.mu.Unlock()
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *runs) failed(_ time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// Hosts with both libraries, which started at different times and start runs late, do each run once.
//
//zklock:promise P10.11
func TestHostsWithAnyCronLibraryDoEachRunOnce(t *testing.T) {
	for spec, want := range map[string]int{"*/3 * * * * *": 200, "* * * * *": 10, "": 200} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			ctx, cancel := context.WithCancel(t.Context())
			var r runs
			var stops []func()
			for i := range 4 {
				library := libraries[i%2]
				schedule := slots.Every(3 * time.Second)
				if spec != "" {
					var err error
					schedule, err = library.parse(spec)
					require.NoError(t, err)
				}
				job, err := slots.Scheduled(connect(t, srv, fmt.Sprint("host ", i)), "/cron", "report", schedule, r.work, &slots.JobOptions{Context: ctx, OnError: r.failed})
				require.NoError(t, err)
				stops = append(stops, library.start(job, time.Duration(i)*200*time.Millisecond))
				time.Sleep(1234 * time.Millisecond)
			}
			time.Sleep(10 * time.Minute)
			cancel()
			for _, stop := range stops {
				stop()
			}
			assert.InDelta(t, want, len(r.due), 2)
			for due, n := range r.due {
				assert.Equal(t, 1, n, due)
			}
			assert.Empty(t, r.errs)
		})
	}
}

// "@every" counts from the start of each host. Each library's other schedules are accepted.
//
//zklock:promise P10.11
func TestSchedulesOfCronLibrariesThatDifferBetweenHostsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		client := connect(t, srv, "a")
		for _, library := range libraries {
			for range 20 {
				time.Sleep(777 * time.Millisecond)
				for _, spec := range []string{"@every 3s", "@every 1m30s", "@every 7h"} {
					schedule, err := library.parse(spec)
					require.NoError(t, err)
					_, err = slots.Scheduled(client, "/cron", "report", schedule, (&runs{}).work, nil)
					require.ErrorIs(t, err, zklock.ErrInvalid, "%s of %s", spec, library.name)
					require.ErrorContains(t, err, "slots.Every")
				}
				for _, spec := range []string{"@hourly", "@daily", "30 3 * * 1-5", "CRON_TZ=Europe/Berlin 30 2 * * *", "*/7 * * * *", "0 0 30 2 *"} {
					schedule, err := library.parse(spec)
					require.NoError(t, err)
					_, err = slots.Scheduled(client, "/cron", "report", schedule, (&runs{}).work, nil)
					require.NoError(t, err, "%s of %s", spec, library.name)
				}
			}
		}
	})
}

// After a night without a quorum, the newest run is done once with each library.
//
//zklock:promise P10.12
func TestAfterAnOutageCronLibrariesDoTheNewestRunOnce(t *testing.T) {
	for _, library := range libraries {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			ctx, cancel := context.WithCancel(t.Context())
			var r runs
			var stops []func()
			for i := range 3 {
				schedule, err := library.parse("*/5 * * * *")
				require.NoError(t, err)
				job, err := slots.Scheduled(connect(t, srv, fmt.Sprint("host ", i)), "/cron", "report", schedule, r.work, &slots.JobOptions{Context: ctx, OnError: r.failed})
				require.NoError(t, err)
				stops = append(stops, library.start(job, 0))
			}
			srv.Member(0).Stop()
			time.Sleep(8*time.Hour + time.Minute)
			require.Empty(t, r.due)
			srv.Member(0).Start()
			time.Sleep(time.Minute)
			require.Equal(t, map[time.Time]int{time.Now().UTC().Truncate(5 * time.Minute): 1}, r.due)
			for _, err := range r.errs {
				require.ErrorIs(t, err, slots.ErrLate)
			}
			cancel()
			for _, stop := range stops {
				stop()
			}
		})
	}
}
