// Package servers runs the real lock servers of the comparison: on loopback or in network namespaces of its own,
// with data directories of its own, and the settings that their Debian packages come with unless said otherwise.
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

// readyWithin bounds the wait for a server that has been started; a JVM on a busy machine takes long.
const readyWithin = 60 * time.Second

// Process is one server: a command line that can be started, killed and started again on the same data.
// Its methods are for one goroutine.
type Process struct {
	Name string
	Addr string // where clients reach it

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
	// A group of its own: an interrupt at the terminal is for the comparison, which then stops its servers in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.as}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.cmd, p.exited = cmd, make(chan struct{})
	exited := p.exited
	// Owned by the Process; ends with the command, which Kill and Stop see to; both wait for it.
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

// errEnded says that a server was gone before it answered.
var errEnded = errors.New("it ended at once")

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

// Restart kills the server and starts it on the same data. It starts it again if it ends at once, as PostgreSQL does
// as long as processes of the one that was killed still run.
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

// Pause stops the server where it stands, as a frozen machine does.
func (p *Process) Pause() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Process) Resume() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) }

// Stop asks the server to end and kills it when it does not.
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

// Requests returns how many requests the server has counted since it started. What counts as one is the server's own view.
func (p *Process) Requests(ctx context.Context) (int64, error) { return p.count(ctx, p) }

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

// freeAddr returns a loopback address that nobody listens on right now.
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

// credential returns who to be instead of root, for servers that refuse to run as root; nil where we are not root.
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

// output runs a command to its end and returns what it printed.
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
