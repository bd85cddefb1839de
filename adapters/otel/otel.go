// Package zkotel tells OpenTelemetry what happens to zklock's locks: an Observer with
// metrics, and a way to take a lock inside a trace.
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

// scope names what measures: this module.
const scope = "github.com/zklock-go/zklock/adapters/otel"

// version returns this module's version, as it was built into the program.
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

// Options are an Observer's. Nil means the defaults.
type Options struct {
	// Lock names a lock in metrics by its path; the same few names for many paths keep
	// the number of time series small. Default: metrics do not tell locks apart.
	Lock func(path string) string
}

// Observer measures a client's locks. It is for zklock.Options.Observer.
//
//	zklock.acquire.duration  s  histogram, from asking until the attempt has ended, with
//	                            zklock.outcome "acquired", "given_up" or "refused"
//	zklock.acquire.behind       histogram, how many were ahead when a contender queued
//	zklock.hold.duration     s  histogram, with zklock.outcome "released", "lost" or "ended"
//	zklock.lost                 counter
//	zklock.heartbeat.missed     counter
//
// Each has zklock.recipe, and zklock.lock if Options.Lock is set, but for the heartbeats:
// one is for all that a client holds. An attempt that failed has error.type as well: see
// observe.Reason.
type Observer struct {
	lock          func(path string) string
	acquire, hold metric.Float64Histogram
	behind        metric.Int64Histogram
	lost, missed  metric.Int64Counter
}

var _ observe.Observer = (*Observer)(nil)

// NewObserver makes the instruments.
func NewObserver(provider metric.MeterProvider, opts *Options) (*Observer, error) {
	o := &Observer{}
	if opts != nil {
		o.lock = opts.Lock
	}
	m := provider.Meter(scope, metric.WithInstrumentationVersion(version()), metric.WithSchemaURL(semconv.SchemaURL))
	var err [5]error
	// Hand-offs take a fraction of a millisecond, recovery from a crash ten seconds, a queue minutes.
	buckets := metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
	o.acquire, err[0] = m.Float64Histogram("zklock.acquire.duration", metric.WithUnit("s"), metric.WithDescription("From asking for a lock until the attempt has ended."), buckets)
	o.hold, err[1] = m.Float64Histogram("zklock.hold.duration", metric.WithUnit("s"), metric.WithDescription("For how long a lock was held."), buckets)
	o.behind, err[2] = m.Int64Histogram("zklock.acquire.behind", metric.WithUnit("{contender}"), metric.WithDescription("How many contenders were ahead."),
		metric.WithExplicitBucketBoundaries(0, 1, 2, 5, 10, 25, 50, 100, 250, 1000))
	o.lost, err[3] = m.Int64Counter("zklock.lost", metric.WithUnit("{lock}"), metric.WithDescription("Locks lost while they were held."))
	o.missed, err[4] = m.Int64Counter("zklock.heartbeat.missed", metric.WithUnit("{heartbeat}"), metric.WithDescription("Heartbeats that no quorum has answered."))
	for _, e := range err {
		if e != nil {
			return nil, e
		}
	}
	return o, nil
}

// Observe implements observe.Observer.
func (o *Observer) Observe(e observe.Event) {
	ctx := context.Background()
	if e.Kind == observe.HeartbeatMissed {
		o.missed.Add(ctx, 1)
		return
	}
	attrs := metric.WithAttributeSet(o.attributes(e))
	outcome := metric.WithAttributes(outcomeKey.String(e.Kind.String()))
	switch e.Kind {
	case observe.Queued:
		o.behind.Record(ctx, int64(e.Behind), attrs)
	case observe.Acquired:
		o.acquire.Record(ctx, e.Elapsed.Seconds(), attrs, outcome)
	case observe.GivenUp, observe.Refused:
		o.acquire.Record(ctx, e.Elapsed.Seconds(), attrs, outcome, metric.WithAttributes(errorType(e.Err)))
	case observe.Released, observe.Ended:
		o.hold.Record(ctx, e.Elapsed.Seconds(), attrs, outcome)
	case observe.Lost:
		o.hold.Record(ctx, e.Elapsed.Seconds(), attrs, outcome)
		o.lost.Add(ctx, 1, attrs)
	}
}

const (
	outcomeKey = attribute.Key("zklock.outcome")
	pathKey    = attribute.Key("zklock.path")
)

// errorType names why an attempt came to nothing, in one word.
func errorType(err error) attribute.KeyValue {
	if reason := observe.Reason(err); reason != "other" {
		return semconv.ErrorTypeKey.String(reason)
	}
	return semconv.ErrorTypeOther
}

func (o *Observer) attributes(e observe.Event) attribute.Set {
	kv := []attribute.KeyValue{attribute.String("zklock.recipe", e.Recipe)}
	if o.lock != nil && e.Path != "" {
		kv = append(kv, attribute.String("zklock.lock", plain(o.lock(e.Path))))
	}
	return attribute.NewSet(kv...)
}

// Lock takes a lock as lock.Lock does, inside a span "zklock lock" that ends when it is
// held or has failed. It has zklock.path from the start, zklock.node and zklock.token
// once the lock is held, error.type if that has failed. Work under the hold's Context is
// part of the caller's trace, and if the hold is lost, the caller's span gets an event
// that says so.
func Lock(ctx context.Context, provider trace.TracerProvider, lock zklock.Locker) (*zklock.Hold, error) {
	caller := trace.SpanFromContext(ctx)
	tracer := provider.Tracer(scope, trace.WithInstrumentationVersion(version()), trace.WithSchemaURL(semconv.SchemaURL))
	path := pathKey.String(plain(lock.Path()))
	_, span := tracer.Start(ctx, "zklock lock", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(path))
	defer span.End()
	hold, err := lock.Lock(ctx)
	if err != nil {
		span.SetAttributes(errorType(err))
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
		return nil, err
	}
	what := []attribute.KeyValue{attribute.String("zklock.node", hold.Node()), attribute.Int64("zklock.token", hold.Token())}
	span.SetAttributes(what...)
	what = append(what, path)
	// Runs once, when the hold ends.
	context.AfterFunc(hold.Context(), func() {
		if cause := context.Cause(hold.Context()); isLost(cause) {
			caller.AddEvent("zklock lost", trace.WithAttributes(append(what, attribute.String("zklock.why", cause.Error()))...))
		}
	})
	return hold, nil
}

// plain makes a text that others have made fit for an exporter, which drops all that it exports at a time for one text that is not UTF-8.
func plain(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func isLost(cause error) bool { return errors.Is(cause, zklock.ErrLost) }
