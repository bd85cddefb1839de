// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"crypto/md5"
	"crypto/subtle"
	"fmt"
	"strings"
)

// saslRealm is the realm of ZooKeeper's servers.
const saslRealm = "zk-sasl-md5"

// saslChallenge returns the server's first token of DIGEST-MD5 (RFC 2831).
func saslChallenge(nonce string) string {
	return fmt.Sprintf(`realm="%s",nonce="%s",charset=utf-8,algorithm=md5-sess`, saslRealm, nonce)
}

// saslVerify checks the client's answer to a challenge against the known users.
// On success it returns the user and the server's last token.
func saslVerify(users map[string]string, nonce, token string) (user, last string, ok bool) {
	f := saslFields(token)
	password, known := users[f["username"]]
	if !known || f["nonce"] != nonce || f["qop"] != "" && f["qop"] != "auth" {
		return "", "", false
	}
	want := saslResponse(f, password, "AUTHENTICATE:")
	if subtle.ConstantTimeCompare([]byte(want), []byte(f["response"])) != 1 {
		return "", "", false
	}
	return f["username"], "rspauth=" + saslResponse(f, password, ":"), true
}

// saslResponse returns the digest of RFC 2831: the client's for the method
// "AUTHENTICATE:", and the server's for ":".
func saslResponse(f map[string]string, password, method string) string {
	secret := md5.Sum([]byte(octets(f["username"]) + ":" + octets(f["realm"]) + ":" + octets(password)))
	session := string(secret[:]) + ":" + f["nonce"] + ":" + f["cnonce"]
	if f["authzid"] != "" {
		session += ":" + f["authzid"]
	}
	qop := f["qop"]
	if qop == "" {
		qop = "auth"
	}
	return hexMD5(strings.Join([]string{hexMD5(session), f["nonce"], f["nc"], f["cnonce"], qop, hexMD5(method + f["digest-uri"])}, ":"))
}

// octets returns text in the encoding in which it is hashed: ISO 8859-1 if that has all
// its characters, and otherwise UTF-8.
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

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return fmt.Sprintf("%x", sum)
}

// saslFields splits a token into its fields, quoted or not.
func saslFields(token string) map[string]string {
	fields := make(map[string]string)
	for token != "" {
		name, rest, _ := strings.Cut(token, "=")
		var value string
		if quoted, found := strings.CutPrefix(rest, `"`); found {
			value, rest, _ = cutQuoted(quoted)
			_, token, _ = strings.Cut(rest, ",")
		} else {
			value, token, _ = strings.Cut(rest, ",")
		}
		fields[strings.TrimSpace(name)] = value
	}
	return fields
}

// cutQuoted returns a quoted string without its escapes, and the rest of s.
func cutQuoted(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), "", false
}
