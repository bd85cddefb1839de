// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"strconv"
	"syscall"
)

// highestPriority is the lowest nice value.
const highestPriority = -20

// raisePriority gives the guardian's threads priority over the command's processes, if that is permitted. It returns their
// previous nice value. Otherwise the guardian would have to wait for its turn among hundreds of busy processes before it
// could end them.
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
