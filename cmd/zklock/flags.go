package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
)

// flags is a flag set whose help a person can read.
type flags struct {
	*flag.FlagSet
	synopsis, about string
	std             streams
}

func newFlags(std streams, name, synopsis, about string) *flags {
	f := &flags{flag.NewFlagSet(name, flag.ContinueOnError), synopsis, about, std}
	f.SetOutput(io.Discard) // errors come back as errors
	f.Usage = func() {}
	return f
}

// parse takes flags before and after the positional arguments, of which it wants between least and most.
func (f *flags) parse(args []string, least, most int) ([]string, error) {
	var positional []string
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			f.help(f.std.out)
			return nil, err
		}
		if err != nil {
			return nil, misuse("%s: %w", f.Name(), err)
		}
		if args = f.Args(); len(args) == 0 {
			break
		}
		positional, args = append(positional, args[0]), args[1:]
	}
	if n := len(positional); n < least || n > most {
		return nil, misuse("usage: zklock %s %s", f.Name(), f.synopsis)
	}
	return positional, nil
}

func (f *flags) help(w io.Writer) {
	fmt.Fprintf(w, "Usage: zklock %s %s\n\n%s\n", f.Name(), f.synopsis, strings.TrimSpace(f.about))
	fmt.Fprint(w, "\nFlags:\n")
	f.VisitAll(func(fl *flag.Flag) {
		kind, text := flag.UnquoteUsage(fl)
		if kind != "" {
			kind = " " + kind
		}
		fmt.Fprintf(w, "  --%s%s\n        %s", fl.Name, kind, text)
		switch fl.DefValue {
		case "", "0", "0s", "false", "[]", defaultGrace.String():
		default:
			fmt.Fprintf(w, " (default %s)", fl.DefValue)
		}
		fmt.Fprintln(w)
	})
}

// list is a flag that can be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint([]string(*l)) }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// serverFlags say which servers to talk to, and how.
type serverFlags struct {
	servers, root, label, acl string
	session, patience         time.Duration
	auth                      list
	tls                       bool
	ca, cert, key, serverName string
	verbose                   bool
	std                       streams
}

const localServer = "127.0.0.1:2181"

func (f *flags) server() *serverFlags {
	s := &serverFlags{std: f.std}
	f.StringVar(&s.servers, "servers", envOr("ZKLOCK_SERVERS", localServer), "`host:port,...` of the ZooKeeper servers; also ZKLOCK_SERVERS")
	f.StringVar(&s.root, "root", os.Getenv("ZKLOCK_ROOT"), "`path` put before every path; also ZKLOCK_ROOT")
	f.DurationVar(&s.session, "session-timeout", 0, "session timeout to ask for: about the time until the next one holds after a crash (default 10s)")
	f.DurationVar(&s.patience, "connect-timeout", 10*time.Second, "how long to try to reach a server")
	f.StringVar(&s.label, "label", "", "`text` that others see as the owner")
	f.Var(&s.auth, "auth", "`scheme:credential`, for example digest:user:password; can be repeated; also ZKLOCK_AUTH, which no process list shows")
	f.StringVar(&s.acl, "acl", "", "`scheme:id:perms,...` of nodes made, for example auth::cdrwa (default world:anyone:cdrwa)")
	f.BoolVar(&s.tls, "tls", false, "talk TLS; implied by the other --tls flags")
	f.StringVar(&s.ca, "tls-ca", "", "`file` with the certificates that servers are checked against, instead of the system's")
	f.StringVar(&s.cert, "tls-cert", "", "`file` with our own certificate")
	f.StringVar(&s.key, "tls-key", "", "`file` with its key")
	f.StringVar(&s.serverName, "tls-server-name", "", "`name` that servers' certificates must have, instead of the host's")
	f.BoolVar(&s.verbose, "verbose", false, "log what the client does to standard error")
	return s
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func (s *serverFlags) addresses() []string {
	var all []string
	for a := range strings.SplitSeq(s.servers, ",") {
		if a = strings.TrimSpace(a); a != "" {
			all = append(all, a)
		}
	}
	return all
}

// connect returns a client with a session, or an error that says within one line why there is none.
func (s *serverFlags) connect(ctx context.Context) (*zklock.Client, error) {
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	client, err := zklock.Connect(ctx, s.addresses(), opts)
	switch {
	case errors.Is(err, zklock.ErrInvalid):
		return nil, exit{codeUsage, err}
	case err != nil:
		return nil, exit{codeUnavailable, err}
	}
	return client, nil
}

func (s *serverFlags) options() (*zklock.Options, error) {
	o := &zklock.Options{SessionTimeout: s.session, Root: s.root, Label: s.label}
	if s.verbose {
		o.Logger = slog.New(slog.NewTextHandler(s.std.err, nil))
		o.Observer = logEvents{o.Logger}
	}
	credentials := s.auth
	if env := os.Getenv("ZKLOCK_AUTH"); env != "" && len(credentials) == 0 {
		credentials = list{env}
	}
	for _, c := range credentials {
		scheme, data, ok := strings.Cut(c, ":")
		if !ok || scheme == "" {
			return nil, misuse("--auth: want scheme:credential") // which may be a secret: it is not repeated
		}
		o.Auth = append(o.Auth, zklock.Auth{Scheme: scheme, Data: []byte(data)})
	}
	var err error
	if s.acl != "" {
		if o.ACL, err = parseACL(s.acl); err != nil {
			return nil, err
		}
	}
	if s.tls || s.ca != "" || s.cert != "" || s.key != "" || s.serverName != "" {
		config, err := s.tlsConfig()
		if err != nil {
			return nil, err
		}
		o.Dialer = dialTLS(config)
		o.HostProvider = &byName{}
	}
	return o, nil
}

func (s *serverFlags) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{ServerName: s.serverName, MinVersion: tls.VersionTLS12}
	if s.ca != "" {
		pem, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, misuse("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, misuse("--tls-ca: no certificate in %s", s.ca)
		}
	}
	if s.cert != "" || s.key != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, misuse("--tls-cert and --tls-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func dialTLS(config *tls.Config) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, config)
	}
}

// byName hands servers out under the names they were given, one after the other: the
// client library's own provider hands out IP addresses, which certificates seldom name.
type byName struct {
	servers []string
	calls   int
	lap     int // the index at which a round is over
}

func (b *byName) Init(servers []string) error {
	if len(servers) == 0 {
		return errors.New("no servers given")
	}
	b.servers = servers
	return nil
}

func (b *byName) Len() int { return len(b.servers) }

// Next says true when it has come round to where it last stood: the library pauses then.
func (b *byName) Next() (server string, cameRound bool) {
	i := b.calls % len(b.servers)
	cameRound = b.calls > 0 && i == b.lap
	b.calls++
	return b.servers[i], cameRound
}

// Connected says that the server handed out last was reached.
func (b *byName) Connected() { b.lap = (b.calls + len(b.servers) - 1) % len(b.servers) }

// parseACL reads scheme:id:perms, where the id may have colons itself.
func parseACL(text string) ([]zk.ACL, error) {
	var all []zk.ACL
	for item := range strings.SplitSeq(text, ",") {
		scheme, rest, ok := strings.Cut(item, ":")
		i := strings.LastIndexByte(rest, ':')
		if !ok || i < 0 {
			return nil, misuse("--acl: %q is not scheme:id:perms", item)
		}
		perms, err := parsePerms(rest[i+1:])
		if err != nil {
			return nil, err
		}
		all = append(all, zk.ACL{Scheme: scheme, ID: rest[:i], Perms: perms})
	}
	return all, nil
}

func parsePerms(letters string) (int32, error) {
	bits := map[rune]int32{'c': zk.PermCreate, 'd': zk.PermDelete, 'r': zk.PermRead, 'w': zk.PermWrite, 'a': zk.PermAdmin}
	var perms int32
	for _, l := range letters {
		if bits[l] == 0 {
			return 0, misuse("--acl: %q has a letter that is none of c, d, r, w, a", letters)
		}
		perms |= bits[l]
	}
	if perms == 0 {
		return 0, misuse("--acl: no permission given")
	}
	return perms, nil
}

// logEvents writes what happens to locks into the log.
type logEvents struct{ log *slog.Logger }

func (l logEvents) Observe(e zklock.Event) {
	switch e.Kind {
	case zklock.Queued:
		l.log.Info("queued", "path", e.Path, "node", e.Node, "behind", e.Behind)
	case zklock.Acquired:
		l.log.Info("acquired", "path", e.Path, "node", e.Node, "token", e.Token, "after", e.Elapsed)
	case zklock.Released:
		l.log.Info("released", "path", e.Path, "node", e.Node, "held", e.Elapsed)
	}
}

// given says whether the flag was on the command line.
func (f *flags) given(name string) bool {
	found := false
	f.Visit(func(fl *flag.Flag) { found = found || fl.Name == name })
	return found
}
