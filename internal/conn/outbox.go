// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"net"
	"sync"
	"time"
)

// outbox writes frames to a connection one after another, for senders that must not wait: a server
// that has stopped reading would block them. Heartbeats go before all other frames that are not yet
// written. Apart from that, frames keep their order.
//
// Frames are written by the outbox's own goroutine.
type outbox struct {
	to      net.Conn
	more    chan struct{} // has an element if the outbox's goroutine must write, or end
	left    chan struct{} // closed when that goroutine has ended
	writing writing

	mu     sync.Mutex
	beats  [][]byte // guarded by mu: heartbeats that are not taken yet
	frames [][]byte // guarded by mu: the other frames that are not taken yet
	closed bool     // guarded by mu
}

// writing belongs to the goroutine that writes.
type writing struct {
	piece  [][]byte // frames that are written together
	joined []byte   // their bytes, if there are several
	rest   []byte   // the bytes that are not yet written
}

// maxPiece is how many bytes of several frames are written together. A longer frame is written
// alone, so that a heartbeat waits for at most one such frame.
const maxPiece = 64 << 10

// newOutbox returns the outbox of a connection. Close must be called.
func newOutbox(to net.Conn) *outbox {
	o := &outbox{to: to, more: make(chan struct{}, 1), left: make(chan struct{})}
	// Owned by the outbox; ends with the connection; close waits for it.
	go o.write()
	return o
}

// put queues a frame, which the caller must not modify afterwards. After close it does nothing. The
// caller must call flush.
func (o *outbox) put(frame []byte) { o.add(&o.frames, frame) }

// putBeat is like put for a heartbeat.
func (o *outbox) putBeat(frame []byte) { o.add(&o.beats, frame) }

// add appends a frame to one of the outbox's queues.
func (o *outbox) add(queue *[][]byte, frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		*queue = append(*queue, frame)
	}
}

// flush wakes the outbox's goroutine, which writes the queued frames.
func (o *outbox) flush() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// take takes the frames that are written next, together: none after close.
func (o *outbox) take() {
	w := &o.writing
	clear(w.piece)
	w.piece = o.next(w.piece[:0])
	switch len(w.piece) {
	case 0:
		w.rest = nil
	case 1:
		w.rest = w.piece[0]
	default:
		w.joined = w.joined[:0]
		for _, frame := range w.piece {
			w.joined = append(w.joined, frame...)
		}
		w.rest = w.joined
	}
}

// next appends the frames that are written next to piece, which is empty.
func (o *outbox) next(piece [][]byte) [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := 0
	for _, queue := range []*[][]byte{&o.beats, &o.frames} {
		n := 0
		for _, frame := range *queue {
			size += len(frame)
			if size > maxPiece && len(piece) > 0 {
				break
			}
			piece = append(piece, frame)
			n++
		}
		*queue = dropFirst(*queue, n)
		if size > maxPiece {
			break
		}
	}
	return piece
}

// dropFirst removes the first n frames of a queue.
func dropFirst(queue [][]byte, n int) [][]byte {
	clear(queue[:n])
	if n == len(queue) {
		return queue[:0] // keeps its memory
	}
	return queue[n:]
}

// write writes what senders have queued, until the connection has ended.
func (o *outbox) write() {
	defer close(o.left)
	for range o.more {
		for {
			o.take()
			if len(o.writing.rest) == 0 {
				break
			}
			o.writeRest()
		}
		if o.isClosed() {
			return
		}
	}
}

func (o *outbox) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// drain is the deadline that a failed write sets for the read that is in progress. If the server has
// sent more, later reads have their usual deadlines.
const drain = time.Second

// writeRest writes the rest of a piece. If that fails, reads soon fail, too: but not before what the
// server has sent already is read, which may be the event that ends a hold.
func (o *outbox) writeRest() {
	_, err := o.to.Write(o.writing.rest)
	o.writing.rest = nil
	if err != nil {
		o.refuse()
		o.to.SetReadDeadline(time.Now().Add(drain))
	}
}

// refuse discards the frames that are not yet taken, and accepts no more.
func (o *outbox) refuse() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beats, o.frames, o.closed = nil, nil, true
	o.flush()
}

// patienceToClose is how long close waits for a connection that does not end.
const patienceToClose = 100 * time.Millisecond

// close closes the connection, and returns when the outbox's goroutine has ended. A program's dialer can return a connection whose
// Close waits for a Write that the server blocks: then close returns earlier. The connection's deadlines end the Write.
func (o *outbox) close() error {
	o.refuse()
	result := make(chan error, 1)
	// Owned by the connection, which close closes; ends when its Close returns and no Write is in progress; close waits for a moment.
	go func() {
		err := o.to.Close()
		<-o.left
		result <- err
	}()
	timer := time.NewTimer(patienceToClose)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
	}
	// Owned by the connection; ends when it has set its deadlines; nobody waits for it.
	go o.to.SetDeadline(time.Unix(1, 0))
	return errBlocked
}

// errBlocked is the error of a connection that could not be closed yet.
var errBlocked = errors.New("connection waits for a write")
