//go:build unix

package sqlfence_test

import (
	"bufio"
	"database/sql"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
)

// server is the one that all tests share, since it takes a while to start.
var server struct {
	db   *sql.DB // nil before the first test that uses it
	stop []func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, stop := range slices.Backward(server.stop) {
		stop()
	}
	os.Exit(code)
}

// postgres starts a server on a socket in a directory of its own, unless it has, and skips
// the test where PostgreSQL is not installed in the way of Debian.
func postgres(t *testing.T) *sql.DB {
	if server.db == nil {
		server.db = startPostgres(t)
	}
	return server.db
}

func startPostgres(t *testing.T) *sql.DB {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed")
	}
	slices.Sort(found)
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "fence") // t.TempDir is too long for a socket's path
	require.NoError(t, err)
	atEnd(func() { os.RemoveAll(dir) })
	as := unprivileged(t, dir)
	data := filepath.Join(dir, "data")
	initdb := command(dir, as, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-N", "--locale=C")
	out, err := initdb.CombinedOutput()
	require.NoError(t, err, string(out))
	postgres := command(dir, as, filepath.Join(bin, "postgres"), "-D", data, "-h", "", "-k", dir, "-F")
	said, err := postgres.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, postgres.Start())
	atEnd(func() {
		postgres.Process.Signal(syscall.SIGINT) // drops the clients and ends
		postgres.Wait()
	})
	lines := bufio.NewScanner(said)
	for ready := false; !ready; ready = strings.Contains(lines.Text(), "ready to accept connections") {
		require.True(t, lines.Scan(), "the server ended")
	}
	// Ends with the server, which TestMain waits for.
	go io.Copy(io.Discard, said)
	db, err := sql.Open("pgx", "host="+dir+" user=postgres dbname=postgres")
	require.NoError(t, err)
	atEnd(func() { db.Close() })
	return db
}

func atEnd(stop func()) { server.stop = append(server.stop, stop) }

// unprivileged returns the user that PostgreSQL is to run as, which must not be root, and gives it dir.
func unprivileged(t *testing.T, dir string) *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skip("PostgreSQL does not run as root, and there is no user postgres")
	}
	uid, err := strconv.Atoi(u.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(u.Gid)
	require.NoError(t, err)
	require.NoError(t, os.Chown(dir, uid, gid))
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func command(dir string, as *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	return cmd
}
