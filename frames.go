package zklock

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// errMalformed is what a frame is refused with that no server sends.
var errMalformed = errors.New("malformed frame from the server")

const (
	maxFrame    = 64 << 20 // of what a server sends; the largest is a listing
	maxGreeting = 1 << 10  // of the answer to a connection request
	maxPassword = 16       // of a session; the client library cannot send one of more than 200
	statSize    = 68
)

// frames cuts a stream into frames: a length and as many bytes. Nothing of a frame is
// passed on before the whole of it has come and was found to be well-formed: the client
// library believes every length that it reads.
type frames struct {
	from *bufio.Reader
	buf  []byte // the present frame with its length
	rest []byte // what of it was not read yet
}

func newFrames(from io.Reader) *frames { return &frames{from: bufio.NewReader(from)} }

// next returns the next frame, behind its length. It is valid until the next call.
func (f *frames) next(limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(f.from, head[:]); err != nil {
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(head[:])))
	if size < 0 || size > limit {
		return nil, fmt.Errorf("%w: %d bytes long", errMalformed, uint32(size))
	}
	if err := f.read(head, size); err != nil {
		return nil, err
	}
	f.rest = f.buf
	return f.buf[4:], nil
}

// read fills buf as the bytes come in: a length that lies costs no memory.
func (f *frames) read(head [4]byte, size int) error {
	const chunk = 64 << 10
	if cap(f.buf) > 16*chunk {
		f.buf = nil // a large listing is not kept
	}
	f.buf = append(f.buf[:0], head[:]...)
	for size > 0 {
		n := min(size, chunk)
		at := len(f.buf)
		f.buf = append(f.buf, make([]byte, n)...)
		if _, err := io.ReadFull(f.from, f.buf[at:]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}

// A payload is read from its front; once something is missing it is bad for good.
type payload struct {
	rest []byte
	bad  bool
}

func (p *payload) skip(n int) {
	if n < 0 || n > len(p.rest) {
		p.bad, p.rest = true, nil
		return
	}
	p.rest = p.rest[n:]
}

func (p *payload) int() int {
	if len(p.rest) < 4 {
		p.bad, p.rest = true, nil
		return 0
	}
	n := int32(binary.BigEndian.Uint32(p.rest))
	p.skip(4)
	return int(n)
}

func (p *payload) text() { p.skip(p.int()) }

// buffer is bytes that may be none, which has a length of -1.
func (p *payload) buffer() { p.skip(max(0, p.int())) }

// count is of what follows. Servers send no list that is null: the client library would
// take the length of one, -1, for 4294967295.
func (p *payload) count() int {
	n := p.int()
	p.bad = p.bad || n < 0
	return n
}

func (p *payload) texts() {
	for n := p.count(); n > 0 && !p.bad; n-- {
		p.text()
	}
}

func (p *payload) stat() { p.skip(statSize) }

// checkGreeting looks at the answer to a connection request.
func checkGreeting(body []byte) error {
	p := payload{rest: body}
	p.skip(4)
	timeout := p.int()
	p.skip(8)
	password := p.int()
	p.skip(password)
	if p.bad || password > maxPassword || timeout < 0 || timeout == 0 && binary.BigEndian.Uint64(body[8:]) != 0 {
		return fmt.Errorf("%w: answer to the connection request", errMalformed)
	}
	return nil
}

// checkEvent looks at a watch event behind its head.
func checkEvent(body []byte) error {
	p := payload{rest: body}
	p.skip(8)
	p.text()
	if p.bad {
		return fmt.Errorf("%w: event", errMalformed)
	}
	return nil
}

// checkReply looks at what follows the head of a successful reply to an operation.
func checkReply(op int32, body []byte) error {
	p := payload{rest: body}
	switch op {
	case opCreate, opCreateContainer, opCreateTTL, opSync:
		p.text()
	case opCreate2:
		p.text()
		p.stat()
	case opExists, opSetData, opSetACL:
		p.stat()
	case opGetData:
		p.buffer()
		p.stat()
	case opGetChildren:
		p.texts()
	case opGetChildren2:
		p.texts()
		p.stat()
	case opGetACL:
		for n := p.count(); n > 0 && !p.bad; n-- {
			p.int()
			p.text()
			p.text()
		}
		p.stat()
	case opMulti:
		p.results()
	}
	if p.bad {
		return fmt.Errorf("%w: reply to operation %d", errMalformed, op)
	}
	return nil
}

// results are those of a transaction's operations, up to the mark of their end.
func (p *payload) results() {
	for !p.bad {
		op := int32(p.int())
		end := len(p.rest) > 0 && p.rest[0] != 0
		p.skip(1)
		p.int()
		switch {
		case end || p.bad:
			return
		case op == opError:
			p.int()
		case op == opCreate, op == opCreateContainer, op == opCreateTTL:
			p.text()
		case op == opCreate2:
			p.text()
			p.stat()
		case op == opSetData:
			p.stat()
		case op == opCheck, op == opDelete:
		default:
			p.bad = true
		}
	}
}
