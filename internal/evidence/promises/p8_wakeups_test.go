// SPDX-License-Identifier: Apache-2.0

package promises_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

// Contenders of two clients hand a lock over to each other, while their connections are lost again and again. None of them waits for
// longer than a minute. This test is run with yields between the statements, too: see internal/evidence/yields.
//
//zklock:promise P8.1
func TestNoWakeUpIsMissedInAnyQueue(t *testing.T) {
	for name, take := range map[string]way{"mutex": asMutex, "writer": asWriter, "reader": asReader, "permits": forTwo, "cohort": asCohort, "two locks": asBoth} {
		t.Run(name, func(t *testing.T) {
			virtual(t, zktest.Options{}, func(t *testing.T, srv *zktest.Server) {
				var all sync.WaitGroup
				for _, label := range []string{"a", "b"} {
					lock := take(connect(t, srv, label, term))
					for range 2 {
						// Owned by the test, which waits for it; ends after its last hand-off.
						all.Go(func() { takeTurns(t, lock) })
					}
				}
				for range 10 {
					time.Sleep(time.Second / 7)
					srv.DropConnections()
				}
				all.Wait()
			})
		})
	}
}

// takeTurns acquires and releases a lock a few times.
func takeTurns(t *testing.T, lock func(context.Context) (*zklock.Hold, error)) {
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		hold, err := lock(ctx)
		cancel()
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(time.Second / 50)
		if err := hold.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
