// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
)

// The ports inside the containers.
const (
	clientPort = "2181/tcp"
	securePort = "2281/tcp"
)

// Member is one server of an ensemble.
type Member struct {
	Name   string // host name on the private network
	Addr   string // address of the client port, as seen from this process
	Secure string // address of the TLS port, as seen from this process; "" without Options.TLS

	id  int
	all *Ensemble
	ctr *testcontainers.DockerContainer

	toolsMu sync.Mutex
	tools   *testcontainers.DockerContainer // guarded by toolsMu: the tools container; nil until it is needed
}

// The modes that a server can report.
const (
	Standalone = "standalone"
	Leader     = "leader"
	Follower   = "follower"
	Observer   = "observer"
)

// Mode returns the server's current mode: Leader, Follower, Observer, Standalone, or "" if it serves no clients.
func (m *Member) Mode(ctx context.Context) string {
	return mode(ctx, m.Addr)
}

func mode(ctx context.Context, address string) string {
	answer, err := ask(ctx, address, "srvr")
	if err != nil {
		return ""
	}
	_, mode, _ := strings.Cut(answer, "Mode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode
}

// Version returns the version that the server reports.
func (m *Member) Version(ctx context.Context) string {
	answer, _ := ask(ctx, m.Addr, "srvr")
	_, version, _ := strings.Cut(answer, "version: ")
	version, _, _ = strings.Cut(version, ",")
	version, _, _ = strings.Cut(version, "-")
	return version
}

// Watches returns the number of watches that the server's connections have set.
func (m *Member) Watches(ctx context.Context) (int, error) {
	answer, err := ask(ctx, m.Addr, "wchs")
	if err != nil {
		return 0, err
	}
	_, count, _ := strings.Cut(answer, "Total watches:")
	return strconv.Atoi(strings.TrimSpace(count))
}

// WaitBusy waits until the server has an unanswered request.
func (m *Member) WaitBusy(ctx context.Context) error {
	return poll(ctx, m.Name+" to have a request to answer", func() bool {
		answer, err := ask(ctx, m.Addr, "srvr")
		_, count, _ := strings.Cut(answer, "Outstanding: ")
		count, _, _ = strings.Cut(count, "\n")
		return err == nil && count != "" && count != "0"
	})
}

// serves waits until the server serves clients.
func (m *Member) serves(ctx context.Context) error {
	return poll(ctx, m.Name+" to serve", func() bool { return m.Mode(ctx) != "" })
}

// Stop ends the server's process at once, like kill -9 or a power failure.
func (m *Member) Stop(ctx context.Context) error {
	_, err := m.all.engine.API.ContainerKill(ctx, m.ctr.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	return err
}

// Start starts a stopped server again and waits until it serves clients.
func (m *Member) Start(ctx context.Context) error {
	if err := m.dropTools(ctx); err != nil {
		return err // the tools container shares the network of the server, which has ended
	}
	if _, err := m.all.engine.API.ContainerStart(ctx, m.ctr.GetContainerID(), client.ContainerStartOptions{}); err != nil {
		return err
	}
	return m.serves(ctx)
}

// Wipe deletes all of the server's data and restarts it, as after the loss of a disk or with an empty backup.
func (m *Member) Wipe(ctx context.Context) error {
	if _, err := m.Exec(ctx, "rm", "-rf", "/data/version-2"); err != nil {
		return err
	}
	if err := m.Stop(ctx); err != nil {
		return err
	}
	return m.Start(ctx)
}

// Freeze suspends the server's process, like SIGSTOP; its sockets stay open.
func (m *Member) Freeze(ctx context.Context) error {
	_, err := m.all.engine.API.ContainerPause(ctx, m.ctr.GetContainerID(), client.ContainerPauseOptions{})
	return err
}

// Thaw ends Freeze.
func (m *Member) Thaw(ctx context.Context) error {
	_, err := m.all.engine.API.ContainerUnpause(ctx, m.ctr.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

// CutOff drops every packet between the server and the other members. Clients can still reach it.
func (m *Member) CutOff(ctx context.Context) error {
	var rules []string
	for _, peer := range m.all.Members {
		if peer == m {
			continue
		}
		ip, err := peer.ctr.ContainerIP(ctx)
		if err != nil {
			return err
		}
		rules = append(rules, "iptables -w -A INPUT -s "+ip+" -j DROP", "iptables -w -A OUTPUT -d "+ip+" -j DROP")
	}
	_, err := m.tool(ctx, "sh", "-c", strings.Join(rules, " && ")) // all at once
	return err
}

// Rejoin ends CutOff.
func (m *Member) Rejoin(ctx context.Context) error {
	_, err := m.tool(ctx, "iptables", "-w", "-F")
	return err
}

// Slow delays everything that the server sends. It uses netem to delay each packet or, on a kernel without netem, limits the
// bandwidth so that packets queue up. how describes which of the two it used.
func (m *Member) Slow(ctx context.Context) (how string, err error) {
	netem := []string{"netem", "delay", "40ms", "15ms"}
	narrow := []string{"tbf", "rate", "512kbit", "burst", "3kb", "latency", "3s"}
	for _, qdisc := range [][]string{netem, narrow} {
		_, trouble := m.tool(ctx, append([]string{"tc", "qdisc", "replace", "dev", "eth0", "root"}, qdisc...)...)
		if trouble == nil {
			return strings.Join(qdisc, " "), nil
		}
		err = errors.Join(err, trouble)
	}
	return "", err
}

// EndSlow ends Slow.
func (m *Member) EndSlow(ctx context.Context) error {
	_, err := m.tool(ctx, "tc", "qdisc", "del", "dev", "eth0", "root")
	return err
}

// Exec runs a command in the server's container and returns its output.
func (m *Member) Exec(ctx context.Context, command ...string) (string, error) {
	return run(ctx, m.ctr, m.Name, command)
}

// tool runs a tool that changes the server's network, in the server's container or in the tools container.
func (m *Member) tool(ctx context.Context, command ...string) (string, error) {
	if m.all.Options.Tools == "" {
		return m.Exec(ctx, command...)
	}
	tools, err := m.toolbox(ctx)
	if err != nil {
		return "", err
	}
	return run(ctx, tools, m.Name, command)
}

// toolbox returns the tools container, which shares the server's network. The first call starts it.
func (m *Member) toolbox(ctx context.Context) (_ *testcontainers.DockerContainer, err error) {
	m.toolsMu.Lock()
	defer m.toolsMu.Unlock()
	if m.tools != nil {
		return m.tools, nil
	}
	m.tools, err = testcontainers.Run(ctx, m.all.Options.Tools,
		testcontainers.WithLogger(silent{}),
		testcontainers.WithLabels(m.all.engine.Labels()),
		testcontainers.WithEntrypoint("sleep", "infinity"),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.NetworkMode = container.NetworkMode("container:" + m.ctr.GetContainerID())
			h.CapAdd = []string{"NET_ADMIN"}
		}))
	return m.tools, err
}

func run(ctx context.Context, ctr *testcontainers.DockerContainer, name string, command []string) (string, error) {
	code, out, err := ctr.Exec(ctx, command, exec.Multiplexed())
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", name, strings.Join(command, " "), err)
	}
	text, err := io.ReadAll(out)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: %s: exit code %d: %s", name, strings.Join(command, " "), code, strings.TrimSpace(string(text)))
	}
	return string(text), err
}

// Logs returns the last lines of the server's log, for the report of a failure.
func (m *Member) Logs(ctx context.Context) string {
	if m.ctr == nil {
		return "it was not created"
	}
	logs, err := m.ctr.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	all, _ := io.ReadAll(logs) // return as much as can be read
	lines := strings.Split(string(all), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// Read returns the contents of a file in the container.
func (m *Member) Read(ctx context.Context, path string) ([]byte, error) {
	r, err := m.ctr.CopyFileFromContainer(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
