package conn

import (
	"net"
	"sync"
)

// outbox writes frames to a connection one after another, for senders that must not wait: a server
// that has stopped reading would block them. Heartbeats go before all other frames that are not yet
// written. Apart from that, frames keep their order.
type outbox struct {
	to   net.Conn
	more chan struct{} // has an element if the writer must check for work
	left chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	beats  [][]byte // guarded by mu: heartbeats that are not written yet
	frames [][]byte // guarded by mu: the other frames that are not written yet
	closed bool     // guarded by mu
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

// put queues a frame, which the caller must not modify afterwards. After close it does nothing.
func (o *outbox) put(frame []byte) { o.add(&o.frames, frame) }

// putBeat is like put for a heartbeat.
func (o *outbox) putBeat(frame []byte) { o.add(&o.beats, frame) }

// add appends a frame to one of the outbox's queues.
func (o *outbox) add(queue *[][]byte, frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		*queue = append(*queue, frame)
		o.wake()
	}
}

// wake wakes the writer.
func (o *outbox) wake() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// take appends the frames that are written next, together, to piece, which is empty. It returns
// false after close.
func (o *outbox) take(piece [][]byte) (_ [][]byte, ok bool) {
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
	return piece, !o.closed
}

// dropFirst removes the first n frames of a queue.
func dropFirst(queue [][]byte, n int) [][]byte {
	clear(queue[:n])
	if n == len(queue) {
		return queue[:0] // keeps its memory
	}
	return queue[n:]
}

// write writes frames until the connection has ended.
func (o *outbox) write() {
	defer close(o.left)
	var piece [][]byte
	var joined []byte
	for range o.more {
		for {
			var ok bool
			piece, ok = o.take(piece[:0])
			if !ok {
				return
			}
			if len(piece) == 0 {
				break
			}
			joined = o.writePiece(piece, joined[:0])
			clear(piece)
		}
	}
}

// writePiece writes frames together. It returns the memory that it has used for that, which is buf
// or larger. If the write fails, it closes the connection, so that reads fail.
func (o *outbox) writePiece(piece [][]byte, buf []byte) []byte {
	frame := piece[0]
	if len(piece) > 1 {
		for _, f := range piece {
			buf = append(buf, f...)
		}
		frame = buf
	}
	if _, err := o.to.Write(frame); err != nil {
		o.refuse()
		o.to.Close()
	}
	return buf
}

// refuse discards the frames that are not yet written, and accepts no more.
func (o *outbox) refuse() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beats, o.frames, o.closed = nil, nil, true
	o.wake()
}

// close closes the connection, and returns when the writer has ended.
func (o *outbox) close() error {
	o.refuse()
	err := o.to.Close()
	<-o.left
	return err
}
