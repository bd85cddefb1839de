// SPDX-License-Identifier: Apache-2.0

// Package web serves a page that shows which locks are busy, who holds and who waits for them, and for how long. Browsers
// receive the data as server-sent events. All pages share one watch on ZooKeeper.
package web

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
)

//go:embed assets
var assets embed.FS

// Hash returns a hash of the page's files. The documents' pictures have it next to them, so that a test finds out when they show
// an older page.
func Hash() string {
	sum := sha256.New()
	fs.WalkDir(assets, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			data, _ := assets.ReadFile(name) // cannot fail
			fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// Options configure a Server.
type Options struct {
	Path         string           // show the locks below this path
	Listen       string           // listen on this address
	Certificate  *tls.Certificate // the server's certificate; nil means no TLS
	PublicURL    *url.URL         // the page's address for browsers behind a reverse proxy; nil means there is no proxy
	AllowChanges bool             // allow asking holders to release their locks, and evicting contenders
	Log          func(string)     // called with a line about each change; may be nil
}

// Server serves the page.
type Server struct {
	listener net.Listener
	config   *tls.Config // nil means no TLS
	local    bool        // it listens on loopback
	public   *url.URL    // its address for browsers behind a reverse proxy, or nil
	key      string      // the key that changes require; empty means no changes are allowed
	log      func(string)
	board    *board
}

// Listen starts listening. Call Serve to answer requests.
func Listen(opts Options) (*Server, error) {
	listener, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener, public: opts.PublicURL, log: opts.Log, board: newBoard(opts.Path, opts.AllowChanges)}
	s.local = listener.Addr().(*net.TCPAddr).IP.IsLoopback()
	if s.log == nil {
		s.log = func(string) {}
	}
	if opts.Certificate != nil {
		s.config = &tls.Config{Certificates: []tls.Certificate{*opts.Certificate}, MinVersion: tls.VersionTLS12}
	}
	if opts.AllowChanges {
		s.key = newKey()
	}
	return s, nil
}

func (s *Server) scheme() string {
	if s.config != nil {
		return "https"
	}
	return "http"
}

// Link returns the page's address, with the key if there is one.
func (s *Server) Link() string {
	at := s.listener.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if name, err := os.Hostname(); at.IP.IsUnspecified() && err == nil {
		host = name
	}
	link := s.scheme() + "://" + net.JoinHostPort(host, strconv.Itoa(at.Port)) + "/"
	if s.public != nil {
		link = strings.TrimSuffix(s.public.String(), "/") + "/"
	}
	if s.key != "" {
		link += "?key=" + s.key
	}
	return link
}

// IsLocal reports whether the page can only be reached from this machine.
func (s *Server) IsLocal() bool { return s.local }

// Close closes the listener of a server on which Serve was not called.
func (s *Server) Close() error { return s.listener.Close() }

// Serve shows client's locks until ctx is done, or the watch or the listener fails. If ctx is done, it returns nil.
// silentSince returns since when no server has answered, or the zero time if one does: pages show a notice then. It may be nil.
func (s *Server) Serve(ctx context.Context, client *zklock.Client, silentSince func() time.Time) error {
	s.board.begin(time.Now())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: s.handler(client), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, TLSConfig: s.config,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(io.Discard, "", 0),
	}
	var both sync.WaitGroup
	var served, watched error
	// Owned by this call, which waits; ends with shutDown below.
	both.Go(func() {
		defer cancel()
		served = s.serve(server)
	})
	// Owned by this call, which waits; ends with ctx.
	both.Go(func() {
		defer cancel()
		watched = s.board.follow(ctx, client)
	})
	if silentSince != nil {
		// Owned by this call, which waits; ends with ctx.
		both.Go(func() { s.board.followContact(ctx, silentSince) })
	}
	<-ctx.Done()
	shutDown(server)
	both.Wait()
	return errors.Join(watched, served)
}

// serve answers requests until the server is shut down. It then returns nil.
func (s *Server) serve(server *http.Server) (err error) {
	if s.config != nil {
		err = server.ServeTLS(s.listener, "", "")
	} else {
		err = server.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// shutDownTime is how long a shutdown waits for active requests.
const shutDownTime = 2 * time.Second

func shutDown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutDownTime)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
}

func (s *Server) handler(client *zklock.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", file("page.html", "text/html; charset=utf-8"))
	mux.HandleFunc("GET /page.css", file("page.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET /page.js", file("page.js", "text/javascript; charset=utf-8"))
	mux.HandleFunc("GET /icon.svg", file("icon.svg", "image/svg+xml"))
	mux.Handle("GET /events", newStreams(s.board))
	mux.Handle("POST /change", &changes{s.board, client, s.key, s.scheme(), s.public, s.log})
	return protect(s.local, s.public, mux)
}

// file returns a handler that serves one of the page's files.
func file(name, kind string) http.HandlerFunc {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Write(data)
	}
}
