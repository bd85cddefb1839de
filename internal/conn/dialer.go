package conn

import (
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// errClosed is the error of a dial after the link was closed.
var errClosed = errors.New("client is closed")

// Dialer returns dial for the client library, so that the link sees what passes on each
// connection.
func (l *Link) Dialer(dial zk.Dialer) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		if err := l.pause(); err != nil {
			return nil, err
		}
		conn, err := dial(network, address, timeout)
		if err != nil {
			l.MetTrouble(err)
			return nil, err
		}
		return l.adopt(conn)
	}
}

// pause spaces out the dials that lead to no session: the client library does so only
// where no server can be reached, and would otherwise dial as fast as servers refuse.
func (l *Link) pause() error {
	if fails := l.dialled(); fails > 0 {
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

// adopt makes conn the connection. It closes the one before: after an expiry the client
// library leaves that open.
func (l *Link) adopt(conn net.Conn) (net.Conn, error) {
	t := newTap(l, newLine(conn))
	old, handshake, ok := l.replace(t.line)
	if old != nil {
		old.Close()
	}
	if !ok {
		t.line.Close()
		return nil, errClosed
	}
	conn.SetReadDeadline(time.Now().Add(handshake)) // the login included
	return t, nil
}
