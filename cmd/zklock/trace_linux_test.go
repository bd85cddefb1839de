// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// holdStill keeps all threads of a process standing until done, as a debugger does. It
// tells in standing when they stand.
func holdStill(pid int, standing chan<- error, done <-chan struct{}) {
	runtime.LockOSThread() // never unlocked: the thread that traces ends with this goroutine
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, thread := range threads {
		tid, _ := strconv.Atoi(thread.Name())
		if err == nil {
			err = syscall.PtraceAttach(tid)
		}
		if err == nil {
			_, err = syscall.Wait4(tid, nil, syscall.WALL, nil)
		}
	}
	standing <- err
	<-done
}
