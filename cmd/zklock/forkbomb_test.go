// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/zktest"
)

// emptyImage is an image of nothing: its containers see this machine's programs.
const emptyImage = "zklock-test-empty"

// needsContainers skips a test where no container of this machine can be made.
func needsContainers(t *testing.T) {
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("no container engine here")
	}
	if exec.Command("docker", "image", "inspect", emptyImage).Run() != nil {
		load := exec.Command("docker", "import", "-", emptyImage)
		load.Stdin = bytes.NewReader(make([]byte, 1024)) // an archive of no files
		if out, err := load.CombinedOutput(); err != nil {
			t.Skipf("no container engine answers: %s", out)
		}
	}
	if out, err := exec.Command("docker", contained(emptyImage, "true")...).CombinedOutput(); err != nil {
		t.Skipf("containers do not see this machine's programs: %s", out)
	}
}

// contained returns the arguments with which docker runs a command of this machine, with limits that protect the machine.
func contained(command ...string) []string {
	args := []string{"run", "--rm", "--network", "host", "--memory", "512m", "--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())}
	for _, dir := range []string{"/bin", "/lib", "/lib64", "/usr", filepath.Dir(os.Args[0])} {
		if exists(dir) {
			args = append(args, "--volume", dir+":"+dir+":ro")
		}
	}
	return append(args, command...)
}

// bombed is a fork bomb under the lock /l, in a container.
type bombed struct {
	*invocation
	t    *testing.T
	sign string // where its processes write the time
}

// bomb starts a fork bomb of a kind under the command and a session of that length, with limits on what the container may have.
func bomb(t *testing.T, srv *zktest.Server, session time.Duration, kind string, limits ...string) *bombed {
	needsContainers(t)
	sign := filepath.Join(t.TempDir(), "sign")
	i := zklockCommand(t, srv.Addr(), "run", "--session-timeout", session.String(), "--grace", "0s", "/l", "--", os.Args[0], beForkBomb, kind, sign, "60")
	name := fmt.Sprintf("zklock-test-%d-%s", os.Getpid(), filepath.Base(t.TempDir()))
	limits = append(limits, "--name", name, "--volume", filepath.Dir(sign)+":"+filepath.Dir(sign),
		"--env", beCommand+"=1", "--env", "ZKLOCK_SERVERS="+srv.Addr(), emptyImage,
		// Not zklock itself is the first process, whose end would be everybody's.
		"sh", "-c", `"$@"; echo "code $?"; exec sleep 600`, "sh")
	i.Args = append(append([]string{"docker"}, contained(limits...)...), i.Args...)
	var err error
	i.Path, err = exec.LookPath("docker")
	require.NoError(t, err)
	i.start()
	b := &bombed{i, t, sign}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%d live, %s%s", len(b.processes(beForkBomb)), i.err.String(), i.out.String())
		}
		exec.Command("docker", "rm", "--force", name).Run()
	})
	return b
}

// processes returns those of this machine whose command line begins so and that live.
func (b *bombed) processes(argv ...string) (pids []int) {
	prefix := strings.Join(append([]string{os.Args[0]}, argv...), "\x00")
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(b.t, err)
	for _, name := range lines {
		line, _ := os.ReadFile(name)
		if strings.HasPrefix(string(line), prefix) && strings.Contains(string(line), b.sign) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			require.NoError(b.t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

func (b *bombed) lastSign() time.Time {
	data, err := os.ReadFile(b.sign)
	require.NoError(b.t, err)
	return time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:])))
}

// Processes that stay in their group are stopped all at once. For the others it takes time on a processor, which they
// share: when the last of them is at work is measured, and stands in the documents.
//
//zklock:promise P2.9
func TestRunEndsAForkBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: takes ten seconds")
	}
	for _, c := range []struct {
		cpus, kind string
		end        syscall.Signal
		inTime     bool
	}{
		{"2", "stays", syscall.SIGSTOP, true},
		{"0.5", "leaves", syscall.SIGKILL, false},
		{"0.5", "hops", syscall.SIGSTOP, false},
	} {
		t.Run(c.kind, func(t *testing.T) {
			srv := startServer(t)
			b := bomb(t, srv, 4*time.Second, c.kind, "--pids-limit", "120", "--cpus", c.cpus)
			eventually(t, "the command runs", func() bool { return exists(b.sign) })
			next := nextHolder(t, srv)
			eventually(t, "no more can be started, or the lock is lost", func() bool {
				return len(b.processes(beForkBomb)) > 50 || b.out.String() != ""
			})
			for _, pid := range b.processes("run") {
				syscall.Kill(pid, c.end) // unless it has ended
			}
			at := <-next
			eventually(t, "all have ended", func() bool { return len(b.processes(beForkBomb)) == 0 })
			t.Logf("last at work %v before the next holder", at.Sub(b.lastSign()))
			if c.inTime {
				assert.Positive(t, at.Sub(b.lastSign()), b.err.String())
			}
		})
	}
}

//zklock:promise P2.9
func TestRunOutlivesACommandThatUsesUpTheProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: takes seconds")
	}
	srv := startServer(t)
	const session = 10 * time.Second // one of 4 s was lost where other work had kept this machine's processes waiting for 2.8 s
	b := bomb(t, srv, session, "idle", "--pids-limit", "60", "--cpus", "2")
	eventually(t, "no more can be started", func() bool { return len(b.processes(beForkBomb)) > 15 })
	holder := srv.Children("/l")
	full := time.Now()
	eventually(t, "a session timeout passes", func() bool { return b.lastSign().Sub(full) > session })
	require.Equal(t, holder, srv.Children("/l"), b.err.String())
	require.NoError(t, srv.DeleteNode("/l/"+holder[0]))
	eventually(t, "the command has ended", func() bool { return b.out.String() == fmt.Sprintf("code %d\n", outcome.Lost) })
	assert.Empty(t, b.processes(beForkBomb))
}

func TestTheCommandHasThePriorityThatZklockHas(t *testing.T) {
	for _, nice := range []string{"0", "7"} {
		direct, err := exec.Command("nice", "-n", nice, "nice").Output()
		require.NoError(t, err)
		i := zklockCommand(t, startServer(t).Addr(), "run", "/l", "--", "nice")
		i.Args = append([]string{"nice", "-n", nice}, i.Args...)
		i.Path, err = exec.LookPath("nice")
		require.NoError(t, err)
		require.Zero(t, i.start().code(), i.err.String())
		assert.Equal(t, string(direct), i.out.String())
	}
}
