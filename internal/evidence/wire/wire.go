// SPDX-License-Identifier: Apache-2.0

// Package wire is a minimal ZooKeeper client for tests: it sends exactly the given bytes
// and returns exactly the received frames. It shares no code with zktest or go-zookeeper,
// so that an error in one of them cannot hide an error in another.
package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// Frame is one frame from the server, without its length.
type Frame struct {
	Xid  int32
	Zxid int64
	Err  int32
	Body []byte
}

// Notification reports whether the frame is a watch event.
func (f Frame) Notification() bool { return f.Xid == -1 }

// Session is the reply to a connect request.
type Session struct {
	ID       int64
	Timeout  int32 // milliseconds; 0 if the session was refused
	Passwd   []byte
	ReadOnly bool // whether the answer had the read-only byte
}

// Conn is a connection. It is not safe for concurrent use.
type Conn struct {
	nc   net.Conn
	Wait time.Duration // how long a read may take
}

// New wraps an open connection.
func New(nc net.Conn) *Conn { return &Conn{nc: nc, Wait: 30 * time.Second} }

// Close closes the connection.
func (c *Conn) Close() error { return c.nc.Close() }

// Hello is a connect request.
type Hello struct {
	LastZxid int64
	Timeout  int32
	Session  int64
	Passwd   []byte
	ReadOnly bool // send the byte that newer clients send
}

// Connect sends a connect request and reads the answer.
func (c *Conn) Connect(h Hello) (Session, error) {
	passwd := h.Passwd
	if passwd == nil {
		passwd = make([]byte, 16)
	}
	b := NewBody().Int(0).Long(h.LastZxid).Int(h.Timeout).Long(h.Session).Buf(passwd)
	if h.ReadOnly {
		b.Bool(false)
	}
	if err := c.Raw(b.Framed()); err != nil {
		return Session{}, err
	}
	body, err := c.ReadRaw()
	if err != nil {
		return Session{}, err
	}
	p := Parse(body)
	p.Int() // protocol version
	s := Session{Timeout: p.Int(), ID: p.Long(), Passwd: p.Buf()}
	s.ReadOnly = p.Left() > 0
	return s, p.Err
}

// Send sends a request.
func (c *Conn) Send(xid, op int32, body *Body) error {
	b := NewBody().Int(xid).Int(op)
	if body != nil {
		b.bytes = append(b.bytes, body.bytes...)
	}
	return c.Raw(b.Framed())
}

// Raw sends bytes as they are.
func (c *Conn) Raw(b []byte) error {
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.Wait)) // fails on a closed pipe, and then so does the write
	_, err := c.nc.Write(b)
	return err
}

// Read reads the next frame.
func (c *Conn) Read() (Frame, error) {
	b, err := c.ReadRaw()
	if err != nil {
		return Frame{}, err
	}
	p := Parse(b)
	f := Frame{Xid: p.Int(), Zxid: p.Long(), Err: p.Int()}
	f.Body = p.rest
	return f, p.Err
}

// ReadRaw reads the bytes of the next frame, without its length.
func (c *Conn) ReadRaw() ([]byte, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.Wait))
	var head [4]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > 64<<20 {
		return nil, fmt.Errorf("the server sent a frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c.nc, b)
	return b, err
}

// ReadAll reads until the server closes the connection.
func (c *Conn) ReadAll() ([]byte, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.Wait))
	return io.ReadAll(c.nc)
}

// Body builds a request's body, field by field.
type Body struct{ bytes []byte }

// NewBody returns an empty Body.
func NewBody() *Body { return &Body{} }

// Int appends an int.
func (b *Body) Int(v int32) *Body {
	b.bytes = binary.BigEndian.AppendUint32(b.bytes, uint32(v))
	return b
}

// Long appends a long.
func (b *Body) Long(v int64) *Body {
	b.bytes = binary.BigEndian.AppendUint64(b.bytes, uint64(v))
	return b
}

// Bool appends a boolean.
func (b *Body) Bool(v bool) *Body {
	if v {
		b.bytes = append(b.bytes, 1)
	} else {
		b.bytes = append(b.bytes, 0)
	}
	return b
}

// Buf appends a buffer; nil is the null buffer.
func (b *Body) Buf(v []byte) *Body {
	if v == nil {
		return b.Int(-1)
	}
	b.Int(int32(len(v)))
	b.bytes = append(b.bytes, v...)
	return b
}

// Str appends a string.
func (b *Body) Str(v string) *Body { return b.Buf([]byte(v)) }

// Strs appends a vector of strings.
func (b *Body) Strs(v []string) *Body {
	b.Int(int32(len(v)))
	for _, s := range v {
		b.Str(s)
	}
	return b
}

// Add appends another body.
func (b *Body) Add(other *Body) *Body {
	b.bytes = append(b.bytes, other.bytes...)
	return b
}

// Bytes returns the body.
func (b *Body) Bytes() []byte { return b.bytes }

// Framed returns the body after its length.
func (b *Body) Framed() []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b.bytes))), b.bytes...)
}

// Parser reads a reply's body, field by field. The first error sticks.
type Parser struct {
	rest []byte
	Err  error
}

// Parse returns a Parser for b.
func Parse(b []byte) *Parser { return &Parser{rest: b} }

// Left returns the number of unread bytes.
func (p *Parser) Left() int { return len(p.rest) }

func (p *Parser) take(n int) []byte {
	if p.Err == nil && (n < 0 || n > len(p.rest)) {
		p.Err = io.ErrUnexpectedEOF
	}
	if p.Err != nil {
		return make([]byte, 8)
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// Int reads an int.
func (p *Parser) Int() int32 { return int32(binary.BigEndian.Uint32(p.take(4))) }

// Long reads a long.
func (p *Parser) Long() int64 { return int64(binary.BigEndian.Uint64(p.take(8))) }

// Bool reads a boolean.
func (p *Parser) Bool() bool { return p.take(1)[0] != 0 }

// Buf reads a buffer.
func (p *Parser) Buf() []byte {
	n := p.Int()
	if n < 0 || p.Err != nil {
		return nil
	}
	return p.take(int(n))
}

// Str reads a string.
func (p *Parser) Str() string { return string(p.Buf()) }

// Strs reads a vector of strings.
func (p *Parser) Strs() []string {
	var list []string
	for n := p.Int(); n > 0 && p.Err == nil; n-- {
		list = append(list, p.Str())
	}
	return list
}

// Stat is a node's metadata on the wire.
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime  int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// Stat reads a stat.
func (p *Parser) Stat() Stat {
	return Stat{
		Czxid: p.Long(), Mzxid: p.Long(), Ctime: p.Long(), Mtime: p.Long(),
		Version: p.Int(), Cversion: p.Int(), Aversion: p.Int(), EphemeralOwner: p.Long(),
		DataLength: p.Int(), NumChildren: p.Int(), Pzxid: p.Long(),
	}
}
