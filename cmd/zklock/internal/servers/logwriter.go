// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"io"
	"time"
)

// logWriter writes lines in order, and waits for each write, but not for long: the goroutine that logs also renews the lock.
// While the reader is blocked, lines are dropped.
type logWriter struct {
	out  io.Writer
	busy chan struct{} // full while a line is being written
}

func newLogWriter(out io.Writer) *logWriter { return &logWriter{out, make(chan struct{}, 1)} }

// Write must be called by one goroutine at a time.
func (l *logWriter) Write(line []byte) (int, error) {
	select {
	case l.busy <- struct{}{}:
	default:
		return len(line), nil
	}
	own, written := bytes.Clone(line), make(chan struct{})
	// Owned by the process; ends when the line is written or with the process.
	go func() {
		defer close(written)
		l.out.Write(own)
		<-l.busy
	}()
	select {
	case <-written:
	case <-time.After(100 * time.Millisecond):
	}
	return len(line), nil
}
