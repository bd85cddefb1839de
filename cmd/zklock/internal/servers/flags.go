// SPDX-License-Identifier: Apache-2.0

// Package servers connects subcommands to servers: it has the flags for that, and says what became of each server.
package servers

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/escape"
	"github.com/zklock-go/zklock/internal/node"
)

// Flags hold the flags about servers, the session and created nodes.
type Flags struct {
	Servers, root, Label, acl string
	Session, tick, Patience   time.Duration
	auth                      cli.List
	Anonymous, tls            bool
	ca, cert, key, serverName string
	verbose                   bool
	Streams                   cli.Streams

	given   func(flag string) bool       // nil if there are no flags
	login   func() (zklock.Login, error) // nil if there is no Mechanism
	delay   time.Duration                // the lock-delay
	Contact *Contact                     // set by Connect
	dialer  *dialer                      // set by Connect

	Hasty bool // give up as soon as every server has refused the connection: for a person who waits for an answer
}

// Local is the address of the server that is used if none is given, and at which the in-process server listens.
const Local = "127.0.0.1:2181"

// Environment variables. Other commands and the guardian read them too.
const (
	EnvServers = "ZKLOCK_SERVERS"
	EnvRoot    = "ZKLOCK_ROOT"
	EnvAuth    = "ZKLOCK_AUTH"
)

// The flags that a variable can set, because all hosts must use the same values or have the same files.
var (
	tlsFlags  = []string{"tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name"}
	nodeFlags = []string{"session-timeout", "tick-time", "acl"}
)

const delayFlag = "lock-delay"

// A Mechanism is a SASL mechanism that zklock can log in with. It adds its flags, and returns a function that makes the login
// that they select, or nil if they select none.
type Mechanism func(f *cli.Flags) func() (zklock.Login, error)

// Additional is a mechanism in addition to DIGEST-MD5, or nil if there is none. A main package sets it before any flags are
// added. A build with Kerberos has it, so that zklock does not depend on a library for Kerberos.
var Additional Mechanism

// New adds the flags of every command that connects to servers, and returns their values.
func New(f *cli.Flags) *Flags {
	s := &Flags{Streams: f.Streams, given: f.Given}
	f.In(cli.Connection, func() {
		f.StringVar(&s.Servers, "servers", "", "`host:port,...` of the ZooKeeper servers, optionally followed by a chroot; also ZKLOCK_SERVERS (default "+Local+")")
		f.StringVar(&s.root, "root", "", "`path` prefix for every path, below the servers' chroot; also ZKLOCK_ROOT")
		f.DurationVar(&s.Patience, "connect-timeout", 10*time.Second, "how long to try to reach a server")
		f.Var(&s.auth, "auth", "`scheme:credential`, for example digest:user:password, or sasl:user:password to log in with DIGEST-MD5; can be repeated; also ZKLOCK_AUTH, which process listings do not show")
		f.Foreign("use --servers", "server", "endpoints", "host", "hosts", "http-addr")
		f.BoolVar(&s.verbose, "verbose", false, "log connection and lock events to standard error")
		if Additional != nil {
			s.login = Additional(f)
		}
	})
	return s
}

// Security adds the TLS flags.
func (s *Flags) Security(f *cli.Flags) *Flags {
	f.In(cli.Connection, func() {
		f.Foreign("use --tls-ca", "cacert", "ca", "ca-file")
		f.Foreign("use --tls-cert", "cert", "client-cert")
		f.Foreign("use --tls-key", "key", "client-key")
		f.BoolVar(&s.tls, "tls", false, "use TLS; implied by the other --tls flags")
		f.StringVar(&s.ca, "tls-ca", "", "`file` with the CA certificates used to verify servers, instead of the system's")
		f.StringVar(&s.cert, "tls-cert", "", "`file` with the client certificate")
		f.StringVar(&s.key, "tls-key", "", "`file` with the client certificate's private key")
		f.StringVar(&s.serverName, "tls-server-name", "", "`name` to expect in server certificates, instead of the host name")
	})
	f.FromEnvironment(tlsFlags...)
	return s
}

// ConnectionFlags returns the flags of every command that connects to servers, for the help and the manual page.
func ConnectionFlags(std cli.Streams) *cli.Flags {
	f := cli.NewFlags(std, cli.ConnectionTopic, "", "")
	New(f).Security(f)
	return f
}

// Nodes adds the flags of commands that create nodes.
func (s *Flags) Nodes(f *cli.Flags) *Flags {
	f.DurationVar(&s.Session, "session-timeout", 0, "session timeout to request; after a crash, the next holder waits about this long (default 10s)")
	f.DurationVar(&s.tick, "tick-time", 0, "largest tickTime of any server; needed if any server's tickTime is above half the session timeout (zklock doctor shows it)")
	f.StringVar(&s.acl, "acl", "", "ACL of created nodes: `scheme:id:perms,...`, for example auth::cdrwa (default world:anyone:cdrwa)")
	f.FromEnvironment(nodeFlags...)
	return s
}

// Owner adds the flags of commands that acquire a lock.
func (s *Flags) Owner(f *cli.Flags) *Flags {
	f.BoolVar(&s.Anonymous, "anonymous", false, "do not publish host name, process ID or command")
	f.FromEnvironment(delayFlag)
	f.DurationVar(&s.delay, delayFlag, 0, "after a holder crashes, leave the lock free for this long; all clients must use the same value (default none)")
	return s.Nodes(f)
}

// Address returns the servers' connection string. The library parses it.
func (s *Flags) Address() string {
	for _, a := range []string{s.Servers, os.Getenv(EnvServers)} {
		if a != "" {
			return a
		}
	}
	return Local
}

// checkAddress rejects a connection string that the library would take for something else.
func (s *Flags) checkAddress() error {
	source, address := "--servers", s.Servers
	if address == "" {
		source, address = EnvServers, os.Getenv(EnvServers)
	}
	switch {
	case s.Servers == "" && s.given != nil && s.given("servers"):
		return outcome.Misuse("--servers is empty")
	case strings.ContainsAny(address, "\"'"):
		return outcome.Misuse("%s has quotes in it: %s", source, escape.Short(address, 80))
	case strings.ContainsAny(strings.TrimSpace(strings.ReplaceAll(address, ", ", ",")), "; \t\n|"):
		return outcome.Misuse("%s: separate servers with commas: %s", source, escape.Short(address, 80))
	}
	return nil
}

// count returns the number of different servers in the connection string.
func (s *Flags) count() int {
	addresses, _, _ := strings.Cut(s.Address(), "/")
	different := map[string]bool{}
	for a := range strings.SplitSeq(addresses, ",") {
		different[strings.TrimSpace(a)] = true
	}
	return len(different)
}

// Options returns the options of a client, without its dialer.
func (s *Flags) Options() (*zklock.Options, error) {
	if s.delay < 0 {
		return nil, outcome.Misuse("--lock-delay %v is negative", s.delay)
	}
	if s.Session < 0 {
		return nil, outcome.Misuse("--session-timeout %v is negative", s.Session)
	}
	if s.Patience <= 0 {
		return nil, outcome.Misuse("--connect-timeout %v is not positive", s.Patience)
	}
	if err := s.checkAddress(); err != nil {
		return nil, err
	}
	if err := s.checkEnvironment(os.Environ()); err != nil {
		return nil, err
	}
	o := &zklock.Options{SessionTimeout: s.Session, TickTime: s.tick, Root: s.root, Label: s.Label, Anonymous: s.Anonymous, LockDelay: s.delay, Logger: slog.New(slog.DiscardHandler)}
	source := "--root"
	if o.Root == "" {
		o.Root, source = os.Getenv(EnvRoot), EnvRoot
	}
	if err := node.CheckPath(o.Root); err != nil && o.Root != "" {
		return nil, outcome.Misuse("%s: %w", source, err)
	}
	if s.verbose {
		o.Logger = slog.New(slog.NewTextHandler(newLogWriter(s.Streams.Err), &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Observer = logEvents{o.Logger}
	}
	credentials := s.auth
	if env := os.Getenv(EnvAuth); env != "" && len(credentials) == 0 {
		credentials = cli.List{env}
	}
	for _, c := range credentials {
		scheme, data, ok := strings.Cut(c, ":")
		if !ok || scheme == "" {
			return nil, outcome.Misuse("--auth needs the form scheme:credential") // the value may be a secret, so the error does not quote it
		}
		o.Auth = append(o.Auth, zklock.Auth{Scheme: scheme, Data: []byte(data)})
	}
	var err error
	if s.login != nil {
		if o.Login, err = s.login(); err != nil {
			return nil, err
		}
	}
	if s.acl != "" {
		o.ACL, err = parseACL(s.acl)
	}
	own := func(a zk.ACL) bool { return a.Scheme == "auth" }
	if slices.ContainsFunc(o.ACL, own) && len(o.Auth) == 0 && o.Login == nil && s.cert == "" {
		return nil, outcome.Misuse("--acl auth: grants permissions to the credentials of --auth, and there are none")
	}
	return o, err
}

func (s *Flags) newDialer(log *slog.Logger) (*dialer, error) {
	s.Contact = newContact()
	d := &dialer{
		log: log, contact: s.Contact, resolve: net.DefaultResolver.LookupHost,
		dials: map[string]int{}, trials: map[string]*trial{}, last: map[string]error{},
	}
	d.life, d.abort = context.WithCancel(context.Background())
	if !s.tls && s.ca == "" && s.cert == "" && s.key == "" && s.serverName == "" {
		return d, nil
	}
	var err error
	d.secure, err = newSecure(s.ca, s.cert, s.key, s.serverName)
	return d, err
}
