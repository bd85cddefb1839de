// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// State is whether a KDC answers.
type State int

// States of a KDC.
const (
	Up     State = iota
	Down         // connections are refused
	Silent       // connections are made, but no request is answered
)

// KDC is an in-process KDC for one realm. It implements what a client needs, and refuses what a client must not send.
type KDC struct {
	Realm string

	mu     sync.Mutex
	state  State
	delay  time.Duration
	life   time.Duration // of tickets
	keys   map[string]Key
	asked  map[string]int // by the service asked for
	ruin   func(answer []byte) []byte
	params []byte            // of the clients' keys
	refers map[string]string // the realms of services in other realms
}

// NewKDC returns a KDC that knows itself. The addresses of KDCs are their realms in lower case.
func NewKDC(realm string, life time.Duration) *KDC {
	k := &KDC{Realm: realm, life: life, keys: map[string]Key{}, asked: map[string]int{}}
	k.Add("krbtgt/"+realm, AES256SHA1)
	return k
}

// Add adds a principal with a new random key, and returns the key.
func (k *KDC) Add(name string, kind int32) Key {
	key := Key{kind, make([]byte, encryptions[kind].key)}
	copy(key.Value, fmt.Sprint(time.Now().UnixNano(), nonce(), name))
	return k.Set(name, key)
}

// Set sets the key of a principal.
func (k *KDC) Set(name string, key Key) Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[name] = key
	return key
}

// Refer makes the KDC refer clients to another realm for a service. The KDCs share the key of krbtgt/REALM.
func (k *KDC) Refer(service string, other *KDC) {
	name := "krbtgt/" + other.Realm
	key := k.Add(name, AES128SHA2)
	other.Set(name+"@"+k.Realm, key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refers == nil {
		k.refers = map[string]string{}
	}
	k.refers[service] = name
}

// Become changes whether the KDC answers, and after how long.
func (k *KDC) Become(state State, delay time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.delay = state, delay
}

// Ruin changes the KDC's answers.
func (k *KDC) Ruin(fn func(answer []byte) []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ruin = fn
}

// Asked returns how often a ticket for a service was asked for.
func (k *KDC) Asked(service string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked[service]
}

// Keytab returns a keytab with the key of a principal.
func (k *KDC) Keytab(name string, version uint32) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	counted := func(s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...) }
	parts := strings.Split(name, "/")
	e := binary.BigEndian.AppendUint16(nil, uint16(len(parts)))
	e = append(e, counted(k.Realm)...)
	for _, p := range parts {
		e = append(e, counted(p)...)
	}
	e = append(e, make([]byte, 8)...)
	e = append(e, byte(version))
	e = binary.BigEndian.AppendUint16(e, uint16(k.keys[name].Type))
	e = append(e, counted(string(k.keys[name].Value))...)
	e = binary.BigEndian.AppendUint32(e, version)
	return append(binary.BigEndian.AppendUint32([]byte{5, 2}, uint32(len(e))), e...)
}

// Serve makes clients use these KDCs until the end of the test, and returns the path of a krb5.conf with them.
func Serve(t testing.TB, lines string, kdcs ...*KDC) string {
	former := dial
	t.Cleanup(func() { dial = former })
	dial = func(ctx context.Context, _, address string) (net.Conn, error) {
		for _, k := range kdcs {
			if address == strings.ToLower(k.Realm)+":88" {
				return k.dial(ctx)
			}
		}
		return nil, fmt.Errorf("no KDC at %s", address)
	}
	conf := fmt.Sprintf("[libdefaults]\n default_realm = %s\n dns_lookup_kdc = false\n%s\n[realms]\n", kdcs[0].Realm, lines)
	for _, k := range kdcs {
		conf += fmt.Sprintf(" %s = {\n  kdc = %s\n }\n", k.Realm, strings.ToLower(k.Realm))
	}
	path := filepath.Join(t.TempDir(), "krb5.conf")
	require.NoError(t, os.WriteFile(path, []byte(conf), 0o600))
	return path
}

func (k *KDC) dial(context.Context) (net.Conn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == Down {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	go func() { // ends with the connection
		defer ours.Close()
		var size uint32
		if binary.Read(ours, binary.BigEndian, &size) != nil {
			return
		}
		q := make([]byte, size)
		if _, err := io.ReadFull(ours, q); err != nil {
			return
		}
		k.mu.Lock()
		state, delay, ruin := k.state, k.delay, k.ruin
		k.mu.Unlock()
		if state == Silent {
			_, _ = io.Copy(io.Discard, ours)
			return
		}
		_ = ours.SetReadDeadline(time.Now().Add(delay))
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return // the client did not wait
		}
		a := k.Answer(q)
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(a))), a...)
		if ruin != nil {
			frame = ruin(frame)
		}
		_, _ = ours.Write(frame)
	}()
	return theirs, nil
}

// Answer returns the KDC's answer to a request.
func (k *KDC) Answer(q []byte) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	var client Principal
	var end time.Time
	var key Key
	var r request
	var data []datum
	var body []byte
	kind := byte(kindASRequest)
	if q[0] == tagApplication|kindTGSRequest {
		kind = kindTGSRequest
	}
	err := decode("request", q, func(d *decoder) {
		d = d.message(kind)
		d.version(1, int64(kind))
		if d.hasField(3) {
			data = d.field(3).data()
		}
		f := d.field(4)
		body = f.rest
		b := f.in(tagSequence)
		b.skip(0)
		if b.hasField(1) {
			r.client = b.field(1).name()
		}
		r.service.Realm = b.field(2).text()
		r.service.Name = b.field(3).name()
		r.till = b.field(5).time()
		r.nonce = b.field(7).integer()
		for in := b.field(8).in(tagSequence); len(in.rest) > 0; {
			r.kinds = append(r.kinds, in.integer32())
		}
	})
	if err != nil {
		return k.refuse(GenericError, nil)
	}
	service := strings.Join(r.service.Name, "/")
	k.asked[service]++
	if other := k.refers[service]; other != "" {
		service = other
		r.service.Name = strings.Split(other, "/")
	}
	serviceKey, ok := k.keys[service]
	if !ok {
		return k.refuse(ServiceUnknown, nil)
	}
	end = time.Now().Add(k.life)
	use := uint32(useASReply)
	if kind == kindASRequest {
		client = Principal{k.Realm, r.client}
		if key, ok = k.keys[strings.Join(client.Name, "/")]; !ok {
			return k.refuse(ClientUnknown, nil)
		}
		if refusal := k.preauthenticated(key, data); refusal != nil {
			return refusal
		}
	} else {
		use = useTGSReply
		t, err := k.accept(data[0].value, body)
		if err != nil {
			return k.refuse(BadIntegrity, nil)
		}
		if !t.End.After(time.Now()) {
			return k.refuse(TicketExpired, nil)
		}
		client, key = t.Client, t.Key
		if end.After(t.End) {
			end = t.End
		}
	}
	session := Key{AES256SHA1, bytes.Repeat([]byte{byte(nonce())}, 32)}
	ticket := must(sealTicket(serviceKey, Principal{k.Realm, r.service.Name}, client, session, end))
	now := timestamp(time.Now())
	tag := byte(tagASPart)
	if kind == kindTGSRequest {
		tag = tagTGSPart
	}
	part := must(sealedWith(key, use, message(tag, field(0, keyBytes(session)), field(1, sequence(sequence(field(0, integer(0)), field(1, now)))),
		field(2, integer(r.nonce)), field(4, bits(0)), field(5, now), field(6, now), field(7, timestamp(end)),
		field(9, text(k.Realm)), field(10, nameOf(nameService, r.service.Name)))))
	return message(kind+1, field(0, integer(5)), field(1, integer(int64(kind)+1)), field(3, text(client.Realm)), field(4, nameOf(nameUser, client.Name)),
		field(5, ticket), field(6, part))
}

// preauthenticated returns an error for the client unless data prove that it has the key.
func (k *KDC) preauthenticated(key Key, data []datum) []byte {
	info := field(0, integer(int64(key.Type)))
	if k.params != nil {
		info = append(info, field(2, octets(k.params))...)
	}
	hints := dataOf([]datum{{dataEncryption, sequence(sequence(info))}, {dataCookie, []byte("cookie")}})
	for _, d := range data {
		if d.kind == dataEncryptedTime {
			var s sealed
			if decode("preauthentication", d.value, func(d *decoder) { s = d.sealed() }) != nil {
				return k.refuse(GenericError, nil)
			}
			if _, err := s.open(key, usePreauthTime); err != nil {
				return k.refuse(WrongKey, nil)
			}
			return nil
		}
	}
	return k.refuse(PreauthRequired, hints)
}

// accept returns the ticket of an AP-REQ for the KDC, which has a checksum of the request's body.
func (k *KDC) accept(request, body []byte) (*Ticket, error) {
	var t *Ticket
	var sum []byte
	err := errors.New("there is no key")
	for name, key := range k.keys {
		if err != nil && strings.HasPrefix(name, "krbtgt/"+k.Realm) {
			t, _, sum, err = acceptRequest(request, key, useTGSAuthenticator)
		}
	}
	if err != nil {
		return nil, err
	}
	want, err := t.Key.Checksum(useRequestChecksum, body)
	if err == nil && !bytes.Equal(sum, want) {
		err = errors.New("wrong checksum")
	}
	return t, err
}

func (k *KDC) refuse(code int32, data []byte) []byte {
	fields := [][]byte{field(0, integer(5)), field(1, integer(kindError)), field(4, timestamp(time.Now())), field(5, integer(0)), field(6, integer(int64(code))),
		field(9, text(k.Realm)), field(10, nameOf(nameService, []string{"krbtgt", k.Realm}))}
	if data != nil {
		fields = append(fields, field(12, octets(data)))
	}
	return message(kindError, fields...)
}

func keyBytes(k Key) []byte {
	return sequence(field(0, integer(int64(k.Type))), field(1, octets(k.Value)))
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// sealTicket returns a ticket that only the service can read.
func sealTicket(key Key, service, client Principal, session Key, end time.Time) ([]byte, error) {
	part, err := sealedWith(key, useTicket, message(tagTicketPart, field(0, bits(0)), field(1, keyBytes(session)), field(2, text(client.Realm)),
		field(3, nameOf(nameUser, client.Name)), field(4, sequence(field(0, integer(0)), field(1, octets(nil)))), field(5, timestamp(time.Now())), field(7, timestamp(end))))
	return message(tagTicket, field(0, integer(5)), field(1, text(service.Realm)), field(2, nameOf(nameService, service.Name)), field(3, part)), err
}

// acceptRequest is the service's side of an AP-REQ.
func acceptRequest(b []byte, key Key, use uint32) (t *Ticket, auth *Authentication, sum []byte, err error) {
	t, auth = new(Ticket), new(Authentication)
	var inTicket, inRequest sealed
	err = decode("AP-REQ", b, func(d *decoder) {
		d = d.message(kindAPRequest)
		d.version(0, kindAPRequest)
		d.skip(2)
		in := d.field(3).message(tagTicket)
		in.skip(0)
		t.Service.Realm = in.field(1).text()
		t.Service.Name = in.field(2).name()
		inTicket = in.field(3).sealed()
		inRequest = d.field(4).sealed()
	})
	if err != nil {
		return nil, nil, nil, err
	}
	plain, err := inTicket.open(key, useTicket)
	if err != nil {
		return nil, nil, nil, err
	}
	err = decode("ticket", plain, func(d *decoder) {
		d = d.message(tagTicketPart)
		d.skip(0)
		t.Key = d.field(1).key()
		t.Client.Realm = d.field(2).text()
		t.Client.Name = d.field(3).name()
		d.skip(4)
		d.skip(5)
		t.End = d.field(7).time()
	})
	if err != nil {
		return nil, nil, nil, err
	}
	plain, err = inRequest.open(t.Key, use)
	if err != nil {
		return nil, nil, nil, err
	}
	err = decode("authenticator", plain, func(d *decoder) {
		d = d.message(tagAuthenticator)
		d.skip(0)
		var client Principal
		client.Realm = d.field(1).text()
		client.Name = d.field(2).name()
		if !client.Equal(t.Client) {
			d.fail("the authenticator of %v, the ticket of %v", client, t.Client)
		}
		c := d.field(3).in(tagSequence)
		c.skip(0)
		sum = c.field(1).octets()
		usec := d.field(4).integer32()
		auth.time = d.field(5).time().Add(time.Duration(usec) * time.Microsecond)
		auth.Sequence = uint32(d.field(7).integer())
	})
	auth.key = t.Key
	return t, auth, sum, err
}

// reply returns the AP-REP to a request.
func (a *Authentication) reply() []byte {
	part := must(sealedWith(a.key, useAPReply, message(tagAPPart, field(0, timestamp(a.time)), field(1, integer(int64(a.time.Nanosecond()/1000))))))
	return message(kindAPReply, field(0, integer(5)), field(1, integer(kindAPReply)), field(2, part))
}

// Acceptor returns a server's side of a login with the mechanism GSSAPI. who is called with the client that has logged in.
func (k *KDC) Acceptor(service string, who func(client Principal)) func(token []byte) ([]byte, error) {
	k.mu.Lock()
	key := k.keys[service] // as a server that reads its keytab when it starts
	k.mu.Unlock()
	mechanism := []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}
	var ticket *Ticket
	var auth *Authentication
	step := 0
	return func(token []byte) (answer []byte, err error) {
		step++
		switch step {
		case 1:
			var request []byte
			if err := decode("token", token, func(d *decoder) { request = d.read(tagApplication) }); err != nil {
				return nil, err
			}
			request, ok := bytes.CutPrefix(request, append(bytes.Clone(mechanism), 1, 0))
			if !ok {
				return nil, errors.New("no request")
			}
			ticket, auth, _, err = acceptRequest(request, key, useAuthenticator)
			switch {
			case err != nil:
				return nil, fmt.Errorf("%w: %w", zk.ErrAuthFailed, err)
			case !ticket.End.After(time.Now()):
				return nil, fmt.Errorf("%w: the ticket has expired", zk.ErrAuthFailed)
			}
			return element(tagApplication, mechanism, []byte{2, 0}, auth.reply()), nil
		case 2:
			header := []byte{5, 4, 1, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
			offer := []byte{1, 0, 0, 0}
			sum := must(ticket.Key.Checksum(UseAcceptorSeal, offer, header))
			header[5] = byte(len(sum))
			return append(append(header, offer...), sum...), nil
		}
		header := bytes.Clone(token[:16])
		header[4], header[5] = 0, 0
		sum := must(ticket.Key.Checksum(UseInitiatorSeal, token[16:20], header))
		if !bytes.Equal(sum, token[20:]) || !bytes.Equal(token[16:20], []byte{1, 0, 0, 0}) || binary.BigEndian.Uint64(token[8:16]) != uint64(auth.Sequence) {
			return nil, errors.New("wrong choice")
		}
		who(ticket.Client)
		return []byte{}, nil
	}
}

// Cache returns a credential cache with a first ticket of a principal, as kinit makes it.
func (k *KDC) Cache(name string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	client := Principal{k.Realm, strings.Split(name, "/")}
	session := Key{AES256SHA1, bytes.Repeat([]byte{byte(nonce())}, 32)}
	end := time.Now().Add(k.life)
	ticket := must(sealTicket(k.keys["krbtgt/"+k.Realm], tgs(k.Realm, k.Realm), client, session, end))
	return cacheOf(client, ticketIn{tgs(k.Realm, k.Realm), session, end, ticket})
}
