// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"errors"
	"fmt"
	"time"
)

// Tags of DER that Kerberos uses.
const (
	tagInteger     = 0x02
	tagBits        = 0x03
	tagOctets      = 0x04
	tagOID         = 0x06
	tagTime        = 0x18
	tagString      = 0x1b // GeneralString
	tagSequence    = 0x30
	tagApplication = 0x60 // plus the number of the message
	tagContext     = 0xa0 // plus the number of the field
)

// timeLayout is the only form of GeneralizedTime that Kerberos allows.
const timeLayout = "20060102150405Z"

// ErrMalformed reports bytes that are not a Kerberos message of the expected kind, or not a file of the expected format.
var ErrMalformed = errors.New("malformed")

// A decoder reads DER. After the first element that is not of the expected kind, it returns zero values, and err points to the
// reason. The decoders of nested elements share err.
type decoder struct {
	rest []byte
	err  *error
}

// decode calls read with a decoder of b and returns its error.
func decode(what string, b []byte, read func(d *decoder)) error {
	var err error
	read(&decoder{b, &err})
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrMalformed, what, err)
	}
	return nil
}

// fail records the first error.
func (d *decoder) fail(format string, args ...any) {
	if *d.err == nil {
		*d.err = fmt.Errorf(format, args...)
	}
	d.rest = nil
}

// has reports whether the next element has a tag.
func (d *decoder) has(tag byte) bool { return *d.err == nil && len(d.rest) > 0 && d.rest[0] == tag }

// read returns the content of the next element, which must have this tag.
func (d *decoder) read(tag byte) []byte {
	if !d.has(tag) {
		d.fail("no element with tag %#x", tag)
		return nil
	}
	size, b := 0, d.rest[1:]
	switch {
	case len(b) == 0:
	case b[0] < 0x80:
		size, b = int(b[0]), b[1:]
	case b[0] >= 0x81 && b[0] <= 0x83 && len(b) > int(b[0]&0x7f):
		for _, c := range b[1 : 1+b[0]&0x7f] {
			size = size<<8 | int(c)
		}
		b = b[1+b[0]&0x7f:]
	default: // indefinite, or longer than any message
		size = len(b) + 1
	}
	if len(d.rest) < 2 || size > len(b) {
		d.fail("element with tag %#x is longer than the message", tag)
		return nil
	}
	d.rest = b[size:]
	return b[:size]
}

// in returns a decoder of the content of the next element.
func (d *decoder) in(tag byte) *decoder { return &decoder{d.read(tag), d.err} }

// message returns a decoder of a message, which is a sequence with an application's tag.
func (d *decoder) message(number byte) *decoder { return d.in(tagApplication | number).in(tagSequence) }

// field returns a decoder of a field of a sequence.
func (d *decoder) field(n byte) *decoder { return d.in(tagContext | n) }

// hasField reports whether the next field is that one. Use it for optional fields.
func (d *decoder) hasField(n byte) bool { return d.has(tagContext | n) }

// skip skips an optional field.
func (d *decoder) skip(n byte) {
	if d.hasField(n) {
		d.field(n)
	}
}

func (d *decoder) integer() int64 {
	b := d.read(tagInteger)
	if len(b) == 0 || len(b) > 8 {
		d.fail("integer of %d bytes", len(b))
		return 0
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return v
}

func (d *decoder) integer32() int32 {
	v := d.integer()
	if int64(int32(v)) != v {
		d.fail("integer %d has more than 32 bits", v)
	}
	return int32(v)
}

func (d *decoder) octets() []byte { return d.read(tagOctets) }

func (d *decoder) text() string { return string(d.read(tagString)) }

func (d *decoder) time() time.Time {
	t, err := time.Parse(timeLayout, string(d.read(tagTime)))
	if err != nil {
		d.fail("time: %v", err)
	}
	return t
}

// version reads the two fields that messages begin with, from the field n on.
func (d *decoder) version(n byte, kind int64) {
	if v := d.field(n).integer(); v != 5 {
		d.fail("version %d", v)
	}
	if k := d.field(n + 1).integer(); k != kind {
		d.fail("kind %d instead of %d", k, kind)
	}
}

// element returns an element of DER.
func element(tag byte, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	b := []byte{tag}
	switch {
	case size < 0x80:
		b = append(b, byte(size))
	case size < 1<<8:
		b = append(b, 0x81, byte(size))
	case size < 1<<16:
		b = append(b, 0x82, byte(size>>8), byte(size))
	default:
		b = append(b, 0x83, byte(size>>16), byte(size>>8), byte(size))
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func message(number byte, fields ...[]byte) []byte {
	return element(tagApplication|number, element(tagSequence, fields...))
}

func sequence(parts ...[]byte) []byte { return element(tagSequence, parts...) }

func field(n byte, content []byte) []byte { return element(tagContext|n, content) }

func integer(v int64) []byte {
	b := []byte{byte(v)}
	for v < -0x80 || v > 0x7f {
		v >>= 8
		b = append([]byte{byte(v)}, b...)
	}
	return element(tagInteger, b)
}

func octets(b []byte) []byte { return element(tagOctets, b) }

func text(s string) []byte { return element(tagString, []byte(s)) }

func timestamp(t time.Time) []byte { return element(tagTime, []byte(t.UTC().Format(timeLayout))) }

// bits returns 32 flags, of which the first is the most significant bit.
func bits(flags uint32) []byte {
	return element(tagBits, []byte{0, byte(flags >> 24), byte(flags >> 16), byte(flags >> 8), byte(flags)})
}
