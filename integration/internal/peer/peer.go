// Package peer drives lock clients of other languages, which run in a container and speak the line protocol of
// peers/CuratorPeer.java.
package peer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/zklock-go/zklock/integration/internal/engine"
)

// Curator and Kazoo are commands that start a peer: servers and session timeout follow.
var (
	Curator = []string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "CuratorPeer"}
	Kazoo   = []string{"python3", "/opt/peers/kazoo_peer.py"}
)

// Host is a container that peers run in, on the network of their servers.
type Host struct {
	engine  *engine.Engine
	servers string
	ctr     *testcontainers.DockerContainer
}

// NewHost starts a container for peers of some servers. network is one that leads to them: an ensemble's private one, or the
// machine's own for servers that are not in containers here. It ends with the run.
func NewHost(ctx context.Context, e *engine.Engine, image, network string, servers []string) (*Host, error) {
	join := tcnetwork.WithNetworkName(nil, network)
	if network == Machine {
		join = testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.NetworkMode = Machine })
	}
	ctr, err := testcontainers.Run(ctx, image, join,
		testcontainers.WithCmd("sleep", "infinity"),
		testcontainers.WithLabels(map[string]string{engine.Label: e.Run}))
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	return &Host{engine: e, servers: strings.Join(servers, ","), ctr: ctr}, nil
}

// Machine is the network of the machine itself.
const Machine = "host"

// Run runs a command to its end and returns its output.
func (h *Host) Run(ctx context.Context, command ...string) (string, error) {
	code, out, err := h.ctr.Exec(ctx, command)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(out)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d: %s", command[0], code, text)
	}
	return string(text), err
}

// Read returns a file of the container.
func (h *Host) Read(ctx context.Context, path string) ([]byte, error) {
	r, err := h.ctr.CopyFileFromContainer(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Peer is one running program with one session, on which any number of contenders can act.
type Peer struct {
	in  client.HijackedResponse
	end chan struct{} // closed when the program has ended

	mu      sync.Mutex
	answers map[string]chan string // guarded by mu
	trouble strings.Builder        // guarded by mu: what the program wrote to stderr
}

// Start starts a peer and waits until it has its session. timeout is in the unit that the peer wants.
func (h *Host) Start(ctx context.Context, command []string, timeout string) (*Peer, error) {
	created, err := h.engine.API.ExecCreate(ctx, h.ctr.GetContainerID(), client.ExecCreateOptions{
		Cmd:         append(append([]string{}, command...), h.servers, timeout),
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, err
	}
	attached, err := h.engine.API.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	p := &Peer{in: attached.HijackedResponse, end: make(chan struct{}), answers: map[string]chan string{}}
	out, stdout := io.Pipe()
	// Owned by p: ends with the program, or when Close closes the connection to it. Nobody waits for it but through p.end.
	go func() {
		_, err := stdcopy.StdCopy(stdout, trouble{p}, p.in.Reader)
		stdout.CloseWithError(err)
	}()
	// Owned by p: ends with the one above.
	go p.listen(out)
	return p, p.Contender("peer").Expect(ctx, "ready")
}

// Close ends the program; its session is closed with it.
func (p *Peer) Close() error {
	err := p.in.CloseWrite()
	<-p.end
	p.in.Close()
	return err
}

func (p *Peer) listen(out io.Reader) {
	defer close(p.end)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		id, answer, _ := strings.Cut(lines.Text(), " ")
		p.box(id) <- answer
	}
}

// box holds what a contender has said and nobody has read yet.
func (p *Peer) box(id string) chan string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers[id] == nil {
		p.answers[id] = make(chan string, 1024)
	}
	return p.answers[id]
}

type trouble struct{ p *Peer }

func (t trouble) Write(b []byte) (int, error) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.p.trouble.Write(b)
}

// Contender is one user of the peer's recipes.
type Contender struct {
	peer *Peer
	id   string
	box  chan string
}

// Contender returns the contender of that name.
func (p *Peer) Contender(id string) *Contender { return &Contender{p, id, p.box(id)} }

// Ask sends a command and does not wait for the answer.
func (c *Contender) Ask(command ...string) error {
	_, err := fmt.Fprintln(c.peer.in.Conn, c.id, strings.Join(command, " "))
	return err
}

// Expect waits until the contender answers, which must be what is expected.
func (c *Contender) Expect(ctx context.Context, expected string) error {
	answer, err := c.Next(ctx)
	if err == nil && answer != expected {
		err = fmt.Errorf("%s answered %q instead of %q", c.id, answer, expected)
	}
	return err
}

// Next waits for the contender's next answer.
func (c *Contender) Next(ctx context.Context) (string, error) {
	select {
	case answer := <-c.box:
		return answer, nil
	case <-c.peer.end:
		c.peer.mu.Lock()
		defer c.peer.mu.Unlock()
		return "", fmt.Errorf("%s: the peer has ended: %s", c.id, c.peer.trouble.String())
	case <-ctx.Done():
		return "", fmt.Errorf("%s: no answer: %w", c.id, ctx.Err())
	}
}

// Do sends a command and waits for its answer.
func (c *Contender) Do(ctx context.Context, expected string, command ...string) error {
	if err := c.Ask(command...); err != nil {
		return err
	}
	return c.Expect(ctx, expected)
}
