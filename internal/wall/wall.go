// Package wall lets a test of this module move one client's wall clock.
//
// A suspended machine is a wall clock that jumped while the monotonic one stood
// still. The library compares both; only a test ever needs to say otherwise.
package wall

import (
	"context"
	"time"
)

type key struct{}

// With returns a context under which a client is made whose wall clock is now.
func With(ctx context.Context, now func() time.Time) context.Context {
	return context.WithValue(ctx, key{}, now)
}

// From returns the clock given to With, or nil.
func From(ctx context.Context) func() time.Time {
	now, _ := ctx.Value(key{}).(func() time.Time)
	return now
}
