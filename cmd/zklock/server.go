package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/observe"
)

// serverFlags say which servers to talk to, and how.
type serverFlags struct {
	servers, root, label, acl string
	session, patience         time.Duration
	auth                      list
	anonymous, tls            bool
	ca, cert, key, serverName string
	verbose                   bool
	std                       streams

	delay     time.Duration // the lock-delay
	connected func(bool)    // is called when there is a connection to a server, and when there is none any more; may be nil

	hasty bool // do not wait for servers: give up when none of them can be reached
}

const localServer = "127.0.0.1:2181"

// What other commands and the guardian read, too.
const (
	envServers = "ZKLOCK_SERVERS"
	envRoot    = "ZKLOCK_ROOT"
	envAuth    = "ZKLOCK_AUTH"
)

// server adds the flags of every command that talks to servers.
func (f *flags) server() *serverFlags {
	s := &serverFlags{std: f.std}
	f.in(aboutConnection, func() {
		f.StringVar(&s.servers, "servers", "", "`host:port,...` of the ZooKeeper servers, with a chroot behind them if there is one; also ZKLOCK_SERVERS (default "+localServer+")")
		f.StringVar(&s.root, "root", "", "`path` put before every path, behind the servers' chroot; also ZKLOCK_ROOT")
		f.DurationVar(&s.patience, "connect-timeout", 10*time.Second, "how long to try to reach a server")
		f.Var(&s.auth, "auth", "`scheme:credential`, for example digest:user:password, or sasl:user:password for a login by DIGEST-MD5; can be repeated; also ZKLOCK_AUTH, which no process list shows")
		f.BoolVar(&s.verbose, "verbose", false, "log what the connection and the lock do to standard error")
	})
	return s
}

// security adds the flags about TLS.
func (s *serverFlags) security(f *flags) *serverFlags {
	f.in(aboutConnection, func() {
		f.BoolVar(&s.tls, "tls", false, "talk TLS; implied by the other --tls flags")
		f.StringVar(&s.ca, "tls-ca", "", "`file` with the certificates that servers are checked against, instead of the system's")
		f.StringVar(&s.cert, "tls-cert", "", "`file` with our own certificate")
		f.StringVar(&s.key, "tls-key", "", "`file` with its key")
		f.StringVar(&s.serverName, "tls-server-name", "", "`name` that servers' certificates must have, instead of the host's")
	})
	return s
}

// connectionFlags are the flags of every command that talks to servers, to be told of.
func connectionFlags(std streams) *flags {
	f := newFlags(std, connectionTopic, "", "")
	f.server().security(f)
	return f
}

// nodes adds the flags of commands that make nodes.
func (s *serverFlags) nodes(f *flags) *serverFlags {
	f.DurationVar(&s.session, "session-timeout", 0, "session timeout to ask for: about the time until the next one holds after a crash (default 10s)")
	f.StringVar(&s.acl, "acl", "", "`scheme:id:perms,...` of nodes made, for example auth::cdrwa (default world:anyone:cdrwa)")
	return s
}

// owner adds the flags of commands that hold something.
func (s *serverFlags) owner(f *flags) *serverFlags {
	f.BoolVar(&s.anonymous, "anonymous", false, "keep the host's name, the process number and what the command is out of what others see")
	f.DurationVar(&s.delay, "lock-delay", 0, "after a holder that crashed, stay without one for this time; all must say the same (default none)")
	return s.nodes(f)
}

// address is the servers' string, which the library takes as it is.
func (s *serverFlags) address() string {
	for _, a := range []string{s.servers, os.Getenv(envServers)} {
		if a != "" {
			return a
		}
	}
	return localServer
}

// count returns how many servers there are.
func (s *serverFlags) count() int {
	addresses, _, _ := strings.Cut(s.address(), "/")
	different := map[string]bool{}
	for a := range strings.SplitSeq(addresses, ",") {
		different[strings.TrimSpace(a)] = true
	}
	return len(different)
}

// use connects, runs do, and closes the client. The context ends when the user interrupts.
func (s *serverFlags) use(do func(ctx context.Context, client *zklock.Client) error) error {
	ctx, stop := untilInterrupted()
	defer stop()
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(ctx, client)
}

// ask runs a question that takes a few requests. Servers that do not answer it in the time for connecting count as not reached.
func (s *serverFlags) ask(ctx context.Context, question func(context.Context) error) error {
	return s.askFor(ctx, s.patience, question)
}

// askFor is ask for a question that may take longer.
func (s *serverFlags) askFor(ctx context.Context, patience time.Duration, question func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := question(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return exit{codeUnavailable, fmt.Errorf("no answer in %v (--connect-timeout): %w", patience, err)}
	}
	return err
}

// isUnavailable reports whether err says that no server answers.
func isUnavailable(err error) bool {
	var e exit
	return errors.As(err, &e) && e.code == codeUnavailable
}

// attempt runs an attempt to hold something without waiting for others. That another holds is an answer, however late it
// comes. Servers that give none count as not reached: a job that no host runs must not pass for one that another host runs.
func (s *serverFlags) attempt(ctx context.Context, take func(context.Context) (*zklock.Hold, error)) (*zklock.Hold, error) {
	var hold *zklock.Hold
	var answer error
	err := s.ask(ctx, func(ctx context.Context) error {
		if hold, answer = take(ctx); errors.Is(answer, context.DeadlineExceeded) && !errors.Is(answer, zklock.ErrLocked) {
			return answer
		}
		return nil
	})
	return hold, cmp.Or(err, answer)
}

// connect returns a client with a session, or an error of one line about why there is
// none. It takes no longer than the flags say, and no longer than ctx.
func (s *serverFlags) connect(ctx context.Context) (*zklock.Client, error) {
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	d, err := s.dialer(opts.Logger)
	if err != nil {
		return nil, err
	}
	opts.Dialer = d.dial
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	inside, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	if s.hasty {
		d.servers, d.failed, d.allFail = s.count(), map[string]error{}, giveUp
	}
	unhook := context.AfterFunc(ctx, d.abort) // a connection in the making must not go on after the timeout
	client, err := zklock.Connect(inside, []string{s.address()}, opts)
	if err == nil && unhook() {
		opts.Logger.Info("session", "timeout", client.SessionTimeout())
		return client, nil
	}
	d.abort()
	none := noneReached{}
	switch {
	case err == nil:
		client.Close()
		err = context.Cause(ctx)
	case errors.As(context.Cause(inside), &none):
		err = none // the library's error repeats it
	}
	return nil, connectFailure(err)
}

func connectFailure(err error) error {
	switch {
	case errors.Is(err, zklock.ErrInvalid):
		return exit{codeUsage, err}
	case errors.Is(err, zk.ErrAuthFailed):
		return exit{codeNoPerm, err}
	}
	return exit{codeUnavailable, err}
}

func (s *serverFlags) options() (*zklock.Options, error) {
	if s.delay < 0 {
		return nil, misuse("--lock-delay %v is negative", s.delay)
	}
	if s.patience <= 0 {
		return nil, misuse("--connect-timeout %v is not positive", s.patience)
	}
	o := &zklock.Options{SessionTimeout: s.session, Root: s.root, Label: s.label, Anonymous: s.anonymous, LockDelay: s.delay, Logger: slog.New(slog.DiscardHandler)}
	if o.Root == "" {
		o.Root = os.Getenv(envRoot)
	}
	if s.verbose {
		o.Logger = slog.New(slog.NewTextHandler(newLogWriter(s.std.err), &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Observer = logEvents{o.Logger}
	}
	credentials := s.auth
	if env := os.Getenv(envAuth); env != "" && len(credentials) == 0 {
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
		o.ACL, err = parseACL(s.acl)
	}
	return o, err
}

func (s *serverFlags) dialer(log *slog.Logger) (*dialer, error) {
	d := &dialer{log: log, connected: s.connected}
	d.life, d.abort = context.WithCancel(context.Background())
	if !s.tls && s.ca == "" && s.cert == "" && s.key == "" && s.serverName == "" {
		return d, nil
	}
	var err error
	d.config, err = s.tlsConfig()
	return d, err
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

// logEvents writes what happens to locks into the log.
type logEvents struct{ log *slog.Logger }

func (l logEvents) Observe(e observe.Event) {
	switch e.Kind {
	case observe.Queued:
		l.log.Info("queued", "path", e.Path, "node", e.Node, "behind", e.Behind)
	case observe.Acquired:
		l.log.Info("acquired", "path", e.Path, "node", e.Node, "token", e.Token, "after", e.Elapsed)
	case observe.Released:
		l.log.Info("released", "path", e.Path, "node", e.Node, "held", e.Elapsed)
	}
}
