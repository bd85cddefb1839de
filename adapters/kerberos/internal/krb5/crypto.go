// SPDX-License-Identifier: Apache-2.0

package krb5

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

// Key is a key of an encryption type.
type Key struct {
	Type  int32
	Value []byte
}

// Encryption types, in Kerberos' numbers.
const (
	AES128SHA1 = 17
	AES256SHA1 = 18
	AES128SHA2 = 19
	AES256SHA2 = 20
)

// Encryption lists the supported encryption types in the order of preference of MIT Kerberos.
var Encryption = []int32{AES256SHA1, AES128SHA1, AES256SHA2, AES128SHA2}

// An encryption is an encryption type of RFC 3962 (with SHA-1) or RFC 8009 (with SHA-2).
type encryption struct {
	name       string
	key, mac   int // sizes in bytes
	hash       func() hash.Hash
	sha2       bool
	iterations int   // of PBKDF2, unless the KDC says otherwise
	checksum   int32 // the type of its checksums
}

var encryptions = map[int32]encryption{
	AES128SHA1: {"aes128-cts-hmac-sha1-96", 16, 12, sha1.New, false, 4096, 15},
	AES256SHA1: {"aes256-cts-hmac-sha1-96", 32, 12, sha1.New, false, 4096, 16},
	AES128SHA2: {"aes128-cts-hmac-sha256-128", 16, 16, sha256.New, true, 32768, 19},
	AES256SHA2: {"aes256-cts-hmac-sha384-192", 32, 24, sha512.New384, true, 32768, 20},
}

// Numbers of uses, from which keys are derived: RFC 4120, section 7.5.1, and RFC 4121, section 2.
const (
	usePreauthTime      = 1
	useTicket           = 2
	useASReply          = 3
	useRequestChecksum  = 6
	useTGSAuthenticator = 7
	useTGSReply         = 8
	useAuthenticator    = 11
	useAPReply          = 12
	UseAcceptorSeal     = 22
	UseInitiatorSeal    = 24
)

// Kinds of derived keys.
const (
	forChecksum   = 0x99
	forEncryption = 0xaa
	forIntegrity  = 0x55
)

var (
	errKey = errors.New("key does not fit its encryption type")
	// ErrIntegrity reports that a text was not encrypted with the key.
	ErrIntegrity = errors.New("integrity check failed: it was not encrypted with this key")
)

// encryption returns the encryption type of a key.
func (k Key) encryption() (encryption, error) {
	e, ok := encryptions[k.Type]
	switch {
	case !ok:
		return e, fmt.Errorf("encryption type %d is not supported", k.Type)
	case len(k.Value) != e.key:
		return e, errKey
	}
	return e, nil
}

// derive returns the key for a use.
func (e encryption) derive(key []byte, use uint32, kind byte) []byte {
	size := e.key
	if e.sha2 && kind != forEncryption {
		size = e.mac
	}
	return e.deriveFrom(key, append(binary.BigEndian.AppendUint32(nil, use), kind), size)
}

// deriveFrom returns a key that is derived from another one and a constant.
func (e encryption) deriveFrom(key, constant []byte, size int) []byte {
	if e.sha2 { // RFC 8009, section 3
		return e.hmac(key, []byte{0, 0, 0, 1}, constant, []byte{0}, binary.BigEndian.AppendUint32(nil, uint32(size*8)))[:size]
	}
	var derived []byte // RFC 3961, section 5.1
	block := blockOf(key)
	for next := fold(constant, aes.BlockSize); len(derived) < size; {
		block.Encrypt(next, next)
		derived = append(derived, next...)
	}
	return derived[:size]
}

func (e encryption) hmac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(e.hash, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// fold is n-fold of RFC 3961, section 5.1: it stretches or shrinks in to n bytes.
func fold(in []byte, n int) []byte {
	copies := n / gcd(n, len(in)) // together they are a multiple of n bytes
	size := len(in) * 8
	long := make([]byte, copies*len(in))
	for i := range len(long) * 8 {
		from := (i%size + size*13 - 13*(i/size)%size) % size // each copy is rotated by 13 bits more
		if in[from/8]>>(7-from%8)&1 == 1 {
			long[i/8] |= 1 << (7 - i%8)
		}
	}
	sum := make([]byte, n)
	for ; len(long) > 0; long = long[n:] { // an addition of ones' complements
		carry := 0
		for i := n - 1; i >= 0; i-- {
			carry += int(sum[i]) + int(long[i])
			sum[i] = byte(carry)
			carry >>= 8
		}
		for i := n - 1; carry > 0; i = (i + n - 1) % n {
			carry += int(sum[i])
			sum[i] = byte(carry)
			carry >>= 8
		}
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// blockOf returns the cipher of a key. Its size was checked by Key.encryption.
func blockOf(key []byte) cipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	return block
}

// seal encrypts plain with CBC and ciphertext stealing, CBC-CS3. plain has at least one block.
func seal(key, plain []byte) []byte {
	block := blockOf(key)
	padded := append(plain[:len(plain):len(plain)], make([]byte, -len(plain)&(aes.BlockSize-1))...)
	out := make([]byte, len(padded))
	cipher.NewCBCEncrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(out, padded)
	if n := len(out); n > aes.BlockSize {
		last, before := out[n-aes.BlockSize:], out[n-2*aes.BlockSize:n-aes.BlockSize]
		for i := range last {
			last[i], before[i] = before[i], last[i]
		}
	}
	return out[:len(plain)]
}

// open is the reverse of seal.
func open(key, text []byte) []byte {
	block := blockOf(key)
	out := make([]byte, len(text))
	if len(text) == aes.BlockSize {
		block.Decrypt(out, text)
		return out
	}
	size := (len(text)-1)%aes.BlockSize + 1 // of the last block
	at := len(text) - size - aes.BlockSize  // of the block before it
	previous := make([]byte, aes.BlockSize)
	if at > 0 {
		cipher.NewCBCDecrypter(block, previous).CryptBlocks(out[:at], text[:at])
		copy(previous, text[at-aes.BlockSize:])
	}
	stolen := make([]byte, aes.BlockSize)
	block.Decrypt(stolen, text[at:at+aes.BlockSize])
	subtle.XORBytes(out[at+aes.BlockSize:], stolen[:size], text[at+aes.BlockSize:])
	copy(stolen, text[at+aes.BlockSize:])
	block.Decrypt(out[at:at+aes.BlockSize], stolen)
	subtle.XORBytes(out[at:at+aes.BlockSize], out[at:at+aes.BlockSize], previous)
	return out
}

// encrypt encrypts a message for a use.
func (k Key) encrypt(use uint32, message []byte) ([]byte, error) {
	e, err := k.encryption()
	if err != nil {
		return nil, err
	}
	plain := make([]byte, aes.BlockSize, aes.BlockSize+len(message))
	rand.Read(plain)
	plain = append(plain, message...)
	text := seal(e.derive(k.Value, use, forEncryption), plain)
	return append(text, e.integrity(k.Value, use, plain, text)...), nil
}

// integrity returns what follows an encrypted text.
func (e encryption) integrity(key []byte, use uint32, plain, text []byte) []byte {
	key = e.derive(key, use, forIntegrity)
	if e.sha2 {
		return e.hmac(key, make([]byte, aes.BlockSize), text)[:e.mac]
	}
	return e.hmac(key, plain)[:e.mac]
}

// decrypt is the reverse of encrypt. It returns ErrIntegrity if the text was not encrypted with the key for this use.
func (k Key) decrypt(use uint32, text []byte) ([]byte, error) {
	e, err := k.encryption()
	if err != nil {
		return nil, err
	}
	if len(text) < aes.BlockSize+e.mac {
		return nil, fmt.Errorf("%w: encrypted text of %d bytes", ErrMalformed, len(text))
	}
	text, sum := text[:len(text)-e.mac], text[len(text)-e.mac:]
	plain := open(e.derive(k.Value, use, forEncryption), text)
	if !hmac.Equal(sum, e.integrity(k.Value, use, plain, text)) {
		return nil, ErrIntegrity
	}
	return plain[aes.BlockSize:], nil
}

// Checksum returns the keyed checksum of data for a use.
func (k Key) Checksum(use uint32, data ...[]byte) ([]byte, error) {
	e, err := k.encryption()
	if err != nil {
		return nil, err
	}
	return e.hmac(e.derive(k.Value, use, forChecksum), data...)[:e.mac], nil
}

// Limits of the number of iterations of PBKDF2 that a KDC may ask for: fewer would make it easy for an attacker who
// answers in the KDC's place to guess the password, and more would cost minutes of processor time.
const (
	minIterations = 4096
	maxIterations = 1 << 20
)

// KeyOf derives the key of a password. params are those of the encryption type that the KDC sent; nil means the default.
func KeyOf(kind int32, password, salt string, params []byte) (Key, error) {
	e, ok := encryptions[kind]
	if !ok {
		return Key{}, fmt.Errorf("encryption type %d is not supported", kind)
	}
	iterations := uint32(e.iterations)
	switch len(params) {
	case 0:
	case 4:
		iterations = binary.BigEndian.Uint32(params)
	default:
		return Key{}, fmt.Errorf("%w parameters of %d bytes for the key of a password", ErrMalformed, len(params))
	}
	if iterations < minIterations || iterations > maxIterations {
		return Key{}, fmt.Errorf("KDC asks for %d iterations to derive the key of the password, which is not between %d and %d", iterations, minIterations, maxIterations)
	}
	return e.keyOf(kind, password, salt, int(iterations))
}

func (e encryption) keyOf(kind int32, password, salt string, iterations int) (Key, error) {
	if e.sha2 {
		salt = e.name + "\x00" + salt
	}
	seed, err := pbkdf2.Key(e.hash, password, []byte(salt), iterations, e.key)
	if err != nil {
		return Key{}, err
	}
	return Key{kind, e.deriveFrom(seed, []byte("kerberos"), e.key)}, nil
}
