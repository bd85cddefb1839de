package main

import (
	"os"
	"strconv"
	"syscall"
)

// highestPriority is the least nice value there is.
const highestPriority = -20

// raisePriority lets the guardian's threads run before the command's processes where it may, and returns the nice value
// that they had. Of hundreds of busy processes each would be waited for otherwise before the guardian could end them.
func raisePriority() (before int) {
	kernel, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // 40 to 1 for -20 to 19
	if err != nil {
		return 0
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if tid, err := strconv.Atoi(thread.Name()); err == nil {
			syscall.Setpriority(syscall.PRIO_PROCESS, tid, highestPriority)
		}
	}
	return 20 - kernel
}
