// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Addr returns the member's address.
func (m *Member) Addr() string { return m.s.network.address(m.r.id) }

// Listen opens one socket per member: the first at addr, the others on the same host
// and the following ports, or on any free port if addr's port is 0. It fails if a
// member already has a socket.
func (s *Server) Listen(addr string) error {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	for i, m := range s.members {
		p := port
		if p != 0 {
			p += i
		}
		if err := m.Listen(net.JoinHostPort(host, strconv.Itoa(p)), net.Listen); err != nil {
			return err
		}
	}
	return nil
}

// Listen opens a socket for this member by calling listen, which can be net.Listen or
// a function that adds TLS. When a stopped member starts again, it calls listen again
// with the same address.
func (m *Member) Listen(addr string, listen func(network, address string) (net.Listener, error)) error {
	s := m.s
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	if m.listen != nil {
		return fmt.Errorf("zktest: listen at %s: member %d already listens at %s", addr, m.r.id, m.Addr())
	}
	if err := m.open(addr, listen); err != nil {
		return err
	}
	m.listen = listen
	return nil
}

// open opens the member's socket. The caller must hold listenMu.
func (m *Member) open(addr string, listen func(network, address string) (net.Listener, error)) error {
	l, err := listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	s := m.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		return net.ErrClosed
	}
	m.listener = l
	s.network.setAddress(m.r.id, l.Addr().String())
	s.wg.Add(1)
	// Owned by the member; closing the listener stops it, Close waits for it.
	go m.accept(l)
	return nil
}

// acceptPause is how long a member waits after Accept has failed, for example because
// there are no file descriptors.
const acceptPause = 20 * time.Millisecond

func (m *Member) accept(l net.Listener) {
	s := m.s
	defer s.wg.Done()
	for {
		nc, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.log.Warn("cannot accept", "member", m.r.id, "err", err)
			if !s.pause(acceptPause) {
				return
			}
			continue
		}
		remote := nc.RemoteAddr().String()
		if err := m.admit(nc, remote, remote); err != nil {
			_ = nc.Close()
		}
	}
}

// admit starts serving a new connection, unless the member refuses connections.
func (m *Member) admit(nc net.Conn, client, remote string) error {
	s := m.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !m.r.takesConns() {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	serveConn(s, m.r, nc, client, remote)
	return nil
}

// closeListener closes a member's socket if it has one, and keeps its address. The
// caller must hold listenMu.
func (m *Member) closeListener() {
	m.s.mu.Lock()
	l := m.listener
	m.listener = nil
	m.s.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
}

// syncListener opens or closes a member's socket, depending on whether the member
// accepts connections. The address stays the same.
func (m *Member) syncListener() {
	s := m.s
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	s.mu.Lock()
	open, wanted := m.listener != nil, !m.r.stopped && !m.r.refusing && !s.closed
	s.mu.Unlock()
	switch {
	case m.listen == nil || open == wanted:
	case wanted:
		if err := m.open(m.Addr(), m.listen); err != nil {
			s.log.Error("cannot listen again", "member", m.r.id, "err", err)
		}
	default:
		m.closeListener()
	}
}

// Dial connects to a member without a socket. It has the signature that
// go-zookeeper's WithDialer expects. In addition to the members' addresses it
// accepts zk1:2181, zk2:2181 and so on; any other address leads to member 0.
func (s *Server) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	return s.dial("", address, timeout)
}

// DialFrom returns a function like Dial that gives the client a name, for use with Partition. Each name has its own address,
// for ACLs.
func (s *Server) DialFrom(clientName string) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return s.dial(clientName, address, timeout)
	}
}

func (s *Server) dial(client, address string, timeout time.Duration) (net.Conn, error) {
	member, remote := s.network.route(client, address)
	if err := s.awaitLink(client, s.network.delay(client, member)+s.network.delay(client, member), timeout); err != nil {
		return nil, err
	}
	near, far := newMemoryConns()
	if err := s.members[member].admit(far, client, remote); err != nil {
		return nil, err
	}
	return near, nil
}

// awaitLink waits for the round trip in which a connection is made, and while the client is partitioned, for at most timeout.
func (s *Server) awaitLink(client string, trip, timeout time.Duration) error {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	if trip > 0 {
		timer := time.NewTimer(trip)
		defer timer.Stop()
		if err := awaitIn(s, timer.C, late); err != nil {
			return err
		}
	}
	for gate := s.gates.ofClient(client); gate != nil; gate = s.gates.ofClient(client) {
		if err := awaitIn(s, gate, late); err != nil {
			return err
		}
	}
	return nil
}

// awaitIn waits for c, unless it is late or the server ends before.
func awaitIn[T any](s *Server, c <-chan T, late <-chan time.Time) error {
	select {
	case <-c:
		return nil
	case <-late:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case <-s.done:
		return net.ErrClosed
	}
}

// hostOf is lab.HostOf.
func (s *Server) hostOf(clientName string) string { return s.network.hostOf(clientName) }
