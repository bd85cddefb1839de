// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
)

// credentials are the identities that a connection has authenticated as.
type credentials struct {
	opts  *Options
	ids   []identity
	nonce string // nonce of the SASL challenge that was sent
}

// newCredentials returns credentials that contain the peer's address.
func newCredentials(opts *Options, remote string) credentials {
	a := credentials{opts: opts}
	if host, _, err := net.SplitHostPort(remote); err == nil {
		a.ids = []identity{{"ip", host}}
	}
	return a
}

func (a *credentials) add(id identity) {
	if !slices.Contains(a.ids, id) {
		a.ids = append(slices.Clone(a.ids), id) // requests in progress keep the previous slice
	}
}

// authenticate adds an identity. It rejects an unknown scheme.
func (a *credentials) authenticate(r *call) int32 {
	if r.scheme == "ip" {
		return CodeOK // newCredentials has added the address
	}
	if r.scheme != "digest" {
		return CodeAuthFailed
	}
	id := identity{"digest", digestID(string(r.data))}
	if super := a.opts.Super; super != "" && digestID(super) == id.id {
		a.add(superuser[0])
	}
	a.add(id)
	return CodeOK
}

// sasl handles a step of DIGEST-MD5. It answers the client's first token, which is
// empty, with a challenge, and the second with proof that the server knows the password
// too. A server without users answers with a null token, and one in FIPS mode refuses the first.
func (a *credentials) sasl(token []byte, rng *rand.Rand) (answer []byte, code int32) {
	switch {
	case !a.opts.servesSASL():
		return nil, CodeOK
	case a.opts.lab.FIPS:
		return nil, a.opts.saslRefusal()
	case len(token) == 0:
		a.nonce = fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64())
		return []byte(saslChallenge(a.nonce)), CodeOK
	}
	user, last, ok := saslVerify(a.opts.SASL, a.nonce, string(token))
	if !ok {
		return nil, a.opts.saslRefusal()
	}
	a.add(identity{"sasl", user})
	return []byte(last), CodeOK
}

// lacksSASL reports whether SASL is required and the connection has not authenticated with it.
func (a *credentials) lacksSASL() bool {
	return a.opts.RequireSASL && !slices.ContainsFunc(a.ids, func(id identity) bool { return id.scheme == "sasl" })
}

// encode writes the reply to whoAmI.
func (a *credentials) encode(e *encoder) {
	e.int32(int32(len(a.ids)))
	for _, id := range a.ids {
		e.string(id.scheme)
		name := id.id
		if id.scheme == "digest" {
			name, _, _ = strings.Cut(name, ":")
		}
		e.string(name)
	}
}
