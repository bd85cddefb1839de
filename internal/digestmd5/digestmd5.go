// Package digestmd5 is the client's side of SASL's mechanism DIGEST-MD5 (RFC 2831), as far as
// ZooKeeper's servers speak it: authentication alone, without a protected channel.
//
// The server sends a challenge, the client answers it, and the server answers with a proof
// that it knows the password as well.
package digestmd5

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrChallenge is the error of a challenge that cannot be answered.
var ErrChallenge = errors.New("challenge that cannot be answered")

// uri names the service, as ZooKeeper's servers call it.
const uri = "zookeeper/zk-sasl-md5"

// maxChallenge is the longest challenge that RFC 2831 allows.
const maxChallenge = 2048

// Credential is a user's name and password.
type Credential struct{ User, Password string }

// Answer returns the answer to a challenge, and the proof that the server must send then.
// cnonce is a text that nobody can guess, of letters and digits.
func (c Credential) Answer(challenge []byte, cnonce string) (answer, proof []byte, err error) {
	asked, err := parseChallenge(challenge)
	if err != nil {
		return nil, nil, err
	}
	answer = fmt.Appendf(nil, `charset=utf-8,username="%s",realm="%s",nonce="%s",nc=00000001,cnonce="%s",digest-uri="%s",response=%s,qop=auth`,
		escape(c.User), escape(asked.realm), escape(asked.nonce), cnonce, uri, c.digest(asked, cnonce, "AUTHENTICATE:"))
	return answer, []byte("rspauth=" + c.digest(asked, cnonce, ":")), nil
}

// digest proves that the password is known: the client with the method "AUTHENTICATE:", the
// server with ":".
func (c Credential) digest(asked challenge, cnonce, method string) string {
	secret := md5.Sum([]byte(octets(c.User) + ":" + octets(asked.realm) + ":" + octets(c.Password)))
	session := hash(string(secret[:]) + ":" + asked.nonce + ":" + cnonce)
	return hash(strings.Join([]string{session, asked.nonce, "00000001", cnonce, "auth", hash(method + uri)}, ":"))
}

func hash(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// octets returns text as it is hashed: in ISO 8859-1 if that has all its characters, else in
// UTF-8.
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

// escape returns text as it stands between quotation marks.
func escape(text string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) }

// challenge is what a server asks.
type challenge struct{ realm, nonce string }

// parseChallenge reads a challenge. It refuses one that asks for more than the digest of a
// password, or names no algorithm that is known.
func parseChallenge(text []byte) (challenge, error) {
	if len(text) > maxChallenge {
		return challenge{}, fmt.Errorf("%w: %d bytes", ErrChallenge, len(text))
	}
	fields, ok := parseFields(string(text))
	switch {
	case !ok:
		return challenge{}, fmt.Errorf("%w: malformed", ErrChallenge)
	case fields["algorithm"] != "md5-sess" || fields["nonce"] == "":
		return challenge{}, fmt.Errorf("%w: it is not one of DIGEST-MD5", ErrChallenge)
	case fields["charset"] != "utf-8":
		return challenge{}, fmt.Errorf("%w: not in UTF-8", ErrChallenge)
	case !offersAuth(fields["qop"]):
		return challenge{}, fmt.Errorf("%w: it wants a protected channel", ErrChallenge)
	}
	return challenge{fields["realm"], fields["nonce"]}, nil
}

// offersAuth reports whether a list of protections has the one without any, which is the
// default.
func offersAuth(list string) bool {
	for qop := range strings.SplitSeq(list, ",") {
		if qop = strings.TrimSpace(qop); qop == "" || qop == "auth" {
			return true
		}
	}
	return false
}

// parseFields reads fields with commas between them, each name=value or name="value". Of
// several with one name the first counts.
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
		if name = strings.ToLower(strings.TrimSpace(name)); fields[name] == "" {
			fields[name] = value
		}
	}
	return fields, true
}

// cutValue returns the value in front of text, and what follows the comma behind it.
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

// cutQuoted returns a quoted value without its escapes, and what follows its end.
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
