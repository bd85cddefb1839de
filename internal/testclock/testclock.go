// SPDX-License-Identifier: Apache-2.0

// Package testclock lets this module's tests override a client's wall clock.
//
// On a suspended machine, the wall clock jumps while the monotonic clock stands still. The library
// compares both clocks; only tests need to override one.
package testclock

import (
	"context"
	"time"
)

type key struct{}

// With returns a context that makes now the wall clock of clients created under it.
func With(ctx context.Context, now func() time.Time) context.Context {
	return context.WithValue(ctx, key{}, now)
}

// From returns the clock given to With, or nil.
func From(ctx context.Context) func() time.Time {
	now, _ := ctx.Value(key{}).(func() time.Time)
	return now
}
