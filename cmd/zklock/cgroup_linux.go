package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// cgroup is the directory of a control group (version 2) that holds a command with all
// that it starts; empty where none could be made. Its processes can be killed all at
// once, and whatever user they belong to.
type cgroup string

// newCgroup makes one below this process's own, which takes the permission to do so:
// root has it, and a user below a delegated one.
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
	dir := filepath.Join(own, fmt.Sprintf("zklock-%d", os.Getpid()))
	if os.Mkdir(dir, 0o755) != nil {
		return ""
	}
	return cgroup(dir)
}

// cgroupDirectory finds a process's control group of version 2 from its /proc/self/cgroup and mountinfo.
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

// kill ends every process in the group. Before Linux 5.14 there is no such thing, and it does nothing.
func (c cgroup) kill() {
	if c == "" {
		return
	}
	if f, err := os.OpenFile(filepath.Join(string(c), "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		f.WriteString("1")
		f.Close()
	}
}

// remove takes the group away once it is empty, with those that the command has made in it.
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
