// SPDX-License-Identifier: Apache-2.0

package zkotel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zklock-go/zklock"
	zkotel "github.com/zklock-go/zklock/adapters/otel"
	"github.com/zklock-go/zklock/shards"
	"github.com/zklock-go/zklock/slots"
)

// spanned calls do with a provider, and returns the spans that have ended, by name.
func spanned(do func(p *sdktrace.TracerProvider)) map[string]sdktrace.ReadOnlySpan {
	spans := tracetest.NewSpanRecorder()
	do(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	synctest.Wait()
	byName := map[string]sdktrace.ReadOnlySpan{}
	for _, s := range spans.Ended() {
		byName[s.Name()] = s
	}
	return byName
}

func TestTheWorkOfDoIsInsideTheSpanOfTheHold(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		all := spanned(func(p *sdktrace.TracerProvider) {
			ctx, caller := p.Tracer("mine").Start(t.Context(), "request")
			defer caller.End()
			require.NoError(t, zkotel.Do(ctx, p, b.client.Mutex("/l"), func(ctx context.Context) error {
				require.NotNil(t, zklock.HoldAt(ctx, "/l"))
				_, work := p.Tracer("mine").Start(ctx, "work")
				work.End()
				return nil
			}))
		})
		hold := all["zklock hold"]
		assert.Equal(t, hold.SpanContext().SpanID(), all["work"].Parent().SpanID())
		assert.Equal(t, all["request"].SpanContext().SpanID(), hold.Parent().SpanID())
		assert.Equal(t, all["request"].SpanContext().SpanID(), all["zklock acquire"].Parent().SpanID())
		assert.Equal(t, codes.Unset, hold.Status().Code)
	})
}

func TestDoThatDoesNotAcquireCallsNothing(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		all := spanned(func(p *sdktrace.TracerProvider) {
			err := zkotel.Do(ctx, p, b.client.Mutex("/l"), func(context.Context) error { t.Error("called"); return nil })
			require.ErrorIs(t, err, zklock.ErrNotAcquired)
		})
		assert.Equal(t, codes.Error, all["zklock acquire"].Status().Code)
		assert.NotContains(t, all, "zklock hold")
	})
}

// valuesOf returns the attributes of a span.
func valuesOf(s sdktrace.ReadOnlySpan) map[string]string {
	values := map[string]string{}
	for _, a := range s.Attributes() {
		values[string(a.Key)] = fmt.Sprint(a.Value.AsInterface())
	}
	return values
}

func TestTheWorkOfASlotIsASpan(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		var path string
		all := spanned(func(p *sdktrace.TracerProvider) {
			slot := slots.Named(b.client, "/jobs/report", "2026-01-01")
			require.NoError(t, slot.Do(t.Context(), zkotel.Work(p, func(ctx context.Context) error {
				path = zklock.HoldOf(ctx).Path()
				return nil
			})))
		})
		require.Contains(t, all, "zklock hold")
		assert.Equal(t, path, valuesOf(all["zklock hold"])["zklock.path"])
		assert.Equal(t, codes.Unset, all["zklock hold"].Status().Code)
	})
}

func TestTheWorkOfEachShardIsASpan(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		spans := tracetest.NewSpanRecorder()
		p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		ctx, cancel := context.WithCancel(t.Context())
		working := make(chan int)
		ended := make(chan error, 1)
		// Owned by the test, which waits for what it sends; ends with ctx.
		go func() {
			ended <- shards.Run(ctx, b.client, "/shards", 2, func(ctx context.Context, shard int) error {
				return zkotel.Work(p, func(ctx context.Context) error {
					working <- shard
					<-ctx.Done()
					return nil
				})(ctx)
			})
		}()
		assert.ElementsMatch(t, []int{0, 1}, []int{<-working, <-working})
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		paths := map[string]bool{}
		for _, s := range spans.Ended() {
			assert.Equal(t, "zklock hold", s.Name())
			assert.Equal(t, codes.Unset, s.Status().Code, "a shard whose work was canceled was not lost: %v", s.Status())
			paths[valuesOf(s)["zklock.path"]] = true
		}
		assert.Len(t, paths, 2)
	})
}

func TestTheWorkOfALeaderIsASpan(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		failed := errors.New("no")
		all := spanned(func(p *sdktrace.TracerProvider) {
			err := b.client.Election("/e").Run(t.Context(), nil, zkotel.Work(p, func(ctx context.Context) error {
				_, work := p.Tracer("mine").Start(ctx, "work")
				work.End()
				return failed
			}))
			require.ErrorIs(t, err, failed)
		})
		hold := all["zklock hold"]
		assert.Equal(t, hold.SpanContext().SpanID(), all["work"].Parent().SpanID())
		assert.Equal(t, codes.Error, hold.Status().Code)
		attributes := valuesOf(hold)
		assert.Equal(t, "/e", attributes["zklock.path"])
		assert.NotEmpty(t, attributes["zklock.token"])
	})
}

// The reason of a loss is in the span, whatever the work returns.
func TestAWorkWhoseHoldIsLostIsAnError(t *testing.T) {
	inVirtualTime(t, nil, func(t *testing.T, b bench) {
		all := spanned(func(p *sdktrace.TracerProvider) {
			_ = b.client.Mutex("/l").Do(t.Context(), zkotel.Work(p, func(ctx context.Context) error {
				require.NoError(t, b.srv.DeleteNode(zklock.HoldAt(ctx, "/l").Node()))
				<-ctx.Done()
				return nil
			}))
		})
		assert.Equal(t, codes.Error, all["zklock hold"].Status().Code)
		assert.Contains(t, all["zklock hold"].Status().Description, "lost")
	})
}
