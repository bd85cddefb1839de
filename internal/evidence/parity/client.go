// SPDX-License-Identifier: Apache-2.0

// Package parity checks the behavior of a ZooKeeper server, with a table of rules and with random request sequences. Both use
// package wire, so the same checks run against zktest and against the real server.
package parity

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/evidence/wire"
)

// Dial opens a connection to the server under test.
type Dial func() (net.Conn, error)

// xidPing is the xid of every ping.
const xidPing = -2

// The request types, by their numbers on the wire.
const (
	opCreate          int32 = 1
	opDelete          int32 = 2
	opExists          int32 = 3
	opGetData         int32 = 4
	opSetData         int32 = 5
	opGetACL          int32 = 6
	opSetACL          int32 = 7
	opGetChildren     int32 = 8
	opSync            int32 = 9
	opPing            int32 = 11
	opGetChildren2    int32 = 12
	opCheck           int32 = 13
	opMulti           int32 = 14
	opCreate2         int32 = 15
	opCheckWatches    int32 = 17
	opRemoveWatches   int32 = 18
	opCreateContainer int32 = 19
	opCreateTTL       int32 = 21
	opMultiRead       int32 = 22
	opAuth            int32 = 100
	opSetWatches      int32 = 101
	opGetEphemerals   int32 = 103
	opAllChildren     int32 = 104
	opSetWatches2     int32 = 105
	opAddWatch        int32 = 106
	opWhoAmI          int32 = 107
	opClose           int32 = -11
)

// The flags of a create.
const (
	persistent int32 = 0
	ephemeral  int32 = 1
	sequential int32 = 2
	ephSeq     int32 = 3
	container  int32 = 4
	ttl        int32 = 5
	ttlSeq     int32 = 6
)

// event is a watch event.
type event struct {
	kind int32
	path string
}

// The types of events.
const (
	created  int32 = 1
	deleted  int32 = 2
	changed  int32 = 3
	children int32 = 4
)

// acl is one entry of an access list.
type acl struct {
	perms      int32
	scheme, id string
}

var world = []acl{{31, "world", "anyone"}}

func putACL(b *wire.Body, list []acl) *wire.Body {
	b.Int(int32(len(list)))
	for _, a := range list {
		b.Int(a.perms).Str(a.scheme).Str(a.id)
	}
	return b
}

func createBody(path string, data []byte, list []acl, flags int32) *wire.Body {
	return putACL(wire.NewBody().Str(path).Buf(data), list).Int(flags)
}

func ttlBody(path string, flags int32, ms int64) *wire.Body {
	return createBody(path, nil, world, flags).Long(ms)
}

func setBody(path string, data []byte, version int32) *wire.Body {
	return wire.NewBody().Str(path).Buf(data).Int(version)
}

func deleteBody(path string, version int32) *wire.Body { return wire.NewBody().Str(path).Int(version) }

func readBody(path string, watch bool) *wire.Body { return wire.NewBody().Str(path).Bool(watch) }

// sub is one step of a multi.
type sub struct {
	op   int32
	body *wire.Body
}

func multiBody(subs ...sub) *wire.Body {
	b := wire.NewBody()
	for _, s := range subs {
		b.Int(s.op).Bool(false).Int(-1).Add(s.body)
	}
	return b.Int(-1).Bool(true).Int(-1)
}

// subResult is one step's part of a multi's reply.
type subResult struct {
	op, err, code int32
	path          string
	stat          wire.Stat
	data          []byte
	names         []string
}

func parseMulti(p *wire.Parser) []subResult {
	var list []subResult
	for p.Err == nil {
		r := subResult{op: p.Int()}
		done := p.Bool()
		r.err = p.Int()
		if done {
			break
		}
		switch r.op {
		case -1:
			r.code = p.Int()
		case opCreate:
			r.path = p.Str()
		case opCreate2, opCreateContainer, opCreateTTL:
			r.path, r.stat = p.Str(), p.Stat()
		case opSetData:
			r.stat = p.Stat()
		case opGetChildren:
			r.names = p.Strs()
		case opGetData:
			r.data, r.stat = p.Buf(), p.Stat()
		}
		list = append(list, r)
	}
	return list
}

// client is a session on a wire.Conn. It sends one request at a time and keeps
// the events that arrive in between.
type client struct {
	t       testing.TB
	dial    Dial
	wire    *wire.Conn
	sess    wire.Session
	xid     int32
	events  []event
	version int32 // for rules that wait for a change
	beats   int32 // atomic: number of pings whose replies have not arrived
}

// reply is the answer to a request; p reads its body.
type reply struct {
	zxid int64
	err  int32
	p    *wire.Parser
}

// Version returns the first two numbers of a server's version, for example 308 for 3.8.
func Version(t testing.TB, dial Dial) int {
	t.Helper()
	w := open(t, dial)
	require.NoError(t, w.Raw([]byte("srvr")))
	text, err := w.ReadAll()
	require.NoError(t, err)
	var major, minor int
	_, err = fmt.Sscanf(string(text), "Zookeeper version: %d.%d", &major, &minor)
	require.NoError(t, err, "%s", text)
	return 100*major + minor
}

func open(t testing.TB, dial Dial) *wire.Conn {
	t.Helper()
	nc, err := dial()
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	return wire.New(nc)
}

// connect opens a new session with the longest timeout that the server grants.
func connect(t testing.TB, dial Dial) *client { return connectFor(t, dial, 1<<30) }

func connectFor(t testing.TB, dial Dial, timeout int32) *client {
	t.Helper()
	c := &client{t: t, dial: dial}
	t.Cleanup(c.leave)
	c.attach(wire.Hello{Timeout: timeout})
	require.NotZero(t, c.sess.ID)
	return c
}

func (c *client) attach(h wire.Hello) {
	c.t.Helper()
	c.wire = open(c.t, c.dial)
	atomic.StoreInt32(&c.beats, 0)
	sess, err := c.wire.Connect(h)
	require.NoError(c.t, err)
	c.sess = sess
}

// reattach drops the connection and continues the session on a new one.
func (c *client) reattach() {
	c.t.Helper()
	require.NoError(c.t, c.wire.Close())
	c.attach(wire.Hello{Timeout: c.sess.Timeout, Session: c.sess.ID, Passwd: c.sess.Passwd})
	require.NotZero(c.t, c.sess.ID)
}

// leave ends the session if it still exists. Otherwise it would expire later and
// take a zxid during another test.
func (c *client) leave() {
	if c.sess.ID == 0 {
		return
	}
	nc, err := c.dial()
	if err != nil {
		return
	}
	defer nc.Close()
	w := wire.New(nc)
	sess, err := w.Connect(wire.Hello{Timeout: c.sess.Timeout, Session: c.sess.ID, Passwd: c.sess.Passwd})
	if err == nil && sess.ID == c.sess.ID && w.Send(1, opClose, nil) == nil {
		_, _ = w.ReadAll()
	}
}

func (c *client) do(op int32, body *wire.Body) reply {
	c.t.Helper()
	c.xid++
	xid := c.xid
	if op == opPing {
		xid = xidPing
	}
	require.NoError(c.t, c.wire.Send(xid, op, body))
	return c.await(xid)
}

// patience is the interval at which a client sends pings while it waits for a reply, as every client does. A server of 3.8.0 can
// delay a commit until the next request (ZOOKEEPER-4537). Without pings, players that wait for each other would send none, and wait
// until their sessions expire.
const patience = time.Second

// beat sends pings until the function that it returns is called.
func (c *client) beat() (stop func()) {
	left, over := make(chan struct{}), make(chan struct{})
	// Owned by the waiting request: ends with stop, which waits for it.
	go func() {
		defer close(over)
		tick := time.NewTicker(patience)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				atomic.AddInt32(&c.beats, 1)
				_ = c.wire.Send(xidPing, opPing, nil) // a broken connection shows in reads
			case <-left:
				return
			}
		}
	}()
	return func() {
		close(left)
		<-over
	}
}

func (c *client) await(xid int32) reply {
	c.t.Helper()
	defer c.beat()()
	for {
		f, err := c.wire.Read()
		require.NoError(c.t, err)
		if f.Xid == xidPing && atomic.LoadInt32(&c.beats) > 0 {
			atomic.AddInt32(&c.beats, -1) // replies come in order, so before the reply to an awaited ping
			continue
		}
		if f.Notification() {
			p := wire.Parse(f.Body)
			e := event{kind: p.Int()}
			p.Int() // the state, always connected
			e.path = p.Str()
			c.events = append(c.events, e)
			continue
		}
		require.Equal(c.t, xid, f.Xid, "replies come in the order of the requests")
		return reply{zxid: f.Zxid, err: f.Err, p: wire.Parse(f.Body)}
	}
}

// closed asserts that the server ends the connection without another frame.
func (c *client) closed() {
	c.t.Helper()
	for {
		f, err := c.wire.Read()
		if err != nil {
			require.True(c.t, isEnd(err), "%v", err)
			return
		}
		require.True(c.t, f.Notification(), "unexpected frame %+v", f)
	}
}

func isEnd(err error) bool {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return true
	}
	ne, ok := err.(net.Error)
	return ok && !ne.Timeout()
}

// seen returns the events so far and discards them. It first sends a ping, so that
// all earlier events have arrived.
func (c *client) seen() []event {
	c.t.Helper()
	c.do(opPing, nil)
	list := c.events
	c.events = nil
	return list
}

func (c *client) ok(op int32, body *wire.Body) reply {
	c.t.Helper()
	r := c.do(op, body)
	require.Zero(c.t, r.err)
	return r
}

func (c *client) fails(code, op int32, body *wire.Body) reply {
	c.t.Helper()
	r := c.do(op, body)
	require.Equal(c.t, code, r.err)
	return r
}

func (c *client) create(path string, flags int32) string {
	c.t.Helper()
	return c.ok(opCreate, createBody(path, []byte{}, world, flags)).p.Str()
}

func (c *client) set(path string) wire.Stat {
	c.t.Helper()
	return c.ok(opSetData, setBody(path, []byte("x"), -1)).p.Stat()
}

func (c *client) delete(path string) {
	c.t.Helper()
	c.ok(opDelete, deleteBody(path, -1))
}

func (c *client) stat(path string) wire.Stat {
	c.t.Helper()
	return c.ok(opExists, readBody(path, false)).p.Stat()
}

func (c *client) has(path string) bool {
	c.t.Helper()
	r := c.do(opExists, readBody(path, false))
	require.Contains(c.t, []int32{0, -101}, r.err)
	return r.err == 0
}

func (c *client) close() int64 {
	c.t.Helper()
	zxid := c.ok(opClose, nil).zxid
	c.closed()
	return zxid
}

// removeAll deletes a subtree that an earlier run may have left.
func (c *client) removeAll(path string) {
	c.t.Helper()
	r := c.do(opGetChildren, readBody(path, false))
	if r.err == -101 {
		return
	}
	for _, name := range r.p.Strs() {
		c.removeAll(path + "/" + name)
	}
	c.do(opDelete, deleteBody(path, -1))
}

func uniqueRoot() string { return fmt.Sprintf("/parity-%d", time.Now().UnixNano()) }
