// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"io"
	"net"
	"time"
)

// piece is a chunk of bytes and the time when it is due at the other end.
type piece struct {
	bytes []byte
	due   time.Time
}

// underway is how many pieces can be in transit at the same time. It is more than a client sends within a delay, so the
// delay does not limit the bandwidth.
const underway = 1 << 14

// passOn copies from one connection to another until either ends. It writes each byte delay after it was read.
func passOn(to, from net.Conn, delay time.Duration) {
	if delay == 0 {
		_, _ = io.Copy(to, from)
		return
	}
	way := make(chan piece, underway)
	arrived := make(chan struct{})
	// Owned by passOn, which waits for it; ends when way is closed and empty.
	go func() {
		defer close(arrived)
		deliver(to, way)
		// The loop below may be blocked in a send on way: drain it.
		_ = from.Close()
		for range way {
		}
	}()
	for {
		buffer := make([]byte, 4096)
		n, err := from.Read(buffer)
		if n > 0 {
			way <- piece{buffer[:n], time.Now().Add(delay)}
		}
		if err != nil {
			break
		}
	}
	close(way)
	<-arrived
}

// deliver writes each piece when it is due. It returns after the last one or after an error.
func deliver(to io.Writer, way <-chan piece) {
	for p := range way {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			return
		}
	}
}
