// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"math/rand/v2"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// Dialer wraps dial for the client library, so that the link sees the traffic of each connection.
func (l *Link) Dialer(dial zk.Dialer) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		if err := l.pause(); err != nil {
			return nil, err
		}
		conn, err := l.dialOnce(func() (net.Conn, error) { return dial(network, address, timeout) })
		if err != nil {
			l.RecordError(err)
			return nil, err
		}
		return l.adopt(address, conn)
	}
}

// dialOnce returns the result of dial. If the link is closed first, it returns errClosed: dial is
// the program's, and may not return for a long time.
func (l *Link) dialOnce(dial func() (net.Conn, error)) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	results, abandoned := make(chan result), make(chan struct{})
	defer close(abandoned)
	// Owned by the program, whose dial it runs; ends when dial returns. Close does not wait for it.
	go func() {
		conn, err := dial()
		select {
		case results <- result{conn, err}:
		case <-abandoned:
			if err == nil {
				conn.Close()
			}
		}
	}()
	select {
	case r := <-results:
		return r.conn, r.err
	case <-l.closing:
		return nil, errClosed
	}
}

// pause spaces out dials that lead to no session: the client library does so only if it cannot
// reach any server, and would otherwise dial as fast as servers refuse connections.
func (l *Link) pause() error {
	if fails := l.dialed(); fails > 0 {
		d := min(10*time.Millisecond<<min(fails, 7), time.Second)
		timer := time.NewTimer(d/2 + rand.N(d/2))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closing:
		}
	}
	if l.isClosed() {
		return errClosed
	}
	return nil
}

// dialed counts a dial. It returns how many consecutive dials before it led to no lasting
// connection.
func (l *Link) dialed() (fails int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fails = l.fails
	l.fails++
	return fails
}

// adopt makes conn the current connection. It closes the previous one, which the client library
// leaves open after an expiry.
func (l *Link) adopt(address string, conn net.Conn) (net.Conn, error) {
	t := newProxy(l, newServerConn(address, conn))
	old, ok := l.replace(t)
	if old != nil {
		old.server.Close()
	}
	if !ok {
		t.server.Close()
		return nil, errClosed
	}
	return t, nil
}

// replace makes conn, which carries no session yet, the current connection unless the link is
// closed. It returns the previous one, or nil if there was none.
func (l *Link) replace(conn *proxy) (old *proxy, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old = l.conn
	if l.closed {
		return old, false
	}
	l.conn = conn
	if l.carried.Load() != nil {
		l.carried.Store(nil)
		l.broadcast()
	}
	return old, true
}
