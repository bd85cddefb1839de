// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeConn is a connection of a replica under test.
type fakeConn struct {
	ear
	sess   *session
	ready  bool // whether drain has nothing left to wait for
	drains int
	ended  string // how it was ended, "" if it was not
	r      *replica
}

func (g *fakeConn) session() (*session, time.Duration) { return g.sess, term }
func (g *fakeConn) drain() bool                        { g.drains++; return g.ready }
func (g *fakeConn) info() connInfo                     { return connInfo{} }
func (g *fakeConn) resetCounts()                       {}
func (g *fakeConn) close()                             { g.finish("closed") }
func (g *fakeConn) abort()                             { g.finish("aborted") }

func (g *fakeConn) finish(how string) {
	g.ended = how
	g.r.dismiss(g)
}

// follower is a replica that serves, and its bell.
func follower(t *testing.T) *replica {
	opts := Options{Servers: 3}
	require.NoError(t, opts.complete())
	r := newReplica(1, &opts, newClock(), &bell{}, rand.New(rand.NewPCG(1, 1)))
	r.clear()
	r.serving = true
	return r
}

// attach connects a session to a replica.
func attach(r *replica, id int64) *fakeConn {
	g := &fakeConn{ear: ear{id: id}, sess: &session{id: id}, r: r, ready: true}
	r.admit(g)
	r.attach(id, g)
	return g
}

// made is a transaction that creates a node at the root.
func made(zxid int64, path string) *txn {
	return &txn{zxid: zxid, op: OpCreate, changes: []change{{kind: changeCreate, path: path, acl: openACL, creates: int32(zxid)}}}
}

func TestACommitIsAppliedAtOnceOrAsLateAsTheReplicaLags(t *testing.T) {
	r := follower(t)
	r.log(made(1, "/a"), 0)
	assert.Equal(t, int64(1), r.tree.zxid)
	r.setLag(10, 0)
	r.log(made(2, "/b"), 5)
	r.setLag(1, 6)
	r.log(made(3, "/c"), 6)
	assert.Equal(t, [2]int64{1, 3}, [2]int64{r.tree.zxid, r.logged}, "it is in the log all the same")
	assert.Equal(t, time.Duration(15), r.clock.alarm)
	r.deliver(14)
	assert.Nil(t, r.tree.get("/b"))
	r.deliver(15)
	assert.NotNil(t, r.tree.get("/c"), "none overtakes another")
	assert.Nil(t, r.backlog)
	r.setLag(time.Hour, 20)
	r.log(made(4, "/d"), 20)
	r.setLag(0, 21)
	r.deliver(21)
	assert.NotNil(t, r.tree.get("/d"), "with no lag it catches up")
}

func TestAFrozenReplicaAppliesNothing(t *testing.T) {
	r := follower(t)
	r.frozen = true
	r.log(made(1, "/a"), 0)
	assert.Nil(t, r.tree.get("/a"))
	assert.False(t, r.reachable())
	assert.True(t, r.takesConns(), "the kernel does")
	r.thaw()
	r.deliver(1)
	assert.NotNil(t, r.tree.get("/a"))
}

func TestAReplicaThatShutsDownAppliesItsLog(t *testing.T) {
	r, c := follower(t), (*fakeConn)(nil)
	c = attach(r, 7)
	r.setLag(time.Hour, 0)
	r.log(made(1, "/a"), 0)
	r.link.down.send(downFrame{txn: made(2, "/b")}, 0)
	r.link.down.send(downFrame{txn: made(3, "/c")}, 0)
	r.logged = 2
	r.shut()
	assert.Equal(t, "aborted", c.ended)
	assert.NotNil(t, r.tree.get("/b"))
	assert.Nil(t, r.tree.get("/c"), "it had not reached the log")
	assert.True(t, r.takesConns(), "and hangs up when it is asked for a session")
	assert.Empty(t, r.clients)
	assert.Empty(t, r.attached)
}

func TestTheEndOfASessionClosesItsConnectionElsewhere(t *testing.T) {
	r := follower(t)
	asking, idle := attach(r, 7), attach(r, 8)
	r.apply(&txn{zxid: 1, op: OpCloseSession, session: 7, origin: &entry{c: asking, by: requester{member: r.id}}})
	assert.Empty(t, asking.ended, "the member that requested it gets a reply first")
	assert.Equal(t, 1, asking.drains)
	r.apply(&txn{zxid: 2, op: OpCloseSession, session: 8})
	assert.Equal(t, "closed", idle.ended)
	r.apply(&txn{zxid: 3, op: OpCloseSession, session: 9})
}

func TestRepliesThatWaitForCommitsAreTriedAfterEach(t *testing.T) {
	r := follower(t)
	c := attach(r, 7)
	c.ready = false
	r.awaitCommits(c)
	r.apply(made(1, "/a"))
	assert.Equal(t, 2, c.drains)
	c.ready = true
	r.apply(made(2, "/b"))
	r.apply(made(3, "/c"))
	assert.Equal(t, 3, c.drains, "it waits no more")
}

func TestEveryChangeWakesTheWaiters(t *testing.T) {
	r := follower(t)
	rung := func(do func()) bool {
		next := r.bell.next()
		do()
		select {
		case <-next:
			return true
		default:
			return false
		}
	}
	assert.True(t, rung(func() { r.apply(made(1, "/a")) }))
	c := attach(r, 7)
	assert.True(t, rung(c.close), "its watches are gone")
	assert.False(t, rung(func() { r.setLag(1, 0) }))
}

func TestALeaderFillsInTheResults(t *testing.T) {
	r := follower(t)
	one := made(1, "/a")
	one.results = []result{{op: OpCreate2, path: "/a"}}
	r.commit(one, 0)
	assert.Equal(t, int64(1), one.results[0].stat.Czxid)
	failed := &txn{zxid: 2, op: OpCreate, code: CodeNoNode, results: []result{{op: OpCreate, code: CodeNoNode}}}
	r.commit(failed, 0)
	assert.Equal(t, int64(2), r.tree.zxid, "a failure takes a zxid too")
}

func TestAClosedConnectionKeepsNoWatchesAndLeavesAMovedSession(t *testing.T) {
	r := follower(t)
	old := attach(r, 7)
	r.watches.data.add("/x", old, watchOnce)
	moved := attach(r, 7) // before the old one is closed
	old.close()
	assert.Same(t, moved, r.attached[7])
	assert.Zero(t, r.watches.count())
	r.closeSession(7)
	assert.Equal(t, "closed", moved.ended)
	assert.Empty(t, r.attached)
}

func TestAnEntryIsReadyWhenItsMemberHasTheNeededZxid(t *testing.T) {
	e := &entry{call: &call{op: OpSync}}
	assert.False(t, e.ready(100), "the leader has not spoken")
	e.decide(5, CodeOK)
	assert.False(t, e.ready(4))
	assert.True(t, e.ready(5))
	e.txn = &txn{zxid: 9, code: CodeSessionMoved}
	assert.False(t, e.ready(8))
	assert.True(t, e.ready(9))
	assert.True(t, e.moved())
}

func TestARefusedMultiAnswersEachStep(t *testing.T) {
	m := &txn{op: OpMulti, session: 7}
	m.add(OpCheck, change{path: "/a"})
	m.refuse([]call{{path: "/a"}, {path: "/b"}, {path: "/c"}}, 1, CodeNoNode)
	assert.Empty(t, m.changes)
	assert.Equal(t, []result{
		{op: opError, path: "/a"}, {op: opError, path: "/b", code: CodeNoNode}, {op: opError, path: "/c", code: CodeRuntimeInconsistency},
	}, m.results)
	shown := m.show()
	assert.Equal(t, CodeNoNode, shown.Code)
	require.Len(t, shown.Steps, 3)
	assert.Equal(t, "/b", shown.Steps[1].Path)
}
