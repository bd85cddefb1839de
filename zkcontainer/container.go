// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

// create starts the server's container. Its ports stay the same when it restarts, so they are chosen here, and others are tried
// if the engine's machine uses them already.
func (m *Member) create(ctx context.Context) (err error) {
	for range attempts {
		m.ctr, err = testcontainers.Run(ctx, m.all.Options.Image, testcontainers.CustomizeRequestOption(m.customize))
		if !portTaken(err) {
			break
		}
		err = errors.Join(err, m.all.engine.discard(ctx, m.ctr))
		m.ctr = nil
	}
	if err != nil {
		return err
	}
	m.Addr, err = endpoint(ctx, m.ctr, clientPort)
	if err == nil && m.all.Options.TLS != nil {
		m.Secure, err = endpoint(ctx, m.ctr, securePort)
	}
	return err
}

// customize makes a request one for this member.
func (m *Member) customize(req *testcontainers.GenericContainerRequest) error {
	o := m.all.Options
	bindings := network.PortMap{network.MustParsePort(clientPort): m.all.engine.publish()}
	if o.TLS != nil {
		bindings[network.MustParsePort(securePort)] = m.all.engine.publish()
	}
	for _, option := range []testcontainers.ContainerCustomizer{
		testcontainers.WithLogger(silent{}), // it logs several lines per container
		testcontainers.WithLabels(m.all.engine.Labels()),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.PortBindings = bindings
			h.CapAdd = []string{"NET_ADMIN"} // for cuts and slow links, without privileges on this machine
		}),
		tcnetwork.WithNetwork([]string{m.Name}, m.all.net),
	} {
		if err := option.Customize(req); err != nil {
			return err
		}
	}
	return o.customize(req, m.id)
}

// remove removes the member's containers, if there are any.
func (m *Member) remove(ctx context.Context) error {
	return errors.Join(m.dropTools(ctx), m.all.engine.discard(ctx, m.ctr))
}

// dropTools removes the tools container, if there is one.
func (m *Member) dropTools(ctx context.Context) error {
	m.toolsMu.Lock()
	defer m.toolsMu.Unlock()
	tools := m.tools
	m.tools = nil
	return m.all.engine.discard(ctx, tools)
}

// discard removes a container, if there is one. The engine does not stop a frozen container, but removes it.
func (e *Engine) discard(ctx context.Context, ctr *testcontainers.DockerContainer) error {
	if ctr == nil {
		return nil
	}
	_, err := e.API.ContainerRemove(ctx, ctr.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return errors.Join(unlessGone(err), testcontainers.TerminateContainer(ctr, testcontainers.StopContext(ctx)))
}

// Ports are below the kernel's ephemeral port range, so that no other socket can take one while its container restarts.
// Different processes start at different ports.
const firstPort, ports, attempts = 20000, 12000, 50

var tried atomic.Int64

// publish returns a binding to the next port that may be free on the engine's machine.
func (e *Engine) publish() []network.PortBinding {
	port := firstPort + (int64(os.Getpid())*31+tried.Add(1))%ports
	return []network.PortBinding{{HostIP: e.publishAt(), HostPort: strconv.FormatInt(port, 10)}}
}

// publishAt returns the address of the engine's machine to publish ports at. The zero Addr means all of its addresses.
func (e *Engine) publishAt() netip.Addr {
	ip, err := netip.ParseAddr(numeric(e.host))
	if err != nil || !ip.IsLoopback() && !strings.HasPrefix(e.API.DaemonHost(), "unix:") {
		return netip.Addr{} // a name, or an address that the engine's machine may not know
	}
	return ip
}

// portTaken reports whether a container could not start because its port is in use.
func portTaken(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "port is already allocated") || strings.Contains(err.Error(), "address already in use"))
}
