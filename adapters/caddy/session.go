// SPDX-License-Identifier: Apache-2.0

package zkcaddy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/zklock-go/zklock"
)

// Connection says how to reach ZooKeeper. Caddy's placeholders are replaced in each text, for example {env.ZK_PASSWORD}.
type Connection struct {
	// Servers are host:port, or the connection strings of other clients, with or without a chroot.
	Servers []string `json:"servers"`
	// SessionTimeout is how long a lock of a host that crashed stays held. Default 10 s.
	SessionTimeout caddy.Duration `json:"session_timeout,omitempty"`
	// User and Password are a credential with the scheme digest. Only this user can then read and change the locks'
	// nodes. All hosts need the same one. Default none.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	// TLS encrypts the connections. Default none.
	TLS *TLS `json:"tls,omitempty"`
}

// TLS has the names of files in PEM form.
type TLS struct {
	// CA has the certificates that the servers' certificates are checked with. Default the system's.
	CA string `json:"ca,omitempty"`
	// Cert and Key are the certificate of this client and its key, for servers that ask for one. Default none.
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
}

// expanded returns a copy in which placeholders are replaced.
func (c Connection) expanded() Connection {
	replace := func(text string) string { return caddy.NewReplacer().ReplaceAll(text, "") }
	servers := make([]string, len(c.Servers))
	for i, server := range c.Servers {
		servers[i] = replace(server)
	}
	c.Servers, c.User, c.Password = servers, replace(c.User), replace(c.Password)
	if c.TLS != nil {
		c.TLS = &TLS{CA: replace(c.TLS.CA), Cert: replace(c.TLS.Cert), Key: replace(c.TLS.Key)}
	}
	return c
}

// options returns the client's options.
func (c Connection) options() (*zklock.Options, error) {
	o := &zklock.Options{SessionTimeout: time.Duration(c.SessionTimeout), Logger: slog.New(logs{})}
	if c.User != "" && c.Password == "" {
		return nil, errors.New("the user has no password")
	}
	if c.User != "" {
		o.Auth = []zklock.Auth{{Scheme: "digest", Data: []byte(c.User + ":" + c.Password)}}
		o.ACL = zk.AuthACL(zk.PermAll)
	}
	if c.TLS == nil {
		return o, nil
	}
	config, err := c.TLS.config()
	o.TLS = config
	return o, err
}

func (t *TLS) config() (*tls.Config, error) {
	config := &tls.Config{}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in PEM form", t.CA)
		}
	}
	if t.Cert == "" && t.Key == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	config.Certificates = []tls.Certificate{pair}
	return config, err
}

// sessions has a session for each Connection in use. It outlives a configuration that is reloaded, with the locks that are held.
var sessions = caddy.NewUsagePool()

// session is a client that may not be connected yet.
type session struct {
	stop   context.CancelFunc
	failed chan error    // receives the first error of connect
	done   chan struct{} // closed when connect has returned
	client *zklock.Client
}

// acquireSession returns the session for c, which is expanded, and its key in sessions.
func acquireSession(c Connection) (*session, string, error) {
	key, err := json.Marshal(c)
	if err != nil {
		return nil, "", err
	}
	value, _, err := sessions.LoadOrNew(string(key), func() (caddy.Destructor, error) {
		o, err := c.options()
		if err != nil {
			return nil, fmt.Errorf("zklock: %w", err)
		}
		ctx, stop := context.WithCancel(context.Background())
		s := &session{stop: stop, failed: make(chan error, 1), done: make(chan struct{})}
		// Owned by the session; ends when it is connected or stopped; Destruct waits for it.
		go s.connect(ctx, c.Servers, o)
		return s, nil
	})
	if err != nil {
		return nil, "", err
	}
	return value.(*session), string(key), nil
}

// connect tries until it succeeds or ctx is done.
func (s *session) connect(ctx context.Context, servers []string, o *zklock.Options) {
	defer close(s.done)
	for {
		client, err := zklock.Connect(ctx, servers, o)
		if err == nil {
			s.client = client
			return
		}
		select {
		case s.failed <- err:
		default:
			caddy.Log().Named(logName).Warn("cannot connect", zap.Error(err))
		}
		select {
		case <-time.After(patience):
		case <-ctx.Done():
			return
		}
	}
}

// patience is how long the start of Caddy, or a reload, waits for a session, and how long connect waits after an error.
const patience = 5 * time.Second

// await returns an error if the client cannot connect. It returns nil if the client is connected, or if no server could be
// reached within patience.
func (s *session) await(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case err := <-s.failed:
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
	}
	caddy.Log().Named(logName).Warn("no session yet; certificates cannot be obtained until a server can be reached")
	return nil
}

// get waits for the client until ctx is done.
func (s *session) get(ctx context.Context) (*zklock.Client, error) {
	select {
	case <-s.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.client == nil {
		return nil, zklock.ErrClosed
	}
	return s.client, nil
}

// Destruct closes the client.
func (s *session) Destruct() error {
	s.stop()
	<-s.done
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

const logName = "storage.zklock"

// logs passes records to the logger that Caddy has at that moment: a session outlives the logs of a configuration.
type logs struct{}

func (logs) handler() slog.Handler {
	return zapslog.NewHandler(caddy.Log().Core(), zapslog.WithName(logName))
}

func (l logs) Enabled(ctx context.Context, level slog.Level) bool {
	return l.handler().Enabled(ctx, level)
}

func (l logs) Handle(ctx context.Context, r slog.Record) error { return l.handler().Handle(ctx, r) }

func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler { return l.handler().WithAttrs(attrs) }

func (l logs) WithGroup(name string) slog.Handler { return l.handler().WithGroup(name) }
