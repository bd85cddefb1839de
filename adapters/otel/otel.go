// SPDX-License-Identifier: Apache-2.0

// Package zkotel instruments zklock with OpenTelemetry. It provides an Observer with metrics of locks,
// metrics of a client, and a function that acquires a lock inside a trace.
package zkotel

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
)

// scope is the name of the instrumentation scope: this module.
const scope = "github.com/zklock-go/zklock/adapters/otel"

// version returns this module's version from the program's build information.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == scope {
			return m.Version
		}
	}
	return ""
}

// Options configure an Observer. Nil means the defaults.
type Options struct {
	// Lock returns the name of a lock in metrics, given its path. Use few names for many
	// paths to keep the number of time series small. By default metrics do not distinguish
	// locks.
	Lock func(path string) string
}

// Observer measures a client's locks. Set it as zklock.Options.Observer.
//
//	zklock.acquire.duration  s    histogram, duration of an attempt to acquire a lock, with
//	                              zklock.outcome "acquired", "given_up" or "refused"
//	zklock.acquire.ahead          histogram, number of contenders ahead in the queue when the
//	                              node was created
//	zklock.hold.count             up-down counter, number of locks held now
//	zklock.hold.duration     s    histogram, with zklock.outcome "released", "lost" or "ended"
//	zklock.hold.oldest       s    gauge, how long the oldest hold has lasted, or 0
//	zklock.lost                   counter
//	zklock.heartbeat.missed       counter
//	zklock.session.expired_early  counter, see observe.ExpiredEarly
//
// Each has zklock.recipe, and zklock.lock if Options.Lock is set. Heartbeats and sessions
// have neither, because they are for all holds of a client. A failed attempt and a hold that was not
// released also have error.type: see observe.Reason.
type Observer struct {
	lock          func(path string) string
	acquire, hold metric.Float64Histogram
	ahead         metric.Int64Histogram
	holds         metric.Int64UpDownCounter
	lost, missed  metric.Int64Counter
	early         metric.Int64Counter
	oldest        observe.Oldest[attribute.Set]
}

var _ observe.Observer = (*Observer)(nil)

// NewObserver creates the instruments.
func NewObserver(provider metric.MeterProvider, opts *Options) (*Observer, error) {
	o := &Observer{}
	if opts != nil {
		o.lock = opts.Lock
	}
	m := meter(provider)
	var err [8]error
	// Hand-offs take a fraction of a millisecond, recovery from a crash ten seconds, a queue minutes.
	buckets := metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
	o.acquire, err[0] = m.Float64Histogram("zklock.acquire.duration", metric.WithUnit("s"), metric.WithDescription("Duration of an attempt to acquire a lock."), buckets)
	o.hold, err[1] = m.Float64Histogram("zklock.hold.duration", metric.WithUnit("s"), metric.WithDescription("Time that a lock was held."), buckets)
	o.ahead, err[2] = m.Int64Histogram("zklock.acquire.ahead", metric.WithUnit("{contender}"), metric.WithDescription("Number of contenders ahead in the queue when the node was created."),
		metric.WithExplicitBucketBoundaries(0, 1, 2, 5, 10, 25, 50, 100, 250, 1000))
	o.lost, err[3] = m.Int64Counter("zklock.lost", metric.WithUnit("{lock}"), metric.WithDescription("Locks lost while they were held."))
	o.missed, err[4] = m.Int64Counter("zklock.heartbeat.missed", metric.WithUnit("{heartbeat}"), metric.WithDescription("Heartbeats that were not answered by a quorum."))
	o.early, err[5] = m.Int64Counter("zklock.session.expired_early", metric.WithUnit("{session}"), metric.WithDescription("Sessions that the servers ended while the lease was valid: two clients may have held a lock."))
	_, err[6] = m.Float64ObservableGauge("zklock.hold.oldest", metric.WithUnit("s"), metric.WithDescription("Time that the oldest hold has lasted, or 0 if there is none."),
		metric.WithFloat64Callback(o.observeOldest))
	o.holds, err[7] = m.Int64UpDownCounter("zklock.hold.count", metric.WithUnit("{hold}"), metric.WithDescription("Locks held."))
	if err := errors.Join(err[:]...); err != nil {
		return nil, err
	}
	return o, nil
}

func meter(provider metric.MeterProvider) metric.Meter {
	return provider.Meter(scope, metric.WithInstrumentationVersion(version()), metric.WithSchemaURL(semconv.SchemaURL))
}

// RegisterClient adds metrics of a client. They have the given attributes, which distinguish the clients
// of a program. Unregister the registration after the client is closed.
//
//	zklock.waiter.count           up-down counter, number of calls that are acquiring a lock now
//	zklock.client.connected       gauge, 1 if the client is connected to a server, otherwise 0
//	zklock.lease.remaining   s    gauge, for how long the client's holds are guaranteed from now on
func RegisterClient(provider metric.MeterProvider, client *zklock.Client, attributes ...attribute.KeyValue) (metric.Registration, error) {
	m := meter(provider)
	waiters, waitersErr := m.Int64ObservableUpDownCounter("zklock.waiter.count", metric.WithUnit("{call}"), metric.WithDescription("Calls that are acquiring a lock."))
	connected, connectedErr := m.Int64ObservableGauge("zklock.client.connected", metric.WithDescription("Whether the client is connected to a server: 1 or 0."))
	lease, leaseErr := m.Float64ObservableGauge("zklock.lease.remaining", metric.WithUnit("s"), metric.WithDescription("Time for which the client's holds are guaranteed from now on."))
	if err := errors.Join(waitersErr, connectedErr, leaseErr); err != nil {
		return nil, err
	}
	of := metric.WithAttributes(attributes...)
	return m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		stats := client.Stats()
		to.ObserveInt64(waiters, int64(stats.Waiting), of)
		to.ObserveInt64(connected, zeroOrOne(stats.Connected), of)
		to.ObserveFloat64(lease, stats.Remaining.Seconds(), of)
		return nil
	}, waiters, connected, lease)
}

func zeroOrOne(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (o *Observer) observeOldest(_ context.Context, to metric.Float64Observer) error {
	for of, age := range o.oldest.Ages() {
		to.Observe(age.Seconds(), metric.WithAttributeSet(of))
	}
	return nil
}

// Observe implements observe.Observer.
func (o *Observer) Observe(e observe.Event) {
	ctx := context.Background()
	switch e.Kind {
	case observe.HeartbeatMissed:
		o.missed.Add(ctx, 1)
		return
	case observe.ExpiredEarly:
		o.early.Add(ctx, 1)
		return
	}
	of := o.attributes(e)
	attrs := metric.WithAttributeSet(of)
	o.oldest.Observe(of, e)
	outcome := metric.WithAttributes(outcomeKey.String(e.Kind.String()))
	switch e.Kind {
	case observe.Queued:
		o.ahead.Record(ctx, int64(e.Ahead), attrs)
	case observe.Acquired:
		o.acquire.Record(ctx, e.Elapsed.Seconds(), attrs, outcome)
		o.holds.Add(ctx, 1, attrs)
	case observe.GivenUp, observe.Refused:
		o.acquire.Record(ctx, e.Elapsed.Seconds(), attrs, outcome, metric.WithAttributes(errorType(e.Err)))
	case observe.Released:
		o.hold.Record(ctx, e.Elapsed.Seconds(), attrs, outcome)
		o.holds.Add(ctx, -1, attrs)
	case observe.Ended, observe.Lost:
		failed := metric.WithAttributes(errorType(e.Err))
		o.hold.Record(ctx, e.Elapsed.Seconds(), attrs, outcome, failed)
		o.holds.Add(ctx, -1, attrs)
		if e.Kind == observe.Lost {
			o.lost.Add(ctx, 1, attrs, failed)
		}
	}
}

const (
	recipeKey  = attribute.Key("zklock.recipe")
	outcomeKey = attribute.Key("zklock.outcome")
	pathKey    = attribute.Key("zklock.path")
)

// errorType returns the error.type attribute of a failed attempt, or of a hold that was not released.
func errorType(err error) attribute.KeyValue {
	if reason := observe.Reason(err); reason != "other" {
		return semconv.ErrorTypeKey.String(reason)
	}
	return semconv.ErrorTypeOther
}

func (o *Observer) attributes(e observe.Event) attribute.Set {
	kv := []attribute.KeyValue{recipeKey.String(e.Recipe)}
	if o.lock != nil && e.Path != "" {
		kv = append(kv, attribute.String("zklock.lock", plain(o.lock(e.Path))))
	}
	return attribute.NewSet(kv...)
}

// Lock acquires a lock like lock.Lock, inside a span "zklock acquire" that ends when the lock is held
// or the attempt has failed. A second span, "zklock hold", lasts as long as the hold. Both are
// children of the caller's span. Their kind is internal, because an acquire mostly waits for other
// clients and not for a server.
//
// The spans have the attribute zklock.path, and zklock.recipe, zklock.node and zklock.token if the lock
// is held. If the attempt failed, or the hold was lost, the
// status of the span is an error and error.type is the reason: see observe.Reason. As OpenTelemetry
// recommends since 2026, no span has an event for an error.
func Lock(ctx context.Context, provider trace.TracerProvider, lock zklock.Locker) (*zklock.Hold, error) {
	hold, _, err := acquire(ctx, provider, lock)
	return hold, err
}

// Do is zklock.Do with the spans of Lock. The context of fn has the span "zklock hold", so the spans
// of the work are its children.
func Do(ctx context.Context, provider trace.TracerProvider, lock zklock.Locker, fn func(ctx context.Context) error) error {
	hold, span, err := acquire(ctx, provider, lock)
	if err != nil {
		return err
	}
	return hold.Do(trace.ContextWithSpan(ctx, span), fn)
}

// Work returns fn inside a span "zklock hold", for the calls that acquire a lock by themselves: Election.Run,
// Slot.Do, shards.Run and Do of any lock. The span begins and ends with fn, and has the attributes of
// the hold that the context of fn belongs to, if there is one. If fn fails, or the hold is lost while
// it runs, the status of the span is an error.
//
//	err := election.Run(ctx, nil, zkotel.Work(provider, lead))
//	err := shards.Run(ctx, client, "/shards/mail", 16, func(ctx context.Context, shard int) error {
//		return zkotel.Work(provider, func(ctx context.Context) error { return send(ctx, shard) })(ctx)
//	})
func Work(provider trace.TracerProvider, fn func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		var of []attribute.KeyValue
		if hold := zklock.HoldOf(ctx); hold != nil {
			of = append(attributesOf(hold), pathKey.String(plain(hold.Path())))
		}
		ctx, span := tracerOf(provider).Start(ctx, "zklock hold", trace.WithAttributes(of...))
		defer span.End()
		err := fn(ctx)
		if cause := context.Cause(ctx); errors.Is(cause, zklock.ErrLost) {
			fail(span, cause)
		} else if err != nil {
			fail(span, err)
		}
		return err
	}
}

func tracerOf(provider trace.TracerProvider) trace.Tracer {
	return provider.Tracer(scope, trace.WithInstrumentationVersion(version()), trace.WithSchemaURL(semconv.SchemaURL))
}

// attributesOf returns the attributes of a hold except its path.
func attributesOf(hold *zklock.Hold) []attribute.KeyValue {
	return []attribute.KeyValue{recipeKey.String(hold.Recipe()), attribute.String("zklock.node", plain(hold.Node())), attribute.Int64("zklock.token", hold.Token())}
}

// acquire acquires a lock, and returns the span of the hold, which ends with the hold.
func acquire(ctx context.Context, provider trace.TracerProvider, lock zklock.Locker) (*zklock.Hold, trace.Span, error) {
	tracer := tracerOf(provider)
	of := []attribute.KeyValue{pathKey.String(plain(lock.Path()))}
	_, acquire := tracer.Start(ctx, "zklock acquire", trace.WithAttributes(of...))
	defer acquire.End()
	hold, err := lock.Lock(ctx)
	if err != nil {
		fail(acquire, err)
		return nil, nil, err
	}
	held := attributesOf(hold)
	acquire.SetAttributes(held...)
	_, span := tracer.Start(ctx, "zklock hold", trace.WithAttributes(append(of, held...)...))
	// Runs once, when the hold ends.
	context.AfterFunc(hold.Context(), func() {
		if cause := context.Cause(hold.Context()); errors.Is(cause, zklock.ErrLost) {
			fail(span, cause)
		}
		span.End()
	})
	return hold, span, nil
}

// fail records in a span that its operation has failed.
func fail(span trace.Span, err error) {
	span.SetAttributes(errorType(err))
	span.SetStatus(codes.Error, plain(err.Error()))
}

// plain replaces invalid UTF-8 in text. An exporter drops a whole batch if one text in it is not UTF-8.
func plain(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
