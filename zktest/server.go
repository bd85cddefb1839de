package zktest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Server is a whole ensemble of one or more members over one replicated state.
// Its methods may be called from any goroutine, but not from inside OnTxn.
//
// Around the ensemble there are the clock, the network with its gates and
// latencies, the interceptors and the counts of the traffic; each has a lock of
// its own. The ensemble itself is guarded by one lock. It has
//
//   - a membership: who leads, who reaches whom, who would be elected
//   - a replica for each member: its tree, watches, connections and link
//   - the sessions with the leader's expirer
//   - a courier, which carries what members send to each other
//   - a proposer, which orders and commits what is asked for
//   - a router, which takes requests and touches to where they are decided
//
// A connection has a pipe, which moves bytes and knows no requests, credentials
// and a reader of its member's replica.
type Server struct {
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

	listenMu sync.Mutex // held while sockets are opened and closed, never with mu

	mu      sync.Mutex // held for moments only: never across a wait or I/O
	ens     *ensemble  // guarded by mu, as all of the following
	closed  bool
	live    map[connection]struct{} // contains every connection that still has goroutines
	scratch encoder
}

// connection is a client's connection as the server ends it.
type connection interface {
	client
	hangUp()
}

// Member is one server of the ensemble: a replica of the data with its own
// connections and watches.
type Member struct {
	s *Server
	r *replica // guarded by Server.mu

	// listen opens the member's socket; nil for one without. Guarded by Server.listenMu.
	listen   func(network, address string) (net.Listener, error)
	listener net.Listener // nil without a real socket, and while it is stopped; guarded by Server.mu
}

// start makes a server that runs, with options that are complete.
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

// alter carries out a change of the members or of what they reach, and its consequences.
func (s *Server) alter(fn func(now time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.ens.alter(fn)
	}
}

// run does whatever is due at a certain moment: expiries, late commits,
// deadlines of members that lost touch, elections, the reaper. It sleeps until
// the next of them, however far that is: an idle server costs nothing.
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

// runDue does what is due and returns when to look again. It writes the log
// lines that have come up while the lock was held.
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

// await waits until a condition holds, which it asks under mu after each change.
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

// pause waits and reports whether the server still runs.
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

// thaw ends the freeze of a member, if there is one.
func (s *Server) thaw(r *replica, now time.Duration) {
	if r.frozen {
		s.ens.thaw(r, now)
		s.gates.openMember(r.id)
	}
}

// forget notes that a connection's socket is closed.
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
