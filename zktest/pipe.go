// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// inboxLimit is how many bytes a connection buffers before the server has handled
// them: about as much as a kernel. A client that sends more has to wait.
const inboxLimit = 4 << 20

// outboxLimit is how many bytes of replies may be unsent, and pendingLimit how many
// requests may be unanswered, before the connection's next request is handled. A client
// that sends without reading has to wait.
const (
	outboxLimit  = 1 << 20
	pendingLimit = 1000
)

// handshake is how long a connection may take to request a session.
const handshake = 10 * time.Second

// drainFor is how long a closed connection may take to accept its last bytes.
const drainFor = time.Second

// pipe carries the bytes of one connection. The inbox and the outbox buffer them, so
// that a frozen or partitioned link neither blocks the client's writes nor loses data
// that it sent.
type pipe struct {
	net     net.Conn
	client  string // the client's name, for partitions
	member  int
	clock   *clock
	gates   *gates
	network *network
	traffic *traffic
	done    <-chan struct{} // closed when the server ends
	isWord  func(head string) bool

	in      inbox
	out     outbox
	waiting atomic.Int32  // number of unanswered requests
	room    chan struct{} // has a token when something was sent or answered

	turns   pauser // for the goroutine that handles packets
	sending pauser // for the goroutine that writes

	dead     chan struct{} // closed when the server is done with the connection
	readDone chan struct{} // closed when the client's side has ended
}

func newPipe(nc net.Conn, client string, member int) *pipe {
	return &pipe{
		net: nc, client: client, member: member,
		in:   inbox{ready: make(chan struct{}, 1), room: make(chan struct{}, 1)},
		out:  outbox{ready: make(chan struct{}, 1)},
		room: make(chan struct{}, 1),
		dead: make(chan struct{}), readDone: make(chan struct{}),
	}
}

// packet is an item of the inbox: a frame, a four-letter word, or the end of input.
type packet struct {
	frame []byte
	word  string
	end   bool
	due   time.Duration // when the simulated latency is over; 0 means none
}

// chunk is a piece of outgoing data.
type chunk struct {
	data []byte
	due  time.Duration
}

// inbox passes packets from the goroutine that reads to the one that handles them.
type inbox struct {
	mu    sync.Mutex
	items []packet
	bytes int
	ready chan struct{} // has a token when there is something new
	room  chan struct{} // has a token when the inbox was emptied
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

// outbox passes replies to the goroutine that writes. It never blocks, because a
// reply must not make the server wait for a client. While it is full, the connection's
// requests are not handled.
type outbox struct {
	mu     sync.Mutex
	chunks []chunk
	bytes  int // number of unsent bytes
	ready  chan struct{}
}

func (b *outbox) put(data []byte, due time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += len(data)
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

func (b *outbox) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes >= outboxLimit
}

// sent records that n bytes were sent.
func (b *outbox) sent(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= n
}

// read splits the client's data into packets until either side closes, and returns
// the reason. Its last packet marks the end.
func (p *pipe) read() error {
	defer close(p.readDone)
	_ = p.net.SetReadDeadline(time.Now().Add(handshake)) // fails only on a closed connection, and then the read does too
	err := p.readPackets(bufio.NewReaderSize(countingReader{p}, 4096))
	p.take(packet{end: true})
	return err
}

// readPackets reads packets until the first error. The end of input is an error too.
func (p *pipe) readPackets(r *bufio.Reader) error {
	var head [4]byte
	for first := true; ; first = false {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		if first && p.isWord(string(head[:])) {
			p.take(packet{word: string(head[:])})
			continue
		}
		n := int32(binary.BigEndian.Uint32(head[:]))
		if n < 0 || n > maxFrame {
			return fmt.Errorf("frame length %d is outside 0..%d", n, maxFrame)
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(r, frame); err != nil {
			return err
		}
		if first {
			_ = p.net.SetReadDeadline(time.Time{})
		}
		p.take(packet{frame: frame})
	}
}

// countingReader reads from the connection and counts the bytes.
type countingReader struct{ p *pipe }

// Read reads from the connection.
func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.p.net.Read(b)
	r.p.traffic.in.Add(int64(n))
	return n, err
}

// take adds a packet to the inbox. It waits for room if the client is far ahead of
// the server.
func (p *pipe) take(pkt packet) {
	pkt.due = p.due()
	if sent := p.network.arrival(p.client, 4+len(pkt.frame), p.clock.now()); sent > 0 {
		pkt.due = max(pkt.due, sent)
	}
	for !p.in.put(pkt) {
		select {
		case <-p.in.room:
		case <-p.dead:
			return
		}
	}
}

// next waits for packets and returns them. It returns false if the connection is
// over. It reuses spare for later packets.
func (p *pipe) next(spare []packet) ([]packet, bool) {
	select {
	case <-p.in.ready:
		return p.in.takeAll(spare), true
	case <-p.dead:
		return nil, false
	}
}

// mayHandle waits until a packet can be handled: there is room for its reply, its
// latency is over and no gate is shut. It returns false if the connection is over.
func (p *pipe) mayHandle(pkt packet) bool {
	return p.awaitRoom() && p.until(pkt.due) && p.passGate(p.dead)
}

// awaitRoom waits while too much is unsent or unanswered, unless the client has
// closed its side. It returns false if the connection is over.
func (p *pipe) awaitRoom() bool {
	for p.waiting.Load() >= pendingLimit || p.out.full() {
		select {
		case <-p.room:
		case <-p.readDone:
			return !p.isDead()
		case <-p.dead:
			return false
		}
	}
	return true
}

// setWaiting records the number of unanswered requests.
func (p *pipe) setWaiting(n int) {
	p.waiting.Store(int32(n))
	poke(p.room)
}

// due draws a latency and returns when it is over, or 0 if there is none.
func (p *pipe) due() time.Duration {
	d := p.network.delay(p.client, p.member)
	if d == 0 {
		return 0
	}
	return p.clock.now() + d
}

// until waits until due. It returns false if the connection ends first.
func (p *pipe) until(due time.Duration) bool { return p.wait(&p.turns, due, p.dead) }

// wait waits until due, unless it is 0. It returns false if end is closed first.
func (p *pipe) wait(t *pauser, due time.Duration, end <-chan struct{}) bool {
	left := due - p.clock.now()
	if due == 0 || left <= 0 {
		return true
	}
	t.set(left)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-end:
		return false
	}
}

// pauser is a timer that one goroutine reuses.
type pauser struct{ *time.Timer }

func (t *pauser) set(d time.Duration) {
	if t.Timer == nil {
		t.Timer = time.NewTimer(d)
		return
	}
	t.Reset(d)
}

// passGate waits while the member is frozen or the client is partitioned. It returns false if end is closed or the server ends
// first.
func (p *pipe) passGate(end <-chan struct{}) bool {
	for gate := p.gate(); gate != nil; gate = p.gate() {
		select {
		case <-gate:
		case <-end:
			return false
		case <-p.done:
			return false
		}
	}
	return true
}

func (p *pipe) gate() <-chan struct{} { return p.gates.between(p.client, p.member) }

// enqueue passes data to the goroutine that writes. It never blocks.
func (p *pipe) enqueue(data []byte) {
	p.traffic.out.Add(int64(len(data)))
	p.out.put(data, p.due())
}

// write sends the contents of the outbox until the connection is dead. It calls broken
// if it cannot send. Finally it closes the socket: after the last bytes, and not before
// the end of a partition.
func (p *pipe) write(broken func()) {
	defer p.net.Close()
	for {
		select {
		case <-p.out.ready:
			if !p.flush() {
				broken()
			}
		case <-p.dead:
			if p.passGate(p.readDone) {
				p.flush()
			}
			return
		}
	}
}

// flush sends the contents of the outbox. It waits for simulated latencies even if the
// server has closed the connection.
func (p *pipe) flush() bool {
	for _, ch := range p.out.takeAll() {
		p.wait(&p.sending, ch.due, p.done)
		if !p.passGate(p.readDone) {
			return false
		}
		if p.isDead() {
			_ = p.net.SetWriteDeadline(time.Now().Add(drainFor))
		}
		if _, err := p.net.Write(ch.data); err != nil {
			return false
		}
		p.out.sent(len(ch.data))
		poke(p.room)
	}
	return true
}

func (p *pipe) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// end ends the connection once its outbox has been sent. It must be called at most
// once.
func (p *pipe) end() {
	close(p.dead)
	// This bounds a write that is already in progress as well.
	_ = p.net.SetWriteDeadline(time.Now().Add(drainFor))
}

// cut prevents any further sending.
func (p *pipe) cut() {
	p.out.takeAll()
	_ = p.net.SetWriteDeadline(time.Now())
}
