package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestServeServesUntilItIsInterrupted(t *testing.T) {
	i := zklockCommand(t, "", "serve", "--listen", "127.0.0.1:0", "--members", "3")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	i.Stdout = w
	i.start()
	w.Close()
	banner := make([]byte, 4096)
	n, _ := r.Read(banner)
	text := string(banner[:n])
	assert.Contains(t, text, "FOR DEVELOPMENT")
	_, servers, _ := strings.Cut(text, "ZKLOCK_SERVERS=")
	servers = strings.TrimSpace(servers)
	assert.Equal(t, 2, strings.Count(servers, ","), servers)
	code, out, errs := run(t, servers, "run", "/l", "--", "echo", "served")
	assert.Zero(t, code, errs)
	assert.Equal(t, "served\n", out)
	i.Process.Signal(os.Interrupt)
	assert.Zero(t, i.code(), i.err.String())
}

func TestServeSaysThatThePortIsTaken(t *testing.T) {
	srv := startServer(t)
	code, _, err := run(t, "", "serve", "--listen", srv.Addr())
	assert.Equal(t, codeFailure, code)
	assert.Contains(t, err, "address already in use")
}
