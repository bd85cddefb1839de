// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

// linkOf starts a command that serves a page, and returns the page's address.
func linkOf(t *testing.T, i *invocation) string {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	i.Stdout = w
	i.start()
	w.Close()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "no link: %s", i.err.String())
		if _, link, ok := strings.Cut(line, "serving on "); ok {
			// Ends with the command, for which the test waits.
			go io.Copy(io.Discard, lines)
			return strings.TrimSpace(link)
		}
	}
}

// fetch returns what stands at an address.
func fetch(t *testing.T, link string) string {
	answer, err := http.Get(link)
	require.NoError(t, err)
	defer answer.Body.Close()
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// firstFrame returns the first that a page is sent.
func firstFrame(t *testing.T, link string) string {
	link, _, _ = strings.Cut(link, "?")
	answer, err := http.Get(link + "events")
	require.NoError(t, err)
	defer answer.Body.Close()
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	require.NoError(t, err)
	return line
}

func TestWebServesAPageUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/locks/orders").Lock(t.Context())
	require.NoError(t, err)
	i := zklockCommand(t, srv.Addr(), "web", "/locks", "--listen", "127.0.0.1:0")
	link := linkOf(t, i)
	assert.NotContains(t, link, "key")
	assert.Contains(t, fetch(t, link), "<title>zklock</title>")
	eventually(t, "the lock is there", func() bool { return strings.Contains(firstFrame(t, link), `"/locks/orders"`) })
	assert.NotContains(t, firstFrame(t, link), `"away"`)
	require.NoError(t, hold.Unlock(t.Context()))

	srv.Close()
	eventually(t, "it says that ZooKeeper is away", func() bool { return strings.Contains(firstFrame(t, link), `"away":1`) })
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), i.err.String())
	assert.Empty(t, i.err.String())
}

func TestWebPrintsTheLinkThatAllowsChanges(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	srv := startServer(t)
	i := zklockCommand(t, srv.Addr(), "web", "--listen", "0.0.0.0:0", "--allow-changes")
	link := linkOf(t, i)
	host, _ := os.Hostname()
	assert.Regexp(t, `^http://`+host+`:\d+/\?key=\w{20,}$`, link)
	eventually(t, "it warns", func() bool { return strings.Contains(i.err.String(), "there is no login") })
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), i.err.String())
}

func TestWebRefusesInvalidFlags(t *testing.T) {
	srv := startServer(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for want, c := range map[string]struct {
		code outcome.Verdict
		args []string
	}{
		"address already in use": {outcome.Failure, []string{"--listen", taken.Addr().String()}},
		"--https-cert":           {outcome.Usage, []string{"--https-cert", empty, "--https-key", empty}},
		"--public-url":           {outcome.Usage, []string{"--public-url", "locks.example.com"}},
		"does not start with /":  {outcome.Usage, []string{"--listen", "127.0.0.1:0", "locks"}},
	} {
		code, _, errs := run(t, srv.Addr(), append([]string{"web"}, c.args...)...)
		assert.EqualValues(t, c.code, code, errs)
		assert.Contains(t, errs, want)
	}
}

func TestTheDemoShowsAShop(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	i := zklockCommand(t, "", "demo", "--web", "--web-listen", "127.0.0.1:0")
	link := linkOf(t, i)
	for _, path := range []string{"/zklock-demo/orders/checkout", "/zklock-demo/stock", "/zklock-demo/printers", "/zklock-demo/leader"} {
		eventually(t, path, func() bool { return strings.Contains(firstFrame(t, link), path) })
	}
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), i.err.String())
	assert.Empty(t, i.err.String())
}

func TestServeShowsItsLocks(t *testing.T) {
	t.Parallel()
	needsSignals(t)
	i := zklockCommand(t, "", "serve", "--listen", "127.0.0.1:0", "--web", "--web-listen", "127.0.0.1:0")
	assert.Contains(t, firstFrame(t, linkOf(t, i)), `"below":"/"`)
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), i.err.String())
}
