// SPDX-License-Identifier: Apache-2.0

// Package family starts commands whose processes are hard to end in different ways, for tests of the code that ends them.
package family

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Family is a command and the processes that it starts. Each of them ignores SIGTERM and repeatedly writes the time to a file.
type Family struct {
	// Dir is the argument for the command's script.
	Dir string
	// Members are the names of the processes.
	Members []string

	t *testing.T
}

const work = `
trap '' TERM HUP
echo $$ >"$1.pid.new" && mv "$1.pid.new" "$1.pid"
while :; do date +%s%N >>"$1"; sleep 0.01; done`

// Everywhere is a shell script that starts three workers and becomes one itself. The first is in the background, the second in its
// own session, and the third is also an orphan. Its argument is the Dir of a family from Whole.
const Everywhere = `
sh "$0/worker" "$0/background" &
setsid sh "$0/worker" "$0/daemon" &
setsid sh -c 'sh "$0/worker" "$0/orphan" & exit' "$0" &
exec sh "$0/worker" "$0/itself"`

// Whole returns a family for Everywhere.
func Whole(t *testing.T) *Family {
	return New(t, "background", "daemon", "orphan", "itself")
}

// New returns a family for a script that starts `sh "$0/worker" "$0/MEMBER"` for each of its members.
func New(t *testing.T, members ...string) *Family {
	f := &Family{Dir: t.TempDir(), Members: members, t: t}
	require.NoError(t, os.WriteFile(filepath.Join(f.Dir, "worker"), []byte(work), 0o600))
	return f
}

func (f *Family) file(member string) string { return filepath.Join(f.Dir, member) }

// Works reports whether all members have started to write the time.
func (f *Family) Works() bool {
	for _, m := range f.Members {
		if sign, err := os.Stat(f.file(m)); err != nil || sign.Size() == 0 {
			return false
		}
	}
	return true
}

// Pid returns the ID of a member's process.
func (f *Family) Pid(member string) int {
	pid, err := strconv.Atoi(strings.TrimSpace(f.content(member + ".pid")))
	require.NoError(f.t, err)
	return pid
}

// AssertEnded checks that all members ended before the given time.
func (f *Family) AssertEnded(by time.Time) {
	f.t.Helper()
	for _, m := range f.Members {
		assert.False(f.t, Alive(f.Pid(m)), "%s lives", m)
		left := by.Sub(f.lastSign(m))
		f.t.Logf("%s was last at work %v before", m, left)
		assert.Positive(f.t, left, "%s was at work when another held", m)
	}
}

// lastSign returns the last time that a member wrote.
func (f *Family) lastSign(member string) time.Time {
	lines := strings.Fields(f.content(member))
	nanos, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	require.NoError(f.t, err)
	return time.Unix(0, nanos)
}

func (f *Family) content(name string) string {
	data, err := os.ReadFile(f.file(name))
	require.NoError(f.t, err)
	return string(data)
}

// Alive reports whether a process is running. A zombie is not.
func Alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
