// SPDX-License-Identifier: Apache-2.0

// Package peers runs the programs of the root module's internal/evidence/peer, which are lock clients in other languages, in a
// container.
package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/zklock-go/zklock/internal/evidence/peer"
	"github.com/zklock-go/zklock/zkcontainer"
)

// Curator and Kazoo are commands that start a program of the image. The servers and the session timeout are appended.
var (
	Curator = []string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "CuratorPeer"}
	Kazoo   = []string{"python3", "/opt/peers/" + peer.Kazoo}
)

// Host is a container for peers, on the network of their servers.
type Host struct {
	engine  *zkcontainer.Engine
	servers string
	ctr     *testcontainers.DockerContainer
}

// NewHost starts a container for peers of some servers. network is the network of the servers: the private one of an ensemble,
// or Machine for servers outside containers. The container ends with the run.
func NewHost(ctx context.Context, e *zkcontainer.Engine, image, network string, servers []string) (*Host, error) {
	join := tcnetwork.WithNetworkName(nil, network)
	if network == Machine {
		join = testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.NetworkMode = Machine })
	}
	ctr, err := testcontainers.Run(ctx, image, join,
		testcontainers.WithCmd("sleep", "infinity"),
		testcontainers.WithLabels(e.Labels()))
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	return &Host{engine: e, servers: strings.Join(servers, ","), ctr: ctr}, nil
}

// Machine is the network of the host machine.
const Machine = "host"

// Run runs a command in the container and returns its output.
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

// Peer is a running program with one session.
type Peer struct {
	*peer.Session
	Program *peer.Peer
	in      client.HijackedResponse
}

// Start starts a program with a session.
func (h *Host) Start(ctx context.Context, command []string, timeout time.Duration) (*Peer, error) {
	created, err := h.engine.API.ExecCreate(ctx, h.ctr.GetContainerID(), client.ExecCreateOptions{
		Cmd:         append(append([]string{}, command...), h.servers, strconv.FormatInt(timeout.Milliseconds(), 10)),
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, err
	}
	attached, err := h.engine.API.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	out, stdout := io.Pipe()
	p := &Peer{in: attached.HijackedResponse, Program: peer.New(attached.Conn, out)}
	// Owned by p: ends with the program, or when Close closes the connection to it. Program.Gone waits for it.
	go divide(p.in.Reader, stdout)
	if p.Session, err = p.Program.Open(ctx); err != nil {
		p.in.Close()
		return nil, err
	}
	return p, nil
}

// divide copies a program's standard output to stdout. When the program ends, it closes stdout, with the program's standard
// error as the error if there is any.
func divide(in io.Reader, stdout *io.PipeWriter) {
	var trouble strings.Builder
	_, err := stdcopy.StdCopy(stdout, &trouble, in)
	if err == nil && trouble.Len() > 0 {
		err = errors.New(trouble.String())
	}
	stdout.CloseWithError(err)
}

// Close ends the session, and then the program.
func (p *Peer) Close(ctx context.Context) error {
	err := errors.Join(p.End(ctx), p.in.CloseWrite())
	<-p.Program.Gone()
	p.in.Close()
	return err
}
