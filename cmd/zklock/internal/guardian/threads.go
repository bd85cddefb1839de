// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"runtime"
	"sync"
)

// enoughThreads is the number of threads that zklock and its guardian each use at most at the same time: two for Go code,
// and one for each goroutine that can be in a system call (signals, waiting for a child, standard error, network, files,
// name resolution).
const enoughThreads = 10

// ReserveThreads creates all the threads that this process will need. The Go runtime aborts if it cannot create a thread,
// and a command can cause that by using up the process limit of a container or a user. The runtime keeps existing threads.
func ReserveThreads() {
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	var begun, ended sync.WaitGroup
	release := make(chan struct{})
	begun.Add(enoughThreads)
	for range enoughThreads {
		// Owned by this call, which waits for it; ends with release. Until then each has its own thread.
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begun.Done()
			<-release
		})
	}
	begun.Wait()
	close(release)
	ended.Wait()
}
