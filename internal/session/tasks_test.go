// SPDX-License-Identifier: Apache-2.0

package session

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// many runs n tasks concurrently, and returns when all have ended.
func many(t *testing.T, tasks *Tasks, n int) {
	let := make(chan struct{})
	for range n {
		require.True(t, tasks.Run(func() { <-let }))
	}
	synctest.Wait()
	close(let)
	synctest.Wait()
}

func TestGoroutinesTakeTheNextTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := NewTasks()
		many(t, tasks, 3*maxResting)
		require.Len(t, tasks.resting, maxResting)
		before := runtime.NumGoroutine()
		for range 100 {
			many(t, tasks, maxResting)
		}
		require.Len(t, tasks.resting, maxResting)
		require.LessOrEqual(t, runtime.NumGoroutine(), before)
		<-tasks.Close() // the bubble ends only when the goroutines have
	})
}

func TestATaskMayStartTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := NewTasks()
		many(t, tasks, 1)
		var ran atomic.Int64
		tasks.Run(func() {
			for range 10 {
				tasks.Run(func() { ran.Add(1) })
			}
		})
		synctest.Wait()
		require.EqualValues(t, 10, ran.Load())
		<-tasks.Close()
	})
}

func TestCloseWaitsForTasksAndRefusesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := NewTasks()
		many(t, tasks, 2)
		let := make(chan struct{})
		require.True(t, tasks.Run(func() { <-let }))
		over := tasks.Close()
		require.False(t, tasks.Run(func() { t.Error("it ran") }))
		require.False(t, tasks.Enter())
		synctest.Wait()
		require.False(t, IsClosed(over), "a task is under way")
		close(let)
		<-over
	})
}
