// SPDX-License-Identifier: Apache-2.0

// Package digestmd5 implements the client side of the SASL mechanism DIGEST-MD5 (RFC 2831), as far
// as ZooKeeper servers use it: authentication only, without a protected channel.
//
// The server sends a challenge, the client answers it, and the server replies with a proof that it
// knows the password as well.
package digestmd5

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrChallenge is the error of a challenge that the client cannot answer.
var ErrChallenge = errors.New("unsupported SASL challenge")

// uri is the service name that ZooKeeper servers use.
const uri = "zookeeper/zk-sasl-md5"

// maxChallenge is the longest challenge that RFC 2831 allows.
const maxChallenge = 2048

// Credential is a user's name and password.
type Credential struct{ User, Password string }

// Answer returns the answer to a challenge, and the proof that the server must then send. cnonce is
// an unpredictable text of letters and digits.
func (c Credential) Answer(challenge []byte, cnonce string) (answer, proof []byte, err error) {
	asked, err := parseChallenge(challenge)
	if err != nil {
		return nil, nil, err
	}
	answer = fmt.Appendf(nil, `charset=utf-8,username="%s",realm="%s",nonce="%s",nc=00000001,cnonce="%s",digest-uri="%s",response=%s,qop=auth`,
		escape(c.User), escape(asked.realm), escape(asked.nonce), cnonce, uri, c.digest(asked, cnonce, "AUTHENTICATE:"))
	return answer, []byte("rspauth=" + c.digest(asked, cnonce, ":")), nil
}

// digest returns a proof that the password is known: the client uses the method "AUTHENTICATE:",
// the server ":".
func (c Credential) digest(asked challenge, cnonce, method string) string {
	secret := md5.Sum([]byte(octets(c.User) + ":" + octets(asked.realm) + ":" + octets(c.Password)))
	session := hash(string(secret[:]) + ":" + asked.nonce + ":" + cnonce)
	return hash(strings.Join([]string{session, asked.nonce, "00000001", cnonce, "auth", hash(method + uri)}, ":"))
}

func hash(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// octets returns text in the encoding that is hashed: ISO 8859-1 if it contains all characters of
// the text, otherwise UTF-8.
func octets(text string) string {
	var latin []byte
	for _, r := range text {
		if r > 0xff {
			return text
		}
		latin = append(latin, byte(r))
	}
	return string(latin)
}

// escape escapes text for use between quotation marks.
func escape(text string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) }

// challenge is a server's challenge.
type challenge struct{ realm, nonce string }

// parseChallenge parses a challenge. It returns an error if the challenge requires more than the
// digest of a password, or names no known algorithm.
func parseChallenge(text []byte) (challenge, error) {
	if len(text) > maxChallenge {
		return challenge{}, fmt.Errorf("%w: %d bytes", ErrChallenge, len(text))
	}
	fields, ok := parseFields(string(text))
	switch {
	case !ok:
		return challenge{}, fmt.Errorf("%w: malformed", ErrChallenge)
	case fields["algorithm"] != "md5-sess" || fields["nonce"] == "":
		return challenge{}, fmt.Errorf("%w: not DIGEST-MD5", ErrChallenge)
	case fields["charset"] != "utf-8":
		return challenge{}, fmt.Errorf("%w: not in UTF-8", ErrChallenge)
	case !offersAuth(fields["qop"]):
		return challenge{}, fmt.Errorf("%w: requires a protected channel", ErrChallenge)
	}
	return challenge{fields["realm"], fields["nonce"]}, nil
}

// offersAuth reports whether a list of protections includes the one without a protected channel,
// which is the default.
func offersAuth(list string) bool {
	for qop := range strings.SplitSeq(list, ",") {
		qop = strings.TrimSpace(qop)
		if qop == "" || qop == "auth" {
			return true
		}
	}
	return false
}

// parseFields parses comma-separated fields of the form name=value or name="value". If several
// fields have the same name, the first one counts.
func parseFields(text string) (fields map[string]string, ok bool) {
	fields = map[string]string{}
	for rest := strings.TrimSpace(text); rest != ""; {
		name, value, found := strings.Cut(rest, "=")
		if !found {
			return nil, false
		}
		value, rest, ok = cutValue(strings.TrimSpace(value))
		if !ok {
			return nil, false
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if fields[name] == "" {
			fields[name] = value
		}
	}
	return fields, true
}

// cutValue returns the value at the beginning of text, and the text after the comma that follows.
func cutValue(text string) (value, rest string, ok bool) {
	quoted, found := strings.CutPrefix(text, `"`)
	if !found {
		value, rest, _ = strings.Cut(text, ",")
		return strings.TrimSpace(value), strings.TrimSpace(rest), true
	}
	value, rest, ok = cutQuoted(quoted)
	rest = strings.TrimSpace(rest)
	if ok && rest != "" {
		rest, ok = strings.CutPrefix(rest, ",")
	}
	return value, strings.TrimSpace(rest), ok
}

// cutQuoted returns a quoted value without its escapes, and the text after it.
func cutQuoted(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), text[i+1:], true
		case text[i] == '\\' && i+1 < len(text):
			i++
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}
