// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/zktest"
)

var suites = flag.Bool("suites", false, "run the tests of other projects: make suites")

func run(t *testing.T, dir string, argv ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// show is like run, but shows the output immediately, for a command that may hang.
func show(t *testing.T, limit time.Duration, argv ...string) error {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.Stdout, os.Stdout, time.Second
	return cmd.Run()
}

func copyFile(t *testing.T, from, to string) {
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, 0o644))
}

// TestGoZookeepersOwnSuite runs go-zookeeper's tests with zktest instead of Java servers. It skips the two tests of reconfig, which
// zktest does not support.
func TestGoZookeepersOwnSuite(t *testing.T) {
	if !*suites {
		t.Skip("only with -suites: make suites")
	}
	library, err := run(t, ".", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-zookeeper/zk")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "zk")
	require.NoError(t, os.CopyFS(dir, os.DirFS(library)))
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for _, name := range []string{"server_help_test.go", "server_java_test.go"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	copyFile(t, "testdata/cluster_test.go.txt", filepath.Join(dir, "cluster_help_test.go"))
	copyFile(t, filepath.Join(root, "go.sum"), filepath.Join(dir, "go.sum"))
	_, err = run(t, dir, "go", "mod", "edit", "-go=1.25", "-require=github.com/zklock-go/zklock@v0.0.0", "-replace=github.com/zklock-go/zklock="+root)
	require.NoError(t, err)
	out, err := run(t, dir, "go", "test", "-mod=mod", "-vet=off", "-count=1", "-timeout", "10m", "-skip", "Reconfig$", "-v", ".")
	passed := strings.Count(out, "\n--- PASS: ")
	t.Logf("%d tests passed", passed)
	require.NoError(t, err, out)
	assert.NotContains(t, out, "--- SKIP: ")
	assert.GreaterOrEqual(t, passed, 40)
}

// control starts a server through which another process can stop and start members: "stop 1" is answered by "done". It ends with the
// test.
func control(t *testing.T, srv *zktest.Server) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() {
		assert.NoError(t, l.Close())
		<-ended
	})
	// Owned by the test: ends with the listener or with the process at the other end, and the cleanup waits for it.
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			var verb string
			var member int
			if _, err := fmt.Sscan(lines.Text(), &verb, &member); err != nil {
				return
			}
			if m := srv.Member(member); verb == "stop" {
				m.Stop()
			} else {
				m.Start()
			}
			fmt.Fprintln(conn, "done")
		}
	}()
	return l.Addr().String()
}

// TestKazoosOwnSuite runs the tests in Debian's package of kazoo. It skips the tests of reconfig and read-only mode, which zktest does
// not support, and one that has a race (testdata/kazoo_suite.py).
func TestKazoosOwnSuite(t *testing.T) {
	if !*suites {
		t.Skip("only with -suites: make suites")
	}
	const python = "/usr/bin/python3"
	if out, err := run(t, ".", python, "-c", "import kazoo.tests, pytest, mock, objgraph"); err != nil {
		t.Skipf("needs Debian's python3-kazoo, python3-pytest, python3-mock and python3-objgraph: %s", out)
	}
	srv := zktest.Run(t, zktest.Options{Servers: 3, Super: "super:test", SASL: map[string]string{"super": "super_secret", "jaasuser": "jaas_password"}})
	argv := append([]string{python, "testdata/kazoo_suite.py", control(t, srv)}, srv.Addrs()...)
	require.NoError(t, show(t, 30*time.Minute, argv...))
}
