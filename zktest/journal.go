package zktest

import (
	"fmt"
	"log/slog"
)

// journal keeps log lines until they can be written while no lock is held.
type journal struct {
	log   *slog.Logger
	wake  chan struct{} // tells the goroutine that writes
	lines []func()
}

func (j *journal) note(msg string, args ...any) {
	j.lines = append(j.lines, func() { j.log.Info(msg, args...) })
	poke(j.wake)
}

// takeAll returns the lines that wait to be written.
func (j *journal) takeAll() []func() {
	lines := j.lines
	j.lines = nil
	return lines
}

func hex(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }
