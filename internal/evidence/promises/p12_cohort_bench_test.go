// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"testing"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// benchLock measures locking and unlocking by the given number of goroutines of one client.
func benchLock(b *testing.B, goroutines int, of func(c *zklock.Client) func(context.Context) (*zklock.Hold, error)) {
	srv := zktest.Start(b)
	lock := of(benchClient(b, srv))
	ctx := context.Background()
	cycle := func() {
		hold, err := lock(ctx)
		if err == nil {
			err = hold.Unlock(ctx)
		}
		if err != nil {
			b.Error(err)
		}
	}
	for range 10 {
		cycle()
	}
	b.ReportAllocs()
	c := costOf(srv, func() {
		if goroutines == 1 {
			for b.Loop() {
				cycle()
			}
			return
		}
		b.SetParallelism(goroutines / 2)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				cycle()
			}
		})
	})
	c.report(b, b.N)
}

//zklock:promise P12.9
func BenchmarkCohort(b *testing.B) {
	for _, kind := range []struct {
		name string
		of   func(c *zklock.Client) func(context.Context) (*zklock.Hold, error)
	}{
		{"mutex", func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Mutex(path).Lock }},
		{"cohort", func(c *zklock.Client) func(context.Context) (*zklock.Hold, error) { return c.Cohort(path, nil).Lock }},
	} {
		b.Run(kind.name+"/alone", func(b *testing.B) { benchLock(b, 1, kind.of) })
		b.Run(kind.name+"/32 goroutines", func(b *testing.B) { benchLock(b, 32, kind.of) })
	}
}
