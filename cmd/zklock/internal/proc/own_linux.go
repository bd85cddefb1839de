// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// awaited are the children of this process that Run waits for.
var awaited struct {
	mu      sync.Mutex
	reaps   bool         // guarded by mu: ReapStrangers reaps other children
	running map[int]bool // guarded by mu: by process ID
}

// ReapStrangers reaps orphaned processes. As PID 1 of a container, this process inherits every process there whose parent has
// ended; with always, it is the reaper of its descendants, and starts others than the guardian. It may reap the guardian as
// well: nothing needs the guardian's status. It leaves the commands of Run to Run.
func ReapStrangers(always bool) {
	if os.Getpid() != 1 && !always {
		return
	}
	awaited.mu.Lock()
	awaited.reaps, awaited.running = true, map[int]bool{}
	awaited.mu.Unlock()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	// Owned by the process, and ends with it.
	go func() {
		for range ended {
			reapStrangers()
		}
	}()
}

// reaps reports whether children of this process can be reaped at any time.
func reaps() bool {
	awaited.mu.Lock()
	defer awaited.mu.Unlock()
	return awaited.reaps
}

// reapStrangers reaps the children that have ended. It holds the mutex, so that it sees no child of Run before Run has
// recorded it.
func reapStrangers() {
	awaited.mu.Lock()
	defer awaited.mu.Unlock()
	if len(awaited.running) == 0 {
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		return
	}
	self := os.Getpid()
	for _, p := range processes(self, nil) {
		if p.Parent == self && p.dead && !awaited.running[p.PID] {
			syscall.Wait4(p.PID, nil, syscall.WNOHANG, nil)
		}
	}
}

// Run is cmd.Run for a process that also reaps others' children.
func Run(cmd *exec.Cmd) error {
	if !reaps() {
		return cmd.Run()
	}
	awaited.mu.Lock()
	err := cmd.Start()
	if err == nil {
		awaited.running[cmd.Process.Pid] = true
	}
	awaited.mu.Unlock()
	if err != nil {
		return err
	}
	err = cmd.Wait()
	awaited.mu.Lock()
	delete(awaited.running, cmd.Process.Pid)
	awaited.mu.Unlock()
	reapStrangers() // the ID can be that of another child by now
	return err
}
