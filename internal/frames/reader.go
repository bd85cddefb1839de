package frames

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrMalformed is the error of a frame that no server sends.
var ErrMalformed = errors.New("malformed frame from the server")

// Reader cuts a stream into frames: a length and as many bytes. It passes on nothing of a
// frame before the whole of it has come and was found to be well-formed, because the client
// library believes every length that it reads.
type Reader struct {
	from *bufio.Reader
	buf  []byte // the present frame with its length
	rest []byte // the part of it that was not read yet
	idle int    // for how many frames in a row the room for a long one was not needed
}

// NewReader returns a Reader of a stream.
func NewReader(from io.Reader) *Reader { return &Reader{from: bufio.NewReader(from)} }

// Begin waits for the beginning of the next frame, and returns the number in it.
func (r *Reader) Begin(limit int) (xid int32, err error) {
	head, err := r.from.Peek(4)
	if err != nil {
		return 0, err
	}
	if size, err := lengthOf(head, limit); err != nil || size < 4 {
		return 0, err
	}
	head, err = r.from.Peek(8)
	if err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(head[4:])), nil
}

// lengthOf returns the length of a frame that begins so.
func lengthOf(head []byte, limit int) (int, error) {
	size := int(int32(binary.BigEndian.Uint32(head)))
	if size < 0 || size > limit {
		return 0, fmt.Errorf("%w: %d bytes long", ErrMalformed, uint32(size))
	}
	return size, nil
}

// Next reads the next frame, which must not be longer than limit, and returns it without its
// length. It is valid until the next call.
func (r *Reader) Next(limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return nil, err
	}
	size, err := lengthOf(head[:], limit)
	if err != nil {
		return nil, err
	}
	if err := r.fill(head, size); err != nil {
		return nil, err
	}
	r.rest = r.buf
	return r.buf[4:], nil
}

// fill reads a frame into buf as the bytes come in, so that a false length costs no memory.
func (r *Reader) fill(head [4]byte, size int) error {
	const chunk, short, patience = 64 << 10, 4 << 10, 16
	if r.idle++; size > short {
		r.idle = 0
	}
	if cap(r.buf) > short && r.idle >= patience {
		r.buf = nil // a listing made it large, and no other has come for a while
	}
	r.buf = append(r.buf[:0], head[:]...)
	for size > 0 {
		n := min(size, chunk)
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, n)...)
		if _, err := io.ReadFull(r.from, r.buf[at:]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}

// Keep returns the present frame, which stays as it is: Restore makes it the present one
// again.
func (r *Reader) Keep() []byte { return slices.Clone(r.buf) }

// Restore makes a frame that Keep has returned the present one, of which nothing was read.
func (r *Reader) Restore(kept []byte) { r.buf, r.rest = kept, kept }

// Copy moves bytes of the present frame, its length included, to p and returns how many.
func (r *Reader) Copy(p []byte) int {
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n
}

// IsEmpty reports whether Copy has moved the whole of the present frame.
func (r *Reader) IsEmpty() bool { return len(r.rest) == 0 }

// Drop leaves nothing of the present frame for Copy.
func (r *Reader) Drop() { r.rest = nil }
