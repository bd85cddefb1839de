// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheControlGroupIsFoundInMountinfo(t *testing.T) {
	const (
		unified = "25 20 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
		hybrid  = "30 25 0:25 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n31 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		inside  = "40 30 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
	)
	for _, c := range []struct{ membership, mounts, want string }{
		{"0::/system.slice/cron.service\n", unified, "/sys/fs/cgroup/system.slice/cron.service"},
		{"9:freezer:/x\n0::/\n", hybrid, "/sys/fs/cgroup/unified"},
		{"0::/docker/abc/job\n", inside, "/sys/fs/cgroup/job"},
		{"0::/docker/abcd\n", inside, ""},
		{"0::/../other\n", unified, ""},
		{"9:freezer:/x\n", hybrid, ""},
		{"0::/\n", "30 25 0:25 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw\n", ""},
	} {
		got, ok := cgroupDirectory(c.membership, c.mounts)
		assert.Equal(t, c.want, got, c.membership)
		assert.Equal(t, c.want != "", ok)
	}
}

// A zklock and its guardian that are killed leave their control group behind.
func TestControlGroupsThatAreLeftBehindAreRemoved(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	old, recent, alive, other := fmt.Sprintf("zklock-%d", gone.Process.Pid), "zklock-4194304", fmt.Sprintf("zklock-%d", os.Getpid()), "zklock-x"
	for _, name := range []string{old, recent, alive, other} {
		require.NoError(t, os.MkdirAll(filepath.Join(own, name), 0o755))
		if name != recent {
			long := time.Now().Add(-2 * abandonedAfter)
			require.NoError(t, os.Chtimes(filepath.Join(own, name), long, long))
		}
	}
	removeAbandoned(own)
	assert.NoDirExists(t, filepath.Join(own, old))
	for _, name := range []string{recent, alive, other} {
		assert.DirExists(t, filepath.Join(own, name))
	}
}

func TestAControlGroupIsKilledAtOnceAndRemoved(t *testing.T) {
	c := newCgroup()
	if c == "" {
		t.Skip("no control group can be made here")
	}
	dir, err := os.Open(string(c))
	require.NoError(t, err)
	defer dir.Close()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	require.NoError(t, cmd.Start())
	c.kill()
	cmd.Wait()
	assert.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	c.remove()
	assert.NoDirExists(t, string(c))
}
