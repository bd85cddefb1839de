package main

import (
	"runtime"
	"sync"
)

// enoughThreads is how many threads zklock and its guardian have at most at work at a time, each: two for Go code, and
// one for each goroutine that can be inside a system call (signals, a child's end, standard error, the network, files,
// names of servers).
const enoughThreads = 10

// reserveThreads makes all the threads that this process will need. The Go runtime ends a process that needs a thread and
// gets none, which a command can bring about that uses up the processes of a container or a user. It keeps those that
// exist.
func reserveThreads() {
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	var begun, ended sync.WaitGroup
	release := make(chan struct{})
	begun.Add(enoughThreads)
	for range enoughThreads {
		// Owned by this call, which waits for it; ends with release. Each has a thread of its own meanwhile.
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
