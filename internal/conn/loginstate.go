// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"slices"
	"sync"

	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/internal/frames"
)

// loginState knows what every connection starts with, a login and credentials, and whether servers
// refuse this client.
type loginState struct {
	mu          sync.Mutex       // guards the fields below
	login       *Login           // nil if there is none
	admitted    bool             // a server has accepted login
	credentials []frames.Request // the ones that a server has accepted, in that order
	denials     int              // consecutive connections on which servers refused this client
	most        int              // the number of denials that is final if each name is one server; zero means that no number is
	others      map[string]int   // by name: the number of its addresses after the first one
	why         error            // of the last denial
}

// set sets the login, and returns the former one.
func (ls *loginState) set(login *Login, most int) (former *Login) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	former = ls.login
	ls.login, ls.admitted, ls.most, ls.denials, ls.why = login, false, most, 0, nil
	return former
}

// know records the number of addresses that a name has. Each is a server that may accept the login.
func (ls *loginState) know(name string, addresses int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.others == nil {
		ls.others = map[string]int{}
	}
	ls.others[name] = addresses - 1
}

// has reports whether connections start with that login, and a server has accepted it.
func (ls *loginState) has(login Login) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.admitted && ls.login.isLike(login)
}

// starts returns the login that connections start with, or nil if there is none, and the
// credentials that follow it.
func (ls *loginState) starts() (login *Login, credentials []frames.Request) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.login, slices.Clone(ls.credentials)
}

// accept records that a server has accepted the credential in a request: every later connection
// presents it.
func (ls *loginState) accept(credential frames.Request) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !slices.ContainsFunc(ls.credentials, credential.IsLike) {
		ls.credentials = append(ls.credentials, slices.Clone(credential))
	}
}

// deny records that a server has refused a connection that started with a login (nil if with none):
// the login itself, a credential, or a client without one. It returns false if another login was set
// since: then the refusal says nothing about that one.
func (ls *loginState) deny(login *Login, why error) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.login != login {
		return false
	}
	ls.denials++
	ls.why = why
	return true
}

// admit records that a server has accepted a login: from then on no denial is final.
func (ls *loginState) admit(login *Login) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.login == login {
		ls.admitted, ls.most = true, 0
	}
}

// serve records that a server has replied to a request.
func (ls *loginState) serve() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.denials = 0
}

// isDenied reports whether the last server that was reached refused this client.
func (ls *loginState) isDenied() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.denials > 0
}

// verdict returns why servers will never accept this client, or nil if they may.
func (ls *loginState) verdict() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	most := ls.most
	for _, n := range ls.others {
		most += n
	}
	if ls.most == 0 || ls.denials < most {
		return nil
	}
	return shownError{ls.why}
}

// shownError is an error whose text can be printed.
type shownError struct{ error }

func (e shownError) Error() string { return escape.Short(e.error.Error(), 1000) }
func (e shownError) Unwrap() error { return e.error }
