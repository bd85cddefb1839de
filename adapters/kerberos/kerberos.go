// SPDX-License-Identifier: Apache-2.0

// Package kerberos logs zklock clients in to ZooKeeper with Kerberos, which is the SASL mechanism
// GSSAPI.
//
//	login, err := kerberos.FromKeytab("worker/host1.example.com@EXAMPLE.COM", "/etc/worker.keytab", nil)
//	...
//	defer login.Close()
//	client, err := zklock.Connect(ctx, servers, &zklock.Options{Login: login})
package kerberos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zklock-go/zklock"
)

// Options configure a Login. Nil means the defaults.
type Options struct {
	// Config is the path of krb5.conf. Default: the environment's KRB5_CONFIG, or /etc/krb5.conf.
	Config string
	// Service is the first part of the servers' principals. Default zookeeper.
	Service string
	// Host returns the host that a server's principal names, given the host by which the server was
	// dialed. By default that is the same: names are not looked up, because an attacker who can answer
	// for the name service could choose the server. Set it if you list servers by address or alias, for
	// example to Canonical.
	Host func(dialed string) (string, error)
	// FAST, if true, asks the KDC for FAST (PA-FX-FAST), which many KDCs reject. Default false.
	FAST bool
}

// Canonical is a function for Options.Host that asks the name service: for the name of an address, or
// for the name that an alias stands for. Use it only if you trust the name service.
func Canonical(dialed string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	var name string
	var err error
	if net.ParseIP(dialed) == nil {
		name, err = net.DefaultResolver.LookupCNAME(ctx, dialed)
	} else {
		var names []string
		if names, err = net.DefaultResolver.LookupAddr(ctx, dialed); err == nil {
			name = names[0] // there is one if there is no error
		}
	}
	return strings.ToLower(strings.TrimSuffix(name, ".")), err
}

// lookupTimeout limits a question to the name service.
const lookupTimeout = 5 * time.Second

// Login is a zklock.Login with Kerberos. Its methods are safe for concurrent use.
//
// A Login gets its tickets when a client connects, and renews them in the background. A service
// ticket is used again until it ends, so a KDC outage does not affect a client that already has a
// ticket for the server.
type Login struct {
	opts  Options
	load  func() (*client.Client, error)
	cache string // the path of the credential cache, if that is where the tickets come from

	mu       sync.Mutex     // guards the fields below
	client   *client.Client // made by load
	read     time.Time      // when the cache that client has was changed
	loggedIn bool
}

var _ zklock.Login = (*Login)(nil)

// FromKeytab returns the login of a principal whose key is in a keytab. A principal without a realm is
// in the default realm.
func FromKeytab(principal, path string, opts *Options) (*Login, error) {
	return newLogin(principal, opts, func(name, realm string, c *config.Config, settings []func(*client.Settings)) (*client.Client, error) {
		keys, err := keytab.Load(path)
		if err != nil {
			return nil, fmt.Errorf("keytab %s: %w", path, err)
		}
		return client.NewWithKeytab(name, realm, keys, c, settings...), nil
	})
}

// FromPassword returns the login of a principal with a password.
func FromPassword(principal, password string, opts *Options) (*Login, error) {
	return newLogin(principal, opts, func(name, realm string, c *config.Config, settings []func(*client.Settings)) (*client.Client, error) {
		return client.NewWithPassword(name, realm, password, c, settings...), nil
	})
}

// FromCache returns the login with the tickets of a credential cache in a file, as kinit makes it. An
// empty path means the environment's KRB5CCNAME, or /tmp/krb5cc_UID. The login does not renew the
// tickets. It reads the file again when that has changed: while kinit or a program like k5start renews
// it in time, clients can connect.
func FromCache(path string, opts *Options) (*Login, error) {
	if path == "" {
		path = cmp.Or(strings.TrimPrefix(os.Getenv("KRB5CCNAME"), "FILE:"), defaultCache())
	}
	l, err := newLogin("", opts, func(_, _ string, c *config.Config, settings []func(*client.Settings)) (*client.Client, error) {
		cache, err := credentials.LoadCCache(path)
		if err != nil {
			return nil, fmt.Errorf("credential cache %s: %w", path, err)
		}
		return client.NewFromCCache(cache, c, settings...)
	})
	if err != nil {
		return nil, err
	}
	l.cache, l.read = path, changedAt(path)
	return l, nil
}

// changedAt returns when a file was changed last, or zero if it is not there.
func changedAt(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func defaultCache() string {
	uid := "0"
	if u, err := user.Current(); err == nil {
		uid = u.Uid
	}
	return "/tmp/krb5cc_" + uid
}

// newLogin returns a Login whose client is made by with.
func newLogin(principal string, opts *Options, with func(name, realm string, c *config.Config, settings []func(*client.Settings)) (*client.Client, error)) (*Login, error) {
	l := new(Login)
	if opts != nil {
		l.opts = *opts
	}
	path := cmp.Or(l.opts.Config, os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf")
	c, err := config.Load(path)
	var unsupported config.UnsupportedDirective
	if err != nil && !errors.As(err, &unsupported) {
		return nil, fmt.Errorf("kerberos: %s: %w", path, err)
	}
	name, realm, _ := strings.Cut(principal, "@")
	l.load = func() (*client.Client, error) {
		return with(name, cmp.Or(realm, c.LibDefaults.DefaultRealm), c, []func(*client.Settings){client.DisablePAFXFAST(!l.opts.FAST)})
	}
	l.client, err = l.load()
	if err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	return l, nil
}

// current returns the Kerberos client. It loads the credential cache, if there is one, again after a
// change. A file that cannot be read, because it is being written, is left for the next time.
func (l *Login) current() *client.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cache == "" {
		return l.client
	}
	if changed := changedAt(l.cache); !changed.Equal(l.read) {
		if renewed, err := l.load(); err == nil {
			l.client, l.read = renewed, changed // a login may be using the former client
		}
	}
	return l.client
}

// Close forgets the tickets and stops renewing them. Call it when no client uses the login any more.
func (l *Login) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.client.Destroy()
}

// String returns the principal.
func (l *Login) String() string {
	c := l.current().Credentials
	return c.CName().PrincipalNameString() + "@" + c.Domain()
}

// LogIn implements zklock.Login.
func (l *Login) LogIn(ctx context.Context, server string, pass func(token []byte) ([]byte, error)) error {
	service, err := l.serviceOf(server)
	if err != nil {
		return err
	}
	client := l.current()
	ticket, key, err := l.ticketFor(ctx, client, service)
	if err != nil {
		return explain(service, err)
	}
	return exchange(pass, client.Credentials, ticket, key)
}

// serviceOf returns the principal of a server.
func (l *Login) serviceOf(server string) (string, error) {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return "", err
	}
	if l.opts.Host != nil {
		host, err = l.opts.Host(host)
		if err != nil {
			return "", fmt.Errorf("host of server %s: %w", server, err)
		}
	}
	return cmp.Or(l.opts.Service, "zookeeper") + "/" + host, nil
}

type ticket struct {
	messages.Ticket
	key types.EncryptionKey
	err error
}

// ticketFor returns a ticket for a service: one that it got before and that is still valid, or a new
// one from the KDC. It returns when ctx is done, even if the KDC does not answer.
func (l *Login) ticketFor(ctx context.Context, client *client.Client, service string) (messages.Ticket, types.EncryptionKey, error) {
	got := make(chan ticket, 1)
	// Owned by the login; ends when the KDC has answered or its time is over; no caller waits for it after ctx.
	go func() {
		var t ticket
		t.err = l.logInToKDC()
		if t.err == nil {
			t.Ticket, t.key, t.err = client.GetServiceTicket(service)
		}
		got <- t
	}()
	select {
	case t := <-got:
		return t.Ticket, t.key, t.err
	case <-ctx.Done():
		return messages.Ticket{}, types.EncryptionKey{}, fmt.Errorf("no answer from the KDC: %w", context.Cause(ctx))
	}
}

// logInToKDC gets the first ticket, from which the others come. A client from a credential cache has
// it already.
func (l *Login) logInToKDC() error {
	l.mu.Lock()
	done, client := l.loggedIn, l.client
	l.mu.Unlock()
	if done || l.cache != "" {
		return nil
	}
	if err := client.Login(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loggedIn = true
	return nil
}

// explain says in an administrator's words why there is no ticket for a service. A KDC's refusal is
// final; everything else may pass.
func explain(service string, err error) error {
	err = fmt.Errorf("no Kerberos ticket for %s: %w", service, err)
	text := err.Error()
	if strings.Contains(text, "no user credentials available and no valid existing session") { // gokrb5's own text
		return fmt.Errorf("the ticket in the credential cache has expired, run kinit: %w", err)
	}
	for _, known := range []struct{ text, hint string }{
		{"KDC_ERR_C_PRINCIPAL_UNKNOWN", "the KDC does not know the client's principal"},
		{"KDC_ERR_S_PRINCIPAL_UNKNOWN", "the KDC does not know the server's principal: see Options.Host and Options.Service"},
		{"clock skew", "the clocks of this host and the KDC differ by more than the KDC allows"}, // gokrb5's own text
		{"KDC_ERR_PREAUTH_FAILED", "the password or the keytab's key is wrong"},
		{"client password/keytab incorrect", "the password or the keytab's key is wrong"}, // gokrb5's own text
		{"KRB_AP_ERR_SKEW", "the clocks of this host and the KDC differ by more than the KDC allows"},
		{"KRB_AP_ERR_TKT_EXPIRED", "the ticket has expired"},
		{"KDC_ERR_ETYPE_NOSUPP", "the KDC and the client have no encryption type in common"},
		{"KDC_ERR_CLIENT_REVOKED", "the client's principal is locked"},
		{"KDC_ERR_KEY_EXPIRED", "the client's password has expired"},
	} {
		if strings.Contains(text, known.text) {
			return fmt.Errorf("%w: %s: %w", zk.ErrAuthFailed, known.hint, err)
		}
	}
	return err
}
