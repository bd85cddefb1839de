package zktest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// start begins to serve the connection. The caller holds mu and knows that the
// server is not closed.
func (c *conn) start() {
	c.member.conns[c] = struct{}{}
	c.s.live[c] = struct{}{}
	c.stats.established = c.s.wall()
	c.s.wg.Add(3)
	// The three belong to the connection: closing it (at the latest
	// Server.Close does) ends them, and Server.Close waits for them.
	go c.read()
	go c.process()
	go c.write()
}

// read splits the client's bytes into packets until either side ends.
func (c *conn) read() {
	defer c.s.wg.Done()
	defer close(c.readDone)
	r := bufio.NewReaderSize(countingReader{c}, 4096)
	_ = c.net.SetReadDeadline(time.Now().Add(handshake)) // a closed pipe has none; the read tells
	err := c.readPackets(r)
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, net.ErrClosed) {
		c.log.Warn("bad input", "error", err)
	}
	c.take(packet{end: true})
}

// readPackets ends with the first error; a client that goes away is one.
func (c *conn) readPackets(r *bufio.Reader) error {
	var head [4]byte
	for first := true; ; first = false {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		if first && isWord(head[:]) {
			c.take(packet{word: string(head[:])})
			continue
		}
		n := int32(binary.BigEndian.Uint32(head[:]))
		if n < 0 || n > maxFrame {
			return errFrameLength(n)
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(r, frame); err != nil {
			return err
		}
		if first {
			_ = c.net.SetReadDeadline(time.Time{})
		}
		c.take(packet{frame: frame})
	}
}

// countingReader counts the bytes taken in.
type countingReader struct{ c *conn }

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.c.net.Read(p)
	r.c.s.bytesIn.Add(int64(n))
	return n, err
}

// take puts a packet into the inbox, waiting for room if the client is far
// ahead of the server.
func (c *conn) take(p packet) {
	p.due = c.s.latency(c)
	for !c.in.put(p) {
		select {
		case <-c.in.room:
		case <-c.dead:
			return
		}
	}
}

// process works on the packets in the order they came.
func (c *conn) process() {
	defer c.s.wg.Done()
	var batch []packet
	for {
		select {
		case <-c.in.ready:
		case <-c.dead:
			return
		}
		clear(batch)
		batch = c.in.takeAll(batch)
		for _, p := range batch {
			if !c.awaitRoom() || !c.until(p.due) || !c.passGate(c.dead) || !c.handle(p) {
				return
			}
		}
		if cap(batch) > 1024 {
			batch = nil
		}
	}
}

// write sends what is in the outbox, and at the end closes the socket: after
// the last bytes, and not before a partition lets the client know.
func (c *conn) write() {
	defer c.s.wg.Done()
	defer c.s.forget(c)
	defer c.net.Close()
	for {
		select {
		case <-c.out.ready:
			if !c.flush() {
				c.s.drop(c)
			}
		case <-c.dead:
			if c.passGate(c.readDone) {
				c.flush()
			}
			return
		}
	}
}

func (c *conn) flush() bool {
	for _, ch := range c.out.takeAll() {
		if wait := ch.due - c.s.now(); ch.due != 0 && wait > 0 {
			c.sleep(wait)
		}
		if !c.passGate(c.readDone) {
			return false
		}
		if c.isDead() {
			_ = c.net.SetWriteDeadline(time.Now().Add(linger))
		}
		if _, err := c.net.Write(ch.data); err != nil {
			return false
		}
		c.out.sent(len(ch.data))
		poke(c.room)
	}
	return true
}

func (s *Server) newConn(m *Member, nc net.Conn, client, remote string) *conn {
	c := &conn{
		s: s, member: m, net: nc, client: client, remote: remote,
		in:   inbox{ready: make(chan struct{}, 1), room: make(chan struct{}, 1)},
		out:  outbox{ready: make(chan struct{}, 1)},
		room: make(chan struct{}, 1),
		dead: make(chan struct{}), readDone: make(chan struct{}), attached: make(chan struct{}),
	}
	c.log = s.log.With("member", m.id, "client", client, "remote", remote)
	host, _, err := net.SplitHostPort(remote)
	if err == nil {
		c.ids = []identity{{"ip", host}}
	}
	return c
}
