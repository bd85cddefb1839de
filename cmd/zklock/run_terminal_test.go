// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
	"github.com/zklock-go/zklock/cmd/zklock/internal/proc"
)

// shell prepares a shell that runs the command as its "$@", as people do at a prompt.
func shell(t *testing.T, servers, script string, args ...string) *invocation {
	i := zklockCommand(t, servers, args...)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	i.Args = append([]string{"sh", "-c", script, "sh"}, i.Args...)
	i.Path = sh
	return i
}

func TestRunLetsTheCommandReadTheTerminalWithAnyInput(t *testing.T) {
	for name, script := range map[string]string{
		"alone":         `"$@"`,
		"without input": `"$@" </dev/null`,
		"in a pipeline": `echo x | "$@" | cat`,
		"job control":   `set -m; "$@"`,
	} {
		t.Run(name, func(t *testing.T) {
			srv := startServer(t)
			tty := openTerminal(t)
			i := shell(t, srv.Addr(), script, "run", "/l", "--", "sh", "-c", `echo ready; read line </dev/tty; echo "got $line"`)
			tty.attach(i)
			eventually(t, "the command runs", func() bool { return strings.Contains(tty.text(), "ready") })
			io.WriteString(tty.master, "input\n")
			assert.Zero(t, i.code(), tty.text())
			<-tty.ended
			assert.Contains(t, tty.text(), "got input")
		})
	}
}

func TestRunWithoutMoreThanAGroupGivesTheCommandTheTerminal(t *testing.T) {
	srv := startServer(t)
	tty := openTerminal(t)
	i := shell(t, srv.Addr(), `set -m; "$@"; read line; echo "then $line"`, "run", "/l", "--", "sh", "-c", `echo ready; read line </dev/tty; echo "got $line"`)
	i.Env = append(i.Env, beGroupOnly+"=1")
	tty.attach(i)
	eventually(t, "the command runs", func() bool { return strings.Contains(tty.text(), "ready") })
	io.WriteString(tty.master, "input\n")
	eventually(t, "the command has read", func() bool { return strings.Contains(tty.text(), "got input") })
	io.WriteString(tty.master, "more\n")
	assert.Zero(t, i.code(), tty.text())
	<-tty.ended
	assert.Contains(t, tty.text(), "then more", "the terminal must be the shell's again")
}

func TestRunInTheBackgroundGivesUpTheLockThoughItsCommandReadsTheTerminal(t *testing.T) {
	for _, system := range []string{"", beGroupOnly + "=1"} {
		t.Run(system, func(t *testing.T) {
			srv := startServer(t)
			tty := openTerminal(t)
			i := shell(t, srv.Addr(), `set -m; "$@" & wait $!; echo "code $?"`, "run", "/l", "--", "sh", "-c", `read line </dev/tty; exit 4`)
			i.Env = append(i.Env, system)
			tty.attach(i)
			assert.Zero(t, i.code())
			<-tty.ended
			assert.Contains(t, tty.text(), "code 4")
			assert.Zero(t, queued(srv, "/l"))
		})
	}
}

func TestRunLetsCtrlCReachTheCommandOnce(t *testing.T) {
	srv := startServer(t)
	tty := openTerminal(t)
	// The shell that started zklock gets it, too, as it does without zklock.
	i := shell(t, srv.Addr(), `trap 'echo outer' INT; "$@"; echo "code $?"`, "run", "/l", "--", "sh", "-c",
		`trap 'echo inner' INT; trap 'exit 7' USR1; echo "me $PPID"; while :; do sleep 0.01; done`)
	tty.attach(i)
	eventually(t, "the command runs", func() bool { return strings.Contains(tty.text(), "me ") })
	io.WriteString(tty.master, "\x03")
	eventually(t, "the command gets the signal", func() bool { return strings.Contains(tty.text(), "inner") })
	// What zklock had passed on by itself would be there before this.
	for _, p := range proc.Descendants(i.Process.Pid) {
		if p.Parent == i.Process.Pid {
			require.NoError(t, syscall.Kill(p.PID, syscall.SIGUSR1))
		}
	}
	assert.Zero(t, i.code())
	<-tty.ended
	assert.Equal(t, 1, strings.Count(tty.text(), "inner"), tty.text())
	assert.Contains(t, tty.text(), "outer")
	assert.Contains(t, tty.text(), "code 7")
}

func TestRunOnATerminalEndsOnCtrlC(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	tty := openTerminal(t)
	// The background process ignores Ctrl-C, as all of a script do.
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `sleep 600 & sleep 600`)
	tty.attach(i)
	// A shell that gets the signal before it has started the second one starts it anyway.
	eventually(t, "both run", func() bool { return named(proc.Descendants(i.Process.Pid), "sleep") == 2 })
	io.WriteString(tty.master, "\x03")
	eventually(t, "it says what it waits for", func() bool { return strings.Contains(tty.text(), "keeping the lock") })
	io.WriteString(tty.master, "\x03")
	assert.Equal(t, outcome.SignalBase+int(syscall.SIGINT), i.code(), tty.text())
}

func TestRunReachesACommandThatHasLeftItsGroup(t *testing.T) {
	for name, end := range map[string]func(*pty, *invocation){
		"Ctrl-C": func(tty *pty, _ *invocation) { io.WriteString(tty.master, "\x03") },
		"TERM":   func(_ *pty, i *invocation) { i.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := startServer(t)
			tty := openTerminal(t)
			i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "timeout", "600", "sh", "-c",
				`trap 'echo told; exit 9' INT TERM; echo ready; while :; do sleep 0.01; done`)
			tty.attach(i)
			eventually(t, "the command runs", func() bool { return strings.Contains(tty.text(), "ready") })
			end(tty, i)
			i.code()
			<-tty.ended
			assert.Contains(t, tty.text(), "told")
		})
	}
}

// named counts the processes whose program has that name.
func named(processes []proc.Process, program string) (n int) {
	for _, p := range processes {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
		if err == nil && strings.TrimSpace(string(name)) == program {
			n++
		}
	}
	return n
}

func TestRunEndsWithItsTerminal(t *testing.T) {
	for name, script := range map[string]string{
		"a session of its own": `exec "$@"`, // as ssh -t starts it, or a terminal's window
		"a shell's":            `"$@"; exit`,
	} {
		t.Run(name, func(t *testing.T) {
			srv := startServer(t)
			tty := openTerminal(t)
			told := filepath.Join(t.TempDir(), "told")
			i := shell(t, srv.Addr(), script, "run", "/l", "--", "sh", "-c",
				`trap 'echo HUP >>"$0"; exit 3' HUP; echo ready; while :; do sleep 0.01; done`, told)
			tty.attach(i)
			eventually(t, "the command runs", func() bool { return strings.Contains(tty.text(), "ready") })
			require.NoError(t, tty.master.Close())
			i.code()
			eventually(t, "the lock is given back", func() bool { return queued(srv, "/l") == 0 })
			assert.Contains(t, content(t, told), "HUP")
		})
	}
}

// As docker kill does with a container that has a terminal.
func TestRunAsTheLeaderOfASessionPassesSignalsOnOnce(t *testing.T) {
	for name, interrupt := range map[string]func(*pty, *invocation){
		"by kill":   func(_ *pty, i *invocation) { i.Process.Signal(syscall.SIGINT) },
		"by Ctrl-C": func(tty *pty, _ *invocation) { io.WriteString(tty.master, "\x03") },
	} {
		t.Run(name, func(t *testing.T) {
			srv := startServer(t)
			tty := openTerminal(t)
			i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c",
				`trap 'echo told' INT; trap 'exit 7' USR1; echo ready; while :; do read x; done`)
			tty.attach(i)
			eventually(t, "the command runs", func() bool { return strings.Contains(tty.text(), "ready") })
			const times = 10 // two that come at once are one, now and then
			for n := range times {
				interrupt(tty, i)
				eventually(t, "it gets the signal", func() bool { return strings.Count(tty.text(), "told") > n })
				require.Equal(t, n+1, strings.Count(tty.text(), "told"), tty.text())
			}
			i.Process.Signal(syscall.SIGUSR1)
			assert.Equal(t, 7, i.code())
			<-tty.ended
			assert.Equal(t, times, strings.Count(tty.text(), "told"), tty.text())
		})
	}
}

// A shell continues its script if what Ctrl-C was for exits by itself, and ends with what was ended by it.
func TestCtrlCEndsTheScriptThatRunsTheCommand(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	for name, held := range map[string]bool{"while it runs": false, "while it waits": true} {
		t.Run(name, func(t *testing.T) {
			srv := startServer(t)
			if held {
				hold, err := connect(t, srv).Mutex("/l").Lock(t.Context())
				require.NoError(t, err)
				defer hold.Unlock(t.Context())
			}
			tty := openTerminal(t)
			i := shell(t, srv.Addr(), `exec bash -c 'for i in 1 2; do echo begins; "$@"; echo "code $?"; done' bash "$@"`, "run", "/l", "--", "sh", "-c", `echo ready; exec sleep 600`)
			tty.attach(i)
			eventually(t, "it waits or runs", func() bool { return held && queued(srv, "/l") == 2 || strings.Contains(tty.text(), "ready") })
			io.WriteString(tty.master, "\x03")
			eventually(t, "the script ends or continues", func() bool {
				select {
				case <-tty.ended:
					return true
				default:
					return strings.Contains(tty.text(), "code ")
				}
			})
			assert.NotContains(t, tty.text(), "code ")
			assert.Equal(t, 1, strings.Count(tty.text(), "begins"))
		})
	}
}
