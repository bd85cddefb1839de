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
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/adapters/kerberos/internal/krb5"
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
	return canonical(name), err
}

// canonical returns a host name as principals contain it.
func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// lookupTimeout limits a question to the name service.
const lookupTimeout = 5 * time.Second

// Login is a zklock.Login with Kerberos. Its methods are safe for concurrent use, and clients can
// share it.
//
// After a client has connected, the Login gets a ticket for each server of the client, and gets
// another one before half of the ticket's life is over. So a KDC that is down for less than half the
// life of a ticket harms nobody, and no reconnect waits for a KDC that is slow.
type Login struct {
	opts    Options
	tickets *tickets
}

var _ zklock.PreparedLogin = (*Login)(nil)

// FromKeytab returns the login of a principal whose key is in a keytab. A principal without a realm is
// in the default realm. The keytab is read again before each login to the KDC, so its keys can be
// replaced at any time.
func FromKeytab(principal, path string, opts *Options) (*Login, error) {
	return newLogin(opts, func(c *krb5.Config) (source, error) {
		who, err := parsePrincipal(principal, c)
		if err != nil {
			return nil, err
		}
		s := &keytabSource{who: who, path: path}
		return s, s.load()
	})
}

// FromPassword returns the login of a principal with a password.
func FromPassword(principal, password string, opts *Options) (*Login, error) {
	return newLogin(opts, func(c *krb5.Config) (source, error) {
		who, err := parsePrincipal(principal, c)
		return &passwordSource{who, krb5.Password(password)}, err
	})
}

// FromCache returns the login with the tickets of a credential cache in a file, as kinit makes it. An
// empty path means the environment's KRB5CCNAME, or default_ccache_name in krb5.conf, or
// /tmp/krb5cc_UID. The login does not renew the ticket that is in the cache, but reads the file again:
// while kinit or a program like k5start renews it in time, clients can connect.
func FromCache(path string, opts *Options) (*Login, error) {
	return newLogin(opts, func(c *krb5.Config) (source, error) {
		path, err := cachePath(cmp.Or(path, os.Getenv("KRB5CCNAME"), c.Cache))
		if err != nil {
			return nil, err
		}
		s := &cacheSource{path: path}
		return s, s.load()
	})
}

// cachePath returns the path of the file of a credential cache.
func cachePath(name string) (string, error) {
	kind, path, ok := strings.Cut(name, ":")
	switch {
	case name == "":
		return defaultCache(), nil
	case !ok || len(kind) == 1 || strings.ContainsAny(kind, `/\`): // a path, perhaps on a drive of Windows
		return name, nil
	case kind == "FILE":
		return path, nil
	}
	return "", fmt.Errorf("%w: credential cache %s: only FILE caches are supported: kinit -c FILE:%s", zklock.ErrInvalid, name, defaultCache())
}

func defaultCache() string {
	uid := "0"
	if u, err := user.Current(); err == nil {
		uid = u.Uid
	}
	return "/tmp/krb5cc_" + uid
}

// parsePrincipal parses the name of a client.
func parsePrincipal(name string, c *krb5.Config) (krb5.Principal, error) {
	name, realm, _ := strings.Cut(name, "@")
	p := krb5.Principal{Realm: cmp.Or(realm, c.Realm), Name: strings.Split(name, "/")}
	switch {
	case slices.Contains(p.Name, ""):
		return p, fmt.Errorf("%w: principal %q has an empty part", zklock.ErrInvalid, name)
	case p.Realm == "":
		return p, fmt.Errorf("%w: principal %q has no realm, and krb5.conf has no default_realm", zklock.ErrInvalid, name)
	case !c.Serves(p.Realm):
		return p, fmt.Errorf("%w: principal %v: krb5.conf names no KDC of the realm %q, and dns_lookup_kdc is off", zklock.ErrInvalid, p, p.Realm)
	}
	return p, nil
}

// newLogin returns a Login whose first ticket comes from the source that from returns.
func newLogin(opts *Options, from func(c *krb5.Config) (source, error)) (*Login, error) {
	l := new(Login)
	if opts != nil {
		l.opts = *opts
	}
	c, err := krb5.LoadConfig(cmp.Or(l.opts.Config, os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"))
	if err != nil {
		return nil, fmt.Errorf("kerberos: configuration: %w", err)
	}
	s, err := from(c)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	l.tickets = newTickets(krb5.NewClient(c), s, l.serviceOf)
	return l, nil
}

// Close forgets the tickets and stops renewing them. Call it when no client uses the login any more:
// later logins are refused. When it returns, every goroutine of the login has ended, except one that
// waits for Options.Host.
func (l *Login) Close() { l.tickets.close() }

// String returns the principal.
func (l *Login) String() string { return l.tickets.source.principal().String() }

// Prepare implements zklock.PreparedLogin: it gets tickets for servers in the background.
func (l *Login) Prepare(servers []string) { l.tickets.prepare(slices.Clone(servers)) }

// LogIn implements zklock.Login.
func (l *Login) LogIn(ctx context.Context, server string, pass func(token []byte) ([]byte, error)) error {
	service, err := l.serviceOf(server)
	if err != nil {
		return err
	}
	ticket, err := l.tickets.ticketFor(ctx, service)
	if err != nil {
		return fmt.Errorf("no Kerberos ticket for %s: %w", service, err)
	}
	err = exchange(pass, ticket)
	if errors.Is(err, errRejected) && l.tickets.reject(service, ticket) {
		return fmt.Errorf("%v; another ticket is requested", errRejected) // which wraps no refusal
	}
	return err
}

// serviceOf returns the principal of a server, without its realm.
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
	if host = canonical(host); host == "" {
		return "", fmt.Errorf("%w: server %q has no host", zk.ErrAuthFailed, server)
	}
	return cmp.Or(l.opts.Service, "zookeeper") + "/" + host, nil
}
