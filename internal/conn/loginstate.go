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
	credentials []frames.Request // the ones that a server has accepted, in that order
	denials     int              // consecutive connections on which servers refused this client
	most        int              // the number of denials that is final; zero means that no number is
	why         error            // of the last denial
}

func (g *loginState) set(login Login, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.login, g.most = &login, most
}

// starts returns the login that connections start with, or nil if there is none, and the
// credentials that follow it.
func (g *loginState) starts() (login *Login, credentials []frames.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.login, slices.Clone(g.credentials)
}

// accept records that a server has accepted the credential in a request: every later connection
// presents it.
func (g *loginState) accept(credential frames.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.ContainsFunc(g.credentials, credential.IsLike) {
		g.credentials = append(g.credentials, slices.Clone(credential))
	}
}

// deny records that a server has refused a login or a credential, or a client without one.
func (g *loginState) deny(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denials++
	g.why = why
}

// admit records that a server has accepted the login: from then on no denial is final.
func (g *loginState) admit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = 0
}

// serve records that a server has replied to a request.
func (g *loginState) serve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denials = 0
}

// isDenied reports whether the last server that was reached refused this client.
func (g *loginState) isDenied() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.denials > 0
}

// verdict returns why servers will never accept this client, or nil if they may.
func (g *loginState) verdict() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.most == 0 || g.denials < g.most {
		return nil
	}
	return shownError{g.why}
}

// shownError is an error whose text can be printed.
type shownError struct{ error }

func (e shownError) Error() string { return escape.Short(e.error.Error(), 1000) }
func (e shownError) Unwrap() error { return e.error }
