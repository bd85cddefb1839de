// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// A patient is a zklock with a health check that fails while a file exists.
type patient struct {
	t      *testing.T
	srv    *zktest.Server
	sick   string // the file
	checks string // a file with a line for each check
	ready  string // a file that the command creates
}

func newPatient(t *testing.T) *patient {
	needsShell(t)
	dir := t.TempDir()
	return &patient{t, startServer(t), filepath.Join(dir, "sick"), filepath.Join(dir, "checks"), filepath.Join(dir, "ready")}
}

// start runs a zklock that runs a command which ends with 3 on TERM.
func (p *patient) start(subcommand string, more ...string) *invocation {
	check := `echo >>"` + p.checks + `"; if [ -e "` + p.sick + `" ]; then echo "the disk is full"; exit 7; fi`
	args := append([]string{subcommand, "--health-cmd", check, "--health-every", "2s"}, more...)
	args = append(args, "/l", "--", "sh", "-c", `trap 'exit 3' TERM; : >"$0"; while :; do sleep 0.02; done`, p.ready)
	return zklockCommand(p.t, p.srv.Addr(), args...).start()
}

func (p *patient) fall()    { require.NoError(p.t, os.WriteFile(p.sick, nil, 0o600)) }
func (p *patient) recover() { require.NoError(p.t, os.Remove(p.sick)) }

// awaitChecks waits until n more checks were made.
func (p *patient) awaitChecks(n int) {
	made := func() int {
		b, _ := os.ReadFile(p.checks)
		return strings.Count(string(b), "\n")
	}
	from := made()
	eventually(p.t, "the check is repeated", func() bool { return made() >= from+n })
}

// A check that fails ends the command as --max-run does, and the lock is released.
func TestAFailedHealthCheckEndsTheCommand(t *testing.T) {
	t.Parallel()
	for _, subcommand := range []string{"run", "elect"} {
		p := newPatient(t)
		i := p.start(subcommand)
		eventually(t, "the command runs", func() bool { return exists(p.ready) })
		p.awaitChecks(2)
		assert.Equal(t, 1, queued(p.srv, "/l"))
		p.fall()
		assert.EqualValues(t, outcome.Unhealthy, i.code(), i.err.String())
		assert.Contains(t, i.err.String(), "the health check failed: exit status 7: the disk is full: ending the command")
		assert.Contains(t, i.err.String(), "the command was ended: the health check failed: exit status 7: the disk is full")
		assert.Zero(t, queued(p.srv, "/l"), "the lock is released")
	}
}

// A member is not in the queue while its check fails, neither before nor after it had to wait.
func TestAnUnhealthyRunDoesNotQueue(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	holder, err := connect(t, p.srv).Mutex("/l").Lock(t.Context())
	require.NoError(t, err)
	p.fall()
	i := p.start("run")
	p.awaitChecks(2)
	assert.Equal(t, 1, queued(p.srv, "/l"))
	p.recover()
	eventually(t, "it queues", func() bool { return queued(p.srv, "/l") == 2 })
	p.fall()
	eventually(t, "it leaves the queue", func() bool { return queued(p.srv, "/l") == 1 })
	p.awaitChecks(2)
	assert.Equal(t, 1, queued(p.srv, "/l"))
	p.recover()
	eventually(t, "it queues again", func() bool { return queued(p.srv, "/l") == 2 })
	require.NoError(t, holder.Unlock(t.Context()))
	eventually(t, "the command runs", func() bool { return exists(p.ready) })
	p.fall()
	assert.EqualValues(t, outcome.Unhealthy, i.code(), i.err.String())
	assert.Contains(t, i.err.String(), "not waiting for the lock until it succeeds")
}

// A run that does not wait, or not long, does not wait for its health either. The lock being held has another code.
func TestAnUnhealthyRunThatDoesNotWait(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.fall()
	for _, flags := range [][]string{{"--no-wait"}, {"--wait", "2s"}, {"--no-wait", "--every", "5m", "--quiet"}} {
		i := p.start("run", flags...)
		assert.EqualValues(t, outcome.Unhealthy, i.code(), i.err.String())
		assert.Contains(t, i.err.String(), "not acquired: ")
		assert.Contains(t, i.err.String(), "the disk is full")
		assert.Zero(t, queued(p.srv, "/l"))
	}
}

// A check that does not return is ended with what it has started, and has failed.
func TestAHealthCheckThatHangs(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	mark := "1000" + strings.Repeat("0", os.Getpid()%7)
	i := zklockCommand(t, p.srv.Addr(), "run", "--health-cmd", `if [ -e "`+p.sick+`" ]; then sleep `+mark+` & sleep `+mark+`; fi`, "--health-every", "2s", "/l", "--",
		"sh", "-c", `: >"$0"; exec sleep 60`, p.ready).start()
	eventually(t, "the command runs", func() bool { return exists(p.ready) })
	p.fall()
	assert.EqualValues(t, outcome.Unhealthy, i.code(), i.err.String())
	assert.Contains(t, i.err.String(), "the health check failed: check has not returned within 2s")
	eventually(t, "nothing of the check is left", func() bool {
		out, err := exec.Command("ps", "-eo", "args").Output()
		return err == nil && !strings.Contains(string(out), "\nsleep "+mark+"\n")
	})
}

// A check that is under way when the command has ended is ended as well.
func TestNoHealthCheckOutlivesTheRun(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	mark := "1001" + strings.Repeat("0", os.Getpid()%7)
	hangs := filepath.Join(t.TempDir(), "hangs")
	i := zklockCommand(t, p.srv.Addr(), "run", "--health-cmd", `[ -e "`+p.ready+`" ] || exit 0; : >"`+hangs+`"; sleep `+mark, "--health-every", "2s", "/l", "--",
		"sh", "-c", `: >"$0"; until [ -e "`+hangs+`" ]; do sleep 0.05; done`, p.ready).start()
	assert.Zero(t, i.code(), i.err.String())
	out, err := exec.Command("ps", "-eo", "args").Output()
	require.NoError(t, err)
	assert.False(t, strings.Contains(string(out), "\nsleep "+mark+"\n"), "the check is left")
}

// As the first process of a container, zklock reaps what others leave behind, and must not take the status of its check: a check
// whose status is lost would have failed.
func TestAsTheFirstProcessTheHealthCheckHasItsStatus(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make a namespace")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("no unshare here")
	}
	p := newPatient(t)
	check := `echo >>"` + p.checks + `"; (sleep 0.01 &); sleep 0.03; if [ -e "` + p.sick + `" ]; then exit 7; fi`
	i := zklockCommand(t, p.srv.Addr(), "run", "--health-cmd", check, "--health-every", "2s", "/l", "--", "sh", "-c", `: >"$0"; exec sleep 60`, p.ready)
	i.Args = append([]string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}, i.Args...)
	i.Path = unshare
	i.start()
	eventually(t, "the command runs", func() bool { return exists(p.ready) })
	p.awaitChecks(5)
	assert.Equal(t, 1, queued(p.srv, "/l"))
	p.fall()
	assert.EqualValues(t, outcome.Unhealthy, i.code(), i.err.String())
	assert.Contains(t, i.err.String(), "the health check failed: exit status 7")
}

func TestHealthFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--health-cmd is empty":                               {"run", "--health-cmd", " ", "/l", "--", "true"},
		"--health-every requires --health-cmd":                {"run", "--health-every", "1s", "/l", "--", "true"},
		"--health-every 1ms is shorter than 100ms":            {"run", "--health-cmd", "true", "--health-every", "1ms", "/l", "--", "true"},
		"elect: --health-cmd has no effect without a COMMAND": {"elect", "--health-cmd", "true", "/l"},
	} {
		code, _, errs := run(t, "127.0.0.1:1", args...)
		assert.EqualValues(t, outcome.Usage, code, errs)
		assert.Contains(t, errs, want)
	}
}
