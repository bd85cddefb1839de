// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/internal/lease"
)

// term is the session timeout that the servers in these tests grant.
const term = 10 * time.Second

// virtual runs a test in virtual time.
func virtual(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, fn)
}

// wired is a connection of a link and the server's end of it. It collects the client's frames.
type wired struct {
	*proxy
	server net.Conn
	frames chan []byte // the client's frames, without lengths; closed at the end
}

// wire dials through a link.
func wire(t *testing.T, l *Link) *wired {
	t.Helper()
	var theirs net.Conn
	conn, err := l.Dialer(Dialing{Dial: func(string, string, time.Duration) (net.Conn, error) {
		var ours net.Conn
		ours, theirs = net.Pipe()
		return ours, nil
	}})("tcp", "server", 0)
	require.NoError(t, err)
	w := &wired{conn.(*proxy), theirs, make(chan []byte, 100)}
	go w.collect() // ends with the connection
	t.Cleanup(func() { w.Close(); theirs.Close() })
	return w
}

// adopt makes conn the connection of a link.
func adopt(l *Link, conn net.Conn) (net.Conn, error) {
	return l.Dialer(Dialing{Dial: func(string, string, time.Duration) (net.Conn, error) { return conn, nil }})("tcp", "server:2181", 0)
}

func (w *wired) collect() {
	defer close(w.frames)
	for {
		var head [4]byte
		if _, err := io.ReadFull(w.server, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(w.server, body); err != nil {
			return
		}
		w.frames <- body
	}
}

// connectRequest returns a connect request for a session, or for a new one if id is 0.
func connectRequest(id int64) []byte {
	p := make([]byte, 44+4)
	binary.BigEndian.PutUint32(p, 44)
	binary.BigEndian.PutUint64(p[8:], 99) // the last transaction seen
	binary.BigEndian.PutUint32(p[16:], uint32(term.Milliseconds()))
	binary.BigEndian.PutUint64(p[20:], uint64(id))
	binary.BigEndian.PutUint32(p[28:], 16)
	return p
}

// greetingOf returns a server's reply to a connect request.
func greetingOf(id int64, timeout time.Duration) []byte {
	body := binary.BigEndian.AppendUint32(nil, 0)
	body = binary.BigEndian.AppendUint32(body, uint32(timeout.Milliseconds()))
	body = binary.BigEndian.AppendUint64(body, uint64(id))
	body = binary.BigEndian.AppendUint32(body, 16)
	return framed(append(body, make([]byte, 16)...))
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// replyOf returns a server's reply to a request.
func replyOf(xid, code int32, zxid int64, body ...byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(xid))
	p = binary.BigEndian.AppendUint64(p, uint64(zxid))
	p = binary.BigEndian.AppendUint32(p, uint32(code))
	return framed(append(p, body...))
}

// says sends a frame from the server, and returns the error of the client's read if the frame does not arrive whole.
func (w *wired) says(frame []byte) error {
	sent := make(chan error, 1)
	go func() { // ends when the client has read the frame or closed the connection
		_, err := w.server.Write(frame)
		sent <- err
	}()
	got := make([]byte, len(frame))
	_, err := io.ReadFull(w.proxy, got)
	if err != nil {
		w.Close()
	}
	<-sent
	if err == nil && string(got) != string(frame) {
		return errors.New("the frame was changed")
	}
	return err
}

// answers sends the server's reply to the client library's last request.
func (w *wired) answers(t *testing.T, code int32) error {
	t.Helper()
	frame := w.sent(t)
	go w.server.Write(replyOf(xidOf(frame), code, 1)) // ends when it was read
	_, err := w.Read(make([]byte, 100))
	return err
}

// asks sends a request of the client.
func (w *wired) asks(xid, op int32) { _, _ = w.Write(words(xid, op)) } // it never fails

// greet requests a session, and replies with a granted one.
func (w *wired) greet(t *testing.T, asked, granted int64) {
	t.Helper()
	_, _ = w.Write(connectRequest(asked))
	require.NoError(t, w.says(greetingOf(granted, term)))
	require.NoError(t, w.SetReadDeadline(time.Time{})) // as the client library sets one of its own from then on
}

// sent returns the next frame that the server has received.
func (w *wired) sent(t *testing.T) []byte {
	t.Helper()
	frame, ok := <-w.frames
	require.True(t, ok, "nothing was sent")
	return frame
}

// sessionAsked returns the session and the last zxid in a connect request that the server has received.
func (w *wired) sessionAsked(t *testing.T) (id, zxid int64) {
	t.Helper()
	frame := w.sent(t)
	return int64(binary.BigEndian.Uint64(frame[16:])), int64(binary.BigEndian.Uint64(frame[4:]))
}

// attached returns a link with session 7, and its connection.
func attached(t *testing.T) (*Link, *wired) {
	t.Helper()
	l := NewLink()
	w := wire(t, l)
	w.greet(t, 0, 7)
	w.sent(t)
	return l, w
}

// fresh returns a lease that has just been proven.
func fresh(t *testing.T, l *Link) *lease.Lease {
	made := lease.New(l.Now, term, lease.TickOf(time.Second))
	run := made.Created(l.Now(), 0)
	for range 8 {
		asked := l.Now()
		time.Sleep(500 * time.Millisecond)
		run.Witness(asked, lease.OfLeader)
		run.Witness(asked, lease.OfQuorum)
	}
	require.Positive(t, made.Remaining())
	return made
}
