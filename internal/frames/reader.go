// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// ErrMalformed is the error of a frame that no correct server sends.
var ErrMalformed = errors.New("malformed frame from server")

// Reader splits a stream into frames, each of which is a length followed by that many bytes. It
// passes on no part of a frame before all of it has arrived and was found to be well-formed,
// because the client library trusts every length that it reads.
type Reader struct {
	from *bufio.Reader
	buf  []byte // the current frame, including its length
	rest []byte // the part of it that was not read yet
	idle int    // consecutive frames that did not need a large buffer
}

// NewReader returns a Reader of a stream.
func NewReader(from io.Reader) *Reader { return &Reader{from: bufio.NewReader(from)} }

// Begin waits for the beginning of the next frame. It returns the number in it, or zero if the frame
// is too short for one, and the frame's length.
func (r *Reader) Begin() (xid int32, size int, err error) {
	head, err := r.from.Peek(4)
	if err != nil {
		return 0, 0, err
	}
	size, err = lengthOf(head, math.MaxInt32)
	if err != nil || size < 4 {
		return 0, size, err
	}
	head, err = r.from.Peek(8)
	if err != nil {
		return 0, 0, err
	}
	return int32(binary.BigEndian.Uint32(head[4:])), size, nil
}

// lengthOf returns the length of the frame that begins with head.
func lengthOf(head []byte, limit int) (int, error) {
	size := int(int32(binary.BigEndian.Uint32(head)))
	if size < 0 || size > limit {
		return 0, fmt.Errorf("%w: %d bytes long", ErrMalformed, uint32(size))
	}
	return size, nil
}

// Next reads the next frame, which must not be longer than limit, and returns it without its
// length. The result is valid until the next call.
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

// NextHeader reads the next frame, of which it returns only the header and discards the rest. Copy
// moves nothing of it.
func (r *Reader) NextHeader() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return nil, err
	}
	size, err := lengthOf(head[:], math.MaxInt32)
	if err != nil {
		return nil, err
	}
	kept := min(size, replyHeader)
	if err := r.fill(head, kept); err != nil {
		return nil, err
	}
	r.rest = nil
	_, err = r.from.Discard(size - kept)
	return r.buf[4:], err
}

// fill reads a frame into buf as its bytes arrive, so that a false length costs no memory.
func (r *Reader) fill(head [4]byte, size int) error {
	const chunk, short, patience = 64 << 10, 4 << 10, 16
	r.idle++
	if size > short {
		r.idle = 0
	}
	if cap(r.buf) > short && r.idle >= patience {
		r.buf = nil // a listing enlarged it, and there has been no other for a while
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

// Keep returns a copy of the current frame, which Restore can make the current one again.
func (r *Reader) Keep() []byte { return slices.Clone(r.buf) }

// Restore makes a frame that Keep has returned the current one again, with nothing read yet.
func (r *Reader) Restore(kept []byte) { r.buf, r.rest = kept, kept }

// Copy moves bytes of the current frame, including its length, to p and returns how many.
func (r *Reader) Copy(p []byte) int {
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n
}

// IsEmpty reports whether Copy has moved all of the current frame.
func (r *Reader) IsEmpty() bool { return len(r.rest) == 0 }

// Drop discards the rest of the current frame, so that Copy moves nothing.
func (r *Reader) Drop() { r.rest = nil }

// replyHeader is the length of the header of a reply: its number, a zxid and a code.
const replyHeader = 4 + 8 + 4
