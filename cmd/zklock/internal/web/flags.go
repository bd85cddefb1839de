// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/cli"
	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// localPage is the page's default address.
const localPage = "127.0.0.1:8126"

// Session is the session timeout that the page requests. The page holds no locks; the timeout only determines how often
// it checks each directory.
const Session = 30 * time.Second

// Flags hold the page's address and certificate, and whether it may change anything.
type Flags struct {
	listen    string
	cert, key string
	public    string
	changes   bool
}

// Register adds the flags to f.
func (p *Flags) Register(f *cli.Flags) {
	f.StringVar(&p.listen, "listen", localPage, "`address` of the page")
	f.StringVar(&p.cert, "https-cert", "", "`file` with the page's certificate; the page is then served over HTTPS")
	f.StringVar(&p.key, "https-key", "", "`file` with the certificate's private key")
	f.StringVar(&p.public, "public-url", "", "`address` of the page for browsers, if it is behind a reverse proxy: https://locks.example.com/zklock/")
	f.BoolVar(&p.changes, "allow-changes", false, "let anyone with the printed link ask holders to release their locks, and evict contenders")
}

// Alongside adds --web and --web-listen to a command that shows the page in addition to its own work.
func (p *Flags) Alongside(f *cli.Flags, text string) (wanted *bool) {
	f.StringVar(&p.listen, "web-listen", localPage, "`address` of the page that --web shows")
	return f.Bool("web", false, text)
}

// Open starts listening.
func (p *Flags) Open(std cli.Streams, path string) (*Server, error) {
	opts := Options{Path: path, Listen: p.listen, AllowChanges: p.changes, Log: func(line string) { fmt.Fprintln(std.Err, "zklock: "+line) }}
	if p.public != "" {
		public, err := url.Parse(p.public)
		if err != nil || public.Scheme != "http" && public.Scheme != "https" || public.Host == "" || public.RawQuery != "" || public.Fragment != "" {
			return nil, outcome.Misuse("--public-url: %q is not an address such as https://locks.example.com/zklock/", p.public)
		}
		opts.PublicURL = public
	}
	switch {
	case (p.cert == "") != (p.key == ""):
		return nil, outcome.Misuse("--https-cert and --https-key must be given together")
	case p.cert != "":
		pair, err := tls.LoadX509KeyPair(p.cert, p.key)
		if err != nil {
			return nil, outcome.Misuse("--https-cert and --https-key: %w", err)
		}
		opts.Certificate = &pair
	}
	page, err := Listen(opts)
	return page, outcome.CannotListen(err)
}

// Show prints the page's link and serves the page until ctx ends. silentSince returns since when no server has answered, or
// the zero time.
func (s *Server) Show(ctx context.Context, std cli.Streams, client *zklock.Client, silentSince func() time.Time) error {
	if err := s.announce(std); err != nil {
		return err
	}
	return outcome.ByCause(s.Serve(ctx, client, silentSince))
}

// announce prints the page's link.
func (s *Server) announce(std cli.Streams) error {
	if !s.IsLocal() {
		fmt.Fprintln(std.Err, "zklock: anyone who can reach this address sees the locks: there is no login")
	}
	_, err := fmt.Fprintf(std.Out, "zklock: serving on %s\n", s.Link())
	return err
}
