package zklock

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock-go/zklock/internal/digestmd5"
)

// Auth is a credential, for example {"digest", []byte("user:password")}.
//
// {"sasl", []byte("user:password")} logs in by SASL's mechanism DIGEST-MD5, before anything
// else is sent on a connection. The server learns that the client knows the password and
// proves that it knows it, too; neither sends it. There can be one such credential. If every
// server refuses it, or does not serve SASL, Connect returns zk.ErrAuthFailed; later on, the
// client tries one server after the other, and gives its session up when it cannot be proven
// any more.
type Auth struct {
	Scheme string
	Data   []byte
}

const schemeSASL = "sasl"

// checkAuth checks the credential that is not passed on to the servers as it is.
func checkAuth(auth []Auth) error {
	logins := 0
	for _, a := range auth {
		if a.Scheme != schemeSASL {
			continue
		}
		user, password, ok := bytes.Cut(a.Data, []byte(":"))
		if logins++; logins > 1 {
			return fmt.Errorf("%w: more than one credential of the scheme sasl", ErrInvalid)
		}
		if !ok || len(user) == 0 || len(password) == 0 || !utf8.Valid(a.Data) || bytes.ContainsRune(a.Data, 0) {
			return fmt.Errorf("%w: a credential of the scheme sasl is user:password", ErrInvalid) // it is a secret: the text has nothing of it
		}
	}
	return nil
}

// loginOf returns the credential that connections log in with, nil for none.
func loginOf(auth []Auth) *digestmd5.Credential {
	for _, a := range auth {
		if a.Scheme == schemeSASL {
			user, password, _ := strings.Cut(string(a.Data), ":")
			return &digestmd5.Credential{User: user, Password: password}
		}
	}
	return nil
}
