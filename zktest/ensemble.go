package zktest

import (
	"fmt"
	"maps"
	"net"
	"time"
)

// electionTime is how long members without a leader take to agree on one.
const electionTime = 200 * time.Millisecond

// Member is one server of the ensemble: a replica of the data with its own
// connections and watches.
type Member struct {
	s  *Server
	id int

	// All of the following is guarded by Server.mu.
	tree      *tree
	watches   *watches
	conns     map[*conn]struct{}
	bySession map[int64]*conn
	syncs     []*conn // connections whose next reply waits for a commit of somebody else's

	serving  bool // has data that a quorum vouched for, and takes clients
	stopped  bool
	cut      bool
	frozen   bool
	refusing bool
	lag      time.Duration
	thawed   chan struct{} // closed when it is thawed
	lostAt   time.Duration // when it lost touch with its leader; never if it has not
	backAt   time.Duration // when it was thawed or rejoined last
	// Of a leader that was cut off when another was elected, until it knows: the
	// sessions that it goes on serving as if it led them.
	subjects map[int64]*session
	epoch    int64      // the leader's epoch it follows
	logged   int64      // the last zxid that reached it
	backlog  []delivery // committed, but not applied here yet

	listener net.Listener // nil without a real socket
	address  string
	virtual  string

	received, sent int64 // packets, for the four-letter words
}

// delivery is a committed transaction on its way to a follower.
type delivery struct {
	t   *txn
	due time.Duration
}

func newMember(s *Server, id int) *Member {
	// An IP literal, so that the client's host provider needs no name service.
	addr := fmt.Sprintf("127.0.0.%d:2181", id+1)
	return &Member{
		s: s, id: id, address: addr, virtual: addr, backAt: never,
		conns: make(map[*conn]struct{}), bySession: make(map[int64]*conn),
	}
}

// reachable says whether other members can talk to it.
func (m *Member) reachable() bool { return !m.stopped && !m.cut && !m.frozen }

func (s *Server) quorum() int { return len(s.members)/2 + 1 }

// inTouch says whether a member can talk to its leader now.
func (s *Server) inTouch(m *Member) bool {
	if s.leader == nil || !m.serving || m.epoch != s.epoch {
		return false
	}
	if m == s.leader {
		return !m.stopped && !m.frozen
	}
	return m.reachable() && s.leader.reachable()
}

// canCommit says whether the leader has a quorum to commit with.
func (s *Server) canCommit() bool {
	return s.leader != nil && s.inTouch(s.leader) && s.followers() >= s.quorum()
}

// followers counts the members in touch with the leader, itself included.
func (s *Server) followers() int {
	count := 0
	for _, m := range s.members {
		if s.inTouch(m) {
			count++
		}
	}
	return count
}

// replicate passes a committed transaction on to a follower. One that is out of
// touch gets it when it is back: until then it is in the leader's send queue.
func (s *Server) replicate(m *Member, t *txn) {
	if !m.serving {
		return // gets a copy of the whole tree when it joins
	}
	now := s.now()
	due := now + m.lag
	if n := len(m.backlog); n > 0 {
		due = max(due, m.backlog[n-1].due)
	}
	if s.inTouch(m) {
		m.logged = t.zxid
	}
	m.backlog = append(m.backlog, delivery{t, due})
	m.deliver(now)
}

// deliver applies what has reached the member and is due.
func (m *Member) deliver(now time.Duration) {
	for len(m.backlog) > 0 && !m.frozen {
		d := m.backlog[0]
		if d.t.zxid > m.logged {
			return
		}
		if d.due > now {
			m.s.arm(d.due)
			return
		}
		m.backlog = m.backlog[1:]
		m.apply(d.t, false)
	}
	if len(m.backlog) == 0 {
		m.backlog = nil
	}
}

// releaseSyncs lets go on whoever waited for a commit that is not their own.
func (m *Member) releaseSyncs() {
	if len(m.syncs) == 0 {
		return
	}
	waiting := m.syncs
	m.syncs = nil
	for _, c := range waiting {
		if !c.drain() {
			m.syncs = append(m.syncs, c)
		}
	}
}

// reconcile brings the ensemble in line with who can talk to whom. It runs
// after every change of that and at every deadline that comes of it. The
// caller holds mu.
func (s *Server) reconcile(now time.Duration) {
	s.checkContacts(now)
	s.checkLeader(now)
	if s.leader == nil {
		s.elect(now)
	}
	if s.leader != nil {
		s.joinAll()
	}
	for _, m := range s.members {
		m.deliver(now)
	}
	s.expireDue(now)
	s.submitStuck()
}

func (s *Server) syncLimit() time.Duration { return time.Duration(s.opts.SyncLimit) * s.opts.TickTime }

// checkContacts notes which followers lost or regained their leader, and shuts
// those that have been without for syncLimit ticks.
func (s *Server) checkContacts(now time.Duration) {
	for _, m := range s.members {
		if m == s.leader || !m.serving {
			continue
		}
		switch {
		case s.inTouch(m):
			s.regained(m, now)
		case m.lostAt == never:
			m.lostAt = now
			s.detachTouches(m, now)
			s.arm(now + s.syncLimit())
		case now >= m.lostAt+s.syncLimit():
			s.note("member gave up its leader", "member", m.id)
			m.shut()
		case m.reachable() && (s.leader == nil || s.leader.reachable()):
			// Back in time, but what it followed is history: it must start over.
			m.shut()
		default:
			s.arm(m.lostAt + s.syncLimit())
		}
	}
}

// regained ends a loss of contact that was short enough: what the leader had
// sent meanwhile arrives now, pings among it, and their answers carry the
// touches before anything that is committed later comes to the follower. Only
// a leader that was away itself has sent none: touches go with its next ping.
func (s *Server) regained(m *Member, now time.Duration) {
	if m.lostAt == never {
		return
	}
	m.lostAt = never
	if n := len(m.backlog); n > 0 {
		m.logged = m.backlog[n-1].t.zxid
	}
	answer := now
	if s.leader.backAt == now {
		answer = s.nextPing(now)
	}
	for _, sess := range s.sessions {
		if sess.pendingBy == m && sess.pendingAt == never {
			sess.pendingAt = answer
		}
	}
}

// detachTouches keeps back what the member has not told the leader yet.
func (s *Server) detachTouches(m *Member, now time.Duration) {
	for _, sess := range s.sessions {
		sess.settle(now)
		if sess.pendingBy == m {
			sess.pendingAt = never
		}
	}
}

// checkLeader deposes a leader that is dead, or that has had no quorum for
// syncLimit ticks.
func (s *Server) checkLeader(now time.Duration) {
	switch l := s.leader; {
	case l == nil:
	case l.stopped:
		s.depose()
	case len(s.members) == 1:
		// a server alone needs nobody's vote, however long it was frozen
	case s.canCommit():
		s.aloneSince = never
	case s.aloneSince == never:
		s.aloneSince = now
		s.arm(now + s.syncLimit())
	case now >= s.aloneSince+s.syncLimit():
		s.depose()
	default:
		s.arm(s.aloneSince + s.syncLimit())
	}
}

// depose ends a leadership. The followers that are linked to the leader notice
// at once; the others by their own deadline.
func (s *Server) depose() {
	old := s.leader
	s.dismissFollowers()
	old.shut()
	s.leader, s.aloneSince = nil, never
}

func (s *Server) dismissFollowers() {
	s.note("leader deposed", "member", s.leader.id)
	for _, m := range s.members {
		if m != s.leader && m.serving && m.epoch == s.epoch && m.reachable() {
			m.shut()
		}
	}
}

// usurp ends the leadership of a member that is cut off and does not know: for
// as long as any other that has lost its leader it goes on serving its clients.
func (s *Server) usurp() {
	s.dismissFollowers()
	s.leader.subjects = maps.Clone(s.sessions)
	s.leader, s.aloneSince = nil, never
}

// shut takes a member out of service: its clients are dropped, and what they
// had asked for and was not committed is lost. A frozen one drops them when it
// is thawed.
func (m *Member) shut() {
	m.serving, m.lostAt, m.syncs, m.subjects = false, never, nil, nil
	m.s.dropStuck(m)
	if !m.frozen {
		m.dropConns()
	}
	for _, d := range m.backlog { // what is in its log is not lost with its memory
		if d.t.zxid <= m.logged {
			m.apply(d.t, false)
		}
	}
	m.backlog = nil
}

func (m *Member) dropConns() {
	for c := range m.conns {
		c.abort()
	}
}

// elect lets a quorum of members that can talk to each other choose a leader,
// which takes them a moment.
func (s *Server) elect(now time.Duration) {
	best := s.candidate()
	switch {
	case best == nil:
		s.electAt = never
	case len(s.members) == 1:
		s.lead(best, now)
	case s.electAt == never:
		s.electAt = now + electionTime
		s.arm(s.electAt)
	case now >= s.electAt:
		s.lead(best, now)
	default:
		s.arm(s.electAt)
	}
}

// candidate is the member that a quorum would elect: the one that has seen
// most, and of those the last. There is none without a quorum.
func (s *Server) candidate() *Member {
	var best *Member
	count := 0
	for _, m := range s.members {
		if !m.reachable() && len(s.members) > 1 || m.stopped {
			continue
		}
		count++
		if best == nil || m.logged >= best.logged {
			best = m
		}
	}
	if count < s.quorum() {
		return nil
	}
	return best
}

// lead makes a member the leader of a new epoch. Every session gets a full
// timeout again, whoever it writes through.
func (s *Server) lead(m *Member, now time.Duration) {
	s.leader, s.leaderSince, s.reapedAt = m, now, now
	s.electAt, s.aloneSince = never, never
	s.epoch++
	if len(s.members) > 1 {
		s.zxid = s.epoch << 32
	}
	m.serving, m.lostAt, m.epoch, m.logged, m.tree.zxid = true, never, s.epoch, s.zxid, s.zxid
	s.expiries = nil
	for _, sess := range s.sessions {
		s.renew(sess, now)
	}
	s.note("leader elected", "member", m.id, "epoch", s.epoch)
}

// joinAll gives each member that can reach the leader the leader's data. What
// it had of its own is gone, if the leader does not have it.
func (s *Server) joinAll() {
	for _, m := range s.members {
		if m.serving || !m.reachable() || !s.leader.reachable() {
			continue
		}
		m.tree = s.leader.tree.clone()
		m.serving, m.lostAt, m.epoch, m.logged, m.backlog = true, never, s.epoch, m.tree.zxid, nil
	}
	if s.canCommit() {
		s.aloneSince = never
	}
}

// submit sends a request to the leader, or keeps it until the way is free.
func (s *Server) submit(e *entry) {
	if !s.canSubmit(e.c.member, e.call) {
		s.stuck = append(s.stuck, e)
		return
	}
	s.propose(e)
}

// canSubmit says whether a member's requests reach the leader and are committed
// there. A sync needs no quorum, only the leader.
func (s *Server) canSubmit(m *Member, r *call) bool {
	if !s.inTouch(m) {
		return false
	}
	return s.canCommit() || r != nil && r.op == OpSync && len(s.stuck) == 0
}

// submitStuck sends what could not be sent before, in the order it came.
func (s *Server) submitStuck() {
	waiting := s.stuck
	s.stuck = nil
	for _, e := range waiting {
		s.submit(e)
	}
}

func (s *Server) dropStuck(m *Member) {
	kept := s.stuck[:0]
	for _, e := range s.stuck {
		if e.c.member != m {
			kept = append(kept, e)
		}
	}
	s.stuck = kept
}
