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

// Addr is the member's address.
func (m *Member) Addr() string {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.address
}

// Listen opens one socket per member: the first at addr, the others at the same
// host with the port counted up, or any free port if addr's is 0. It fails if a
// member has a socket already.
func (s *Server) Listen(addr string) error {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	for i, m := range s.allMembers() {
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

// Listen opens a socket of the member's own by calling listen, as with net.Listen
// or what wraps it for TLS. A member that was stopped calls it again, with the
// address that it had.
func (m *Member) Listen(addr string, listen func(network, address string) (net.Listener, error)) error {
	s := m.s
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	if m.listen != nil {
		return fmt.Errorf("zktest: listen at %s: member %d listens at %s already", addr, m.id, m.Addr())
	}
	if err := s.listenOne(m, addr, listen); err != nil {
		return err
	}
	m.listen = listen
	return nil
}

// listenOne opens a member's socket. The caller holds listenMu.
func (s *Server) listenOne(m *Member, addr string, listen func(network, address string) (net.Listener, error)) error {
	l, err := listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("zktest: listen: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		return net.ErrClosed
	}
	m.listener, m.address = l, l.Addr().String()
	s.wg.Add(1)
	// Owned by the member; closing the listener stops it, Close waits for it.
	go s.accept(m, l)
	return nil
}

// acceptPause is how long a socket rests that could not accept, for want of file
// descriptors for instance.
const acceptPause = 20 * time.Millisecond

func (s *Server) accept(m *Member, l net.Listener) {
	defer s.wg.Done()
	for {
		nc, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.log.Warn("cannot accept", "member", m.id, "error", err)
			if !s.pause(acceptPause) {
				return
			}
			continue
		}
		remote := nc.RemoteAddr().String()
		if err := s.admit(m, nc, remote, remote); err != nil {
			_ = nc.Close()
		}
	}
}

// admit starts to serve a new connection, unless the member takes none.
func (s *Server) admit(m *Member, nc net.Conn, client, remote string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || m.stopped || m.refusing || !m.serving && !m.frozen {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	s.newConn(m, nc, client, remote).start()
	return nil
}

// closeListener closes a member's socket, if it has one, and keeps its
// address. The caller holds listenMu.
func (s *Server) closeListener(m *Member) {
	s.mu.Lock()
	l := m.listener
	m.listener = nil
	s.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
}

// syncListener opens or closes a member's real socket according to whether the
// member takes connections, at the address it had.
func (s *Server) syncListener(m *Member) {
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	s.mu.Lock()
	open, wanted := m.listener != nil, !m.stopped && !m.refusing && !s.closed
	addr := m.address
	s.mu.Unlock()
	switch {
	case m.listen == nil || open == wanted:
	case wanted:
		if err := s.listenOne(m, addr, m.listen); err != nil {
			s.log.Error("cannot listen again", "member", m.id, "error", err)
		}
	default:
		s.closeListener(m)
	}
}

// Dial connects to a member without any socket, over net.Pipe. It has the shape
// that go-zookeeper's WithDialer wants. Besides the members' addresses it knows
// zk1:2181, zk2:2181 and so on; any other address leads to member 0.
func (s *Server) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	return s.dial("", address, timeout)
}

// DialFrom is Dial with a name for the client, by which it can be partitioned. Each name has an
// address of its own, for access lists: see HostOf.
func (s *Server) DialFrom(clientName string) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return s.dial(clientName, address, timeout)
	}
}

func (s *Server) dial(client, address string, timeout time.Duration) (net.Conn, error) {
	if err := s.awaitLink(client, timeout); err != nil {
		return nil, err
	}
	m, remote := s.route(client, address)
	near, far := net.Pipe()
	if err := s.admit(m, far, client, remote); err != nil {
		return nil, err
	}
	return near, nil
}

// awaitLink waits while a client is partitioned, at most for timeout.
func (s *Server) awaitLink(client string, timeout time.Duration) error {
	s.mu.Lock()
	gate := s.partitions[client]
	s.mu.Unlock()
	if gate == nil {
		return nil
	}
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-gate:
		return s.awaitLink(client, timeout)
	case <-late:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case <-s.done:
		return net.ErrClosed
	}
}

// route finds the member at an address and makes up an address for the client.
func (s *Server) route(client, address string) (m *Member, remote string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialed++
	remote = fmt.Sprintf("%s:%d", s.hostOf(client), 30000+s.dialed%30000)
	for i, m := range s.members {
		if address == m.address || address == m.virtual || address == fmt.Sprintf("zk%d:2181", i+1) {
			return m, remote
		}
	}
	return s.members[0], remote
}

// HostOf returns the address that the named client of DialFrom comes from, in 127.1.0.0/16. Clients
// of Dial come from 127.0.0.1.
func (s *Server) HostOf(clientName string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hostOf(clientName)
}

func (s *Server) hostOf(clientName string) string {
	if clientName == "" {
		return "127.0.0.1"
	}
	n, known := s.hosts[clientName]
	if !known {
		n = len(s.hosts) + 1
		s.hosts[clientName] = n
	}
	return fmt.Sprintf("127.1.%d.%d", n>>8&0xff, n&0xff)
}
