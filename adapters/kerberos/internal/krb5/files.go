// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// maxFile limits keytabs and credential caches.
const maxFile = 16 << 20

// readFile reads a regular file: anything else, such as a pipe, might block.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, err
}

// A cursor reads numbers and texts of a file. After the end of the file it returns zero values, and short is set.
type cursor struct {
	rest  []byte
	short bool
}

func (c *cursor) take(n uint32) []byte {
	if uint64(n) > uint64(len(c.rest)) {
		c.rest, c.short = nil, true
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) uint8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uint16() uint16 {
	if b := c.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Keytab is the content of a keytab.
type Keytab struct{ entries []keytabEntry }

type keytabEntry struct {
	who     Principal
	version uint32
	key     Key
}

// LoadKeytab reads a keytab.
func LoadKeytab(path string) (*Keytab, error) {
	b, err := readFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	return ParseKeytab(b)
}

// ParseKeytab parses a keytab of version 2.
func ParseKeytab(b []byte) (*Keytab, error) {
	if len(b) < 2 || b[0] != 5 || b[1] != 2 {
		return nil, fmt.Errorf("%w keytab: it does not begin with version 5.2", ErrMalformed)
	}
	k, file := new(Keytab), &cursor{rest: b[2:]}
	for len(file.rest) > 0 {
		size := int32(file.uint32())
		if size <= 0 { // a hole, which a removed entry leaves
			file.take(uint32(-int64(size)))
			continue
		}
		c := &cursor{rest: file.take(uint32(size))}
		var e keytabEntry
		parts := c.uint16()
		e.who.Realm = string(c.take(uint32(c.uint16())))
		for i := uint16(0); i < parts && !c.short; i++ {
			e.who.Name = append(e.who.Name, string(c.take(uint32(c.uint16()))))
		}
		c.take(8) // the kind of name, and when the key was added
		e.version = uint32(c.uint8())
		e.key.Type = int32(c.uint16())
		e.key.Value = c.take(uint32(c.uint16()))
		if len(c.rest) >= 4 {
			e.version = cmp.Or(c.uint32(), e.version)
		}
		if file.short || c.short {
			return nil, fmt.Errorf("%w keytab: it is cut short", ErrMalformed)
		}
		k.entries = append(k.entries, e)
	}
	switch {
	case file.short:
		return nil, fmt.Errorf("%w keytab: it is cut short", ErrMalformed)
	case len(k.entries) == 0:
		return nil, fmt.Errorf("%w keytab: it is empty", ErrMalformed)
	}
	return k, nil
}

// For returns the keys of a principal: for each encryption type the key with the highest version. If there is none, it returns nil.
func (k *Keytab) For(who Principal) Keys {
	newest := keytabKeys{}
	for _, e := range k.entries {
		if _, supported := encryptions[e.key.Type]; supported && e.who.Equal(who) && e.version >= newest[e.key.Type].version {
			newest[e.key.Type] = e
		}
	}
	if len(newest) == 0 {
		return nil
	}
	return newest
}

type keytabKeys map[int32]keytabEntry

// Kinds implements Keys.
func (k keytabKeys) Kinds() (kinds []int32) {
	for kind := range k {
		kinds = append(kinds, kind)
	}
	return kinds
}

// Key implements Keys.
func (k keytabKeys) Key(kind int32, _ string, _ []byte) (Key, error) {
	e, ok := k[kind]
	if !ok {
		return Key{}, fmt.Errorf("there is no key of encryption type %d in the keytab", kind)
	}
	return e.key, nil
}

// Password is a client's password.
type Password string

// Kinds implements Keys.
func (p Password) Kinds() []int32 { return Encryption }

// Key implements Keys.
func (p Password) Key(kind int32, salt string, params []byte) (Key, error) {
	return KeyOf(kind, string(p), salt, params)
}

// LoadCache reads a credential cache and returns the tickets in it. The first is the one that others come from.
func LoadCache(path string) ([]*Ticket, error) {
	b, err := readFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	return ParseCache(b)
}

// ParseCache parses a credential cache of version 4.
func ParseCache(b []byte) ([]*Ticket, error) {
	if len(b) < 2 || b[0] != 5 || b[1] != 4 {
		return nil, fmt.Errorf("%w credential cache: it does not begin with version 5.4", ErrMalformed)
	}
	c := &cursor{rest: b[2:]}
	c.take(uint32(c.uint16())) // the header
	who := c.principal()
	var all []*Ticket
	for len(c.rest) > 0 {
		t := new(Ticket)
		t.Client, t.Service = c.principal(), c.principal()
		t.Key = Key{int32(c.uint16()), c.data()}
		c.take(8) // when the client was authenticated, and when the ticket starts
		t.End = time.Unix(int64(c.uint32()), 0)
		c.take(9)     // until when it can be renewed, whether it is for another user, and its flags
		for range 2 { // addresses, and data about authorizations
			for n := c.uint32(); n > 0 && !c.short; n-- {
				c.uint16()
				c.data()
			}
		}
		t.raw = c.data()
		c.data() // another ticket
		configuration := strings.HasPrefix(t.Service.Realm, "X-CACHECONF:")
		if _, err := t.Key.encryption(); err == nil && !configuration && !c.short && t.Client.Equal(who) && len(t.Service.Name) > 0 && isTicket(t.raw) {
			all = append(all, t)
		}
	}
	first := slices.IndexFunc(all, func(t *Ticket) bool { return t.Service.Equal(tgs(who.Realm, who.Realm)) })
	switch {
	case c.short:
		return nil, fmt.Errorf("%w credential cache: it is cut short", ErrMalformed)
	case first < 0:
		return nil, fmt.Errorf("%w credential cache: it has no ticket for krbtgt/%s with an encryption type that is supported", ErrMalformed, who.Realm)
	}
	all[0], all[first] = all[first], all[0]
	return all, nil
}

// isTicket reports whether b can be sent as a ticket.
func isTicket(b []byte) bool {
	return decode("ticket", b, func(d *decoder) { d.message(tagTicket) }) == nil
}

func (c *cursor) data() []byte { return c.take(c.uint32()) }

func (c *cursor) principal() (p Principal) {
	c.uint32() // the kind of name
	parts := c.uint32()
	p.Realm = string(c.data())
	for i := uint32(0); i < parts && !c.short; i++ {
		p.Name = append(p.Name, string(c.data()))
	}
	return p
}
