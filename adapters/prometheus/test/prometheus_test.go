// SPDX-License-Identifier: Apache-2.0

package zkprometheus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/zklock-go/zklock"
	zkprometheus "github.com/zklock-go/zklock/adapters/prometheus"
	"github.com/zklock-go/zklock/internal/evidence/everystep"
	"github.com/zklock-go/zklock/observe"
	"github.com/zklock-go/zklock/zktest"
)

// bench is a client whose locks are measured.
type bench struct {
	srv       *zktest.Server
	client    *zklock.Client
	collector *zkprometheus.Collector
}

func inVirtualTime(t *testing.T, opts *zkprometheus.Options, fn func(t *testing.T, b bench)) {
	synctest.Test(t, func(t *testing.T) {
		collector, err := zkprometheus.NewCollector(opts)
		require.NoError(t, err)
		srv := zktest.Start(t)
		client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("client"), Observer: collector, FailStop: func(err error) { t.Error(err) }})
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		fn(t, bench{srv, client, collector})
	})
}

// expect compares what was collected under some names with the text of a scrape.
func (b bench) expect(t *testing.T, text string, names ...string) {
	t.Helper()
	assert.NoError(t, testutil.CollectAndCompare(b.collector, strings.NewReader(text), names...))
}

// histogram returns what was collected under a name with that outcome.
func (b bench) histogram(t *testing.T, name, outcome string) *dto.Histogram {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(b.collector))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == outcome }) {
				return m.GetHistogram()
			}
		}
	}
	return &dto.Histogram{}
}

func TestWaitsAndHoldTimesAreMeasured(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		first, err := b.client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		time.AfterFunc(3*time.Second, func() { first.Unlock(context.Background()) })
		second, err := b.client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		b.expect(t, "# HELP zklock_holds Locks held.\n# TYPE zklock_holds gauge\nzklock_holds{recipe=\"mutex\"} 1\n", "zklock_holds")
		b.expect(t, "# HELP zklock_oldest_hold_seconds Time that the oldest hold has lasted, or 0 if there is none.\n# TYPE zklock_oldest_hold_seconds gauge\nzklock_oldest_hold_seconds{recipe=\"mutex\"} 5\n", "zklock_oldest_hold_seconds")
		require.NoError(t, second.Unlock(t.Context()))
		b.expect(t, "# HELP zklock_holds Locks held.\n# TYPE zklock_holds gauge\nzklock_holds{recipe=\"mutex\"} 0\n", "zklock_holds")
		b.expect(t, "# HELP zklock_oldest_hold_seconds Time that the oldest hold has lasted, or 0 if there is none.\n# TYPE zklock_oldest_hold_seconds gauge\nzklock_oldest_hold_seconds{recipe=\"mutex\"} 0\n", "zklock_oldest_hold_seconds")

		acquired := b.histogram(t, "zklock_acquire_duration_seconds", "acquired")
		assert.EqualValues(t, 2, acquired.GetSampleCount())
		assert.InDelta(t, 3, acquired.GetSampleSum(), 0.01)
		released := b.histogram(t, "zklock_hold_duration_seconds", "released")
		assert.EqualValues(t, 2, released.GetSampleCount())
		assert.InDelta(t, 8, released.GetSampleSum(), 0.01)
		ahead := b.histogram(t, "zklock_acquire_ahead", "mutex")
		assert.EqualValues(t, 2, ahead.GetSampleCount())
		assert.EqualValues(t, 1, ahead.GetSampleSum())
	})
}

func TestAttemptsThatFailAreMeasured(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		hold, err := b.client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = b.client.Mutex("/l").Lock(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = b.client.Mutex("/l").TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		_, err = b.client.Mutex("/l").Lock(hold.Context())
		require.ErrorIs(t, err, zklock.ErrDeadlock)

		assert.InDelta(t, 1, b.histogram(t, "zklock_acquire_duration_seconds", "given_up").GetSampleSum(), 0.01)
		assert.EqualValues(t, 2, b.histogram(t, "zklock_acquire_duration_seconds", "refused").GetSampleCount())
		b.expect(t, `
# HELP zklock_refused_total Attempts that were refused.
# TYPE zklock_refused_total counter
zklock_refused_total{reason="deadlock",recipe="mutex"} 1
zklock_refused_total{reason="locked",recipe="mutex"} 1
`, "zklock_refused_total")
		b.expect(t, `
# HELP zklock_given_up_total Attempts that ended because their context ended or the client was closed.
# TYPE zklock_given_up_total counter
zklock_given_up_total{reason="timeout",recipe="mutex"} 1
`, "zklock_given_up_total")
	})
}

func TestLossesAndMissedHeartbeatsAreCounted(t *testing.T) {
	opts := &zkprometheus.Options{Lock: func(path string) string { return path[:2] }, Labels: prometheus.Labels{"client": "a"}}
	inVirtualTime(t, opts, func(t *testing.T, b bench) {
		const lost = "# HELP zklock_lost_total Locks lost while they were held.\n# TYPE zklock_lost_total counter\n"
		hold, err := b.client.Mutex("/longer").Lock(t.Context())
		require.NoError(t, err)
		b.expect(t, lost+`zklock_lost_total{client="a",lock="/l",recipe="mutex"} 0`+"\n", "zklock_lost_total")
		b.srv.Partition("client")
		<-hold.Context().Done()
		b.srv.HealClient("client")
		synctest.Wait()
		b.expect(t, lost+`zklock_lost_total{client="a",lock="/l",recipe="mutex"} 1`+"\n", "zklock_lost_total")
		assert.EqualValues(t, 1, b.histogram(t, "zklock_hold_duration_seconds", "lost").GetSampleCount())
		assert.Equal(t, 1, testutil.CollectAndCount(b.collector, "zklock_heartbeats_missed_total"))
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(b.collector)
		families, err := registry.Gather()
		require.NoError(t, err)
		i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "zklock_heartbeats_missed_total" })
		assert.Positive(t, families[i].GetMetric()[0].GetCounter().GetValue())
	})
}

func TestAHoldThatEndsWithItsClientIsNotALoss(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		_, err := b.client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.client.Close())
		assert.EqualValues(t, 1, b.histogram(t, "zklock_hold_duration_seconds", "ended").GetSampleCount())
		b.expect(t, "# HELP zklock_lost_total Locks lost while they were held.\n# TYPE zklock_lost_total counter\nzklock_lost_total{recipe=\"mutex\"} 0\n", "zklock_lost_total")
	})
}

func TestTheMetricsAreNamedAsPrometheusRecommends(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		require.NoError(t, b.client.Mutex("/l").Do(t.Context(), func(context.Context) error { return nil }))
		client, err := zkprometheus.NewClientCollector(b.client, nil)
		require.NoError(t, err)
		for _, c := range []prometheus.Collector{b.collector, client} {
			problems, err := testutil.CollectAndLint(c)
			require.NoError(t, err)
			assert.Empty(t, problems)
		}
	})
}

func TestAClientIsMeasured(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		c, err := zkprometheus.NewClientCollector(b.client, prometheus.Labels{"client": "a"})
		require.NoError(t, err)
		expect := func(waiters, connected int, lease time.Duration) {
			t.Helper()
			assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(fmt.Sprintf(`
# HELP zklock_connected Whether the client is connected to a server: 1 or 0.
# TYPE zklock_connected gauge
zklock_connected{client="a"} %d
# HELP zklock_lease_remaining_seconds Time for which the client's holds are guaranteed from now on.
# TYPE zklock_lease_remaining_seconds gauge
zklock_lease_remaining_seconds{client="a"} %v
# HELP zklock_waiters Calls that are acquiring a lock.
# TYPE zklock_waiters gauge
zklock_waiters{client="a"} %d
`, connected, lease.Seconds(), waiters))))
		}
		hold, err := b.client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error)
		go func() { // ends with ctx
			_, err := b.client.Mutex("/l").Lock(ctx)
			waited <- err
		}()
		time.Sleep(time.Second)
		expect(1, 1, hold.Remaining())
		cancel()
		require.ErrorIs(t, <-waited, context.Canceled)
		expect(0, 1, hold.Remaining())
		b.srv.Partition("client")
		<-hold.Context().Done()
		time.Sleep(b.client.SessionTimeout())
		expect(0, 0, 0)
		b.srv.HealClient("client")
	})
}

// described returns the names of all metrics.
func described(t *testing.T) map[string]bool {
	ch := make(chan *prometheus.Desc, 100)
	collector, err := zkprometheus.NewCollector(nil)
	require.NoError(t, err)
	client, err := zkprometheus.NewClientCollector(nil, nil)
	require.NoError(t, err)
	collector.Describe(ch)
	client.Describe(ch)
	close(ch)
	names := map[string]bool{}
	for d := range ch {
		names[regexp.MustCompile(`zklock_\w+`).FindString(d.String())] = true
	}
	return names
}

func TestTheDashboardAndTheAlertsUseExistingMetrics(t *testing.T) {
	names := described(t)
	require.Len(t, names, 13)
	for file, decode := range map[string]func([]byte, any) error{"../dashboard.json": json.Unmarshal, "../alerts.yaml": yaml.Unmarshal} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var content map[string]any
		require.NoError(t, decode(text, &content), file)
		for _, found := range regexp.MustCompile(`zklock_\w+`).FindAllString(string(text), -1) {
			name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(found, "_bucket"), "_count"), "_sum")
			assert.True(t, names[name], "%s: %s", file, found)
		}
	}
}

// Each alert names a section of the documents that says what to do.
func TestEveryAlertHasARunbook(t *testing.T) {
	text, err := os.ReadFile("../alerts.yaml")
	require.NoError(t, err)
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &alerts))
	require.NotEmpty(t, alerts.Groups[0].Rules)
	for _, rule := range alerts.Groups[0].Rules {
		page, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
		file, ok := strings.CutPrefix(page, "https://github.com/zklock-go/zklock/blob/main/")
		require.True(t, ok, rule.Alert)
		content, err := os.ReadFile("../../../" + file)
		require.NoError(t, err, rule.Alert)
		heading := regexp.MustCompile(`(?im)^#+ ` + strings.ReplaceAll(regexp.QuoteMeta(anchor), "-", "[ -]") + `$`)
		assert.Regexp(t, heading, string(content), rule.Alert)
	}
}

// Prometheus 3 writes all bounds of buckets as floats, whatever a program has served.
func TestTheAlertsFindTheirBucketsInEveryPrometheus(t *testing.T) {
	text, err := os.ReadFile("../alerts.yaml")
	require.NoError(t, err)
	found := regexp.MustCompile(`\ble(=~?)"([^"]*)"`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, found)
	for _, f := range found {
		want := regexp.MustCompile("^(?:" + f[2] + ")$")
		if f[1] == "=" {
			want = regexp.MustCompile("^" + regexp.QuoteMeta(f[2]) + "$")
		}
		for _, bound := range []string{"60", "60.0"} {
			assert.Regexp(t, want, bound)
		}
		assert.NotRegexp(t, want, "6000")
	}
}

// A client calls its observer in the middle of its work: no label that a program makes up may end that.
func TestNoLabelPanics(t *testing.T) {
	name := ""
	collector, err := zkprometheus.NewCollector(&zkprometheus.Options{Lock: func(string) string { return name }})
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(collector))
	for _, name = range []string{"", "\xff", "a\xffb", "\x00", "{lock=\"x\"}", strings.Repeat("x", 1<<16)} {
		for kind := observe.Kind(-1); kind <= observe.ExpiredEarly+1; kind++ {
			collector.Observe(observe.Event{Kind: kind, Recipe: "mutex", Path: "/l"})
		}
		_, err := registry.Gather()
		require.NoError(t, err, "%q", name)
	}
	for _, labels := range []prometheus.Labels{
		{"recipe": "x"}, {"lock": "x"}, {"outcome": "x"}, {"reason": "x"}, {"le": "1"}, {"": "x"}, {"__x": "y"}, {"a": "\xff"}, {"\xff": "a"},
	} {
		_, err := zkprometheus.NewCollector(&zkprometheus.Options{Labels: labels})
		require.ErrorIs(t, err, zklock.ErrInvalid, "%q", labels)
	}
}

// TestTheNumberOfHoldsIsCorrectAfterAnyFault breaks each request of a lock, from its wait to its release.
func TestTheNumberOfHoldsIsCorrectAfterAnyFault(t *testing.T) {
	everystep.Through(t, 3, func(t *testing.T, srv *zktest.Server, over func()) {
		collector, err := zkprometheus.NewCollector(nil)
		require.NoError(t, err)
		client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(everystep.Client), Observer: collector})
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		b := bench{srv, client, collector}
		taken := uint64(0)
		for range 2 {
			hold, err := client.Mutex("/l").Lock(t.Context())
			require.NoError(t, err)
			taken++
			_ = hold.Unlock(t.Context())
		}
		over()
		time.Sleep(2 * time.Minute) // until the session of a client that was cut off has ended
		assert.Equal(t, taken, b.histogram(t, "zklock_acquire_duration_seconds", "acquired").GetSampleCount())
		ended := uint64(0)
		for _, outcome := range []string{"released", "lost", "ended"} {
			ended += b.histogram(t, "zklock_hold_duration_seconds", outcome).GetSampleCount()
		}
		assert.Equal(t, taken, ended)
		b.expect(t, "# HELP zklock_holds Locks held.\n# TYPE zklock_holds gauge\nzklock_holds{recipe=\"mutex\"} 0\n", "zklock_holds")
		b.expect(t, "# HELP zklock_oldest_hold_seconds Time that the oldest hold has lasted, or 0 if there is none.\n# TYPE zklock_oldest_hold_seconds gauge\nzklock_oldest_hold_seconds{recipe=\"mutex\"} 0\n", "zklock_oldest_hold_seconds")
	})
}
