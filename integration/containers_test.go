// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zkcontainer"
)

// TestDirectoriesThatVanishAtOnce uses a server that removes a container a millisecond after it became empty, or after it was
// created and not used yet. Clients that acquire and release can lose the directory between any two requests.
//
//zklock:promise P7.4
func TestDirectoriesThatVanishAtOnce(t *testing.T) {
	t.Parallel()
	part(t)
	ensemble := start(t, zkcontainer.Options{JVMFlags: "-Dznode.container.checkIntervalMs=1 -Dznode.container.maxPerMinute=6000000 -Dznode.container.maxNeverUsedIntervalMs=1"})
	const each = 25
	ctx, path := soon(t), root(t)+"/a/b"
	var inside [5]atomic.Int32
	var first atomic.Int32 // grants to the first node of a directory
	var users sync.WaitGroup
	for range 3 {
		c := connect(t, nil, ensemble.Addrs()...)
		for i, take := range []func(context.Context) (*zklock.Hold, error){
			c.Mutex(path + "/mutex").Lock,
			c.Mutex(path + "/try").TryLock,
			func(ctx context.Context) (*zklock.Hold, error) {
				return c.Semaphore(path+"/semaphore", 2).Acquire(ctx, 2)
			},
			c.RWMutex(path + "/rwmutex").Lock,
			c.Cohort(path+"/cohort", nil).Lock,
		} {
			// Owned by the test, which waits for it; ends after its grants, or with ctx.
			users.Go(func() {
				for grants := 0; grants < each; {
					hold, err := take(ctx)
					if err == nil {
						assert.EqualValues(t, 1, inside[i].Add(1), "holders of recipe %d", i)
						inside[i].Add(-1)
						if strings.HasSuffix(hold.Node(), "-0000000000") {
							first.Add(1)
						}
						err = hold.Unlock(ctx)
						grants++
					}
					if err != nil && !errors.Is(err, zklock.ErrLocked) {
						assert.NoError(t, err)
						return
					}
					time.Sleep(time.Duration(3+i) * time.Millisecond) // so that sometimes no one uses the directory
				}
			})
		}
	}
	users.Wait()
	t.Logf("directories were created %d times", first.Load())
	assert.Greater(t, first.Load(), int32(20), "directories must vanish")
}
