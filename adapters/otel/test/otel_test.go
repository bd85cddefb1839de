// SPDX-License-Identifier: Apache-2.0

package zkotel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock-go/zklock"
	zkotel "github.com/zklock-go/zklock/adapters/otel"
	"github.com/zklock-go/zklock/internal/evidence/everystep"
	"github.com/zklock-go/zklock/zktest"
)

// bench is a client whose locks are measured.
type bench struct {
	srv    *zktest.Server
	client *zklock.Client
	reader *sdkmetric.ManualReader
}

func inVirtualTime(t *testing.T, opts *zkotel.Options, fn func(t *testing.T, b bench)) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		observer, err := zkotel.NewObserver(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), opts)
		require.NoError(t, err)
		srv := zktest.Start(t)
		client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom("client"), Observer: observer, FailStop: func(err error) { t.Error(err) }})
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		fn(t, bench{srv, client, reader})
	})
}

// collect returns all that the observer has measured so far, by name.
func (b bench) collect(t *testing.T) map[string]metricdata.Aggregation { return collect(t, b.reader) }

func collect(t *testing.T, reader *sdkmetric.ManualReader) map[string]metricdata.Aggregation {
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	found := map[string]metricdata.Aggregation{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			found[m.Name] = m.Data
		}
	}
	return found
}

// points says how often a histogram was recorded and the sum, by one attribute's values.
func points(t *testing.T, data metricdata.Aggregation, key string) map[string]metricdata.HistogramDataPoint[float64] {
	h, ok := data.(metricdata.Histogram[float64])
	require.True(t, ok, "%T", data)
	by := map[string]metricdata.HistogramDataPoint[float64]{}
	for _, p := range h.DataPoints {
		v, _ := p.Attributes.Value(attribute.Key(key))
		by[v.AsString()] = p
	}
	return by
}

// oldest returns the age of the oldest hold of the only recipe that was used.
func oldest(t *testing.T, m map[string]metricdata.Aggregation) float64 {
	gauge, ok := m["zklock.hold.oldest"].(metricdata.Gauge[float64])
	require.True(t, ok)
	require.Len(t, gauge.DataPoints, 1)
	return gauge.DataPoints[0].Value
}

// count returns the sum of a counter that has one data point.
func count(t *testing.T, m map[string]metricdata.Aggregation, name string) int64 {
	sum, ok := m[name].(metricdata.Sum[int64])
	require.True(t, ok, name)
	require.Len(t, sum.DataPoints, 1, name)
	return sum.DataPoints[0].Value
}

func TestWaitingAndHoldingAreMeasured(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		first, err := b.client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		go func() {
			time.Sleep(3 * time.Second)
			first.Unlock(context.Background())
		}()
		second, err := b.client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		assert.InDelta(t, 5, oldest(t, b.collect(t)), 0.01)
		assert.EqualValues(t, 1, count(t, b.collect(t), "zklock.hold.count"))
		require.NoError(t, second.Unlock(t.Context()))
		assert.Zero(t, count(t, b.collect(t), "zklock.hold.count"))

		m := b.collect(t)
		assert.Zero(t, oldest(t, m))
		acquired := points(t, m["zklock.acquire.duration"], "zklock.recipe")["mutex"]
		assert.EqualValues(t, 2, acquired.Count)
		assert.InDelta(t, 3, acquired.Sum, 0.01)
		held := points(t, m["zklock.hold.duration"], "zklock.outcome")
		assert.EqualValues(t, 2, held["released"].Count)
		assert.InDelta(t, 8, held["released"].Sum, 0.01)
		assert.Zero(t, held["lost"].Count)
		ahead := m["zklock.acquire.ahead"].(metricdata.Histogram[int64]).DataPoints[0]
		assert.EqualValues(t, 2, ahead.Count)
		assert.EqualValues(t, 1, ahead.Sum)
		released := held["released"].Attributes
		_, told := released.Value("zklock.lock")
		assert.False(t, told, "locks are not told apart unless asked for")
	})
}

func TestLossesAndMissedHeartbeatsAreCounted(t *testing.T) {
	opts := &zkotel.Options{Lock: func(path string) string { return path[:2] }}
	inVirtualTime(t, opts, func(t *testing.T, b bench) {
		hold, err := b.client.Mutex("/l").Lock(t.Context())
		require.NoError(t, err)
		b.srv.Partition("client")
		<-hold.Context().Done()
		b.srv.HealClient("client")
		synctest.Wait()
		m := b.collect(t)
		held := points(t, m["zklock.hold.duration"], "zklock.lock")["/l"]
		assert.EqualValues(t, 1, held.Count)
		for _, name := range []string{"zklock.lost", "zklock.heartbeat.missed"} {
			sum, ok := m[name].(metricdata.Sum[int64])
			require.True(t, ok, name)
			require.Len(t, sum.DataPoints, 1, name)
			assert.Positive(t, sum.DataPoints[0].Value, name)
			of := sum.DataPoints[0].Attributes
			assert.Equal(t, name == "zklock.lost", of.HasValue("zklock.recipe"), "a heartbeat is for whatever the client holds")
			assert.Equal(t, name == "zklock.lost", of.HasValue("error.type"))
		}
		assert.EqualValues(t, 1, points(t, m["zklock.hold.duration"], "error.type")["lost"].Count)
		assert.Zero(t, count(t, m, "zklock.hold.count"))
	})
}

// An exporter of OTLP drops all that it exports at a time for one text that is not UTF-8.
func TestEveryTextIsUTF8(t *testing.T) {
	opts := &zkotel.Options{Lock: func(path string) string { return path[:4] }}
	inVirtualTime(t, opts, func(t *testing.T, b bench) {
		require.NoError(t, b.client.Mutex("/abü").Do(t.Context(), func(context.Context) error { return nil }))
		for name := range points(t, b.collect(t)["zklock.hold.duration"], "zklock.lock") {
			assert.Equal(t, "/ab\uFFFD", name)
		}

		spans := tracetest.NewSpanRecorder()
		_, err := zkotel.Lock(t.Context(), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), b.client.Mutex("/l\xff"))
		require.ErrorIs(t, err, zklock.ErrInvalid)
		failed := spans.Ended()[0]
		assert.Contains(t, failed.Attributes(), attribute.String("zklock.path", "/l\uFFFD"))
		assert.True(t, utf8.ValidString(failed.Status().Description))
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
		_, err = b.client.Mutex("/l").Lock(hold.Context())
		require.ErrorIs(t, err, zklock.ErrDeadlock)
		_, err = b.client.Mutex("/l").TryLock(t.Context())
		require.ErrorIs(t, err, zklock.ErrLocked)
		require.NoError(t, b.client.Close())

		m := b.collect(t)
		byOutcome := points(t, m["zklock.acquire.duration"], "zklock.outcome")
		assert.EqualValues(t, 1, byOutcome["acquired"].Count)
		assert.InDelta(t, 1, byOutcome["given_up"].Sum, 0.01)
		byType := points(t, m["zklock.acquire.duration"], "error.type")
		for _, name := range []string{"timeout", "deadlock", "locked"} {
			assert.EqualValues(t, 1, byType[name].Count, name)
			of := byType[name].Attributes
			recipe, _ := of.Value("zklock.recipe")
			assert.Equal(t, "mutex", recipe.AsString(), name)
		}
		assert.EqualValues(t, 1, points(t, m["zklock.hold.duration"], "zklock.outcome")["ended"].Count)
	})
}

func TestTheMeterHasAScopeAndASchema(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		require.NoError(t, b.client.Mutex("/l").Do(t.Context(), func(context.Context) error { return nil }))
		var all metricdata.ResourceMetrics
		require.NoError(t, b.reader.Collect(t.Context(), &all))
		require.Len(t, all.ScopeMetrics, 1)
		scope := all.ScopeMetrics[0].Scope
		assert.Equal(t, "github.com/zklock-go/zklock/adapters/otel", scope.Name)
		assert.Regexp(t, `^https://opentelemetry\.io/schemas/`, scope.SchemaURL)
	})
}

func TestAnAcquireAndAHoldAreSpans(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		spans := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		ctx, caller := provider.Tracer("test").Start(t.Context(), "work")
		hold, err := zkotel.Lock(ctx, provider, b.client.Mutex("/l"))
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = zkotel.Lock(short, provider, b.client.Mutex("/l"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, b.srv.DeleteNode(hold.Node()))
		<-hold.Context().Done()
		synctest.Wait()
		caller.End()

		ended := spans.Ended()
		require.Len(t, ended, 4)
		taken, failed, lost, work := ended[0], ended[1], ended[2], ended[3]
		of := []attribute.KeyValue{attribute.String("zklock.path", "/l")}
		held := append(of[:1:1], attribute.String("zklock.recipe", "mutex"), attribute.String("zklock.node", hold.Node()), attribute.Int64("zklock.token", hold.Token()))
		assert.ElementsMatch(t, held, taken.Attributes())
		assert.ElementsMatch(t, append(of[:1:1], attribute.String("error.type", "timeout")), failed.Attributes())
		assert.ElementsMatch(t, append(held[:4:4], attribute.String("error.type", "lost")), lost.Attributes())
		for span, status := range map[sdktrace.ReadOnlySpan]codes.Code{taken: codes.Unset, failed: codes.Error, lost: codes.Error} {
			assert.Equal(t, work.SpanContext().SpanID(), span.Parent().SpanID())
			assert.Equal(t, trace.SpanKindInternal, span.SpanKind())
			assert.Equal(t, status, span.Status().Code, span.Name())
			assert.Empty(t, span.Events())
		}
		assert.Equal(t, "zklock acquire", taken.Name())
		assert.Equal(t, "zklock hold", lost.Name())
		assert.NotEmpty(t, failed.InstrumentationScope().SchemaURL)
		assert.Equal(t, time.Second, failed.EndTime().Sub(failed.StartTime()))
		assert.Equal(t, time.Second, lost.EndTime().Sub(lost.StartTime()))
		assert.Empty(t, work.Events())
	})
}

func TestAHoldThatIsReleasedIsASpanWithoutAnError(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		spans := tracetest.NewSpanRecorder()
		hold, err := zkotel.Lock(t.Context(), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), b.client.Semaphore("/s", 3).Permits(2))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		require.NoError(t, hold.Unlock(t.Context()))
		synctest.Wait()
		require.Len(t, spans.Ended(), 2)
		span := spans.Ended()[1]
		assert.Equal(t, codes.Unset, span.Status().Code)
		assert.Equal(t, 5*time.Second, span.EndTime().Sub(span.StartTime()))
		assert.Contains(t, span.Attributes(), attribute.String("zklock.recipe", "semaphore"))
	})
}

func TestAClientIsMeasured(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		reader := sdkmetric.NewManualReader()
		registration, err := zkotel.RegisterClient(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), b.client, attribute.String("name", "a"))
		require.NoError(t, err)
		measure := func() (waiters, connected int64, left float64) {
			m := collect(t, reader)
			g := m["zklock.client.connected"].(metricdata.Gauge[int64]).DataPoints
			l := m["zklock.lease.remaining"].(metricdata.Gauge[float64]).DataPoints
			require.Len(t, g, 1)
			require.True(t, g[0].Attributes.HasValue("name"))
			return count(t, m, "zklock.waiter.count"), g[0].Value, l[0].Value
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
		waiters, connected, left := measure()
		assert.EqualValues(t, 1, waiters)
		assert.EqualValues(t, 1, connected)
		assert.InDelta(t, hold.Remaining().Seconds(), left, 0.01)
		cancel()
		require.ErrorIs(t, <-waited, context.Canceled)
		b.srv.Partition("client")
		<-hold.Context().Done()
		time.Sleep(b.client.SessionTimeout())
		waiters, connected, left = measure()
		assert.Zero(t, waiters)
		assert.Zero(t, connected)
		assert.Zero(t, left)
		b.srv.HealClient("client")
		require.NoError(t, registration.Unregister())
		assert.Empty(t, collect(t, reader))
	})
}

// TestTheNumberOfHoldsIsCorrectAfterAnyFault breaks each request of a lock, from its wait to its release.
func TestTheNumberOfHoldsIsCorrectAfterAnyFault(t *testing.T) {
	everystep.Through(t, 3, func(t *testing.T, srv *zktest.Server, over func()) {
		reader := sdkmetric.NewManualReader()
		observer, err := zkotel.NewObserver(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), nil)
		require.NoError(t, err)
		client, err := zklock.Connect(t.Context(), srv.Addrs(), &zklock.Options{Dialer: srv.DialFrom(everystep.Client), Observer: observer})
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		taken := uint64(0)
		for range 2 {
			hold, err := client.Mutex("/l").Lock(t.Context())
			require.NoError(t, err)
			taken++
			_ = hold.Unlock(t.Context())
		}
		over()
		time.Sleep(2 * time.Minute) // until the session of a client that was cut off has ended
		m := bench{srv, client, reader}.collect(t)
		assert.Equal(t, taken, points(t, m["zklock.acquire.duration"], "zklock.outcome")["acquired"].Count)
		ended := uint64(0)
		for _, p := range points(t, m["zklock.hold.duration"], "zklock.outcome") {
			ended += p.Count
		}
		assert.Equal(t, taken, ended)
		assert.Zero(t, oldest(t, m))
		assert.Zero(t, count(t, m, "zklock.hold.count"))
	})
}
