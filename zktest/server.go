// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Server is an ensemble of one or more members with one replicated state. Its
// methods may be called from any goroutine, but not from the function passed to
// OnTxn.
type Server struct {
	// The clock, the network with its gates and latencies, the interceptors and the
	// traffic counters are outside the ensemble; each has its own lock. The ensemble
	// itself is guarded by a single lock. It consists of
	//
	//   - a membership: which member leads, which can reach each other, which would be elected
	//   - a replica for each member: its tree, watches, connections and link
	//   - the sessions with the leader's expirer
	//   - a courier, which carries the messages between members
	//   - a proposer, which orders and commits requests
	//   - a router, which takes requests and touches to the place that handles them
	//
	// A connection has a pipe, which moves bytes and knows nothing about requests,
	// credentials, and a reader of its member's replica.
	opts         Options
	log          *slog.Logger
	clock        *clock
	gates        *gates
	network      *network
	traffic      *traffic
	interceptors interceptors
	members      []*Member

	wg   sync.WaitGroup
	done chan struct{} // closed by Close

	listenMu sync.Mutex // held while sockets are opened and closed; acquired before mu

	mu      sync.Mutex // never held during a wait or I/O
	ens     *ensemble  // guarded by mu, like the fields below
	closed  bool
	live    map[connection]struct{} // contains every connection that still has goroutines
	scratch encoder
}

// connection is a client's connection, which the server can end.
type connection interface {
	client
	hangUp()
}

// Member is one server of the ensemble: a replica of the data with its own
// connections and watches.
type Member struct {
	s *Server
	r *replica // guarded by Server.mu

	// listen opens the member's socket; nil if it has none. Guarded by Server.listenMu.
	listen   func(network, address string) (net.Listener, error)
	listener net.Listener // nil if there is no socket, or while it is closed; guarded by Server.mu
}

// start starts a server. opts must be complete.
func start(opts Options) *Server {
	s := &Server{
		opts: opts, log: opts.Logger, clock: newClock(), gates: newGates(), traffic: newTraffic(),
		network: newNetwork(&opts), done: make(chan struct{}), live: make(map[connection]struct{}),
	}
	s.ens = newEnsemble(&s.opts, s.clock)
	for _, r := range s.ens.peers.members {
		s.members = append(s.members, &Member{s: s, r: r})
	}
	s.alter(func(now time.Duration) { s.ens.reset(nil, now) })
	s.wg.Add(1)
	// Owned by the server; Close stops it and waits for it.
	go s.run()
	return s
}

// alter changes the members or their connectivity, and applies the consequences.
func (s *Server) alter(fn func(now time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.ens.alter(fn)
	}
}

// run handles everything that happens at a certain time: expiries, delayed
// commits, deadlines of members that lost contact, elections, the reaper. It
// sleeps until the next of them, so an idle server costs nothing.
func (s *Server) run() {
	defer s.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, ok := s.runDue()
		if !ok {
			return
		}
		timer.Reset(min(next-s.clock.now(), 1000*time.Hour))
		select {
		case <-timer.C:
		case <-s.clock.wake:
		case <-s.done:
			return
		}
	}
}

// runDue handles what is due and returns when to call it again. It then writes
// the log lines that were produced while the lock was held.
func (s *Server) runDue() (next time.Duration, ok bool) {
	s.mu.Lock()
	if !s.closed {
		s.ens.runDue(s.clock.now())
	}
	next, ok = s.clock.alarm, !s.closed
	lines := s.ens.journal.takeAll()
	s.mu.Unlock()
	for _, write := range lines {
		write()
	}
	return next, ok
}

// await waits until a condition holds. It calls holds with mu held after each change.
func (s *Server) await(ctx context.Context, what string, holds func() bool) error {
	for {
		s.mu.Lock()
		met, changed := holds(), s.ens.bell.next()
		s.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("zktest: waiting for %s: %w", what, context.Cause(ctx))
		case <-s.done:
			return fmt.Errorf("zktest: waiting for %s: the server is closed", what)
		}
	}
}

// pause waits for d. It returns false if the server is closed first.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.done:
		return false
	}
}

// freeze stops a member.
func (s *Server) freeze(r *replica) {
	r.frozen = true
	s.gates.shutMember(r.id)
}

// thaw ends the freeze of a member if it is frozen.
func (s *Server) thaw(r *replica, now time.Duration) {
	if r.frozen {
		s.ens.thaw(r, now)
		s.gates.openMember(r.id)
	}
}

// forget removes a connection whose socket is closed.
func (s *Server) forget(c connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, c)
}

// drop closes a connection from one of its own goroutines.
func (s *Server) drop(c connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.close()
}
