package zktest

import "time"

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

// linger is how long a closed connection may take to accept its last bytes.
const linger = time.Second

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

// awaitRoom waits while too much is unsent or unanswered, unless the client's
// side has ended; false means the connection is over.
func (c *conn) awaitRoom() bool {
	for c.waiting.Load() >= pendingLimit || c.out.full() {
		select {
		case <-c.room:
		case <-c.readDone:
			return !c.isDead()
		case <-c.dead:
			return false
		}
	}
	return true
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
	due := c.s.latency(c)
	c.s.bytesOut.Add(int64(len(data)))
	b := &c.out
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

// gateOf returns what a connection has to wait for, nil if nothing.
func (s *Server) gateOf(c *conn) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gate := s.partitions[c.client]; gate != nil {
		return gate
	}
	if c.member.frozen {
		return c.member.thawed
	}
	return nil
}
