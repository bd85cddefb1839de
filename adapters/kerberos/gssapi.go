// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"bytes"
	"crypto/hmac"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/adapters/kerberos/internal/krb5"
)

// Kinds of tokens of RFC 4121, section 4.1.
const (
	kindRequest = 0x0100
	kindReply   = 0x0200
)

// mechanism is the OID of Kerberos, in DER.
var mechanism = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// noLayer is the security layer of RFC 4752, section 3.1, in which requests are sent as they are.
const noLayer = 1

// exchange proves to a server who the client is, and has the server prove that it is the service of
// the ticket. It is the mechanism GSSAPI of RFC 4752, without a security layer.
func exchange(pass func(token []byte) ([]byte, error), ticket *krb5.Ticket) error {
	auth, err := krb5.Authenticate(ticket, checksum())
	if err != nil {
		return err
	}
	token, err := pass(frame(kindRequest, auth.Request))
	switch {
	case errors.Is(err, zk.ErrAuthFailed):
		return fmt.Errorf("%w: %w", zk.ErrAuthFailed, errRejected)
	case err != nil:
		return err
	case token == nil:
		return fmt.Errorf("%w: server does not support SASL", zk.ErrAuthFailed)
	}
	err = guarded(func() error { return checkReply(token, auth) })
	if err != nil {
		return fmt.Errorf("%w: %w", zk.ErrAuthFailed, err)
	}
	token, err = pass([]byte{}) // asks for the layers that the server offers
	if err != nil {
		return err
	}
	var answer []byte
	err = guarded(func() (err error) {
		answer, err = chooseLayer(token, ticket.Key, uint64(auth.Sequence))
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", zk.ErrAuthFailed, err)
	}
	_, err = pass(answer)
	return err
}

// Flags of RFC 4121, section 4.1.1.1.
const (
	flagMutual    = 2
	flagIntegrity = 32
)

// checksum returns the checksum of RFC 4121, section 4.1.1, without channel bindings.
func checksum() []byte {
	sum := make([]byte, 24)
	binary.LittleEndian.PutUint32(sum, 16)
	binary.LittleEndian.PutUint32(sum[20:], flagIntegrity|flagMutual)
	return sum
}

// frame returns a token of RFC 4121, section 4.1: the mechanism, the kind and the message.
func frame(kind uint16, body []byte) []byte {
	inner := append(binary.BigEndian.AppendUint16(bytes.Clone(mechanism), kind), body...)
	token, _ := asn1.Marshal(asn1.RawValue{Class: asn1.ClassApplication, Tag: 0, IsCompound: true, Bytes: inner})
	return token
}

// errRejected reports that a server has rejected a ticket.
var errRejected = errors.New("server rejected the Kerberos ticket, and its log has the reason")

var errNoReply = errors.New("server sent no Kerberos reply")

// checkReply checks that token is the reply to auth, which only the service can make.
func checkReply(token []byte, auth *krb5.Authentication) error {
	var outer asn1.RawValue
	if _, err := asn1.UnmarshalWithParams(token, &outer, "application,tag:0"); err != nil {
		return fmt.Errorf("%w: %w", errNoReply, err)
	}
	reply, ok := bytes.CutPrefix(outer.Bytes, binary.BigEndian.AppendUint16(bytes.Clone(mechanism), kindReply))
	if !ok {
		return errNoReply
	}
	return auth.Check(reply)
}

// A wrap token of RFC 4121, section 4.2.6.2, that is not encrypted: a header, the text and a checksum.
const (
	headerSize   = 16
	wrap         = 0x0504
	filler       = 0xff
	fromAcceptor = 1
)

// headerOf returns the header of a wrap token, without the length of the checksum, as the checksum covers it.
func headerOf(flags byte, sequence uint64) []byte {
	h := append(binary.BigEndian.AppendUint16(nil, wrap), flags, filler, 0, 0, 0, 0)
	return binary.BigEndian.AppendUint64(h, sequence)
}

// chooseLayer reads the server's offer of security layers, and returns the token that chooses none.
// sequence is the authenticator's number, from which the numbers of tokens count.
func chooseLayer(token []byte, key krb5.Key, sequence uint64) ([]byte, error) {
	if len(token) < headerSize || binary.BigEndian.Uint16(token) != wrap || token[3] != filler {
		return nil, errors.New("server offered no security layer")
	}
	flags, size, rotation := token[2], int(binary.BigEndian.Uint16(token[4:])), binary.BigEndian.Uint16(token[6:])
	body := token[headerSize:]
	switch {
	case flags != fromAcceptor || rotation != 0:
		return nil, errors.New("server sealed or rotated its offer, which is not supported")
	case size > len(body):
		return nil, errors.New("server's offer of security layers is cut short")
	}
	offer, sum := body[:len(body)-size], body[len(body)-size:]
	want, err := key.Checksum(krb5.UseAcceptorSeal, offer, headerOf(flags, binary.BigEndian.Uint64(token[8:])))
	switch {
	case err != nil:
		return nil, err
	case !hmac.Equal(sum, want):
		return nil, errors.New("server's offer of security layers is not authentic")
	case len(offer) != 4 || offer[0]&noLayer == 0:
		return nil, fmt.Errorf("server requires a security layer (offer %.20x)", offer)
	}
	choice, header := []byte{noLayer, 0, 0, 0}, headerOf(0, sequence)
	sum, err = key.Checksum(krb5.UseInitiatorSeal, choice, header)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(header[4:], uint16(len(sum)))
	return append(append(header, choice...), sum...), nil
}
