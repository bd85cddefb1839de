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

// inboxLimit is how much a connection takes in before the server has looked at
// it: about what a kernel buffers. A client that sends more has to wait.
const inboxLimit = 4 << 20

// outboxLimit is how much of answers may wait to be sent before the connection's
// next request is looked at, and pendingLimit how many requests may wait for
// their answers: a client that sends and does not read has to wait.
const (
	outboxLimit  = 1 << 20
	pendingLimit = 1000
)

// handshake is how long a connection may take to ask for a session.
const handshake = 10 * time.Second

// drainFor is how long a closed connection may take to accept its last bytes.
const drainFor = time.Second

// pipe carries the bytes of one connection. What comes in waits in the inbox,
// what goes out in the outbox, so that a frozen or partitioned link neither
// blocks the client's writes nor loses what it sent.
type pipe struct {
	net     net.Conn
	client  string // its name, by which it is partitioned
	member  int
	clock   *clock
	gates   *gates
	network *network
	traffic *traffic
	done    <-chan struct{} // closed when the server ends
	isWord  func(head string) bool

	in      inbox
	out     outbox
	waiting atomic.Int32  // how many requests are not answered yet
	room    chan struct{} // has a token when something was sent or answered

	turns   pauser // of the goroutine that handles packets
	sending pauser // of the goroutine that writes

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

// packet is one thing that came in: a frame, a four-letter word, or the end.
type packet struct {
	frame []byte
	word  string
	end   bool
	due   time.Duration // simulated latency; 0 for none
}

// chunk is a piece of what goes out.
type chunk struct {
	data []byte
	due  time.Duration
}

// inbox passes packets from the goroutine that reads to the one that works on them.
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

// outbox passes bytes from what answers to the goroutine that writes. It takes
// what comes: a reply must never make the server wait for a client. When it is
// full, no more requests are looked at.
type outbox struct {
	mu     sync.Mutex
	chunks []chunk
	bytes  int // that are not sent yet
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

// sent notes that bytes have left.
func (b *outbox) sent(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= n
}

// read splits the client's bytes into packets until either side ends, and
// returns why. Its last packet says that it has ended.
func (p *pipe) read() error {
	defer close(p.readDone)
	_ = p.net.SetReadDeadline(time.Now().Add(handshake)) // a closed pipe has none; the read tells
	err := p.readPackets(bufio.NewReaderSize(countingReader{p}, 4096))
	p.take(packet{end: true})
	return err
}

// readPackets ends with the first error; a client that goes away is one.
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

// countingReader counts the bytes taken in.
type countingReader struct{ p *pipe }

// Read reads from the connection.
func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.p.net.Read(b)
	r.p.traffic.in.Add(int64(n))
	return n, err
}

// take puts a packet into the inbox, waiting for room if the client is far
// ahead of the server.
func (p *pipe) take(pkt packet) {
	pkt.due = p.due()
	for !p.in.put(pkt) {
		select {
		case <-p.in.room:
		case <-p.dead:
			return
		}
	}
}

// next returns the packets that have come, as soon as there are any; false means
// that the connection is over. spare is used for later ones.
func (p *pipe) next(spare []packet) ([]packet, bool) {
	select {
	case <-p.in.ready:
		return p.in.takeAll(spare), true
	case <-p.dead:
		return nil, false
	}
}

// mayHandle waits until a packet's turn has come: there is room for its answer,
// its latency is over and no gate is shut. False means that the connection is over.
func (p *pipe) mayHandle(pkt packet) bool {
	return p.awaitRoom() && p.until(pkt.due) && p.passGate(p.dead)
}

// awaitRoom waits while too much is unsent or unanswered, unless the client's
// side has ended; false means the connection is over.
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

// setWaiting notes how many requests are not answered yet.
func (p *pipe) setWaiting(n int) {
	p.waiting.Store(int32(n))
	poke(p.room)
}

// due draws a latency and returns when it is over, 0 for none.
func (p *pipe) due() time.Duration {
	d := p.network.delay(p.client, p.member)
	if d == 0 {
		return 0
	}
	return p.clock.now() + d
}

// until waits for a moment; false means the connection ended before it.
func (p *pipe) until(due time.Duration) bool { return p.wait(&p.turns, due, p.dead) }

// wait waits for a moment, 0 for none, or for an end, which is false.
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

// pauser is a timer that one goroutine waits with again and again.
type pauser struct{ *time.Timer }

func (t *pauser) set(d time.Duration) {
	if t.Timer == nil {
		t.Timer = time.NewTimer(d)
		return
	}
	t.Reset(d)
}

// passGate waits while the member is frozen or the client partitioned.
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

// enqueue hands bytes to the goroutine that writes. It never blocks.
func (p *pipe) enqueue(data []byte) {
	p.traffic.out.Add(int64(len(data)))
	p.out.put(data, p.due())
}

// write sends what is in the outbox, until the connection is dead or cannot be
// written to. In the end it closes the socket: after the last bytes, and not
// before a partition lets the client know.
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

// flush sends what is in the outbox. A simulated latency goes on after the
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

// end ends the connection once what is in its outbox was sent. It must be called
// once at most.
func (p *pipe) end() {
	close(p.dead)
	// A write that is under way now may take its last second as well.
	_ = p.net.SetWriteDeadline(time.Now().Add(drainFor))
}

// cut makes sure that nothing more is sent.
func (p *pipe) cut() {
	p.out.takeAll()
	_ = p.net.SetWriteDeadline(time.Now())
}
