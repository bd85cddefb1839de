// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroup is the directory of a control group (version 2) that contains a command and everything it starts, or "" if none
// could be created. Its processes can be killed all at once, whichever user they belong to.
type cgroup string

// newCgroup creates a control group below this process's own. That requires permission, which root has, and a user in a
// delegated group.
func newCgroup() cgroup {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	own, ok := cgroupDirectory(string(membership), string(mounts))
	if !ok {
		return ""
	}
	removeAbandoned(own)
	dir := filepath.Join(own, fmt.Sprintf("zklock-%d", os.Getpid()))
	if os.Mkdir(dir, 0o755) != nil {
		return ""
	}
	return cgroup(dir)
}

// abandonedAfter is how old a group must be before it may be removed by another process: a new one is still without processes.
const abandonedAfter = time.Minute

// removeAbandoned removes the groups that remain when a zklock and its guardian were killed, as soon as they are empty.
func removeAbandoned(own string) {
	dirs, _ := filepath.Glob(filepath.Join(own, "zklock-*"))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "zklock-"))
		info, failed := os.Stat(dir)
		if err != nil || failed != nil || time.Since(info.ModTime()) < abandonedAfter || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		cgroup(dir).remove() // fails while it has processes
	}
}

// cgroupDirectory returns the directory of a process's version 2 control group, given its /proc/self/cgroup and mountinfo.
func cgroupDirectory(membership, mounts string) (string, bool) {
	path, found := "", false
	for line := range strings.Lines(membership) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path, found = rest, true
		}
	}
	if !found || strings.Contains(path, "..") {
		return "", false
	}
	for line := range strings.Lines(mounts) {
		// "36 35 98:0 /root /mount/point options - type source options"
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		if below, ok := strings.CutPrefix(path+"/", strings.TrimSuffix(fields[3], "/")+"/"); ok {
			return filepath.Join(fields[4], below), true
		}
	}
	return "", false
}

// kill kills every process in the group. Before Linux 5.14, which added this, it does nothing.
func (c cgroup) kill() {
	if c == "" {
		return
	}
	if f, err := os.OpenFile(filepath.Join(string(c), "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		f.WriteString("1")
		f.Close()
	}
}

// remove removes the group if it is empty, including groups that the command created in it.
func (c cgroup) remove() {
	if c == "" {
		return
	}
	var dirs []string
	filepath.WalkDir(string(c), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		syscall.Rmdir(dirs[i])
	}
}
