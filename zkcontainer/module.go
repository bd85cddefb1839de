// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// Container is a ZooKeeper server that Run has started.
type Container struct{ testcontainers.Container }

// Run starts a ZooKeeper server in a container and waits until it serves clients, as the modules of testcontainers do. The
// options are those of testcontainers, and Options. If Run returns an error and a Container, the caller must terminate it:
//
//	server, err := zkcontainer.Run(ctx, zkcontainer.DefaultImage)
//	testcontainers.CleanupContainer(t, server)
//	require.NoError(t, err)
func Run(ctx context.Context, image string, opts ...testcontainers.ContainerCustomizer) (*Container, error) {
	if !slices.ContainsFunc(opts, func(o testcontainers.ContainerCustomizer) bool { _, ok := o.(Options); return ok }) {
		opts = append([]testcontainers.ContainerCustomizer{Options{}}, opts...)
	}
	ctr, err := testcontainers.Run(ctx, image, opts...)
	var c *Container
	if ctr != nil {
		c = &Container{ctr}
	}
	if err != nil {
		return c, fmt.Errorf("zkcontainer: %w", err)
	}
	return c, nil
}

// ConnectionString returns the address of the server's client port, as seen from this process.
func (c *Container) ConnectionString(ctx context.Context) (string, error) {
	return endpoint(ctx, c.Container, clientPort)
}

// Customize makes a request of testcontainers one for a single server with these options: see Run. It returns an error for the
// options that only an ensemble has: Servers, Image and Tools.
func (o Options) Customize(req *testcontainers.GenericContainerRequest) error {
	if o.Servers > 1 || o.Image != "" || o.Tools != "" {
		return errors.New("zkcontainer: Options.Servers, Image and Tools need RunEnsemble")
	}
	o, err := o.complete()
	if err != nil {
		return err
	}
	return o.customize(req, 0)
}

// customize makes a request one for a member.
func (o Options) customize(req *testcontainers.GenericContainerRequest, member int) error {
	files, err := o.files(member)
	if err != nil {
		return err
	}
	ports := []string{clientPort}
	if o.TLS != nil {
		ports = append(ports, securePort)
	}
	for _, option := range append([]testcontainers.ContainerCustomizer{
		testcontainers.WithEnv(map[string]string{"SERVER_JVMFLAGS": o.jvmFlags(), "ZK_SERVER_HEAP": "192"}),
		testcontainers.WithExposedPorts(ports...),
		testcontainers.WithFiles(asFiles(files)...),
		testcontainers.WithWaitStrategyAndDeadline(patience, &serving{}),
	}, o.Container...) {
		if err := option.Customize(req); err != nil {
			return err
		}
	}
	return nil
}

func asFiles(files map[string][]byte) []testcontainers.ContainerFile {
	var out []testcontainers.ContainerFile
	for _, path := range slices.Sorted(maps.Keys(files)) {
		out = append(out, testcontainers.ContainerFile{Reader: bytes.NewReader(files[path]), ContainerFilePath: path, FileMode: 0o644})
	}
	return out
}

// serving is a wait strategy: the server serves clients.
type serving struct{}

// String describes the strategy in the logs of testcontainers, which require a pointer.
func (*serving) String() string { return "the server serves clients" }

// WaitUntilReady implements wait.Strategy.
func (*serving) WaitUntilReady(ctx context.Context, target wait.StrategyTarget) error {
	var ended, last error
	err := poll(ctx, "the server to serve", func() bool {
		if state, err := target.State(ctx); err == nil && !state.Running {
			ended = fmt.Errorf("the server has ended with exit code %d", state.ExitCode)
			return true
		}
		address, err := endpoint(ctx, target, clientPort)
		if err == nil {
			_, err = ask(ctx, address, "srvr")
		}
		last = err
		return err == nil && mode(ctx, address) != ""
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return errors.Join(err, ended)
}

// endpoint returns the address of a container's port, as seen from this process.
func endpoint(ctx context.Context, target wait.StrategyTarget, port string) (string, error) {
	host, err := target.Host(ctx)
	if err != nil {
		return "", err
	}
	mapped, err := target.MappedPort(ctx, port)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(numeric(host), mapped.Port()), nil
}

// numeric replaces localhost by the address that the ports are published at: the name can have a second address, where nothing
// listens.
func numeric(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// ask sends a four-letter word to a server and returns the reply.
func ask(ctx context.Context, address, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
