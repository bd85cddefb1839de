// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"
)

// errShort is the decoder's error for a value that extends past the end of the frame.
var errShort = errors.New("value extends past the end of the frame")

// decoder reads jute values from one frame. After the first error, every read returns
// a zero value, so callers need to check err only once, at the end.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n < 0 || n > len(d.buf) {
		d.err = errShort
		return nil
	}
	b := d.buf[:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) int32() int32 {
	b := d.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func (d *decoder) int64() int64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// buffer reads a length and that many bytes, and returns a copy. It returns nil for
// the null buffer (length -1), but not for an empty one.
func (d *decoder) buffer() []byte {
	n := d.int32()
	if d.err != nil || n == -1 {
		return nil
	}
	b := d.take(int(n))
	if d.err != nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

func (d *decoder) string() string {
	n := d.int32()
	if d.err != nil || n == -1 {
		return ""
	}
	return string(d.take(int(n)))
}

// count reads a vector's length. Each element takes at least size bytes, so count
// rejects a length that does not fit the frame before anything is allocated for it.
func (d *decoder) count(size int) int {
	n := d.int32()
	if d.err != nil || n == -1 {
		return 0
	}
	if n < 0 || int(n) > len(d.buf)/size {
		d.err = errShort
		return 0
	}
	return int(n)
}

func (d *decoder) strings() []string {
	n := d.count(4)
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) acls() []ACL {
	n := d.count(12)
	list := make([]ACL, 0, n)
	for range n {
		list = append(list, ACL{Perms: d.int32(), Scheme: d.string(), ID: d.string()})
	}
	return list
}

// encoder appends jute values to buf.
type encoder struct{ buf []byte }

func (e *encoder) int32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }

func (e *encoder) int64(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

func (e *encoder) bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	e.buf = append(e.buf, b)
}

func (e *encoder) buffer(b []byte) {
	if b == nil {
		e.int32(-1)
		return
	}
	e.int32(int32(len(b)))
	e.buf = append(e.buf, b...)
}

func (e *encoder) string(s string) {
	s = javaUTF8(s)
	e.int32(int32(len(s)))
	e.buf = append(e.buf, s...)
}

// javaUTF8 encodes characters that take four bytes in UTF-8 as two surrogates of
// three bytes each, as Java does.
func javaUTF8(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r > 0xffff }) < 0 {
		return s
	}
	var b []byte
	for _, r := range s {
		if r <= 0xffff {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, half := range []rune{0xd800 | (r-0x10000)>>10, 0xdc00 | (r-0x10000)&0x3ff} {
			b = append(b, 0xe0|byte(half>>12), 0x80|byte(half>>6)&0x3f, 0x80|byte(half)&0x3f)
		}
	}
	return string(b)
}

func (e *encoder) strings(list []string) {
	e.int32(int32(len(list)))
	for _, s := range list {
		e.string(s)
	}
}

func (e *encoder) acls(list []ACL) {
	e.int32(int32(len(list)))
	for _, a := range list {
		e.int32(a.Perms)
		e.string(a.Scheme)
		e.string(a.ID)
	}
}

func (e *encoder) stat(s Stat) {
	e.int64(s.Czxid)
	e.int64(s.Mzxid)
	e.int64(s.Ctime)
	e.int64(s.Mtime)
	e.int32(s.Version)
	e.int32(s.Cversion)
	e.int32(s.Aversion)
	e.int64(s.EphemeralOwner)
	e.int32(s.DataLength)
	e.int32(s.NumChildren)
	e.int64(s.Pzxid)
}
