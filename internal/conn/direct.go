// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
)

// patience is how long a server may take to accept a direct connection, and for each reply on it.
const patience = 5 * time.Second

// Direct is a connection to one server, without the client library and without a Link: the server
// does not change, and only the caller sends requests. It is used by one goroutine.
type Direct struct {
	conn    *serverConn
	in      *frames.Reader
	xid     int32
	release func() bool // the connection does not end with the context any more
}

// Hello is a connection request, or the reply to one. A session of zero means a new one in a request,
// and one that has expired in a reply.
type Hello struct {
	Session  int64
	Password []byte
	Timeout  time.Duration
}

// DialDirect connects to a server and sends a connection request. The connection ends with ctx, at the
// latest by Leave or End.
func DialDirect(ctx context.Context, dial zk.Dialer, address string, ask Hello) (*Direct, Hello, error) {
	if err := ctx.Err(); err != nil {
		return nil, Hello{}, err
	}
	nc, err := dial("tcp", address, patience)
	if err != nil {
		return nil, Hello{}, err
	}
	d := &Direct{conn: newServerConn(address, nc), in: frames.NewReader(nc)}
	d.release = context.AfterFunc(ctx, func() { d.conn.Close() })
	reply, err := d.greet(ask)
	if err != nil {
		d.Leave()
		return nil, Hello{}, err
	}
	return d, reply, nil
}

func (d *Direct) greet(ask Hello) (Hello, error) {
	d.conn.Write(frames.Connect(ask.Timeout, ask.Session, ask.Password))
	frame, err := d.next(frames.MaxGreeting)
	if errors.Is(err, io.EOF) {
		return Hello{}, errNoSession(err)
	}
	if err != nil {
		return Hello{}, err
	}
	id, timeout, err := frames.ParseGreeting(frame)
	if err != nil {
		return Hello{}, err
	}
	return Hello{id, frames.PasswordOf(frame), timeout}, nil
}

// next reads the next frame.
func (d *Direct) next(limit int) ([]byte, error) {
	d.conn.SetReadDeadline(time.Now().Add(patience))
	return d.in.Next(limit)
}

// LogIn logs in, unless login is nil, and presents credentials. An error that wraps zk.ErrAuthFailed is
// a refusal.
func (d *Direct) LogIn(ctx context.Context, login *Login, credentials []frames.Request) error {
	d.conn.SetReadDeadline(time.Now().Add(patience))
	if login != nil {
		if err := logIn(ctx.Done(), d.conn, d.in, time.Now().Add(patience), *login); err != nil {
			return err
		}
	}
	_, err := present(d.conn, d.in, credentials)
	return err
}

// Ask sends a request and returns the reply to it. It returns an error if no reply arrives or
// if the reply is malformed. A refusal is in the reply's code. The reply is valid until the next call.
func (d *Direct) Ask(r frames.Request) (frames.Reply, error) {
	d.xid++
	r.Number(d.xid)
	d.conn.Write(r)
	for {
		frame, err := d.next(frames.MaxFrame)
		if err != nil {
			return frames.Reply{}, err
		}
		reply, err := frames.ParseReply(frame)
		if err != nil {
			return frames.Reply{}, err
		}
		if reply.Xid != d.xid {
			continue // an event
		}
		if reply.Code == frames.CodeOK {
			err = frames.CheckReply(r.Op(), reply.Body)
		}
		return reply, err
	}
}

// Leave closes the connection. The session remains until it expires, or is resumed.
func (d *Direct) Leave() {
	d.release()
	d.conn.Close()
}

// End ends the session and closes the connection.
func (d *Direct) End() {
	d.Ask(frames.Close())
	d.Leave()
}

// AskWord sends one of ZooKeeper's four-letter words and returns the server's reply. It returns
// an error if the server cannot be reached, and "" if the server does not reply to the word.
func AskWord(ctx context.Context, dial zk.Dialer, address, word string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	nc, err := dial("tcp", address, patience)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	nc.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(nc, word); err != nil {
		return "", err
	}
	var reply strings.Builder
	io.Copy(&reply, io.LimitReader(nc, 1<<16)) // the reply ends when the server hangs up
	return reply.String(), nil
}

// errNoSession returns the error for a server that has closed the connection without a reply to the
// connection request.
func errNoSession(why error) error {
	return fmt.Errorf("server closed the connection without creating a session (no quorum, or maxClientCnxns reached): %w", why)
}
