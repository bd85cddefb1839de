// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Numbers of messages, which are also their applications' tags.
const (
	kindASRequest  = 10
	kindASReply    = 11
	kindTGSRequest = 12
	kindTGSReply   = 13
	kindAPRequest  = 14
	kindAPReply    = 15
	kindError      = 30
)

// Tags of what is encrypted.
const (
	tagTicket        = 1
	tagAuthenticator = 2
	tagTicketPart    = 3
	tagASPart        = 25
	tagTGSPart       = 26
	tagAPPart        = 27
)

// Kinds of data that precede an authentication.
const (
	dataTGSRequest    = 1
	dataEncryptedTime = 2
	dataSalt          = 3
	dataEncryption    = 19 // ETYPE-INFO2
	dataCookie        = 133
)

// Kinds of names.
const (
	nameUser    = 1
	nameService = 2
)

// Principal is a name in a realm.
type Principal struct {
	Realm string
	Name  []string // for example zookeeper and zk1.example.com
}

// String returns the principal as programs show it.
func (p Principal) String() string { return strings.Join(p.Name, "/") + "@" + p.Realm }

// Equal reports whether two principals are the same.
func (p Principal) Equal(q Principal) bool { return p.Realm == q.Realm && slices.Equal(p.Name, q.Name) }

// isLike reports whether p and q are the same but for the case of letters: some KDCs ignore it in
// the names of services.
func (p Principal) isLike(q Principal) bool {
	return p.Realm == q.Realm && slices.EqualFunc(p.Name, q.Name, strings.EqualFold)
}

// tgs returns the service that issues tickets for a realm, in the realm that this service is asked in.
func tgs(of, in string) Principal { return Principal{in, []string{"krbtgt", of}} }

// isTGS reports whether p issues tickets.
func (p Principal) isTGS() bool { return len(p.Name) == 2 && p.Name[0] == "krbtgt" }

func nameOf(kind int64, parts []string) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, text(p)...)
	}
	return sequence(field(0, integer(kind)), field(1, sequence(all)))
}

func (d *decoder) name() (parts []string) {
	s := d.in(tagSequence)
	s.skip(0)
	for all := s.field(1).in(tagSequence); len(all.rest) > 0; {
		parts = append(parts, all.text())
	}
	return parts
}

// sealed is an encrypted text with the number of its encryption type.
type sealed struct {
	kind   int32
	cipher []byte
}

func (d *decoder) sealed() (s sealed) {
	in := d.in(tagSequence)
	s.kind = in.field(0).integer32()
	in.skip(1)
	s.cipher = in.field(2).octets()
	return s
}

// open decrypts s with a key, which must be of the same encryption type.
func (s sealed) open(k Key, use uint32) ([]byte, error) {
	if s.kind != k.Type {
		return nil, fmt.Errorf("encryption type %d instead of %d", s.kind, k.Type)
	}
	return k.decrypt(use, s.cipher)
}

// sealedWith returns the encryption of a message with a key.
func sealedWith(k Key, use uint32, message []byte) ([]byte, error) {
	b, err := k.encrypt(use, message)
	if err != nil {
		return nil, err
	}
	return sequence(field(0, integer(int64(k.Type))), field(2, octets(b))), nil
}

func (d *decoder) key() (k Key) {
	in := d.in(tagSequence)
	k.Type = in.field(0).integer32()
	k.Value = in.field(1).octets()
	return k
}

// datum is one of the data that precede an authentication.
type datum struct {
	kind  int32
	value []byte
}

func (d *decoder) data() (all []datum) {
	for in := d.in(tagSequence); len(in.rest) > 0; {
		one := in.in(tagSequence)
		all = append(all, datum{one.field(1).integer32(), one.field(2).octets()})
	}
	return all
}

func dataOf(all []datum) []byte {
	var b []byte
	for _, one := range all {
		b = append(b, sequence(field(1, integer(int64(one.kind))), field(2, octets(one.value)))...)
	}
	return sequence(b)
}

// Flags of a request to the KDC.
const (
	optionCanonicalize = 1 << (31 - 15)
	optionRenewableOK  = 1 << (31 - 27)
)

// request is the body of a request to the KDC.
type request struct {
	options uint32
	client  []string // nil in a request for a service's ticket
	service Principal
	till    time.Time
	nonce   int64
	kinds   []int32
}

func (r request) body() []byte {
	var kinds []byte
	for _, k := range r.kinds {
		kinds = append(kinds, integer(int64(k))...)
	}
	b := field(0, bits(r.options))
	if r.client != nil {
		b = append(b, field(1, nameOf(nameUser, r.client))...)
	}
	return sequence(b, field(2, text(r.service.Realm)), field(3, nameOf(nameService, r.service.Name)), field(5, timestamp(r.till)),
		field(7, integer(r.nonce)), field(8, sequence(kinds)))
}

// requestOf returns a request to the KDC.
func requestOf(kind byte, data []datum, body []byte) []byte {
	fields := [][]byte{field(1, integer(5)), field(2, integer(int64(kind)))}
	if len(data) > 0 {
		fields = append(fields, field(3, dataOf(data)))
	}
	return message(kind, append(fields, field(4, body))...)
}

// reply is a KDC's reply with a ticket.
type reply struct {
	data   []datum
	client Principal
	ticket []byte
	part   sealed // for replyPart
}

func parseReply(kind byte, b []byte) (r reply, err error) {
	err = decode("reply of the KDC", b, func(d *decoder) {
		d = d.message(kind)
		d.version(0, int64(kind))
		if d.hasField(2) {
			r.data = d.field(2).data()
		}
		r.client.Realm = d.field(3).text()
		r.client.Name = d.field(4).name()
		t := d.field(5)
		r.ticket = t.rest
		t.message(tagTicket)
		if len(t.rest) > 0 {
			d.fail("%d bytes follow the ticket", len(t.rest))
		}
		r.part = d.field(6).sealed()
	})
	return r, err
}

// replyPart is the encrypted part of a reply, which only the KDC can make.
type replyPart struct {
	key           Key
	nonce         int64
	authenticated time.Time
	start         time.Time // zero if the KDC left it out
	end           time.Time
	service       Principal
}

func parseReplyPart(b []byte) (p replyPart, err error) {
	err = decode("encrypted part of the KDC's reply", b, func(d *decoder) {
		tag := byte(tagASPart)
		if d.has(tagApplication | tagTGSPart) { // some KDCs use it for both
			tag = tagTGSPart
		}
		d = d.message(tag)
		p.key = d.field(0).key()
		d.skip(1)
		p.nonce = d.field(2).integer()
		d.skip(3)
		d.skip(4)
		p.authenticated = d.field(5).time()
		if d.hasField(6) {
			p.start = d.field(6).time()
		}
		p.end = d.field(7).time()
		d.skip(8)
		p.service.Realm = d.field(9).text()
		p.service.Name = d.field(10).name()
	})
	return p, err
}

// KDCError is a KDC's refusal.
type KDCError struct {
	Code int32
	Text string // the KDC's own, which may be empty

	data []byte
}

// Error implements error.
func (e *KDCError) Error() string {
	name, ok := errorNames[e.Code]
	if !ok {
		name = fmt.Sprintf("error %d", e.Code)
	}
	if e.Text != "" {
		name += fmt.Sprintf(" (%.200q)", e.Text)
	}
	return "KDC: " + name
}

// Codes of a KDC's refusals: RFC 4120, section 7.5.9.
const (
	ClientExpired      = 1
	ServiceExpired     = 2
	ClientUnknown      = 6
	ServiceUnknown     = 7
	CannotPostdate     = 10
	NeverValid         = 11
	PolicyRefuses      = 12
	NoEncryptionType   = 14
	NoSuchProof        = 16
	ClientRevoked      = 18
	ServiceRevoked     = 19
	TicketRevoked      = 20
	PasswordExpired    = 23
	WrongKey           = 24
	PreauthRequired    = 25
	ServiceUnavailable = 29
	BadIntegrity       = 31
	TicketExpired      = 32
	TicketNotYetValid  = 33
	Repeated           = 34
	ClockSkew          = 37
	GenericError       = 60
	WrongRealm         = 68
)

// errorNames are the names by which people search for the codes.
var errorNames = map[int32]string{
	ClientExpired: "KDC_ERR_NAME_EXP", ServiceExpired: "KDC_ERR_SERVICE_EXP", ClientUnknown: "KDC_ERR_C_PRINCIPAL_UNKNOWN", ServiceUnknown: "KDC_ERR_S_PRINCIPAL_UNKNOWN",
	8: "KDC_ERR_PRINCIPAL_NOT_UNIQUE", 9: "KDC_ERR_NULL_KEY", CannotPostdate: "KDC_ERR_CANNOT_POSTDATE", NeverValid: "KDC_ERR_NEVER_VALID",
	PolicyRefuses: "KDC_ERR_POLICY", 13: "KDC_ERR_BADOPTION", NoEncryptionType: "KDC_ERR_ETYPE_NOSUPP", NoSuchProof: "KDC_ERR_PADATA_TYPE_NOSUPP",
	ClientRevoked: "KDC_ERR_CLIENT_REVOKED", ServiceRevoked: "KDC_ERR_SERVICE_REVOKED", TicketRevoked: "KDC_ERR_TGT_REVOKED", 21: "KDC_ERR_CLIENT_NOTYET",
	PasswordExpired: "KDC_ERR_KEY_EXPIRED", WrongKey: "KDC_ERR_PREAUTH_FAILED", PreauthRequired: "KDC_ERR_PREAUTH_REQUIRED", 28: "KDC_ERR_PATH_NOT_ACCEPTED",
	ServiceUnavailable: "KDC_ERR_SVC_UNAVAILABLE", BadIntegrity: "KRB_AP_ERR_BAD_INTEGRITY", TicketExpired: "KRB_AP_ERR_TKT_EXPIRED",
	TicketNotYetValid: "KRB_AP_ERR_TKT_NYV", Repeated: "KRB_AP_ERR_REPEAT", ClockSkew: "KRB_AP_ERR_SKEW", 41: "KRB_AP_ERR_MODIFIED", 52: "KRB_ERR_RESPONSE_TOO_BIG",
	GenericError: "KRB_ERR_GENERIC", 61: "KRB_ERR_FIELD_TOOLONG", WrongRealm: "KDC_ERR_WRONG_REALM",
}

func parseError(b []byte) (*KDCError, error) {
	e := new(KDCError)
	err := decode("error of the KDC", b, func(d *decoder) {
		d = d.message(kindError)
		d.version(0, kindError)
		for n := byte(2); n <= 5; n++ {
			d.skip(n)
		}
		e.Code = d.field(6).integer32()
		for n := byte(7); n <= 10; n++ {
			d.skip(n)
		}
		if d.hasField(11) {
			e.Text = d.field(11).text()
		}
		if d.hasField(12) {
			e.data = d.field(12).octets()
		}
	})
	return e, err
}

// encryptionInfo is what a KDC says about a client's key.
type encryptionInfo struct {
	kind   int32
	salt   *string
	params []byte
}

// parseEncryptionInfo parses ETYPE-INFO2.
func parseEncryptionInfo(b []byte) (all []encryptionInfo, err error) {
	err = decode("description of the key's encryption", b, func(d *decoder) {
		for in := d.in(tagSequence); len(in.rest) > 0; {
			var one encryptionInfo
			s := in.in(tagSequence)
			one.kind = s.field(0).integer32()
			if s.hasField(1) {
				salt := s.field(1).text()
				one.salt = &salt
			}
			if s.hasField(2) {
				one.params = s.field(2).octets()
			}
			all = append(all, one)
		}
	})
	return all, err
}

// Authentication is a client's proof to a service, to which the service's reply refers.
type Authentication struct {
	Request  []byte // AP-REQ
	Sequence uint32 // from which the numbers of tokens count

	key  Key
	time time.Time // to the microsecond
}

// checksum is a checksum in an authenticator.
type checksum struct {
	kind  int32
	value []byte
}

const optionMutual = 1 << (31 - 2)

// authenticate returns the proof that the client has the key of a ticket.
func authenticate(t *Ticket, use uint32, options uint32, sum checksum, sequence32 uint32) (*Authentication, error) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	part, err := sealedWith(t.Key, use, message(tagAuthenticator,
		field(0, integer(5)), field(1, text(t.Client.Realm)), field(2, nameOf(nameUser, t.Client.Name)),
		field(3, sequence(field(0, integer(int64(sum.kind))), field(1, octets(sum.value)))),
		field(4, integer(int64(now.Nanosecond()/1000))), field(5, timestamp(now)), field(7, integer(int64(sequence32)))))
	if err != nil {
		return nil, err
	}
	request := message(kindAPRequest, field(0, integer(5)), field(1, integer(kindAPRequest)), field(2, bits(options)), field(3, t.raw), field(4, part))
	return &Authentication{request, sequence32, t.Key, now}, nil
}

// kindGSSAPI is the type of the checksum of RFC 4121, section 4.1.1.
const kindGSSAPI = 0x8003

// Authenticate returns a proof for the service of a ticket, which must prove in its reply that it is this service. sum is the
// checksum of RFC 4121, section 4.1.1.
func Authenticate(t *Ticket, sum []byte) (*Authentication, error) {
	return authenticate(t, useAuthenticator, optionMutual, checksum{kindGSSAPI, sum}, uint32(nonce()))
}

// Errors of a service's reply.
var (
	ErrNoReply  = fmt.Errorf("%w Kerberos reply", ErrMalformed)
	ErrNotProof = fmt.Errorf("server did not prove that it is the service of the ticket")
)

// Check checks that b, an AP-REP, is the reply to a, which only the service can make.
func (a *Authentication) Check(b []byte) error {
	var part sealed
	err := decode("reply of the server", b, func(d *decoder) {
		d = d.message(kindAPReply)
		d.version(0, kindAPReply)
		part = d.field(2).sealed()
	})
	if err != nil {
		return err
	}
	plain, err := part.open(a.key, useAPReply)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotProof, err)
	}
	var of time.Time
	var subkey bool
	err = decode("encrypted part of the server's reply", plain, func(d *decoder) {
		d = d.message(tagAPPart)
		of = d.field(0).time()
		of = of.Add(time.Duration(d.field(1).integer32()) * time.Microsecond)
		subkey = d.hasField(2)
	})
	switch {
	case err != nil:
		return err
	case !of.Equal(a.time):
		return fmt.Errorf("%w: it replied to another request", ErrNotProof)
	case subkey:
		return fmt.Errorf("server asks for a subkey, which is not supported")
	}
	return nil
}
