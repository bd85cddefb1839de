package ways

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/zklock-go/zklock/compare/peers"
)

// Peer is a process that locks on our behalf and can be paused and killed as a whole.
// It speaks the protocol of package peers.
type Peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	dir string // to be removed at the end

	mu      sync.Mutex
	next    int                   // guarded by mu
	waiting map[int]chan<- answer // guarded by mu; nil once the process is gone
	gone    chan struct{}         // closed when the process has ended
}

type answer struct {
	value string
	err   error
}

// errGone is what a request to an ended process answers.
var errGone = errors.New("the peer process is gone")

// start runs a peer. Its standard error is ours only when it matters, so it goes nowhere.
func start(dir string, argv ...string) (*Peer, error) {
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
	p := &Peer{cmd: cmd, in: in, dir: dir, waiting: map[int]chan<- answer{}, gone: make(chan struct{})}
	// Owned by the Peer; ends with the process, which Close and Kill see to; both wait for it.
	go p.read(out)
	return p, nil
}

func (p *Peer) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		id, rest, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(id)
		if err != nil {
			continue // something that a library printed
		}
		verdict, value, _ := strings.Cut(rest, " ")
		a := answer{value: value}
		if verdict != "ok" {
			a = answer{err: errors.New(value)}
		}
		p.mu.Lock()
		to := p.waiting[n]
		delete(p.waiting, n)
		p.mu.Unlock()
		if to != nil {
			to <- a
		}
	}
	_ = p.cmd.Wait()
	p.mu.Lock()
	for _, to := range p.waiting {
		to <- answer{err: errGone}
	}
	p.waiting = nil
	p.mu.Unlock()
	close(p.gone)
}

// ask sends a request and waits for its reply.
func (p *Peer) ask(ctx context.Context, words ...any) (string, error) {
	reply := make(chan answer, 1)
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		return "", errGone
	}
	p.next++
	p.waiting[p.next] = reply
	line := strconv.Itoa(p.next) + " " + strings.TrimSuffix(fmt.Sprintln(words...), "\n") + "\n"
	p.mu.Unlock()
	if _, err := io.WriteString(p.in, line); err != nil {
		return "", err
	}
	select {
	case a := <-reply:
		return a.value, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (p *Peer) askNumber(ctx context.Context, words ...any) (int64, error) {
	text, err := p.ask(ctx, words...)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Kill ends the process as a crash does.
func (p *Peer) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.gone
	_ = os.RemoveAll(p.dir)
}

// Pause stops the process where it stands, as a long garbage collection or a frozen machine does.
func (p *Peer) Pause() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Peer) Resume() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) }

// Open opens a session in the process.
func (p *Peer) Open(ctx context.Context) (Session, error) {
	n, err := p.askNumber(ctx, "open")
	return peerSession{p, n}, err
}

type peerSession struct {
	peer *Peer
	n    int64
}

func (s peerSession) Close() error {
	_, err := s.peer.ask(context.Background(), "end", s.n)
	return err
}

func (s peerSession) Locker(ctx context.Context, name string) (Locker, error) {
	n, err := s.peer.askNumber(ctx, "locker", s.n, name)
	return &peerLocker{peer: s.peer, n: n}, err
}

type peerLocker struct {
	peer  *Peer
	n     int64
	token int64
}

// Lock does not heed ctx: the library behind the pipe would go on waiting, and then hold what nobody gives back.
func (l *peerLocker) Lock(ctx context.Context) (err error) {
	l.token, err = l.peer.askNumber(context.WithoutCancel(ctx), "lock", l.n)
	return err
}

func (l *peerLocker) Unlock(ctx context.Context) error {
	_, err := l.peer.ask(ctx, "unlock", l.n)
	return err
}

func (l *peerLocker) Held(ctx context.Context) bool {
	said, err := l.peer.ask(ctx, "held", l.n)
	return err == nil && said == "true"
}

func (l *peerLocker) Token() int64 { return l.token }

func (l *peerLocker) Close() error {
	_, err := l.peer.ask(context.Background(), "close", l.n)
	return err
}

// foreignWay is a library of another language: one peer process for all sessions.
type foreignWay struct {
	plain
	command func(dir string) []string
	file    string

	mu   sync.Mutex
	peer *Peer // guarded by mu; started with the first session
}

// curatorClassPath is what Debian's Curator needs.
const curatorClassPath = "/usr/share/java/curator-recipes.jar:/usr/share/java/curator-framework.jar:/usr/share/java/curator-client.jar:" +
	"/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar:/usr/share/java/guava.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar"

func newCurator(at Endpoints) Way {
	return &foreignWay{
		plain: plain{Info{"curator", "ZooKeeper", "InterProcessMutex, in a Java process behind a pipe", false, "isOwnedByCurrentThread"}},
		file:  "CuratorPeer.java",
		command: func(dir string) []string {
			return []string{"java", "-Xmx768m", "-cp", curatorClassPath, filepath.Join(dir, "CuratorPeer.java"),
				strings.Join(at.ZooKeeper, ","), strconv.Itoa(int(Lease.Milliseconds())), zkRoot}
		},
	}
}

func newKazoo(at Endpoints) Way {
	return &foreignWay{
		plain: plain{Info{"kazoo", "ZooKeeper", "Lock, in a Python process behind a pipe", false, "is_acquired"}},
		file:  "kazoo_peer.py",
		command: func(dir string) []string {
			return []string{"/usr/bin/python3", filepath.Join(dir, "kazoo_peer.py"),
				strings.Join(at.ZooKeeper, ","), strconv.Itoa(int(Lease.Milliseconds())), zkRoot}
		},
	}
}

// spawn starts a process for this library.
func (w *foreignWay) spawn() (*Peer, error) {
	dir, err := os.MkdirTemp("", "zklock-peer-")
	if err != nil {
		return nil, err
	}
	source, err := peers.Files.ReadFile(w.file)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, w.file), source, 0o644); err != nil {
		return nil, err
	}
	return start(dir, w.command(dir)...)
}

func (w *foreignWay) Open(ctx context.Context) (Session, error) {
	w.mu.Lock()
	if w.peer == nil {
		peer, err := w.spawn()
		if err != nil {
			w.mu.Unlock()
			return nil, err
		}
		w.peer = peer
	}
	peer := w.peer
	w.mu.Unlock()
	return peer.Open(ctx)
}

func (w *foreignWay) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.peer != nil {
		w.peer.Kill()
		w.peer = nil
	}
	return nil
}

// Spawn starts a process of its own for one way, so that it can be paused and killed.
func Spawn(w Way, at Endpoints) (*Peer, error) {
	if foreign, ok := w.(*foreignWay); ok {
		return foreign.spawn()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	where, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	return start("", self, PeerCommand, w.Info().Name, string(where))
}

// PeerCommand is the first argument that makes the comparison's own program a peer.
const PeerCommand = "peer"

// ServePeer is a peer for a way in Go: args are its name and the endpoints. It returns when in ends.
func ServePeer(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: peer WAY ENDPOINTS")
	}
	var at Endpoints
	if err := json.Unmarshal([]byte(args[1]), &at); err != nil {
		return err
	}
	way, err := Named(args[0], at)
	if err != nil {
		return err
	}
	s := &peerServer{way: way, out: out, sessions: map[int64]Session{}, lockers: map[int64]Locker{}}
	return s.serveAll(in)
}

// serveAll answers requests until in ends.
func (s *peerServer) serveAll(in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		// Owned by the process, which ends when its standard input does. Requests are served side by side.
		go s.reply(words)
	}
	return lines.Err()
}

type peerServer struct {
	way Way

	mu       sync.Mutex
	out      io.Writer         // guarded by mu
	next     int64             // guarded by mu
	sessions map[int64]Session // guarded by mu
	lockers  map[int64]Locker  // guarded by mu
}

func (s *peerServer) reply(words []string) {
	value, err := s.serve(words[1], words[2:])
	line := words[0] + " ok " + value
	if err != nil {
		line = words[0] + " error " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, line)
}

func (s *peerServer) serve(verb string, args []string) (string, error) {
	ctx := context.Background()
	var n int64
	if len(args) > 0 {
		var err error
		if n, err = strconv.ParseInt(args[0], 10, 64); err != nil {
			return "", err
		}
	}
	s.mu.Lock()
	session, locker := s.sessions[n], s.lockers[n]
	s.mu.Unlock()
	switch {
	case verb == "open":
		opened, err := s.way.Open(ctx)
		return s.add(err, func(n int64) { s.sessions[n] = opened })
	case verb == "locker" && session != nil && len(args) == 2:
		made, err := session.Locker(ctx, args[1])
		return s.add(err, func(n int64) { s.lockers[n] = made })
	case verb == "end" && session != nil:
		return "", session.Close()
	case locker == nil:
		return "", fmt.Errorf("%s %v: no such thing", verb, args)
	case verb == "lock":
		err := locker.Lock(ctx)
		if err != nil {
			return "", err
		}
		return strconv.FormatInt(locker.Token(), 10), nil
	case verb == "unlock":
		return "", locker.Unlock(ctx)
	case verb == "held":
		return strconv.FormatBool(locker.Held(ctx)), nil
	case verb == "close":
		return "", locker.Close()
	}
	return "", fmt.Errorf("unknown request %q", verb)
}

// add numbers a new session or locker.
func (s *peerServer) add(err error, keep func(int64)) (string, error) {
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	keep(s.next)
	return strconv.FormatInt(s.next, 10), nil
}
