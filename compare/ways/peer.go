// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/zklock-go/zklock/internal/evidence/peer"
)

// Peer is a process that locks on our behalf and can be paused and killed as a whole. It speaks the protocol of package peer.
type Peer struct {
	*peer.Peer
	cmd    *exec.Cmd
	dir    string // removed by Kill
	parent string // parent of the paths that it locks, with a trailing slash
	ended  sync.Once
}

// start starts a peer and discards its standard error.
func start(dir, parent string, argv ...string) (*Peer, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return &Peer{Peer: peer.New(in, out), cmd: cmd, dir: dir, parent: parent}, nil
}

// Kill kills the process, as a crash would, and waits for its end.
func (p *Peer) Kill() {
	p.ended.Do(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.Gone()
		_ = p.cmd.Wait() // not earlier: Wait closes the output
		_ = os.RemoveAll(p.dir)
	})
}

// Pause suspends the process, as a long garbage collection or a frozen machine would.
func (p *Peer) Pause() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGSTOP) }

// Resume resumes it.
func (p *Peer) Resume() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) }

// Open opens a session in the process.
func (p *Peer) Open(ctx context.Context) (Session, error) {
	s, err := p.Peer.Open(ctx)
	return peerSession{s, p.parent}, err
}

type peerSession struct {
	*peer.Session
	parent string
}

func (s peerSession) Close() error { return s.End(context.Background()) }

func (s peerSession) Locker(ctx context.Context, name string) (Locker, error) {
	c, err := s.Contender(ctx, peer.Plain, s.parent+name)
	return &peerLocker{contender: c}, err
}

type peerLocker struct {
	contender *peer.Contender
	token     int64
}

// Lock ignores the end of ctx: the library behind the pipe would keep waiting, and then hold a lock that no one releases.
func (l *peerLocker) Lock(ctx context.Context) (err error) {
	l.token, err = l.contender.Lock(context.WithoutCancel(ctx))
	return err
}

func (l *peerLocker) Unlock(ctx context.Context) error { return l.contender.Unlock(ctx) }

func (l *peerLocker) Held(ctx context.Context) bool {
	held, err := l.contender.Held(ctx)
	return err == nil && held
}

func (l *peerLocker) Token() int64 { return l.token }

func (l *peerLocker) Sign(ctx context.Context) (Sign, error) {
	said, err := l.contender.Sign(ctx)
	return Sign(said), err
}

func (l *peerLocker) Close() error { return l.contender.Close(context.Background()) }
