// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/kerberos/internal/krb5"
)

// A source is where a login's first ticket comes from.
type source interface {
	// first gets the first ticket. It is not called twice at the same time.
	first(ctx context.Context, kdc *krb5.Client) (*krb5.Ticket, error)
	principal() krb5.Principal
}

// keytabSource logs in with a keytab.
type keytabSource struct {
	who  krb5.Principal
	path string
	keys krb5.Keys // as they were read last
}

// load reads the keytab.
func (s *keytabSource) load() error {
	k, err := krb5.LoadKeytab(s.path)
	if err != nil {
		return fmt.Errorf("keytab %s: %w", s.path, err)
	}
	keys := k.For(s.who)
	if keys == nil {
		return fmt.Errorf("%w: keytab %s: no key for %v that is supported: klist -k -e lists the keys, of which those of AES are supported", zklock.ErrInvalid, s.path, s.who)
	}
	s.keys = keys
	return nil
}

func (s *keytabSource) first(ctx context.Context, kdc *krb5.Client) (*krb5.Ticket, error) {
	unread := s.load() // the keys may have been replaced; if the file is being written, the former keys may do
	t, err := kdc.LogIn(ctx, s.who, s.keys)
	if err != nil {
		return nil, errors.Join(err, unread)
	}
	return t, nil
}

func (s *keytabSource) principal() krb5.Principal { return s.who }

// passwordSource logs in with a password.
type passwordSource struct {
	who  krb5.Principal
	keys krb5.Password
}

func (s *passwordSource) first(ctx context.Context, kdc *krb5.Client) (*krb5.Ticket, error) {
	return kdc.LogIn(ctx, s.who, s.keys)
}

func (s *passwordSource) principal() krb5.Principal { return s.who }

// cacheSource takes the ticket from a credential cache.
type cacheSource struct {
	path string
	last atomic.Pointer[krb5.Ticket] // as it was read last
}

// errRunKinit reports that somebody must renew a credential cache.
var errRunKinit = errors.New("the ticket in the credential cache has expired, run kinit")

// load reads the cache.
func (s *cacheSource) load() error {
	all, err := krb5.LoadCache(s.path)
	if err != nil {
		return fmt.Errorf("credential cache %s: %w", s.path, err)
	}
	s.last.Store(all[0])
	return nil
}

func (s *cacheSource) first(context.Context, *krb5.Client) (*krb5.Ticket, error) {
	unread := s.load() // if the file is being written, the former ticket may do
	t := s.last.Load()
	if !t.End.After(now()) {
		return nil, errors.Join(errRunKinit, unread)
	}
	return t, nil
}

func (s *cacheSource) principal() krb5.Principal { return s.last.Load().Client }
