package zktest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// inboxLimit is how much a connection takes in before the server has looked at
// it: about what a kernel buffers. A client that sends more has to wait.
const inboxLimit = 4 << 20

// linger is how long a closed connection may take to accept its last bytes.
const linger = time.Second

// conn is a client's connection to one member. Three goroutines serve it: read
// takes bytes in, process works on them in order, write sends. The first two
// meet in the inbox, the last two in the outbox, so that a frozen or
// partitioned link neither blocks the client's writes nor loses what it sent.
type conn struct {
	s      *Server
	member *Member
	net    net.Conn
	client string
	remote string // address of the peer, made up for a pipe
	log    *slog.Logger

	in  inbox
	out outbox

	dead     chan struct{} // closed when the server is done with the connection
	readDone chan struct{} // closed when the client's side has ended
	attached chan struct{} // closed when the connect request was answered

	// Guarded by Server.mu.
	closed  bool
	sess    *session
	ids     []identity
	pending []*entry // requests that are not answered yet, in order
	stats   connStats
}

// packet is one thing that came in: a frame, a four-letter word, or the end.
type packet struct {
	frame []byte
	word  string
	end   bool
	due   time.Duration // simulated latency; 0 for none
}

// inbox passes packets from read to process.
type inbox struct {
	mu    sync.Mutex
	items []packet
	bytes int
	ready chan struct{} // has a token when there is something new
	room  chan struct{} // has a token when the inbox was emptied
}

// outbox passes bytes from whoever answers to write. It has no limit: a reply
// must never make the server wait for a client.
type outbox struct {
	mu     sync.Mutex
	chunks []chunk
	ready  chan struct{}
}

type chunk struct {
	data []byte
	due  time.Duration
}

func (s *Server) newConn(m *Member, nc net.Conn, client, remote string) *conn {
	c := &conn{
		s: s, member: m, net: nc, client: client, remote: remote,
		in:   inbox{ready: make(chan struct{}, 1), room: make(chan struct{}, 1)},
		out:  outbox{ready: make(chan struct{}, 1)},
		dead: make(chan struct{}), readDone: make(chan struct{}), attached: make(chan struct{}),
	}
	c.log = s.log.With("member", m.id, "client", client, "remote", remote)
	host, _, err := net.SplitHostPort(remote)
	if err == nil {
		c.ids = []identity{{"ip", host}}
	}
	return c
}

// start begins to serve the connection. The caller holds mu and knows that the
// server is not closed.
func (c *conn) start() {
	c.member.conns[c] = struct{}{}
	c.s.live[c] = struct{}{}
	c.stats.established = time.Now()
	c.s.wg.Add(3)
	// The three belong to the connection: closing it (at the latest
	// Server.Close does) ends them, and Server.Close waits for them.
	go c.read()
	go c.process()
	go c.write()
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// read splits the client's bytes into packets until either side ends.
func (c *conn) read() {
	defer c.s.wg.Done()
	defer close(c.readDone)
	r := bufio.NewReaderSize(countingReader{c}, 4096)
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
	p.due = c.s.latency()
	for !c.in.put(p) {
		select {
		case <-c.in.room:
		case <-c.dead:
			return
		}
	}
}

func (b *inbox) put(p packet) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes > inboxLimit {
		return false
	}
	b.items = append(b.items, p)
	b.bytes += len(p.frame)
	poke(b.ready)
	return true
}

func (b *inbox) takeAll(spare []packet) []packet {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items, b.bytes = spare[:0], 0
	poke(b.room)
	return items
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
			if !c.until(p.due) || !c.passGate(c.dead) || !c.handle(p) {
				return
			}
		}
		if cap(batch) > 1024 {
			batch = nil
		}
	}
}

// until waits for a moment; false means the connection ended before it.
func (c *conn) until(due time.Duration) bool {
	wait := due - c.s.now()
	if due == 0 || wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.dead:
		return false
	}
}

// passGate waits while the member is frozen or the client partitioned.
func (c *conn) passGate(end <-chan struct{}) bool {
	for c.s.gates.Load() > 0 {
		gate := c.s.gateOf(c)
		if gate == nil {
			break
		}
		select {
		case <-gate:
		case <-end:
			return false
		case <-c.s.done:
			return false
		}
	}
	return true
}

// enqueue hands bytes to write. It never blocks.
func (c *conn) enqueue(data []byte) {
	due := c.s.latency()
	c.s.bytesOut.Add(int64(len(data)))
	b := &c.out
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.chunks); n > 0 && due == 0 {
		b.chunks[n-1].data = append(b.chunks[n-1].data, data...)
	} else {
		b.chunks = append(b.chunks, chunk{append(make([]byte, 0, max(len(data), 128)), data...), due})
	}
	poke(b.ready)
}

func (b *outbox) takeAll() []chunk {
	b.mu.Lock()
	defer b.mu.Unlock()
	chunks := b.chunks
	b.chunks = nil
	return chunks
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
	}
	return true
}

func (c *conn) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// sleep waits out a simulated latency, which goes on after the server has
// closed the connection.
func (c *conn) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.s.done:
	}
}

// close ends the connection once what is in its outbox was sent. The session
// lives on. The caller holds mu.
func (c *conn) close() {
	if c.closed {
		return
	}
	c.closed, c.pending = true, nil
	delete(c.member.conns, c)
	c.member.watches.dropConn(c)
	if c.sess != nil && c.member.bySession[c.sess.id] == c {
		delete(c.member.bySession, c.sess.id)
	}
	close(c.dead)
	// A write that is under way now may take its last second as well.
	_ = c.net.SetWriteDeadline(time.Now().Add(linger))
}

// abort ends the connection as a killed process does: nothing more is sent.
func (c *conn) abort() {
	c.out.takeAll()
	c.close()
	_ = c.net.SetWriteDeadline(time.Now())
}
