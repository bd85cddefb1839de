package conn

import (
	"net"
	"sync"
)

// outbox writes frames to a connection, one after the other, for senders that must not wait: a server that reads
// no more would hold them up.
type outbox struct {
	to   net.Conn
	more chan struct{} // has an element if the writer has to look
	left chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	frames [][]byte // guarded by mu: not written yet
	closed bool     // guarded by mu
}

// newOutbox returns the outbox of a connection. Close must be called.
func newOutbox(to net.Conn) *outbox {
	o := &outbox{to: to, more: make(chan struct{}, 1), left: make(chan struct{})}
	// Owned by the outbox; ends with the connection; close waits for it.
	go o.write()
	return o
}

// put has a frame written, which nobody changes any more. After close it does nothing.
func (o *outbox) put(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.frames = append(o.frames, frame)
		o.nudge()
	}
}

// nudge has the writer look.
func (o *outbox) nudge() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// take returns what is to be written, and reports false after close.
func (o *outbox) take(written [][]byte) (frames [][]byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(written)
	frames, o.frames = o.frames, written[:0]
	return frames, !o.closed
}

// write writes until the connection has ended. If a write fails it ends the connection, which
// shows in reads.
func (o *outbox) write() {
	defer close(o.left)
	var written [][]byte
	for range o.more {
		frames, ok := o.take(written)
		if !ok {
			return
		}
		for _, frame := range frames {
			if _, err := o.to.Write(frame); err != nil {
				o.refuse()
				o.to.Close()
				return
			}
		}
		written = frames
	}
}

// refuse drops what is not written, and takes nothing more.
func (o *outbox) refuse() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frames, o.closed = nil, true
	o.nudge()
}

// close ends the connection, and returns when the writer has ended.
func (o *outbox) close() error {
	o.refuse()
	err := o.to.Close()
	<-o.left
	return err
}
