// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock/cmd/zklock/internal/outcome"
)

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg))
	return errno == 0
}

// pty is a pseudo terminal with what has been written to it.
type pty struct {
	master, slave *os.File
	mu            sync.Mutex
	written       bytes.Buffer // guarded by mu
	ended         chan struct{}
}

func openTerminal(t *testing.T) *pty {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminal here: %v", err)
	}
	var unlock, number int32
	require.True(t, ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock)))
	require.True(t, ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number)))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	size := struct{ rows, columns, x, y uint16 }{40, 120, 0, 0}
	require.True(t, ioctl(slave, syscall.TIOCSWINSZ, unsafe.Pointer(&size)))
	// Without the runtime's poller a file is open as long as somebody reads from it.
	fd, err := syscall.Dup(int(master.Fd()))
	require.NoError(t, err)
	syscall.CloseOnExec(fd)
	require.NoError(t, syscall.SetNonblock(fd, true))
	require.NoError(t, master.Close())
	tty := &pty{master: os.NewFile(uintptr(fd), master.Name()), slave: slave, ended: make(chan struct{})}
	t.Cleanup(func() {
		if t.Failed() {
			text := tty.text()
			t.Logf("on the terminal: ... %q", text[max(0, len(text)-2000):])
		}
		tty.master.Close()
	})
	return tty
}

// attach gives the command this terminal as its controlling one.
func (tty *pty) attach(i *invocation) {
	i.Stdin, i.Stdout, i.Stderr = tty.slave, tty.slave, tty.slave
	i.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	i.start()
	tty.slave.Close()
	// Owned by the test; ends when the last who has the terminal open is gone.
	go func() {
		defer close(tty.ended)
		buffer := make([]byte, 4096)
		for {
			n, err := tty.master.Read(buffer)
			tty.mu.Lock()
			tty.written.Write(buffer[:n])
			tty.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
}

func (tty *pty) text() string {
	tty.mu.Lock()
	defer tty.mu.Unlock()
	return tty.written.String()
}

// screen is what a person sees after all that was written: only the codes that the live view uses are known.
func screen(t *testing.T, written string) []string {
	lines, row, column := []string{""}, 0, 0
	code := regexp.MustCompile("^\x1b\\[(\\??[0-9]*)([a-zA-Z])")
	for len(written) > 0 {
		if m := code.FindStringSubmatch(written); m != nil {
			switch m[2] {
			case "A":
				up, err := strconv.Atoi(m[1])
				require.NoError(t, err)
				row -= up
				require.GreaterOrEqual(t, row, 0)
			case "K":
				lines[row] = string([]rune(lines[row])[:column])
			case "m", "h", "l":
			default:
				t.Fatalf("unknown code %q", m[0])
			}
			written = written[len(m[0]):]
			continue
		}
		r := []rune(written[:min(4, len(written))])[0]
		written = written[len(string(r)):]
		switch r {
		case '\r':
			column = 0
		case '\n':
			if row++; row == len(lines) {
				lines = append(lines, "")
			}
		default:
			line := []rune(lines[row])
			for len(line) <= column {
				line = append(line, ' ')
			}
			line[column] = r
			lines[row] = string(line)
			column++
		}
	}
	return lines
}

// cursorShows reports whether the cursor shows after all that was written. Ctrl-C discards what is not yet read, so the codes
// cannot be counted.
func cursorShows(written string) bool {
	return strings.LastIndex(written, "\x1b[?25h") > strings.LastIndex(written, "\x1b[?25l")
}

func TestDemoIsLiveOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: plays the demo")
	}
	t.Parallel()
	tty := openTerminal(t)
	i := zklockCommand(t, "", "demo", "--html", filepath.Join(t.TempDir(), "sale.html"))
	tty.attach(i)
	eventually(t, "the crash shows", func() bool { return strings.Contains(tty.text(), "CRASHED") })
	eventually(t, "the cut shows", func() bool { return strings.Contains(tty.text(), "CUT OFF, believes") })
	require.Zero(t, i.code(), tty.text())
	<-tty.ended
	written := tty.text()
	seen := screen(t, written)
	all := strings.Join(seen, "\n")
	for worker := range 8 {
		assert.Equal(t, 2, strings.Count(all, fmt.Sprintf("worker %d ", worker+1)), "each worker has one line in each sale:\n%s", all)
	}
	assert.Contains(t, all, "OVERSOLD by")
	assert.Contains(t, all, "10 of 10 sold")
	assert.Contains(t, all, "max concurrent workers")
	assert.True(t, cursorShows(written), "the cursor must come back")
	for _, line := range seen {
		assert.LessOrEqual(t, len([]rune(line)), 120, line)
	}
}

// Ctrl-C ends the demo in every phase, with one message, and the cursor comes back.
func TestDemoIsInterruptedInEveryPhase(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"without a lock", "The same sale", "CRASHED", "CUT OFF"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			tty := openTerminal(t)
			file := filepath.Join(t.TempDir(), "sale.html")
			i := zklockCommand(t, "", "demo", "--session-timeout", "4s", "--html", file)
			tty.attach(i)
			eventually(t, phase, func() bool { return strings.Contains(tty.text(), phase) })
			io.WriteString(tty.master, "\x03") // Ctrl-C
			assert.Equal(t, outcome.SignalBase+int(syscall.SIGINT), i.code())
			<-tty.ended
			written := tty.text()
			assert.True(t, cursorShows(written), "the cursor must come back")
			assert.Equal(t, 1, strings.Count(written, "zklock: "), "one message: %s", written)
			assert.Contains(t, written, "zklock: interrupted")
			assert.NotContains(t, written, "Timeline")
			assert.NoFileExists(t, file)
		})
	}
}

func TestDemoWithoutColors(t *testing.T) {
	t.Parallel()
	color := regexp.MustCompile("\x1b\\[[0-9]+m")
	for _, c := range []struct {
		env     []string
		codes   bool // of any kind
		columns uint16
	}{
		{[]string{"NO_COLOR=1", "TERM=xterm"}, true, 100},
		{[]string{"NO_COLOR=", "TERM=dumb"}, false, 100},
		{[]string{"NO_COLOR=1", "TERM=xterm"}, true, 34},
	} {
		t.Run(fmt.Sprint(c.env, c.columns), func(t *testing.T) {
			t.Parallel()
			tty := openTerminal(t)
			size := struct{ rows, columns, x, y uint16 }{40, c.columns, 0, 0}
			require.True(t, ioctl(tty.slave, syscall.TIOCSWINSZ, unsafe.Pointer(&size)))
			i := zklockCommand(t, "", "demo", "--html", "")
			i.Env = append(i.Env, c.env...)
			tty.attach(i)
			require.Zero(t, i.code(), tty.text())
			<-tty.ended
			written := tty.text()
			assert.Empty(t, color.FindString(written), c.env)
			assert.Equal(t, c.codes, strings.Contains(written, "\x1b"), c.env)
			if !c.codes {
				assert.Contains(t, written, "CRASHES", "a log instead")
				return
			}
			drawn := written[:strings.LastIndex(written, "\x1b[?25h")]
			for _, line := range screen(t, drawn) {
				if strings.HasPrefix(line, "worker ") {
					assert.LessOrEqual(t, len([]rune(line)), int(c.columns), line)
				}
			}
			assert.Contains(t, written, "waits  █ works", "the legend")
		})
	}
}

func TestTopIsLiveOnATerminal(t *testing.T) {
	srv := startServer(t)
	hold, err := connect(t, srv).Mutex("/locks/report").Lock(t.Context())
	require.NoError(t, err)
	tty := openTerminal(t)
	i := zklockCommand(t, srv.Addr(), "top", "/locks")
	tty.attach(i)
	eventually(t, "the holder shows", func() bool { return strings.Contains(tty.text(), "/locks/report") })
	require.NoError(t, hold.Unlock(t.Context()))
	eventually(t, "it is gone", func() bool { return strings.Contains(tty.text(), "/locks: 0 locks in use") })
	io.WriteString(tty.master, "\x03")
	assert.Zero(t, i.code())
	<-tty.ended
	assert.True(t, cursorShows(tty.text()))
	for _, line := range screen(t, tty.text()) {
		assert.LessOrEqual(t, len([]rune(line)), 120)
	}
}

// A screen that is suspended or quit leaves the cursor as it was.
func TestTopShowsTheCursorWheneverItDoesNotDraw(t *testing.T) {
	srv := startServer(t)
	tty := openTerminal(t)
	i := zklockCommand(t, srv.Addr(), "top", "/")
	i.Args = []string{"sh", "-c", `set -m; "$0" top /; echo STOPPED; fg; echo "ENDED $?"`, i.Path}
	i.Path = "/bin/sh"
	tty.attach(i)
	eventually(t, "it draws", func() bool { return strings.Contains(tty.text(), "/: 0 locks in use") })
	assert.False(t, cursorShows(tty.text()))
	io.WriteString(tty.master, "\x1a") // Ctrl-Z
	eventually(t, "it is suspended", func() bool { return strings.Contains(tty.text(), "STOPPED") })
	before, after, _ := strings.Cut(tty.text(), "STOPPED")
	assert.True(t, cursorShows(before), "the shell needs the cursor")
	eventually(t, "it draws again", func() bool {
		_, after, _ = strings.Cut(tty.text(), "STOPPED")
		return strings.Contains(after, "/: 0 locks in use")
	})
	assert.False(t, cursorShows(tty.text()))
	io.WriteString(tty.master, "\x1c") // Ctrl-\
	eventually(t, "it has ended", func() bool { return strings.Contains(tty.text(), "ENDED 0") })
	assert.True(t, cursorShows(tty.text()))
	assert.NotContains(t, tty.text(), "goroutine")
}

func TestRunGivesTheCommandTheTerminalAndTakesItBack(t *testing.T) {
	srv := startServer(t)
	tty := openTerminal(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `echo ready; read line; echo "got $line"`)
	tty.attach(i)
	eventually(t, "the command runs", func() bool { return strings.Contains(tty.text(), "ready") })
	io.WriteString(tty.master, "input\n")
	assert.Zero(t, i.code(), "a command in the background could not read: %s", tty.text())
	<-tty.ended
	assert.Contains(t, tty.text(), "got input")
}

func TestRunOnATerminalIsNotSuspended(t *testing.T) {
	srv := startServer(t)
	tty := openTerminal(t)
	i := zklockCommand(t, srv.Addr(), "run", "/l", "--", "sh", "-c", `echo ready; read line; echo "got $line"`)
	tty.attach(i)
	eventually(t, "the command runs", func() bool { return strings.Contains(tty.text(), "ready") })
	io.WriteString(tty.master, "\x1a") // Ctrl-Z
	io.WriteString(tty.master, "input\n")
	assert.Zero(t, i.code())
	<-tty.ended
	assert.Contains(t, tty.text(), "got input")
}
