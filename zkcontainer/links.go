// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// links holds the connections of named clients. They pass through this process, which
// can cut them and slow them down without any tools.
type links struct {
	mu      sync.Mutex
	closed  bool
	clients map[string]*clientLink
	open    map[net.Conn]struct{} // contains both ends of every connection that still has goroutines
	done    chan struct{}         // closed by closeAll; nil until there is a client link
	wg      sync.WaitGroup
}

// clientLink holds the faults of one client's connections.
type clientLink struct {
	cut   chan struct{} // closed when the partition is healed; nil if there is none
	delay time.Duration
}

// DialFrom returns a dialer for a named client, for use with Partition and SlowClient. It has the signature that go-zookeeper's
// WithDialer and zklock.Options.Dialer expect.
func (z *Ensemble) DialFrom(client string) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return z.links.dial(client, network, address, timeout)
	}
}

// Partition silently blocks all traffic in both directions between a client (by its DialFrom name) and the servers: no
// connection is closed, data that is sent waits for HealClient, and dials time out.
func (z *Ensemble) Partition(client string) {
	z.links.change(client, func(l *clientLink) {
		if l.cut == nil {
			l.cut = make(chan struct{})
		}
	})
}

// HealClient ends a partition. Data that was sent in the meantime arrives.
func (z *Ensemble) HealClient(client string) {
	z.links.change(client, func(l *clientLink) {
		if l.cut != nil {
			close(l.cut)
			l.cut = nil
		}
	})
}

// SlowClient delays all data between a client and the servers by d, in both directions; 0 ends the delay.
func (z *Ensemble) SlowClient(client string, d time.Duration) {
	z.links.change(client, func(l *clientLink) { l.delay = d })
}

func (s *links) change(client string, fn func(*clientLink)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(s.of(client))
}

// of returns a client's link. The caller must hold mu.
func (s *links) of(client string) *clientLink {
	if s.clients == nil {
		s.clients, s.open, s.done = map[string]*clientLink{}, map[net.Conn]struct{}{}, make(chan struct{})
	}
	if s.clients[client] == nil {
		s.clients[client] = &clientLink{}
	}
	return s.clients[client]
}

// state returns the current faults of a client's connections.
func (s *links) state(client string) (cut <-chan struct{}, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of(client)
	return l.cut, l.delay
}

// pass waits while a client is partitioned, for at most timeout if that is positive. It reports whether the partition has ended.
func (s *links) pass(client string, timeout time.Duration) bool {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	for {
		cut, _ := s.state(client)
		if cut == nil {
			return true
		}
		select {
		case <-cut:
		case <-late:
			return false
		case <-s.done:
			return false
		}
	}
}

// dial connects a client to a server through a socket of this process, whose buffers hold data that has to wait.
func (s *links) dial(client, network, address string, timeout time.Duration) (net.Conn, error) {
	if !s.pass(client, timeout) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
	}
	server, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	near, far, err := socketPair()
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	if !s.serve(client, far, server) {
		return nil, errors.Join(net.ErrClosed, near.Close(), far.Close(), server.Close())
	}
	return near, nil
}

// serve carries bytes between two ends until either is closed.
func (s *links) serve(client string, far, server net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open[far], s.open[server] = struct{}{}, struct{}{}
	// Owned by s: end when either end is closed, at the latest by closeAll, which waits for them.
	s.wg.Go(func() { s.carry(client, far, server) })
	s.wg.Go(func() { s.carry(client, server, far) })
	return true
}

// carry copies data from one end to the other with the delay of the client's link, and finally closes both.
func (s *links) carry(client string, from, to net.Conn) {
	defer s.close(from, to)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !s.wait(client) || n == 0 && err != nil {
			return
		}
		if _, wrote := to.Write(buf[:n]); wrote != nil || err != nil {
			return
		}
	}
}

// wait waits for the delay of a client's link and while the client is partitioned. It returns false if closeAll is called first.
func (s *links) wait(client string) bool {
	_, delay := s.state(client)
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-s.done:
			return false
		}
	}
	return s.pass(client, 0)
}

func (s *links) close(conns ...net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(s.open, c)
	}
}

// closeAll closes all connections and waits until their goroutines have ended.
func (s *links) closeAll() {
	s.mu.Lock()
	s.of("")
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// socketPair returns both ends of a connection over the loopback address.
func socketPair() (near, far net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("socket for a client: %w", err)
	}
	defer l.Close()
	near, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	for {
		far, err = l.Accept()
		if err != nil {
			return nil, nil, errors.Join(err, near.Close())
		}
		if far.RemoteAddr().String() == near.LocalAddr().String() {
			return near, far, nil
		}
		_ = far.Close() // a connection from another process
	}
}
