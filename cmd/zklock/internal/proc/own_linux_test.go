// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The reaper of a PID 1 looks for children that have ended all the time here. It must not take the status of a command that Run
// waits for.
func TestTheReaperLeavesTheStatusOfACommandToRun(t *testing.T) {
	awaited.mu.Lock()
	awaited.reaps, awaited.running = true, map[int]bool{}
	awaited.mu.Unlock()
	stop := make(chan struct{})
	var all sync.WaitGroup
	// Owned by the test, which waits; ends with stop.
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				reapStrangers()
			}
		}
	})
	defer func() {
		close(stop)
		all.Wait()
		awaited.mu.Lock()
		defer awaited.mu.Unlock()
		awaited.reaps = false
	}()
	for range 50 {
		require.NoError(t, Run(exec.Command("true")))
		var failed *exec.ExitError
		require.ErrorAs(t, Run(exec.Command("sh", "-c", "exit 7")), &failed)
		assert.Equal(t, 7, failed.ExitCode())
	}
}
