// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/digestmd5"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/observe"
)

// Options configures a client. A nil *Options means the defaults.
type Options struct {
	// SessionTimeout is the session timeout that the client requests. The server may grant a
	// different one (see Client.SessionTimeout). After a holder crashes, the next one acquires the
	// lock after about this time. Default 10 s: docs/capacity.md says when to choose another one.
	SessionTimeout time.Duration
	// TickTime is the largest tickTime that any server has, or will have while the program runs.
	// The default, zero, is safe only if no server's tickTime is above half the granted session
	// timeout: true if all servers have the same tickTime and the default minSessionTimeout. If
	// TickTime is too small, two clients can hold the same lock. Connect and Attach return
	// ErrInvalid if the granted session timeout is too short for it. Setting a small TickTime
	// lets locks work with longer round trips.
	TickTime time.Duration
	// Root is a prefix for every path that is passed to the client. Default none.
	Root string
	// ACL is the ACL of every node that the client creates. The contenders for a lock must be able
	// to read each other's nodes. Default world:anyone:cdrwa.
	ACL []zk.ACL
	// ParentACL is the ACL of the parents of a lock's node, including those of Root, if the client
	// has to create them. By default it is ACL plus create and read for everyone, so that programs
	// with other ACLs can have locks under the same parents.
	ParentACL []zk.ACL
	// Auth lists the credentials that are presented to every server, on each connection. They are
	// not encrypted: without TLS, anyone on the network can read and reuse a digest's user and
	// password. A credential with the scheme "sasl" is not sent: see Auth.
	Auth []Auth
	// Login logs in with a SASL mechanism other than DIGEST-MD5, before anything else is sent on a
	// connection. adapters/kerberos has a Login for Kerberos. Default none.
	Login Login
	// Dialer connects to a server. It should return within the timeout that it is passed. If that takes
	// long, another goroutine calls it for another server. The client uses the first connection on which a
	// server answers, and closes the others. With a Dialer, a host name is one server: the
	// default dials each of the name's addresses in turn. Default TCP.
	Dialer zk.Dialer
	// TLS, if set, encrypts every connection. If it has no ServerName, a server's certificate must be
	// for the host name or IP address by which the server is listed. Default none.
	TLS *tls.Config
	// HostProvider picks the next server. The default goes through the servers in a random order
	// and resolves a host name each time it dials.
	HostProvider zk.HostProvider
	// Untrusted, if true, means that clients you do not trust can write the data of your lock
	// directories. The client then neither uses nor writes notes about the last holder there, and
	// lists the queue instead. A hand-off to a waiter that was not next in line costs more, and an
	// evicted waiter rejoins the queue instead of returning ErrEvicted. Default false.
	Untrusted bool
	// Label is written to each node's data, next to the host name and process ID, for operators to
	// read. The node of an election member contains its value instead. At most 1024 bytes. Default
	// none.
	Label string
	// Anonymous omits the host name and process ID from each node's data, which is readable by
	// everyone the ACL permits. Default false.
	Anonymous bool
	// Logger receives the client's log messages: see "Log lines" in docs/troubleshooting.md. No hold
	// waits for its handler; messages can arrive a moment after the events that they describe. Default
	// none.
	Logger *slog.Logger
	// Observer is called with the outcome of every attempt, the end of every hold, and every missed
	// heartbeat: see observe.Observer. Default none.
	Observer observe.Observer
	// LockDelay is how long a lock stays free after a holder that did not release it: one that
	// crashed, was partitioned, or was evicted, and whose process may still be working. The delay
	// starts when a contender sees that the holder's node is gone. After a release (Unlock, Do,
	// Close) the next contender is granted the lock at once. Use LockDelay with stores that cannot
	// reject late writes: see docs/promises.md.
	//
	// It applies to Mutex, Reentrant, RWMutex (if a writer crashed), Election and slots, but not to
	// Semaphore. Cohort cannot be used with it. All clients of a lock should use the same delay: an
	// acquire returns ErrMismatch while a client with another one holds. Default none.
	LockDelay time.Duration
	// FailStop, if set, is called if a function has not returned when its lock is lost. It applies
	// to functions that are passed to Do or Election.Run. The context of such a function then ends
	// while an eighth of the session timeout is still guaranteed, and the client does not release
	// the lock before the function has returned. If the hold is lost first, FailStop is called with
	// the reason. It should end the process, or the part of it that is working.
	//
	// If a loss cannot be predicted (an eviction, a machine that was asleep), the context ends at
	// once, and FailStop is called an eighth of the session timeout later; meanwhile another
	// process may hold the lock. If a hold ends because of Close, FailStop is not called. FailStop
	// may call Close. If FailStop is nil, such a function keeps running.
	FailStop func(err error)
}

func (o *Options) withDefaults() (*Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	if d.SessionTimeout == 0 {
		d.SessionTimeout = 10 * time.Second
	}
	if d.ACL == nil {
		d.ACL = zk.WorldACL(zk.PermAll)
	}
	if d.ParentACL == nil {
		d.ParentACL = openFor(d.ACL)
	}
	if d.HostProvider == nil {
		d.HostProvider = &conn.Rotation{}
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return &d, d.check()
}

// dialing returns how the client makes its connections.
func (o *Options) dialing() conn.Dialing {
	d := conn.Dialing{Dial: o.Dialer, Timeout: o.SessionTimeout, IsOpaque: o.Dialer != nil && o.TLS == nil}
	if o.Dialer == nil {
		d.Dial, d.Resolve = conn.DialTCP, net.DefaultResolver.LookupHost
	}
	if o.TLS != nil {
		d.Encrypt = func(ctx context.Context, server string, plain net.Conn) (net.Conn, error) {
			return encrypt(ctx, server, plain, o.TLS)
		}
	}
	return d
}

// dialOne returns a dialer for connections to one server. Its timeout includes the handshake.
func (o *Options) dialOne() zk.Dialer {
	d := o.dialing()
	if d.Encrypt == nil {
		return d.Dial
	}
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx := context.Background()
		if timeout > 0 {
			until, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			ctx = until
		}
		plain, err := d.Dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		encrypted, err := d.Encrypt(ctx, address, plain)
		if err != nil {
			plain.Close()
		}
		return encrypted, err
	}
}

// encrypt returns an encrypted connection over plain to a server.
func encrypt(ctx context.Context, server string, plain net.Conn, config *tls.Config) (net.Conn, error) {
	encrypted := tls.Client(plain, configFor(server, config))
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake with %s: %w%s", server, err, tlsAdvice(err))
	}
	return encrypted, nil
}

// configFor returns config with the host of a server's address as the name in its certificate, unless
// config has another name.
func configFor(address string, config *tls.Config) *tls.Config {
	host, _, err := net.SplitHostPort(address)
	if config.ServerName != "" || err != nil {
		return config
	}
	config = config.Clone()
	config.ServerName = host
	return config
}

// lastOf returns the last of the options that are not nil, or the defaults if there are none.
func lastOf[T any](opts []*T) (last T) {
	for _, o := range opts {
		if o != nil {
			last = *o
		}
	}
	return last
}

func (o *Options) check() error {
	switch {
	case o.SessionTimeout < 0 || o.SessionTimeout.Milliseconds() > 1<<31-1:
		return fmt.Errorf("%w: session timeout %v", ErrInvalid, o.SessionTimeout)
	case o.SessionTimeout < time.Millisecond:
		return fmt.Errorf("%w: session timeout %v is below a millisecond", ErrInvalid, o.SessionTimeout)
	case o.TickTime < 0:
		return fmt.Errorf("%w: tick time %v", ErrInvalid, o.TickTime)
	case o.LockDelay < 0:
		return fmt.Errorf("%w: lock-delay %v", ErrInvalid, o.LockDelay)
	case len(o.ACL) == 0 || len(o.ParentACL) == 0:
		return fmt.Errorf("%w: empty ACL", ErrInvalid)
	case len(o.Label) > node.MaxLabel:
		return fmt.Errorf("%w: label of %d bytes, the limit is %d", ErrInvalid, len(o.Label), node.MaxLabel)
	}
	if o.Login != nil && slices.ContainsFunc(o.Auth, func(a Auth) bool { return a.Scheme == schemeSASL }) {
		return fmt.Errorf("%w: both a login and a credential with the scheme sasl", ErrInvalid)
	}
	if err := checkAuth(o.Auth); err != nil || o.Root == "" {
		return err
	}
	return node.CheckPath(o.Root)
}

// openFor returns acl plus create and read for everyone.
func openFor(acl []zk.ACL) []zk.ACL {
	const open = zk.PermCreate | zk.PermRead
	for _, a := range acl {
		if a.Scheme == "world" && a.Perms&open == open {
			return acl
		}
	}
	return append(slices.Clone(acl), zk.WorldACL(open)...)
}

// Auth is a credential, for example {"digest", []byte("user:password")}.
//
// {"sasl", []byte("user:password")} logs in with the SASL mechanism DIGEST-MD5, before anything
// else is sent on a connection. Client and server prove to each other that they know the password;
// neither sends it. There can be only one such credential. If every server rejects it or does not
// support SASL, Connect returns zk.ErrAuthFailed. Later, the client tries one server after the
// other, and gives up its session when it can no longer prove that the session is alive.
type Auth struct {
	Scheme string
	Data   []byte
}

const schemeSASL = "sasl"

// checkAuth checks the sasl credential, which is not passed on to the servers. It does not check
// the others.
func checkAuth(auth []Auth) error {
	logins := 0
	for _, a := range auth {
		if a.Scheme != schemeSASL {
			continue
		}
		user, password, ok := bytes.Cut(a.Data, []byte(":"))
		logins++
		if logins > 1 {
			return fmt.Errorf("%w: more than one credential with the scheme sasl", ErrInvalid)
		}
		if !ok || len(user) == 0 || len(password) == 0 || !utf8.Valid(a.Data) || bytes.ContainsRune(a.Data, 0) {
			return fmt.Errorf("%w: a credential with the scheme sasl must have the form user:password", ErrInvalid) // the credential is secret, so the text contains no part of it
		}
	}
	return nil
}

// Login is a SASL mechanism together with its credential: see adapters/kerberos.
type Login interface {
	// LogIn proves to a server who the client is. server is the address as it was dialed. Each call of
	// pass sends a token and returns the server's token, or nil if it has none. LogIn must return when
	// ctx is done: other servers are tried, and a hold is lost if no login succeeds in time. An error
	// that wraps zk.ErrAuthFailed means that the credential is refused.
	LogIn(ctx context.Context, server string, pass func(token []byte) ([]byte, error)) error
	// String returns who logs in, for error texts.
	String() string
}

// PreparedLogin is a Login that can prepare for servers, so that a later login does not wait, for
// example for a ticket. Connect and Attach call Prepare once the client has a session, with the
// servers' addresses as they are dialed. Prepare must not wait.
type PreparedLogin interface {
	Login
	Prepare(servers []string)
}

// prepareLogin prepares the login for servers, if there is one that can.
func (o *Options) prepareLogin(servers []string) {
	if login, ok := o.Login.(PreparedLogin); ok {
		login.Prepare(slices.Clone(servers))
	}
}

// login returns what connections log in with, or nil if there is nothing.
func (o *Options) login() *conn.Login {
	if o.Login != nil {
		login := conn.Login{Name: o.Login.String(), Exchange: o.Login.LogIn}
		if reflect.ValueOf(o.Login).Comparable() {
			login.Key = o.Login
		}
		return &login
	}
	for _, a := range o.Auth {
		if a.Scheme == schemeSASL {
			user, password, _ := strings.Cut(string(a.Data), ":")
			login := conn.Digest(digestmd5.Credential{User: user, Password: password})
			return &login
		}
	}
	return nil
}

// credentials returns the requests that present the credentials, without that of a login.
func (o *Options) credentials() (all []frames.Request) {
	for _, a := range o.Auth {
		if a.Scheme != schemeSASL {
			all = append(all, frames.Auth(a.Scheme, a.Data))
		}
	}
	return all
}

// tlsAdvice returns what to do about a failed handshake, to append to its error, or "".
func tlsAdvice(err error) string {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		network *net.OpError
	)
	switch {
	case errors.As(err, &unknown):
		return " (add its issuer to RootCAs of Options.TLS)"
	case errors.As(err, &name):
		return " (list the server by a name of its certificate, or set ServerName of Options.TLS)"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return " (renew the server's certificate, or correct this host's clock)"
	case errors.As(err, &record), errors.Is(err, io.EOF):
		return " (the port may be one without TLS: list the server's secureClientPort)"
	case errors.As(err, &network) && network.Op == "remote error":
		return " (the server refuses this client: set Certificates of Options.TLS)"
	}
	return ""
}
