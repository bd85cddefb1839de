// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// queueAgain starts n acquires that rejoin, each of which takes d and then waits at the servers for queued. It returns when each has
// left, in their order.
func queueAgain(t *testing.T, r *rejoins, n int, d, queued time.Duration) (left []time.Duration) {
	began, done := time.Now(), make(chan time.Duration)
	for range n {
		go func() { // ends with its acquire; queueAgain waits for it
			if err := r.enter(t.Context()); err != nil {
				panic(err)
			}
			time.Sleep(d)
			r.leave(queued, 10*time.Second)
			done <- time.Since(began)
		}()
		synctest.Wait()
	}
	for range n {
		left = append(left, <-done)
	}
	return left
}

// On a fast ensemble, a thousand acquires of a client queue again within a few round trips. If the servers have queues, they do so one
// after the other, with pauses.
//
//zklock:promise P9.12 P7.1
func TestAcquiresQueueAgainAsFastAsServersReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rejoins
		left := queueAgain(t, &r, 1000, time.Second, 0)
		require.Equal(t, 10*time.Second, left[999])
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 2 * time.Second}, left[:3], "the first goes alone")
		left = queueAgain(t, &r, 10, time.Second, time.Second)
		for i := range 9 {
			require.GreaterOrEqual(t, left[i+1]-left[i], 9*time.Second, "one after the other, with a pause")
			require.LessOrEqual(t, left[i+1]-left[i], 17*time.Second)
		}
	})
}

// An acquire that gives up before its turn, or while its turn comes, lets the others follow.
func TestAnAcquireThatGivesUpLetsOthersFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rejoins
		require.NoError(t, r.enter(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.enter(ctx), context.DeadlineExceeded)
		entered := make(chan error)
		go func() { entered <- r.enter(t.Context()) }() // ends with its turn; the test waits for it
		synctest.Wait()
		r.leave(0, time.Second)
		require.NoError(t, <-entered)
		r.leave(0, time.Second)
		require.Zero(t, r.running)
	})
}
