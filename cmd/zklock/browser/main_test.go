// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/cmd/zklock/internal/web"
	"github.com/zklock-go/zklock/zktest"
)

var pictures = flag.String("pictures", "", "draw the documents' pictures into this `directory`")

// patience is how long a busy machine may take for one thing that a browser does.
const patience = time.Minute

// stop ends the browser that all tests share.
var stop = func() {}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	stop()
	os.Exit(code)
}

// chromium returns where a browser is, or nothing.
func chromium() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// start starts the browser, once.
var start = sync.OnceValues(func() (context.Context, error) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium()), chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, endBrowser := chromedp.NewContext(allocator)
	stop = func() {
		chromedp.Cancel(ctx)
		endBrowser()
		endAllocator()
	}
	return ctx, chromedp.Do(ctx, chromedp.Navigate("about:blank"))
})

// tab is a page of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open opens a page of a size at an address.
func open(t *testing.T, width, height int64, link string) *tab {
	if chromium() == "" {
		t.Skip("no Chromium here: cmd/zklock/browser/setup installs Debian's")
	}
	browser, err := start()
	if err != nil {
		t.Skip("Chromium does not start here: " + err.Error())
	}
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &tab{t, ctx}
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, height))) // a first step with a time limit would limit the tab
	p.do(chromedp.Navigate(link))
	return p
}

// do does things in the page.
func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, steps...))
}

// value returns what an expression is in a page.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(p.t, err, expression)
	return v
}

// until waits until an expression is true in the page.
func (p *tab) until(expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !value[bool](p, expression); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s\nThe page says:\n%s", expression, value[string](p, "document.body.innerText"))
		}
	}
}

// shows waits until the text of an element contains what it should.
func (p *tab) shows(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))", selector, text))
}

// press presses keys.
func (p *tab) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// shop is a ZooKeeper with a page that shows its locks.
type shop struct {
	*zktest.Server
	t     *testing.T
	link  string
	since atomic.Int64 // since when no server has answered, in milliseconds; zero if one does
}

func (s *shop) silentSince() time.Time {
	if ms := s.since.Load(); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

func openShop(t *testing.T, changes bool) *shop {
	s := &shop{Server: zktest.Run(t), t: t}
	page, err := web.Listen(web.Options{Path: "/", Listen: "127.0.0.1:0", AllowChanges: changes})
	require.NoError(t, err)
	client := s.client("")
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	// Owned by the test, whose end waits; ends with ctx.
	go func() { served <- page.Serve(ctx, client, s.silentSince) }()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	s.link = page.Link()
	return s
}

// client returns a client that others know by its label.
func (s *shop) client(label string) *zklock.Client {
	client, err := connect(s.t.Context(), s.Server, label)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { client.Close() })
	return client
}

func connect(ctx context.Context, srv *zktest.Server, label string) (*zklock.Client, error) {
	return zklock.Connect(ctx, srv.Addrs(), &zklock.Options{Label: label})
}
