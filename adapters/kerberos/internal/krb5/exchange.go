// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Ticket is a ticket for a service, and the key that belongs to it.
type Ticket struct {
	Client, Service Principal
	Key             Key
	End             time.Time

	raw []byte
}

// Equal reports whether two tickets are the same.
func (t *Ticket) Equal(other *Ticket) bool { return bytes.Equal(t.raw, other.raw) }

// Keys are the keys of a client.
type Keys interface {
	// Kinds returns the encryption types for which there is a key.
	Kinds() []int32
	// Key returns the key of an encryption type. salt and params are the KDC's, for keys that are derived from a password.
	Key(kind int32, salt string, params []byte) (Key, error)
}

// ErrKey reports that the KDC has another key of the client.
var ErrKey = errors.New("the KDC has another key of this principal")

// ErrClocks reports that a reply of the KDC was made at a time that is too far from this host's.
var ErrClocks = errors.New("clocks differ")

// life is how long tickets are asked for. KDCs usually grant less.
const life = 24 * time.Hour

// nonce returns a random number of 31 bits.
func nonce() int64 {
	var b [4]byte
	rand.Read(b[:])
	return int64(binary.BigEndian.Uint32(b[:]) & 0x7fffffff)
}

// LogIn gets a client's first ticket, which the others come from: the AS exchange of RFC 4120, section 3.1.
func (c *Client) LogIn(ctx context.Context, who Principal, keys Keys) (*Ticket, error) {
	kinds := c.conf.kinds(keys.Kinds())
	r := request{
		options: optionRenewableOK, client: who.Name, service: tgs(who.Realm, who.Realm), till: time.Now().Add(cmp.Or(c.conf.life, life)),
		nonce: nonce(), kinds: kinds,
	}
	answer, err := c.ask(ctx, who.Realm, requestOf(kindASRequest, nil, r.body()), kindASReply)
	var refusal *KDCError
	var info encryptionInfo
	if errors.As(err, &refusal) && refusal.Code == PreauthRequired {
		var data []datum
		info, data, err = c.authenticateToKDC(who, keys, refusal.data)
		if err != nil {
			return nil, err
		}
		answer, err = c.ask(ctx, who.Realm, requestOf(kindASRequest, data, r.body()), kindASReply)
	}
	if err != nil {
		return nil, err
	}
	reply, err := parseReply(kindASReply, answer)
	if err != nil {
		return nil, err
	}
	if err := info.update(reply.data); err != nil {
		return nil, err
	}
	key, err := info.key(reply.part.kind, who, keys)
	if err != nil {
		return nil, err
	}
	return c.ticketFrom(reply, key, useASReply, who, r)
}

// authenticateToKDC returns the data that prove to a KDC that the client has the key, and which key it used. hints are the KDC's.
func (c *Client) authenticateToKDC(who Principal, keys Keys, hints []byte) (info encryptionInfo, data []datum, err error) {
	var all []datum
	err = decode("hints of the KDC", hints, func(d *decoder) { all = d.data() })
	if err != nil {
		return info, nil, err
	}
	if err := info.update(all); err != nil {
		return info, nil, err
	}
	for _, one := range all {
		switch one.kind {
		case dataCookie:
			data = append(data, one)
		case dataEncryption:
			kinds, err := parseEncryptionInfo(one.value)
			if err != nil {
				return info, nil, err
			}
			at := slices.IndexFunc(kinds, func(i encryptionInfo) bool { return slices.Contains(keys.Kinds(), i.kind) && c.conf.allows(i.kind) })
			if at < 0 {
				return info, nil, &KDCError{Code: NoEncryptionType, Text: "there is no key for the encryption types that the KDC offers"}
			}
			info = kinds[at]
		}
	}
	kind := cmp.Or(info.kind, c.conf.kinds(keys.Kinds())[0])
	key, err := info.key(kind, who, keys)
	if err != nil {
		return info, nil, err
	}
	now := time.Now().UTC()
	stamp, err := sealedWith(key, usePreauthTime, sequence(field(0, timestamp(now)), field(1, integer(int64(now.Nanosecond()/1000)))))
	if err != nil {
		return info, nil, err
	}
	return info, append(data, datum{dataEncryptedTime, stamp}), nil
}

// update sets what data say about a client's key. It leaves the choice of an encryption type to the caller.
func (i *encryptionInfo) update(data []datum) error {
	for _, one := range data {
		switch one.kind {
		case dataSalt:
			salt := string(one.value)
			i.salt = &salt
		case dataEncryption:
			kinds, err := parseEncryptionInfo(one.value)
			if err != nil {
				return err
			}
			if len(kinds) == 1 { // in a reply
				*i = kinds[0]
			}
		}
	}
	return nil
}

// key returns the key of a client that i describes.
func (i encryptionInfo) key(kind int32, who Principal, keys Keys) (Key, error) {
	salt := who.Realm // the default: RFC 4120, section 4
	for _, part := range who.Name {
		salt += part
	}
	if i.salt != nil {
		salt = *i.salt
	}
	return keys.Key(kind, salt, i.params)
}

// Service gets a ticket for a service, with the ticket that LogIn returned: the TGS exchange of RFC 4120, section 3.3. A service
// in no known realm is asked for in the client's, whose KDC may refer to another one.
func (c *Client) Service(ctx context.Context, first *Ticket, name []string) (*Ticket, error) {
	realm := cmp.Or(c.conf.realmOf(name[len(name)-1]), first.Client.Realm)
	t := first
	for range maxReferrals {
		in := t.Service.Name[1] // the realm that t is for
		want := Principal{in, name}
		if in != realm {
			want = tgs(realm, in)
		}
		next, err := c.exchange(ctx, t, want)
		if err != nil {
			return nil, err
		}
		switch {
		case next.Service.isLike(want) && in == realm:
			return next, nil
		case !next.Service.isTGS():
			return nil, fmt.Errorf("%w reply of the KDC: a ticket for %v instead of %v", ErrMalformed, next.Service, want)
		case in == realm: // a referral
			realm = next.Service.Name[1]
		}
		t = next
	}
	return nil, fmt.Errorf("more than %d realms between the client and the service", maxReferrals)
}

// maxReferrals limits how many KDCs are asked for a ticket.
const maxReferrals = 8

// exchange gets a ticket with another one.
func (c *Client) exchange(ctx context.Context, t *Ticket, want Principal) (*Ticket, error) {
	e, err := t.Key.encryption()
	if err != nil {
		return nil, err
	}
	r := request{options: optionCanonicalize, service: want, till: t.End, nonce: nonce(), kinds: c.conf.kinds(nil)}
	body := r.body()
	sum, err := t.Key.Checksum(useRequestChecksum, body)
	if err != nil {
		return nil, err
	}
	auth, err := authenticate(t, useTGSAuthenticator, 0, checksum{e.checksum, sum}, uint32(nonce()))
	if err != nil {
		return nil, err
	}
	answer, err := c.ask(ctx, want.Realm, requestOf(kindTGSRequest, []datum{{dataTGSRequest, auth.Request}}, body), kindTGSReply)
	if err != nil {
		return nil, err
	}
	reply, err := parseReply(kindTGSReply, answer)
	if err != nil {
		return nil, err
	}
	return c.ticketFrom(reply, t.Key, useTGSReply, t.Client, r)
}

// ticketFrom returns the ticket in a reply to a request. It checks that the KDC made the reply for this request.
func (c *Client) ticketFrom(r reply, key Key, use uint32, client Principal, q request) (*Ticket, error) {
	plain, err := r.part.open(key, use)
	switch {
	case err != nil && use == useASReply:
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	case err != nil:
		return nil, fmt.Errorf("%w reply of the KDC: %w", ErrMalformed, err)
	}
	p, err := parseReplyPart(plain)
	if err != nil {
		return nil, err
	}
	referral := use == useTGSReply && p.service.isTGS()
	switch {
	case p.nonce != q.nonce:
		return nil, fmt.Errorf("%w reply of the KDC: it is for another request", ErrMalformed)
	case !r.client.Equal(client):
		return nil, fmt.Errorf("%w reply of the KDC: a ticket of %v", ErrMalformed, r.client)
	case p.service.Realm != q.service.Realm, !p.service.isLike(q.service) && !referral:
		return nil, fmt.Errorf("%w reply of the KDC: a ticket for %v instead of %v", ErrMalformed, p.service, q.service)
	}
	if _, err := p.key.encryption(); err != nil {
		return nil, err
	}
	made := p.start
	if use == useASReply {
		made = p.authenticated
	}
	if !made.IsZero() && time.Until(made).Abs() > c.conf.skew {
		return nil, fmt.Errorf("%w by more than %v: the KDC says that it is %v", ErrClocks, c.conf.skew, made)
	}
	if !p.end.After(time.Now()) {
		return nil, fmt.Errorf("the KDC granted a ticket that ended at %v", p.end)
	}
	return &Ticket{client, p.service, p.key, p.end, r.ticket}, nil
}
