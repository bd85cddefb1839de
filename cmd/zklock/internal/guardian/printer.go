// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"fmt"
	"io"
	"time"
)

// printer prints messages without blocking: a standard error that nobody reads must not delay the end of the command.
type printer struct {
	lines chan string
	done  chan struct{}
}

func newPrinter(out io.Writer) *printer {
	p := &printer{make(chan string, 64), make(chan struct{})}
	// Owned by the printer; ends when wait closes lines, which waits for it for a moment.
	go func() {
		defer close(p.done)
		for line := range p.lines {
			fmt.Fprintf(out, "zklock: %s\n", line)
		}
	}()
	return p
}

func (p *printer) print(line string) {
	select {
	case p.lines <- line:
	default:
	}
}

// wait waits until all lines are printed, for at most a second.
func (p *printer) wait() {
	close(p.lines)
	select {
	case <-p.done:
	case <-time.After(time.Second):
	}
}
