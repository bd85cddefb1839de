// SPDX-License-Identifier: Apache-2.0

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

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
)

// servers are the ones that all tests share, since they take a while to start.
var servers struct {
	postgres, mariadb *sql.DB // nil before the first test that uses it
	stop              []func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, stop := range slices.Backward(servers.stop) {
		stop()
	}
	os.Exit(code)
}

// postgres starts a server on a socket in a directory of its own, unless it has, and skips
// the test where PostgreSQL is not installed in the way of Debian.
func postgres(t *testing.T) *sql.DB {
	if servers.postgres == nil {
		servers.postgres = startPostgres(t)
	}
	return servers.postgres
}

func startPostgres(t *testing.T) *sql.DB {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed")
	}
	slices.Sort(found)
	bin := filepath.Dir(found[len(found)-1])
	dir := directory(t)
	as := unprivileged(t, dir, "postgres")
	data := filepath.Join(dir, "data")
	initdb := command(dir, as, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-N", "--locale=C")
	out, err := initdb.CombinedOutput()
	require.NoError(t, err, string(out))
	serve(t, command(dir, as, filepath.Join(bin, "postgres"), "-D", data, "-h", "", "-k", dir, "-F"), syscall.SIGINT, "ready to accept connections")
	db, err := sql.Open("pgx", "host="+dir+" user=postgres dbname=postgres")
	require.NoError(t, err)
	atEnd(func() { db.Close() })
	return db
}

// mariadb is postgres for MariaDB.
func mariadb(t *testing.T) *sql.DB {
	if servers.mariadb == nil {
		servers.mariadb = startMariaDB(t)
	}
	return servers.mariadb
}

func startMariaDB(t *testing.T) *sql.DB {
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		t.Skip("MariaDB is not installed")
	}
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		server = "/usr/sbin/mariadbd"
	}
	dir := directory(t)
	as := unprivileged(t, dir, "nobody")
	data := filepath.Join(dir, "data")
	out, err := command(dir, as, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db").CombinedOutput()
	require.NoError(t, err, string(out))
	socket := filepath.Join(dir, "socket")
	serve(t, command(dir, as, server, "--no-defaults", "--datadir="+data, "--socket="+socket, "--skip-networking",
		"--pid-file="+filepath.Join(dir, "pid"), "--innodb-flush-log-at-trx-commit=0"), syscall.SIGTERM, "ready for connections")
	admin, err := sql.Open("mysql", "root@unix("+socket+")/")
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE shop")
	require.NoError(t, err)
	db, err := sql.Open("mysql", "root@unix("+socket+")/shop")
	require.NoError(t, err)
	atEnd(func() { db.Close() })
	return db
}

// directory makes one for a server.
func directory(t *testing.T) string {
	dir, err := os.MkdirTemp("", "fence") // t.TempDir is too long for a socket's path
	require.NoError(t, err)
	atEnd(func() { os.RemoveAll(dir) })
	return dir
}

// serve starts a server, which runs until the last test has ended, and waits until it says that it is ready.
func serve(t *testing.T, server *exec.Cmd, end os.Signal, ready string) {
	said, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	atEnd(func() {
		server.Process.Signal(end)
		server.Wait()
	})
	lines := bufio.NewScanner(said)
	for !strings.Contains(lines.Text(), ready) {
		require.True(t, lines.Scan(), "the server ended")
	}
	// Ends with the server, which TestMain waits for.
	go io.Copy(io.Discard, said)
}

func atEnd(stop func()) { servers.stop = append(servers.stop, stop) }

// unprivileged returns the user that a server is to run as, which must not be root, and gives it dir.
func unprivileged(t *testing.T, dir, name string) *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		t.Skipf("the server does not run as root, and there is no user %s", name)
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
