// Package web is a page on which people look at locks: which are busy, who holds and who waits, and for how long. A browser
// gets what it shows as server-sent events, from one watch on ZooKeeper for all pages.
package web

import (
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
)

//go:embed assets
var assets embed.FS

// Options say what is shown, where, and what may be done.
type Options struct {
	Path         string           // the locks below it are shown
	Listen       string           // the address
	Certificate  *tls.Certificate // nil: without TLS
	AllowChanges bool             // holders can be asked to let go, and contenders evicted
	Log          func(string)     // is called with a line about each change; may be nil
}

// Server serves the page.
type Server struct {
	listener net.Listener
	config   *tls.Config // nil: without TLS
	local    bool        // it listens on loopback
	key      string      // what changes take; empty: there are none
	log      func(string)
	board    *board
}

// Listen begins to listen; Serve serves.
func Listen(opts Options) (*Server, error) {
	listener, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener, log: opts.Log, board: newBoard(opts.Path, opts.AllowChanges)}
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
	if s.key != "" {
		link += "?key=" + s.key
	}
	return link
}

// IsLocal reports whether only this machine reaches the page.
func (s *Server) IsLocal() bool { return s.local }

// SetConnected tells whether there is a connection to ZooKeeper: pages show it if there is none.
func (s *Server) SetConnected(connected bool) { s.board.setAway(!connected) }

// Close ends a server that does not serve.
func (s *Server) Close() error { return s.listener.Close() }

// Serve shows client's locks until ctx ends, which is not an error, or the watch or the listener fails.
func (s *Server) Serve(ctx context.Context, client *zklock.Client) error {
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
	<-ctx.Done()
	shutDown(server)
	both.Wait()
	return errors.Join(watched, served)
}

// serve answers requests until the server is shut down, which is not an error.
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

// shutDownTime is how long requests under way have to end.
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
	mux.Handle("POST /change", &changes{s.board, client, s.key, s.scheme(), s.log})
	return protect(s.local, mux)
}

// file returns a handler that answers with one of the page's files.
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
