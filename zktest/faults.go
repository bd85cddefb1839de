package zktest

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Request is a request as an interceptor sees it, before it is processed.
type Request struct {
	Op      Op
	Xid     int32
	Path    string
	Paths   []string // of the steps of a multi
	Ops     []Op     // of the steps of a multi
	Data    []byte
	Flags   int32 // of a create
	Version int32
	Watch   bool
	Session int64 // 0 for a connect request without one
	Client  string
	Member  int
}

// Verdict is what an interceptor wants done with a request.
type Verdict struct {
	kind    verdictKind
	code    int32
	release <-chan struct{}
	delay   time.Duration
}

type verdictKind uint8

const (
	pass verdictKind = iota
	loseReply
	dropBefore
	dropReply
	answerCode
	hold
	delay
)

// The verdicts without parameters.
var (
	// Pass lets the request go its way.
	Pass = Verdict{}
	// LoseReply applies the request and closes the connection instead of answering.
	LoseReply = Verdict{kind: loseReply}
	// DropBefore closes the connection without applying the request.
	DropBefore = Verdict{kind: dropBefore}
	// DropReply applies the request and never answers it; the connection stays.
	DropReply = Verdict{kind: dropReply}
)

// Answer replies with an error code without applying the request. A connect
// request is answered as one for an expired session, whatever the code.
func Answer(code int32) Verdict { return Verdict{kind: answerCode, code: code} }

// Hold keeps the request, and what that connection sends after it, until
// release is closed; then the request is applied, unless the server has closed
// the connection meanwhile.
func Hold(release <-chan struct{}) Verdict { return Verdict{kind: hold, release: release} }

// Delay is Hold for a time.
func Delay(d time.Duration) Verdict { return Verdict{kind: delay, delay: d} }

type interceptor struct{ fn func(*Request) Verdict }

// Intercept shows every request to fn before it is processed, in the goroutine
// of its connection and with no lock held. Every interceptor sees every
// request; the first verdict that is not Pass counts. The request belongs to fn
// only during the call.
func (s *Server) Intercept(fn func(*Request) Verdict) (remove func()) {
	in := &interceptor{fn}
	s.editInterceptors(func(list []*interceptor) []*interceptor { return append(list, in) })
	return func() {
		s.editInterceptors(func(list []*interceptor) []*interceptor {
			return slices.DeleteFunc(list, func(other *interceptor) bool { return other == in })
		})
	}
}

func (s *Server) editInterceptors(edit func([]*interceptor) []*interceptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*interceptor
	if old := s.interceptors.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = edit(list)
	s.interceptors.Store(&list)
}

// fate is what the interceptors left of a request's normal course.
type fate struct {
	lose, mute, answer bool
	code               int32
}

// judge asks the interceptors and carries out what comes before processing.
// False means the request is not to be processed.
func (c *conn) judge(r *call, adjust func(*Request)) (fate, bool) {
	list := c.s.interceptors.Load()
	if list == nil || len(*list) == 0 {
		return fate{}, true
	}
	shown := c.show(r)
	if adjust != nil {
		adjust(shown)
	}
	var v Verdict
	for _, in := range *list {
		if w := in.fn(shown); v.kind == pass {
			v = w
		}
	}
	return c.carryOut(v)
}

func (c *conn) carryOut(v Verdict) (fate, bool) {
	switch v.kind {
	case dropBefore:
		c.s.drop(c)
		return fate{}, false
	case loseReply:
		return fate{lose: true}, true
	case dropReply:
		return fate{mute: true}, true
	case answerCode:
		return fate{answer: true, code: v.code}, true
	case hold:
		select {
		case <-v.release:
		case <-c.dead:
			return fate{}, false
		}
	case delay:
		return fate{}, c.until(c.s.now() + v.delay)
	}
	return fate{}, true
}

func (c *conn) show(r *call) *Request {
	shown := &Request{
		Op: r.op, Xid: r.xid, Path: r.path, Data: r.data, Flags: r.flags, Version: r.version, Watch: r.watch,
		Client: c.client, Member: c.member.id,
	}
	for i := range r.subs {
		shown.Ops = append(shown.Ops, r.subs[i].op)
		shown.Paths = append(shown.Paths, r.subs[i].path)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.sess != nil {
		shown.Session = c.sess.id
	}
	return shown
}

type txnHook struct{ fn func(Txn) }

// OnTxn calls fn for each transaction at the moment the leader applies it, in
// the order of their zxids. fn runs under the server's lock: it must be quick
// and must not call the server.
func (s *Server) OnTxn(fn func(Txn)) (remove func()) {
	h := &txnHook{fn}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.txnHooks = append(slices.Clone(s.txnHooks), h)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.txnHooks = slices.DeleteFunc(slices.Clone(s.txnHooks), func(other *txnHook) bool { return other == h })
	}
}

// alter runs a change of who can talk to whom and its consequences.
func (s *Server) alter(fn func(now time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := s.now()
	fn(now)
	s.reconcile(now)
	s.armNext(now)
}

// ExpireSession ends a session now, or as soon as the leader has a quorum, as
// if its timeout had passed: its ephemerals go, its connection is closed.
func (s *Server) ExpireSession(id int64) {
	s.alter(func(now time.Duration) {
		if sess := s.sessions[id]; sess != nil {
			sess.doomed, sess.wakeAt = true, now
			heap.Push(&s.expiries, expiryItem{now, sess})
		}
	})
}

// DropConnections closes every connection of every member. Sessions live on.
func (s *Server) DropConnections() {
	s.alter(func(time.Duration) {
		for _, m := range s.members {
			m.dropConns()
		}
	})
}

// Partition loses everything between a client (by its DialFrom name) and the
// servers, both ways and silently: no connection is closed, what is sent waits
// for HealClient, dials time out.
func (s *Server) Partition(clientName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partitions[clientName] == nil {
		s.partitions[clientName] = make(chan struct{})
		s.gates.Add(1)
	}
}

// HealClient ends a partition. What was on the way arrives, as TCP would have it.
func (s *Server) HealClient(clientName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gate := s.partitions[clientName]; gate != nil {
		delete(s.partitions, clientName)
		s.gates.Add(-1)
		close(gate)
	}
}

// Restart restarts all members that run: connections and watches are gone; data,
// zxid and sessions stay, and each session gets a full timeout again.
func (s *Server) Restart() {
	s.alter(func(now time.Duration) {
		for _, m := range s.members {
			m.thaw(now)
			m.shut()
		}
		s.leader, s.aloneSince, s.electAt = nil, never, never
		if best := s.candidate(); best != nil {
			s.lead(best, now)
		}
	})
}

// Wipe replaces the ensemble by a new, empty one at the same addresses: no
// data, no sessions, zxid 0. Clients that have seen the old one's data are
// turned away for as long as they remember its zxid.
func (s *Server) Wipe() {
	s.alter(func(now time.Duration) {
		for _, m := range s.members {
			m.thaw(now)
			m.dropConns()
		}
		s.reset(now)
	})
}

// ElectLeader moves the leadership, as an election would: all clients are
// dropped, a new epoch begins, and every session gets a full timeout again. The
// member must run and be in touch with the others. A leader that is cut off does
// not hear of it: for SyncLimit ticks it goes on answering reads and pings, and
// takes its sessions back when their clients come again, without asking anybody.
func (s *Server) ElectLeader(i int) {
	s.alter(func(now time.Duration) {
		m := s.members[i]
		if !m.reachable() || s.candidate() == nil {
			panic(fmt.Sprintf("zktest: member %d cannot be elected: it is stopped, frozen or cut off", i))
		}
		switch {
		case s.leader == nil:
		case s.leader.cut && s.leader != m:
			s.usurp()
		default:
			s.depose()
		}
		if best := s.candidate(); m.logged < best.logged {
			m.tree, m.logged = best.tree.clone(), best.logged // it hears of what it missed before it leads
		}
		s.lead(m, now)
	})
}

// CutOff cuts the member off from the other members. It goes on answering its
// own clients from what it has, pings too, for SyncLimit ticks; writes get no
// answer. Then it drops its clients and takes no more.
func (m *Member) CutOff() { m.s.alter(func(time.Duration) { m.cut = true }) }

// Rejoin ends CutOff.
func (m *Member) Rejoin() { m.s.alter(func(now time.Duration) { m.cut, m.backAt = false, now }) }

// Lag makes a follower apply each commit d late; 0 catches up at once. A leader
// does not lag.
func (m *Member) Lag(d time.Duration) {
	m.s.alter(func(now time.Duration) {
		m.lag = d
		if d > 0 {
			return
		}
		for i := range m.backlog {
			m.backlog[i].due = now
		}
	})
}

// Freeze stops the member as SIGSTOP does: it accepts connections and bytes,
// and does nothing with them. Its peers lose touch with it.
func (m *Member) Freeze() {
	m.s.alter(func(time.Duration) {
		if !m.frozen {
			m.frozen, m.thawed = true, make(chan struct{})
			m.s.gates.Add(1)
		}
	})
}

// Thaw ends Freeze.
func (m *Member) Thaw() { m.s.alter(m.thaw) }

func (m *Member) thaw(now time.Duration) {
	if !m.frozen {
		return
	}
	if !m.serving {
		m.dropConns() // its leadership or its leader is long gone
	}
	m.frozen, m.backAt = false, now
	m.s.gates.Add(-1)
	close(m.thawed)
}

// Stop kills the member: its connections are dropped, dials are refused. What
// it had committed is kept.
func (m *Member) Stop() {
	m.s.alter(func(now time.Duration) {
		m.thaw(now)
		m.stopped = true
		m.dropConns()
		if m != m.s.leader { // a leader is deposed, with its followers
			m.shut()
		}
	})
	m.s.syncListener(m)
}

// Start ends Stop.
func (m *Member) Start() {
	m.s.alter(func(time.Duration) { m.stopped = false })
	m.s.syncListener(m)
}

// Refuse makes the member refuse new connections, or take them again. Those it
// has stay.
func (m *Member) Refuse(refuse bool) {
	m.s.alter(func(time.Duration) { m.refusing = refuse })
	m.s.syncListener(m)
}

// SetChildCounter sets a node's internal count of created children, which is
// the next sequence number below it. It does so without a transaction, on the
// leader and on all members that are not behind: those learn it from the next
// create. A missing node panics: the test has forgotten to create it.
func (s *Server) SetChildCounter(path string, creates int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader == nil || s.leader.tree.get(path) == nil {
		panic(fmt.Sprintf("zktest: no node %q to set the child counter of", path))
	}
	for _, m := range s.members {
		// Creates that are still to be applied would count as older than the counter.
		if n := m.tree.get(path); n != nil && (m == s.leader || len(m.backlog) == 0) {
			n.creates = creates
		}
	}
}

// DeleteNode deletes a node as a third party with all rights would, in a
// transaction of its own. A node with children stays, and is an error.
func (s *Server) DeleteNode(path string) error {
	return s.intrude(&call{op: OpDelete, path: path, version: -1})
}

// PutNode makes a node, with persistent parents as needed, or sets its data if
// it exists, as a third party would.
func (s *Server) PutNode(path string, data []byte) error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if _, ok := s.Node(path[:i]); !ok {
			if err := s.intrude(&call{op: OpCreate, path: path[:i], data: []byte{}, acl: openACL, ttl: -1}); err != nil {
				return err
			}
		}
	}
	if _, ok := s.Node(path); ok {
		return s.intrude(&call{op: OpSetData, path: path, data: data, version: -1})
	}
	return s.intrude(&call{op: OpCreate, path: path, data: data, acl: openACL, ttl: -1})
}

// intrude commits a write of the server's own, past all access lists.
func (s *Server) intrude(r *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.canCommit() {
		return fmt.Errorf("zktest: %v %s: no leader with a quorum", r.op, r.path)
	}
	if t := s.execute(r, 0, superuser, nil); t.code != CodeOK {
		return fmt.Errorf("zktest: %v %s: error code %d", r.op, strings.ToValidUTF8(r.path, "?"), t.code)
	}
	return nil
}
