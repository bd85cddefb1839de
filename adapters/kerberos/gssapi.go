// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Kinds of tokens of RFC 4121, section 4.1.
const (
	kindRequest = 0x0100
	kindReply   = 0x0200
)

// noLayer is the security layer of RFC 4752, section 3.1, in which requests are sent as they are.
const noLayer = 1

// exchange proves to a server who the client is, and has the server prove that it is the service of
// the ticket. It is the mechanism GSSAPI of RFC 4752, without a security layer.
func exchange(pass func(token []byte) ([]byte, error), who *credentials.Credentials, ticket messages.Ticket, key types.EncryptionKey) error {
	request, auth, err := newRequest(who, ticket, key)
	if err != nil {
		return err
	}
	token, err := pass(request)
	switch {
	case errors.Is(err, zk.ErrAuthFailed):
		return fmt.Errorf("%w: server rejected the Kerberos ticket, and its log has the reason", zk.ErrAuthFailed)
	case err != nil:
		return err
	case token == nil:
		return fmt.Errorf("%w: server does not support SASL", zk.ErrAuthFailed)
	}
	if err := checkReply(token, key, auth); err != nil {
		return fmt.Errorf("%w: %w", zk.ErrAuthFailed, err)
	}
	token, err = pass([]byte{}) // asks for the layers that the server offers
	if err != nil {
		return err
	}
	answer, err := chooseLayer(token, key, auth.SeqNumber)
	if err != nil {
		return fmt.Errorf("%w: %w", zk.ErrAuthFailed, err)
	}
	_, err = pass(answer)
	return err
}

// newRequest returns the first token, and the authenticator in it, to which the server's reply refers.
func newRequest(who *credentials.Credentials, ticket messages.Ticket, key types.EncryptionKey) ([]byte, types.Authenticator, error) {
	auth, err := types.NewAuthenticator(who.Domain(), who.CName())
	if err != nil {
		return nil, auth, err
	}
	auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: checksumOf(gssapi.ContextFlagInteg | gssapi.ContextFlagMutual)}
	req, err := messages.NewAPReq(ticket, key, auth)
	if err != nil {
		return nil, auth, err
	}
	types.SetFlag(&req.APOptions, flags.APOptionMutualRequired)
	body, err := req.Marshal()
	if err != nil {
		return nil, auth, err
	}
	return frame(kindRequest, body), auth, nil
}

// checksumOf returns the checksum of RFC 4121, section 4.1.1, without channel bindings.
func checksumOf(flags uint32) []byte {
	sum := make([]byte, 24)
	binary.LittleEndian.PutUint32(sum, 16)
	binary.LittleEndian.PutUint32(sum[20:], flags)
	return sum
}

// frame returns a token of RFC 4121, section 4.1: the mechanism, the kind and the message.
func frame(kind uint16, body []byte) []byte {
	mechanism, _ := asn1.Marshal(asn1.ObjectIdentifier(gssapi.OIDKRB5.OID())) // a constant
	inner := append(binary.BigEndian.AppendUint16(mechanism, kind), body...)
	token, _ := asn1.Marshal(asn1.RawValue{Class: asn1.ClassApplication, Tag: 0, IsCompound: true, Bytes: inner})
	return token
}

var errNoReply = errors.New("server sent no Kerberos reply")

// checkReply checks that token is the reply to auth, which only the service can make.
func checkReply(token []byte, key types.EncryptionKey, auth types.Authenticator) error {
	var outer asn1.RawValue
	var mechanism asn1.ObjectIdentifier
	if _, err := asn1.UnmarshalWithParams(token, &outer, "application,tag:0"); err != nil {
		return fmt.Errorf("%w: %w", errNoReply, err)
	}
	rest, err := asn1.Unmarshal(outer.Bytes, &mechanism)
	if err != nil || !mechanism.Equal(asn1.ObjectIdentifier(gssapi.OIDKRB5.OID())) || len(rest) < 2 || binary.BigEndian.Uint16(rest) != kindReply {
		return errNoReply
	}
	var reply messages.APRep
	if err := reply.Unmarshal(rest[2:]); err != nil {
		return fmt.Errorf("%w: %w", errNoReply, err)
	}
	plain, err := crypto.DecryptEncPart(reply.EncPart, key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return fmt.Errorf("server did not prove that it is the service of the ticket: %w", err)
	}
	var part messages.EncAPRepPart
	switch err := part.Unmarshal(plain); {
	case err != nil:
		return fmt.Errorf("%w: %w", errNoReply, err)
	case part.CTime.Unix() != auth.CTime.Unix() || part.Cusec != auth.Cusec:
		return errors.New("server replied to another request")
	case part.Subkey.KeyType != 0:
		return errors.New("server asks for a subkey, which is not supported")
	}
	return nil
}

// chooseLayer reads the server's offer of security layers, and returns the token that chooses none.
// seq is the authenticator's sequence number; token sequence numbers start from it.
func chooseLayer(token []byte, key types.EncryptionKey, seq int64) ([]byte, error) {
	var offer gssapi.WrapToken
	if err := offer.Unmarshal(token, true); err != nil {
		return nil, fmt.Errorf("server offered no security layer: %w", err)
	}
	const sealedOrSubkey = 0x06
	if offer.RRC != 0 || offer.Flags&sealedOrSubkey != 0 {
		return nil, errors.New("server sealed or rotated its offer, which is not supported")
	}
	if ok, err := offer.Verify(key, keyusage.GSSAPI_ACCEPTOR_SEAL); !ok {
		return nil, fmt.Errorf("server's offer of security layers is not authentic: %w", err)
	}
	if len(offer.Payload) != 4 || offer.Payload[0]&noLayer == 0 {
		return nil, fmt.Errorf("server requires a security layer (offer %x)", offer.Payload)
	}
	etype, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, err
	}
	choice := gssapi.WrapToken{EC: uint16(etype.GetHMACBitLength() / 8), SndSeqNum: uint64(seq), Payload: []byte{noLayer, 0, 0, 0}}
	if err := choice.SetCheckSum(key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	return choice.Marshal()
}
