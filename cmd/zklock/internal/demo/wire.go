// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// wire dials and holds a demo worker's connections to the servers. Faults can cut them.
type wire struct {
	mu      sync.Mutex // guards the fields below
	conns   map[*wireConn]struct{}
	severed bool
	silent  bool
}

func newWire() *wire { return &wire{conns: map[*wireConn]struct{}{}} }

// sever closes the connections and prevents new ones, as the kernel does when a process is killed.
func (w *wire) sever() { w.hangUp(func() { w.severed = true }) }

// cut silently drops everything that is sent in either direction from now on.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = true
}

// heal ends the cut. It closes the existing connections, because data is missing from them.
func (w *wire) heal() { w.hangUp(func() { w.silent = false }) }

func (w *wire) hangUp(change func()) {
	w.mu.Lock()
	change()
	conns := w.conns
	w.conns = map[*wireConn]struct{}{}
	w.mu.Unlock()
	for c := range conns {
		c.Conn.Close()
	}
}

func (w *wire) isSilent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silent
}

var errSevered = errors.New("the worker has crashed")

// dial is a zk.Dialer.
func (w *wire) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if w.isSilent() {
		time.Sleep(min(timeout, 200*time.Millisecond)) // like a dial that gets no reply
		return nil, os.ErrDeadlineExceeded
	}
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	c := &wireConn{conn, w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.severed {
		conn.Close()
		return nil, errSevered
	}
	w.conns[c] = struct{}{}
	return c, nil
}

type wireConn struct {
	net.Conn
	w *wire
}

func (c *wireConn) Write(p []byte) (int, error) {
	if c.w.isSilent() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *wireConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.w.isSilent() {
			return n, err
		}
	}
}

func (c *wireConn) Close() error {
	c.w.mu.Lock()
	delete(c.w.conns, c)
	c.w.mu.Unlock()
	return c.Conn.Close()
}

func (w *wire) isSevered() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.severed
}
