// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"fmt"
	"log/slog"
)

// journal collects log lines until they can be written without holding a lock.
type journal struct {
	log   *slog.Logger
	wake  chan struct{} // wakes the goroutine that writes
	lines []func()
}

func (j *journal) note(msg string, args ...any) {
	j.lines = append(j.lines, func() { j.log.Info(msg, args...) })
	poke(j.wake)
}

// takeAll removes and returns the lines that are not written yet.
func (j *journal) takeAll() []func() {
	lines := j.lines
	j.lines = nil
	return lines
}

func hex(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }
