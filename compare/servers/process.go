// SPDX-License-Identifier: Apache-2.0

// Package servers runs the real lock servers of the comparison, on loopback or in its own network namespaces. Their data is
// in temporary directories, and their settings are the defaults of the Debian packages except where the code sets others.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// readyWithin limits the wait for a started server to become ready; a JVM is slow on a busy machine.
const readyWithin = 60 * time.Second

// Process is one server: a command line that can be started, killed and started again on the same data.
// Its methods are not safe for concurrent use.
type Process struct {
	Name string
	Addr string // for clients

	dir    string
	argv   []string
	as     *syscall.Credential // nil: the caller's user
	ready  func(context.Context, *Process) error
	count  func(context.Context, *Process) (int64, error)
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

// Start starts the server and waits until it answers.
func (p *Process) Start(ctx context.Context) error {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	// The server has its own process group, so that an interrupt at the terminal reaches only the comparison, which
	// then stops its servers in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.as}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.cmd, p.exited = cmd, make(chan struct{})
	exited := p.exited
	// Owned by the Process: ends with the command. Kill and Stop end the command and wait.
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	if err := p.awaitReady(ctx); err != nil {
		p.Kill()
		return fmt.Errorf("start %s: %w\n%s", p.Name, err, tail(p.logFile()))
	}
	return nil
}

// errEnded reports that a server ended before it was ready.
var errEnded = errors.New("server ended before it was ready")

func (p *Process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	var last error
	for {
		if last = p.ready(ctx, p); last == nil {
			return nil
		}
		select {
		case <-p.exited:
			return errEnded
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Restart kills the server and starts it on the same data. It retries if the new server ends before it is ready, as
// PostgreSQL does while processes of the killed server still run.
func (p *Process) Restart(ctx context.Context) error {
	p.Kill()
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := p.Start(ctx)
		if !errors.Is(err, errEnded) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Kill ends the server as a crash does and waits until it is gone.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.exited
	p.cmd = nil
}

// Pause suspends the server, as if its machine froze.
func (p *Process) Pause() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGSTOP) }

// Resume resumes it.
func (p *Process) Resume() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) }

// Stop sends the server SIGTERM, and kills it if it has not ended after three seconds.
func (p *Process) Stop() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(3 * time.Second):
	}
	p.Kill()
}

// Requests returns the server's own count of requests since it started.
func (p *Process) Requests(ctx context.Context) (int64, error) { return p.count(ctx, p) }

// ProcessorTime returns how much processor time the process has used, in steps of a hundredth of a
// second, or 0 if the system does not say.
func (p *Process) ProcessorTime() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before it may have blanks
	values := strings.Fields(rest)
	if len(values) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(values[11])
	system, _ := strconv.Atoi(values[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (p *Process) logFile() string { return filepath.Join(p.dir, "log") }

// tail returns the end of a server's log for an error message.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// freeAddr returns a loopback address on which nothing is listening.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// credential returns the credential of the named user, for servers that refuse to run as root, or nil if this process does
// not run as root.
func credential(name string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// output runs a command and returns its trimmed output.
func output(as *syscall.Credential, dir string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
