// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A hostile input is what other hosts or other users may send or write. use must return, whatever b is.
type hostile struct {
	name  string
	valid []byte
	use   func(b []byte)
}

// hostiles returns all kinds of input, with a valid one of each.
func hostiles(t testing.TB) []hostile {
	key := keyFor(AES256SHA1)
	now := time.Now()
	part := message(tagASPart, field(0, keyBytes(key)), field(1, sequence(sequence(field(0, integer(0)), field(1, timestamp(now))))), field(2, integer(7)),
		field(3, timestamp(now)), field(4, bits(0)), field(5, timestamp(now)), field(6, timestamp(now)), field(7, timestamp(now.Add(time.Hour))), field(8, timestamp(now)),
		field(9, text(realm)), field(10, nameOf(nameService, []string{"krbtgt", realm})))
	ticket := must(sealTicket(key, tgs(realm, realm), joe, key, now.Add(time.Hour)))
	info := sequence(sequence(field(0, integer(AES256SHA1)), field(1, text("salt")), field(2, octets([]byte{0, 0, 0x10, 0}))))
	hints := dataOf([]datum{{dataEncryption, info}, {dataSalt, []byte("salt")}, {dataCookie, []byte("cookie")}})
	replyOf := func(kind int64, part []byte) []byte {
		return message(byte(kind), field(0, integer(5)), field(1, integer(kind)), field(2, dataOf([]datum{{dataEncryption, info}})), field(3, text(realm)),
			field(4, nameOf(nameUser, joe.Name)), field(5, ticket), field(6, part))
	}
	c := NewClient(&Config{types: Encryption, skew: time.Minute})
	keys := keytabKeys{AES256SHA1: {key: key}}
	auth, err := Authenticate(&Ticket{Client: joe, Service: tgs(realm, realm), Key: key, raw: ticket}, nil)
	require.NoError(t, err)
	take := func(kind byte, use uint32) func(b []byte) {
		return func(b []byte) {
			r, err := parseReply(kind, b)
			if err != nil {
				return
			}
			var i encryptionInfo
			_ = i.update(r.data)
			_, _ = c.ticketFrom(r, key, use, joe, request{service: tgs(realm, realm), nonce: 7})
		}
	}
	k := NewKDC(realm, time.Hour)
	k.Set("joe", key)
	return []hostile{
		{"AS-REP", replyOf(kindASReply, must(sealedWith(key, useASReply, part))), take(kindASReply, useASReply)},
		{"TGS-REP", replyOf(kindTGSReply, must(sealedWith(key, useTGSReply, part))), take(kindTGSReply, useTGSReply)},
		{"encrypted part of a KDC that knows the key", part, func(b []byte) {
			r := reply{client: joe, ticket: ticket, part: sealed{key.Type, must(key.encrypt(useASReply, b))}}
			_, _ = c.ticketFrom(r, key, useASReply, joe, request{service: tgs(realm, realm), nonce: 7})
		}},
		{"KRB-ERROR", k.refuse(PreauthRequired, hints), func(b []byte) {
			if e, err := parseError(b); err == nil {
				_ = e.Error()
				_, _, _ = c.authenticateToKDC(joe, keys, e.data)
			}
		}},
		{"hints", hints, func(b []byte) { _, _, _ = c.authenticateToKDC(joe, keys, b) }},
		{"AP-REP", (&Authentication{key: key, time: auth.time}).reply(), func(b []byte) { _ = auth.Check(b) }},
		{"frame", append([]byte{0, 0, 0, 4}, "1234"...), func(b []byte) { _, _ = readAnswer(bytes.NewReader(b)) }},
		{"keytab", append(k.Keytab("joe", 3), k.Keytab("joe", 4)[2:]...), func(b []byte) {
			if keytab, err := ParseKeytab(b); err == nil {
				keytab.For(joe)
			}
		}},
		{"credential cache", cacheOf(joe, ticketIn{tgs(realm, realm), key, now, ticket}, ticketIn{Principal{"X-CACHECONF:", []string{"krb5_ccache_conf_data"}}, Key{}, now, nil}),
			func(b []byte) { _, _ = ParseCache(b) }},
	}
}

type ticketIn struct {
	service Principal
	key     Key
	end     time.Time
	raw     []byte
}

// cacheOf returns a credential cache, as kinit writes it.
func cacheOf(client Principal, tickets ...ticketIn) []byte {
	counted := func(b, s []byte) []byte { return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...) }
	principal := func(b []byte, p Principal) []byte {
		b = binary.BigEndian.AppendUint32(b, nameUser)
		b = binary.BigEndian.AppendUint32(b, uint32(len(p.Name)))
		b = counted(b, []byte(p.Realm))
		for _, part := range p.Name {
			b = counted(b, []byte(part))
		}
		return b
	}
	b := principal([]byte{5, 4, 0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0}, client)
	for _, t := range tickets {
		b = principal(principal(b, client), t.service)
		b = counted(binary.BigEndian.AppendUint16(b, uint16(t.key.Type)), t.key.Value)
		for range 4 {
			b = binary.BigEndian.AppendUint32(b, uint32(t.end.Unix()))
		}
		b = append(b, 0, 0, 0, 0, 0)            // whether it is for another user, and its flags
		b = binary.BigEndian.AppendUint32(b, 1) // addresses
		b = counted(append(b, 0, 2), []byte{127, 0, 0, 1})
		b = binary.BigEndian.AppendUint32(b, 0) // data about authorizations
		b = counted(counted(b, t.raw), nil)
	}
	return b
}

// mutated returns b with a few changes.
func mutated(r *rand.Rand, b []byte) []byte {
	m := bytes.Clone(b)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(m))
		switch r.IntN(4) {
		case 0:
			m[at] = byte(r.Uint32())
		case 1:
			m[at] ^= 1 << r.IntN(8)
		case 2:
			m = append(m[:at:at], m[min(len(m), at+1+r.IntN(20)):]...)
		case 3:
			m = append(m[:at:at], append([]byte{0x84, 0xff, 0xff, 0xff, 0xff}[:1+r.IntN(5)], m[at:]...)...)
		}
		if len(m) == 0 {
			m = []byte{0}
		}
	}
	return m
}

// gokrb5 panicked at 422 of 788 prefixes of a cache, and at each encrypted text of less than 12 bytes.
//
//zklock:promise P8.5
func TestHostileInputNeitherPanicsNorUsesMuchMemory(t *testing.T) {
	r, mutations := rand.New(rand.NewPCG(1, 2)), 34_000
	if testing.Short() {
		mutations = 3_000
	}
	for _, h := range hostiles(t) {
		for n := range h.valid { // cut short
			h.use(h.valid[:n])
		}
		for range mutations {
			h.use(mutated(r, h.valid))
		}
	}
	for _, kind := range []byte{kindASReply, kindAPReply} { // every size of encrypted text
		for n := range 100 {
			key := keyFor(AES256SHA1)
			part := sequence(field(0, integer(int64(key.Type))), field(2, octets(make([]byte, n))))
			switch kind {
			case kindAPReply:
				err := (&Authentication{key: key}).Check(message(kind, field(0, integer(5)), field(1, integer(int64(kind))), field(2, part)))
				require.Error(t, err)
			default:
				_, err := sealed{key.Type, make([]byte, n)}.open(key, useASReply)
				require.Error(t, err)
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	require.Less(t, m.HeapSys>>20, uint64(64), "MiB")
}

// fuzz fuzzes one kind of input.
func fuzz(f *testing.F, name string) {
	for _, h := range hostiles(f) {
		if h.name == name {
			f.Add(h.valid)
			f.Add(h.valid[:len(h.valid)/2])
			f.Fuzz(func(_ *testing.T, b []byte) { h.use(b) })
			return
		}
	}
	f.Fatal("there is no such input:", name)
}

func FuzzASReply(f *testing.F)       { fuzz(f, "AS-REP") }
func FuzzTGSReply(f *testing.F)      { fuzz(f, "TGS-REP") }
func FuzzEncryptedPart(f *testing.F) { fuzz(f, "encrypted part of a KDC that knows the key") }
func FuzzError(f *testing.F)         { fuzz(f, "KRB-ERROR") }
func FuzzHints(f *testing.F)         { fuzz(f, "hints") }
func FuzzAPReply(f *testing.F)       { fuzz(f, "AP-REP") }
func FuzzFrame(f *testing.F)         { fuzz(f, "frame") }
func FuzzKeytab(f *testing.F)        { fuzz(f, "keytab") }
func FuzzCache(f *testing.F)         { fuzz(f, "credential cache") }

func FuzzConfig(f *testing.F) {
	f.Add("[libdefaults]\n default_realm = A\n[realms]\n A = {\n kdc = a\n }\n")
	f.Fuzz(func(t *testing.T, s string) {
		path := filepath.Join(t.TempDir(), "krb5.conf")
		require.NoError(t, os.WriteFile(path, []byte(s), 0o600))
		_, _ = LoadConfig(path)
	})
}
