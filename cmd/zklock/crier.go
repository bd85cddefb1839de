package main

import (
	"fmt"
	"io"
	"time"
)

// crier tells people what happens without waiting for them: a standard error that nobody
// reads must not keep anything from being ended.
type crier struct {
	lines chan string
	done  chan struct{}
}

func newCrier(out io.Writer) *crier {
	c := &crier{make(chan string, 64), make(chan struct{})}
	// Owned by the crier; ends when wait closes lines, which waits for it for a moment.
	go func() {
		defer close(c.done)
		for line := range c.lines {
			fmt.Fprintf(out, "zklock: %s\n", line)
		}
	}()
	return c
}

func (c *crier) cry(line string) {
	select {
	case c.lines <- line:
	default:
	}
}

// wait waits until all was said, but not for long.
func (c *crier) wait() {
	close(c.lines)
	select {
	case <-c.done:
	case <-time.After(time.Second):
	}
}
