// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

// create starts the server's container.
func (m *Member) create(ctx context.Context) error {
	o := m.all.Options
	files, err := o.files(m.id)
	if err != nil {
		return err
	}
	bindings := network.PortMap{}
	m.Addr, err = publish(bindings, clientPort)
	if err != nil {
		return err
	}
	exposed := []string{clientPort}
	if o.TLS != nil {
		exposed = append(exposed, securePort)
		m.Secure, err = publish(bindings, securePort)
		if err != nil {
			return err
		}
	}
	m.ctr, err = testcontainers.Run(ctx, o.Image,
		testcontainers.WithLabels(m.all.engine.Labels()),
		testcontainers.WithEnv(map[string]string{"SERVER_JVMFLAGS": o.jvmFlags(), "ZK_SERVER_HEAP": "192"}),
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.PortBindings = bindings
			h.CapAdd = []string{"NET_ADMIN"} // for cuts and slow links, without privileges on this machine
		}),
		tcnetwork.WithNetwork([]string{m.Name}, m.all.net),
		testcontainers.WithFiles(asFiles(files)...),
	)
	return err
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

// discard removes a container, if there is one.
func (e *Engine) discard(ctx context.Context, ctr *testcontainers.DockerContainer) error {
	if ctr == nil {
		return nil
	}
	_, err := e.API.ContainerRemove(ctx, ctr.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return unlessGone(err)
}

func asFiles(files map[string][]byte) []testcontainers.ContainerFile {
	var out []testcontainers.ContainerFile
	for _, path := range slices.Sorted(maps.Keys(files)) {
		out = append(out, testcontainers.ContainerFile{Reader: bytes.NewReader(files[path]), ContainerFilePath: path, FileMode: 0o644})
	}
	return out
}

// Ports are below the kernel's ephemeral port range, so that no other socket can take one while its container restarts.
// Different processes start at different ports.
const firstPort, ports = 20000, 12000

var tried atomic.Int64

// publish binds a container's port to a free port of the loopback address. The port stays the same when the container restarts.
func publish(bindings network.PortMap, port string) (string, error) {
	loopback := netip.MustParseAddr("127.0.0.1")
	for range ports {
		candidate := firstPort + (int64(os.Getpid())*31+tried.Add(1))%ports
		l, err := net.Listen("tcp", net.JoinHostPort(loopback.String(), strconv.FormatInt(candidate, 10)))
		if err != nil {
			continue // taken
		}
		bindings[network.MustParsePort(port)] = []network.PortBinding{{HostIP: loopback, HostPort: strconv.FormatInt(candidate, 10)}}
		return l.Addr().String(), l.Close()
	}
	return "", errors.New("no free port on the loopback address")
}
