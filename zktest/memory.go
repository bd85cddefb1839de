// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// memoryLimit is how many unread bytes one direction of a connection without a socket buffers, like a kernel.
const memoryLimit = 64 << 10

// memoryConn is one end of a connection without a socket. Unlike net.Pipe it has a buffer, and its deadlines cost nothing
// until a read or write waits: a client library sets four for each request.
type memoryConn struct {
	in, out *oneWay
	name    memoryAddr
}

// memoryAddr names one end.
type memoryAddr string

func (memoryAddr) Network() string { return "memory" }

func (a memoryAddr) String() string { return string(a) }

// newMemoryConns returns the two ends of a connection.
func newMemoryConns() (near, far net.Conn) {
	there, back := newOneWay(), newOneWay()
	return &memoryConn{in: back, out: there, name: "near"}, &memoryConn{in: there, out: back, name: "far"}
}

// Read implements net.Conn.
func (c *memoryConn) Read(b []byte) (int, error) { return c.in.read(b) }

// Write implements net.Conn.
func (c *memoryConn) Write(b []byte) (int, error) { return c.out.write(b) }

// Close closes both directions. The other end can still read what was written before.
func (c *memoryConn) Close() error {
	c.in.abandon()
	c.out.finish()
	return nil
}

// SetDeadline implements net.Conn.
func (c *memoryConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *memoryConn) SetReadDeadline(t time.Time) error { return c.in.setDeadline(&c.in.readBy, t) }

// SetWriteDeadline implements net.Conn.
func (c *memoryConn) SetWriteDeadline(t time.Time) error { return c.out.setDeadline(&c.out.writeBy, t) }

// LocalAddr implements net.Conn.
func (c *memoryConn) LocalAddr() net.Addr { return c.name }

// RemoteAddr implements net.Conn.
func (c *memoryConn) RemoteAddr() net.Addr {
	if c.name == "near" {
		return memoryAddr("far")
	}
	return memoryAddr("near")
}

// oneWay is one direction of a connection.
type oneWay struct {
	mu        sync.Mutex // guards the fields below
	changed   sync.Cond  // signaled on each change that a read or write may wait for
	data      []byte     // unread bytes
	finished  bool       // the writing end is closed
	abandoned bool       // the reading end is closed
	readBy    deadline
	writeBy   deadline
}

func newOneWay() *oneWay {
	w := &oneWay{}
	w.changed.L = &w.mu
	return w
}

func (w *oneWay) read(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.abandoned:
			return 0, io.ErrClosedPipe
		case w.readBy.isOver():
			return 0, os.ErrDeadlineExceeded
		case len(w.data) > 0:
			return w.take(b), nil
		case w.finished:
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		}
		w.await(&w.readBy)
	}
}

// take moves unread bytes to b. It must be called with mu held.
func (w *oneWay) take(b []byte) int {
	full := len(w.data) >= memoryLimit
	n := copy(b, w.data)
	w.data = w.data[:copy(w.data, w.data[n:])]
	if full {
		w.changed.Broadcast()
	}
	return n
}

func (w *oneWay) write(b []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.finished || w.abandoned:
			return n, io.ErrClosedPipe
		case w.writeBy.isOver():
			return n, os.ErrDeadlineExceeded
		}
		n += w.add(b[n:])
		if n == len(b) {
			return n, nil
		}
		w.await(&w.writeBy)
	}
}

// add appends as many of the bytes as the buffer takes, and returns their number. It must be called
// with mu held.
func (w *oneWay) add(b []byte) int {
	some := b[:min(len(b), memoryLimit-len(w.data))]
	if len(some) > 0 && len(w.data) == 0 {
		w.changed.Broadcast()
	}
	w.data = append(w.data, some...)
	return len(some)
}

// await waits for a change, or for the deadline. It must be called with mu held.
func (w *oneWay) await(d *deadline) {
	d.arm(w.wake)
	w.changed.Wait()
}

func (w *oneWay) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.Broadcast()
}

// finish closes the writing end.
func (w *oneWay) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = true
	w.writeBy.disarm()
	w.changed.Broadcast()
}

// abandon closes the reading end.
func (w *oneWay) abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandoned, w.data = true, nil
	w.readBy.disarm()
	w.changed.Broadcast()
}

// setDeadline sets one of the deadlines. It also applies to a read or write that is already waiting.
func (w *oneWay) setDeadline(d *deadline, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished && w.abandoned {
		return io.ErrClosedPipe
	}
	if d.set(at) {
		w.changed.Broadcast()
	}
	return nil
}

// deadline is the time by which a read or write must be done. Its timer is armed only while one waits. If the deadline is
// extended in the meantime, the timer fires early and is armed again.
type deadline struct {
	at    time.Time // zero means never
	rings time.Time // when the timer fires; zero if it is not armed
	timer *time.Timer
}

// set changes the deadline. It reports whether a waiting read or write must be woken to arm the timer for an earlier time.
func (d *deadline) set(at time.Time) (sooner bool) {
	d.at = at
	return !at.IsZero() && (d.rings.IsZero() || at.Before(d.rings))
}

func (d *deadline) isOver() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// arm ensures that wake is called at the deadline or earlier.
func (d *deadline) arm(wake func()) {
	now := time.Now()
	if d.at.IsZero() || !d.rings.IsZero() && d.rings.After(now) && !d.rings.After(d.at) {
		return
	}
	d.rings = d.at
	if d.timer == nil {
		d.timer = time.AfterFunc(d.at.Sub(now), wake)
		return
	}
	d.timer.Reset(d.at.Sub(now))
}

func (d *deadline) disarm() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
