// SPDX-License-Identifier: Apache-2.0

// Package bubble runs tests in virtual time, and fails those that do not end: clients send heartbeats forever, so a wait that never ends
// would last until the test binary's timeout, and hide the tests after it.
package bubble

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// stillest limits the real time in which the virtual time of a test does not pass a minute. A test that computes for as long without a wait
// fails as well.
const stillest = 3 * time.Minute

// Run runs fn in virtual time. If fn has not returned after limit, or virtual time stands still for three real minutes, the test fails with
// the stacks of all goroutines, and the next one runs.
func Run(t *testing.T, limit time.Duration, fn func(t *testing.T)) {
	t.Helper()
	run(t, limit, stillest, fn)
}

// run is Run with another limit of the real time.
func run(t *testing.T, limit, still time.Duration, fn func(t *testing.T)) {
	t.Helper()
	var minutes atomic.Int64
	over := make(chan any, 1)
	// Owned by this call, which waits for it unless virtual time stands still: nothing can end it then.
	go func() {
		defer func() { over <- recover() }() // of a bubble whose goroutines wait for each other
		synctest.Test(t, func(t *testing.T) {
			inMinutes(t, limit, &minutes, fn)
		})
	}()
	watch := time.NewTicker(still)
	defer watch.Stop()
	for last := int64(-1); ; {
		select {
		case reason := <-over:
			if reason != nil {
				t.Errorf("the bubble ends with: %v; goroutines:\n%s", reason, stacksInBubbles())
			}
			if t.Failed() {
				t.FailNow()
			}
			return
		case <-watch.C:
			if now := minutes.Load(); now == last {
				t.Fatalf("%v of virtual time are still not over after %v; goroutines:\n%s", time.Duration(now+1)*time.Minute, still, Stacks())
			} else {
				last = now
			}
		}
	}
}

// inMinutes runs fn and counts the virtual minutes that it takes. If they reach the limit, the test fails; what its clean-up
// does not end then, is left behind.
func inMinutes(t *testing.T, limit time.Duration, minutes *atomic.Int64, fn func(t *testing.T)) {
	done := make(chan struct{})
	t.Cleanup(func() { // the last one: the others end what fn waits for, and fn must not fail after the test
		select {
		case <-done:
		case <-time.After(time.Minute):
		}
	})
	// Owned by this call, which waits for it up to the limit; the test's clean-up ends most of what it can wait for.
	go func() {
		defer close(done)
		fn(t)
	}()
	clock := time.NewTicker(time.Minute)
	defer clock.Stop()
	for {
		select {
		case <-done:
			return
		case <-clock.C:
			if time.Duration(minutes.Add(1))*time.Minute >= limit {
				t.Fatalf("not over after %v of virtual time; goroutines:\n%s", limit, Stacks())
			}
		}
	}
}

// Stacks returns the stacks of all goroutines, up to a size that can be read.
func Stacks() []byte {
	all := make([]byte, 64<<10)
	return all[:runtime.Stack(all, true)]
}

// stacksInBubbles is like Stacks without the goroutines outside of bubbles, which are many if tests run in parallel.
func stacksInBubbles() []byte {
	all := make([]byte, 8<<20)
	all = all[:runtime.Stack(all, true)]
	var inside [][]byte
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		if head, _, _ := bytes.Cut(stack, []byte("\n")); bytes.Contains(head, []byte("synctest bubble")) {
			inside = append(inside, stack)
		}
	}
	text := bytes.Join(inside, []byte("\n\n"))
	return text[:min(len(text), 64<<10)]
}
