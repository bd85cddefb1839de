// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/zktest"
)

func connect(t *testing.T, srv *zktest.Server, opts *zklock.Options) *zklock.Client {
	client, err := zklock.Connect(t.Context(), srv.Addrs(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// serve serves a page for the locks of a server until the test's end.
func serve(t *testing.T, srv *zktest.Server, opts Options) *Server {
	return serveWith(t, srv, opts, nil)
}

func serveWith(t *testing.T, srv *zktest.Server, opts Options, silentSince func() time.Time) *Server {
	opts.Path, opts.Listen = "/", "127.0.0.1:0"
	s, err := Listen(opts)
	require.NoError(t, err)
	client := connect(t, srv, nil)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	// Owned by the test, whose end waits; ends with ctx.
	go func() { served <- s.Serve(ctx, client, silentSince) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-served)
	})
	return s
}

// browser is what a page does with frames.
type browser struct {
	t      *testing.T
	lines  *bufio.Reader
	head   map[string]any
	rows   map[string]map[int]map[string]any
	orders map[string][]int
}

// listen opens a stream.
func listen(t *testing.T, client *http.Client, link, query string) *browser {
	link, _, _ = strings.Cut(link, "?")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link+"events?"+query, nil)
	require.NoError(t, err)
	answer, err := client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	require.Equal(t, http.StatusOK, answer.StatusCode)
	assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	return &browser{t, bufio.NewReader(answer.Body), nil, map[string]map[int]map[string]any{}, map[string][]int{}}
}

// frame takes the next frame in.
func (b *browser) frame() {
	for {
		line, err := b.lines.ReadString('\n')
		require.NoError(b.t, err)
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var f struct {
			Head     map[string]any
			Sections map[string]struct {
				Rows  map[int]map[string]any
				Order []int
				Empty bool
			}
		}
		require.NoError(b.t, json.Unmarshal([]byte(data), &f))
		if f.Head != nil {
			b.head = f.Head
		}
		for name, c := range f.Sections {
			if b.rows[name] == nil {
				b.rows[name] = map[int]map[string]any{}
			}
			for id, row := range c.Rows {
				b.rows[name][id] = row
			}
			if c.Order != nil || c.Empty {
				b.orders[name] = c.Order
			}
		}
		return
	}
}

// list returns the rows of a list in their order.
func (b *browser) list(name string) (rows []map[string]any) {
	for _, id := range b.orders[name] {
		rows = append(rows, b.rows[name][id])
	}
	return rows
}

// until takes frames in until something is so.
func (b *browser) until(is func() bool) {
	for !is() {
		b.frame()
	}
}

func TestAPageSeesAHoldComeAndGo(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	s := serve(t, srv, Options{})
	all := listen(t, http.DefaultClient, s.Link(), "")
	one := listen(t, http.DefaultClient, s.Link(), "lock="+linkOf("/orders/a b+c%&ü"))
	all.frame()
	assert.Empty(t, all.list("locks"))

	hold, err := connect(t, srv, &zklock.Options{Label: "worker"}).Mutex("/orders/a b+c%&ü").Lock(t.Context())
	require.NoError(t, err)
	all.until(func() bool { return len(all.list("locks")) == 1 })
	row := all.list("locks")[0]
	assert.Equal(t, "/orders/a b+c%&ü", row["path"])
	assert.Equal(t, "worker", row["owner"].(map[string]any)["label"])
	one.until(func() bool { return len(one.list("holders")) == 1 })
	assert.Equal(t, fmt.Sprint(hold.Token()), one.list("holders")[0]["token"])

	require.NoError(t, hold.Unlock(t.Context()))
	all.until(func() bool { return len(all.list("locks")) == 0 })
	one.until(func() bool { return len(one.list("holders")) == 0 })
	assert.NotZero(t, one.list("spans")[0]["until"])
	assert.Equal(t, row["link"], linkOf("/orders/a b+c%&ü"))
}

// What the client sends while nothing changes, to keep its session and to make sure of its watches, is the same without a page.
func TestPagesCostZooKeeperNothing(t *testing.T) {
	asked := func(pages int) int {
		n := 0
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			client := connect(t, srv, &zklock.Options{Dialer: srv.Dial})
			hold, err := client.Mutex("/l").Lock(t.Context())
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			b := newBoard("/", false)
			done := make(chan error, 1+pages)
			// Owned by the test, which waits; ends with ctx.
			go func() { done <- b.follow(ctx, client) }()
			for range pages {
				p := &page{out: httptest.NewRecorder(), diff: newDifference(), look: func(now time.Time) view { return b.overview("", now) }}
				p.control = http.NewResponseController(noDeadline{p.out})
				// Likewise.
				go func() {
					p.run(ctx, b)
					done <- nil
				}()
			}
			time.Sleep(time.Minute)
			before := srv.RequestCount()
			time.Sleep(time.Hour)
			n = srv.RequestCount() - before
			stop()
			for range 1 + pages {
				assert.NoError(t, <-done)
			}
			require.NoError(t, hold.Unlock(t.Context()))
		})
		return n
	}
	assert.InDelta(t, asked(0), asked(5), 20, "in an hour, in which a heartbeat more or less may fall")
}

// noDeadline is a recorder that takes deadlines.
type noDeadline struct{ http.ResponseWriter }

func (noDeadline) SetWriteDeadline(time.Time) error { return nil }
func (w noDeadline) Unwrap() http.ResponseWriter    { return w.ResponseWriter }

func TestAPageLearnsThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	var since atomic.Pointer[time.Time]
	since.Store(&time.Time{})
	s := serveWith(t, zktest.Run(t), Options{}, func() time.Time { return *since.Load() })
	b := listen(t, http.DefaultClient, s.Link(), "")
	b.frame()
	assert.Nil(t, b.head["away"])
	outage := time.UnixMilli(1_800_000_000_000)
	since.Store(&outage)
	b.until(func() bool { return b.head["away"] == float64(outage.UnixMilli()) })
	since.Store(&time.Time{})
	b.until(func() bool { return b.head["away"] == nil })
}

// A directory that cannot be read is counted on the page.
func TestAPageCountsUnreadableDirectories(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	owner := connect(t, srv, &zklock.Options{ACL: zk.DigestACL(zk.PermAll, "u", "p"), Auth: []zklock.Auth{{Scheme: "digest", Data: []byte("u:p")}}})
	hold, err := owner.Mutex("/hidden").Lock(t.Context())
	require.NoError(t, err)
	b := listen(t, http.DefaultClient, serve(t, srv, Options{}).Link(), "")
	b.until(func() bool { return b.head["gaps"] == "1 directory could not be read" })
	require.NoError(t, hold.Unlock(t.Context()))
}

// get asks for a page as somebody who believes it to be at host.
func get(t *testing.T, s *Server, path, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	s.handler(nil).ServeHTTP(w, r)
	return w
}

func TestOnlyNamesOfThisMachineLeadToAPageOnLoopback(t *testing.T) {
	s := &Server{local: true, board: newBoard("/", false)}
	for _, host := range []string{"127.0.0.1:8126", "localhost", "LOCALHOST:8126", "[::1]:8126", "127.1.2.3:1"} {
		assert.Equal(t, http.StatusOK, get(t, s, "/", host).Code, host)
	}
	for _, host := range []string{"evil.example", "evil.example:8126", "127.0.0.1.evil.example", "192.0.2.1:8126", "", "localhost.evil.example"} {
		for _, path := range []string{"/", "/events", "/page.js"} {
			assert.Equal(t, http.StatusMisdirectedRequest, get(t, s, path, host).Code, host)
		}
	}
	s.local = false
	assert.Equal(t, http.StatusOK, get(t, s, "/", "locks.example").Code)
}

// A reverse proxy has an address of its own, and passes on either name.
func TestThePageWorksBehindAReverseProxy(t *testing.T) {
	t.Parallel()
	public, err := url.Parse("https://locks.example/team")
	require.NoError(t, err)
	srv := zktest.Run(t)
	s := serve(t, srv, Options{AllowChanges: true, PublicURL: public})
	assert.Regexp(t, `^https://locks\.example/team/\?key=\w+$`, s.Link())
	for _, host := range []string{"locks.example", "LOCKS.example", "127.0.0.1:8126"} {
		assert.Equal(t, http.StatusOK, get(t, s, "/", host).Code, host)
	}
	for _, host := range []string{"evil.example", "locks.example.evil.example", "locks.example:8080"} {
		assert.Equal(t, http.StatusMisdirectedRequest, get(t, s, "/", host).Code, host)
	}
	hold, err := connect(t, srv, nil).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	direct := "http://" + s.listener.Addr().String() + "/"
	b := listen(t, http.DefaultClient, direct, "lock=/l")
	c := changeOf(b, "/l", "revoke")
	for origin, want := range map[string]int{"https://evil.example": http.StatusForbidden, "http://locks.example": http.StatusForbidden, "https://locks.example": http.StatusNoContent} {
		body, err := json.Marshal(c)
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, direct+"change", bytes.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", origin)
		r.Header.Set(keyHeader, s.key)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		assert.Equal(t, want, answer.StatusCode, origin)
	}
	<-hold.Revoked()
}

// A link to a path that does not exist must not look like that of a lock that is free.
func TestAnUnusedPathIsNotShownAsFree(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	s := serve(t, srv, Options{})
	b := listen(t, http.DefaultClient, s.Link(), "lock=/l")
	b.until(func() bool { return b.head["unseen"] == true })
	hold, err := connect(t, srv, nil).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	b.until(func() bool { return b.head["held"] == float64(1) && b.head["unseen"] == nil })
	require.NoError(t, hold.Unlock(t.Context()))
	b.until(func() bool { return b.head["held"] == float64(0) && b.head["unseen"] == nil })
}

func TestBrowsersMayRunNoOtherScripts(t *testing.T) {
	s := &Server{board: newBoard("/", false)}
	for path, kind := range map[string]string{"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css", "/icon.svg": "image/svg+xml", "/none": "text/plain"} {
		w := get(t, s, path, "localhost")
		assert.Contains(t, w.Header().Get("Content-Type"), kind)
		policy := w.Header().Get("Content-Security-Policy")
		assert.Contains(t, policy, "default-src 'none'")
		assert.NotContains(t, policy, "unsafe")
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
	html, err := assets.ReadFile("assets/page.html")
	require.NoError(t, err)
	assert.NotRegexp(t, `(?i)<style|style=|<script>| on[a-z]+=|https?:`, string(html))
	script, err := assets.ReadFile("assets/page.js")
	require.NoError(t, err)
	assert.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function`, string(script))
}

func TestAPageRefusesUnknownRequests(t *testing.T) {
	s := &Server{board: newBoard("/", false)}
	r := httptest.NewRequest(http.MethodPost, "/events", nil)
	w := httptest.NewRecorder()
	s.handler(nil).ServeHTTP(w, r)
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
	assert.Equal(t, http.StatusRequestURITooLong, get(t, s, "/events?q="+strings.Repeat("x", longestQuery), "localhost").Code)
	full := newStreams(s.board)
	full.open = make(chan struct{})
	w = httptest.NewRecorder()
	full.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/events", nil))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, "there is room for none")
}

// post asks for a change; edit makes it a wrong one.
func post(t *testing.T, s *Server, c changeRequest, edit func(*http.Request)) (int, string) {
	body, err := json.Marshal(c)
	require.NoError(t, err)
	link, err := url.Parse(s.Link())
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+link.Host+"/change", bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://"+link.Host)
	r.Header.Set(keyHeader, link.Query().Get("key"))
	if edit != nil {
		edit(r)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, text.String()
}

// changeOf waits until a page shows a holder, and returns what asks for a change of it.
func changeOf(b *browser, lock, do string) changeRequest {
	b.until(func() bool { return len(b.list("holders")) == 1 })
	row := b.list("holders")[0]
	node, _ := row["node"].(string)
	return changeRequest{Lock: lock, Node: node, Token: row["token"].(string), Do: do}
}

func TestAHolderIsRevokedAndEvictedFromThePage(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	told := make(chan string, 8)
	s := serve(t, srv, Options{AllowChanges: true, Log: func(line string) { told <- line }})
	hold, err := connect(t, srv, nil).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	b := listen(t, http.DefaultClient, s.Link(), "lock=/l")
	c := changeOf(b, "/l", "revoke")
	code, text := post(t, s, c, nil)
	assert.Equal(t, http.StatusNoContent, code, text)
	<-hold.Revoked()
	b.until(func() bool { return b.list("holders")[0]["asked"] == true })

	c.Do, c.Reason = "evict", strings.Repeat("x", 201)
	code, _ = post(t, s, c, nil)
	assert.Equal(t, http.StatusBadRequest, code)
	c.Reason = "it hangs"
	code, text = post(t, s, c, nil)
	assert.Equal(t, http.StatusNoContent, code, text)
	<-hold.Context().Done()
	assert.ErrorIs(t, context.Cause(hold.Context()), zklock.ErrLost)
	assert.ErrorContains(t, hold.Unlock(t.Context()), ": it hangs")
	b.until(func() bool { return len(b.list("holders")) == 0 })
	code, text = post(t, s, c, nil)
	assert.Equal(t, http.StatusNotFound, code)
	assert.Contains(t, text, "it has left the queue")
	assert.Contains(t, <-told, "asked to release: "+hold.Node())
	assert.Contains(t, <-told, "evicted: "+hold.Node())
	assert.Empty(t, told)
}

func TestOnlyOwnPagesWithTheLinkChangeAnything(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	s := serve(t, srv, Options{AllowChanges: true})
	hold, err := connect(t, srv, nil).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	c := changeOf(listen(t, http.DefaultClient, s.Link(), "lock=/l"), "/l", "evict")
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, try := range map[string]struct {
		edit func(*http.Request)
		code int
	}{
		"another page":    {set("Origin", "http://evil.example"), http.StatusForbidden},
		"another port":    {set("Origin", "http://127.0.0.1:1"), http.StatusForbidden},
		"another scheme":  {set("Origin", strings.Replace(s.Link(), "http", "https", 1)), http.StatusForbidden},
		"a file":          {set("Origin", "null"), http.StatusForbidden},
		"no page":         {func(r *http.Request) { r.Header.Del("Origin") }, http.StatusForbidden},
		"no key":          {func(r *http.Request) { r.Header.Del(keyHeader) }, http.StatusForbidden},
		"a wrong key":     {set(keyHeader, "guess"), http.StatusForbidden},
		"a form":          {set("Content-Type", "text/plain"), http.StatusUnsupportedMediaType},
		"another host":    {func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		"another program": {func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
	} {
		code, text := post(t, s, c, try.edit)
		assert.Equal(t, try.code, code, "%s: %s", name, text)
	}
	for want, c := range map[int]changeRequest{
		http.StatusBadRequest: {c.Lock, c.Node, c.Token, "destroy", ""},
		http.StatusNotFound:   {c.Lock, c.Node, "1", "evict", ""},
	} {
		code, _ := post(t, s, c, nil)
		assert.Equal(t, want, code)
	}
	assert.NoError(t, hold.Check())
}

func TestNothingCanBeChangedUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	s := serve(t, srv, Options{})
	hold, err := connect(t, srv, nil).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	c := changeOf(listen(t, http.DefaultClient, s.Link(), "lock=/l"), "/l", "evict")
	assert.Empty(t, c.Node)
	c.Node = hold.Node()
	code, text := post(t, s, c, nil)
	assert.Equal(t, http.StatusForbidden, code)
	assert.Contains(t, text, "--allow-changes")
	assert.NoError(t, hold.Check())
}

// certificate makes one for loopback.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	plan := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, key.Public(), key)
	require.NoError(t, err)
	made, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(made)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestAPageIsServedByTLS(t *testing.T) {
	t.Parallel()
	pair, pool := certificate(t)
	s := serve(t, zktest.Run(t), Options{Certificate: &pair})
	assert.True(t, strings.HasPrefix(s.Link(), "https://127.0.0.1:"), s.Link())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	b := listen(t, &http.Client{Transport: transport}, s.Link(), "")
	b.frame()
	assert.Equal(t, "/", b.head["below"])
}

func TestServeEndsWithTheWatch(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := connect(t, srv, nil)
	s, err := Listen(Options{Path: "/", Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	served := make(chan error, 1)
	// Owned by the test, which waits; ends with the client.
	go func() { served <- s.Serve(t.Context(), client, nil) }()
	b := listen(t, http.DefaultClient, s.Link(), "")
	b.frame()
	client.Close()
	assert.ErrorIs(t, <-served, zklock.ErrClosed)
	_, err = Listen(Options{Path: "/", Listen: "256.0.0.1:0"})
	assert.Error(t, err)
}

// pipes is a listener without a network, for virtual time.
type pipes struct {
	net.Listener
	made   chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.made <- theirs
	return ours, nil
}

// serveOnPipes serves a page without a network until the test's end.
func serveOnPipes(t *testing.T, config *tls.Config) (*pipes, *zklock.Client) {
	srv := zktest.Start(t)
	client := connect(t, srv, &zklock.Options{Dialer: srv.Dial})
	p := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
	s := &Server{listener: p, config: config, log: func(string) {}, board: newBoard("/", false)}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	// Owned by the test, whose end waits; ends with ctx.
	go func() { served <- s.Serve(ctx, client, nil) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-served)
	})
	return p, client
}

// By TLS browsers speak HTTP/2, where a deadline ends a stream also while nothing is written.
func TestAStreamByTLSOutlastsAQuietTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair, pool := certificate(t)
		p, client := serveOnPipes(t, &tls.Config{Certificates: []tls.Certificate{pair}})
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DialContext: p.dial}
		t.Cleanup(transport.CloseIdleConnections)
		b := listen(t, &http.Client{Transport: transport}, "https://127.0.0.1/", "")
		b.frame()
		time.Sleep(writeTime + 2*silence)
		_, err := client.Mutex("/orders").Lock(t.Context())
		require.NoError(t, err)
		b.until(func() bool { return len(b.list("locks")) == 1 })
	})
}

func TestABodyThatNeverArrivesIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := serveOnPipes(t, nil)
		for _, what := range []string{"POST /change", "GET /page.js", "PUT /no/such"} {
			conn, err := p.dial(t.Context(), "", "")
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(time.Hour)))
			_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", what)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, conn)
			assert.NoError(t, err, "%s: the connection is still there", what)
		}
	})
}
