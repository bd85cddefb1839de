// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/zklock-go/zklock"
)

// elsewhereEnv makes a test the process that it starts: testcontainers reads its environment once for each process.
const elsewhereEnv = "ZKCONTAINER_ELSEWHERE"

// inProcessOfItsOwn runs the rest of this test in another process with these environment variables, and without those that have no
// value. It returns true there.
func inProcessOfItsOwn(t *testing.T, env ...string) bool {
	if os.Getenv(elsewhereEnv) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = slices.DeleteFunc(append(os.Environ(), append(env, elsewhereEnv+"=1", requireEnv+"=1")...), func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		return value == "" || slices.Contains(env, name)
	})
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS", "%s", out)
	return false
}

// database builds the image of a database, or skips the test.
func database(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "../integration/image/build", "postgresql").Output()
	if err != nil {
		t.Skipf("no image of PostgreSQL can be built here: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// A program's own container next to ours keeps its logs, its environment and Ryuk.
func TestAContainerOfTheUsersIsNotAffected(t *testing.T) {
	if os.Getenv(elsewhereEnv) == "" {
		t.Parallel()
		e := available(t.Context(), t, Options{})
		if !e.has(t.Context(), ryukImage) {
			t.Skipf("this machine has no image %s, and no test pulls one", ryukImage)
		}
	}
	const databaseEnv = "ZKCONTAINER_DATABASE"
	image := os.Getenv(databaseEnv)
	if image == "" {
		image = database(t)
	}
	if !inProcessOfItsOwn(t, databaseEnv+"="+image, "TESTCONTAINERS_RYUK_DISABLED=false") {
		return
	}
	var logs bytes.Buffer
	own := log.New(&logs, "", 0)
	tclog.SetDefault(own)
	before := os.Environ()

	z := RunEnsemble(t.Context(), t, 1)
	require.Equal(t, before, os.Environ())
	require.Equal(t, tclog.Logger(own), tclog.Default())
	ours := z.Members[0].ctr.GetContainerID()[:12]
	assert.NotContains(t, logs.String(), ours, "the servers' containers have a logger of their own")

	db, err := testcontainers.Run(t.Context(), image, testcontainers.WithExposedPorts("5432/tcp"),
		testcontainers.WithWaitStrategy(wait.ForListeningPort("5432/tcp")))
	testcontainers.CleanupContainer(t, db)
	require.NoError(t, err)
	code, _, err := db.Exec(t.Context(), []string{"psql", "-U", "postgres", "-c", "select 1"})
	require.NoError(t, err)
	require.Zero(t, code)
	assert.Contains(t, logs.String(), db.GetContainerID()[:12], "its logs go where the program wants them")

	for _, id := range []string{db.GetContainerID(), z.Members[0].ctr.GetContainerID()} {
		found, err := z.engine.API.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		require.NoError(t, err)
		assert.Equal(t, "true", found.Container.Config.Labels["org.testcontainers.reap"], "Ryuk must remove it if this process dies")
	}
	ryuks, err := z.engine.API.ContainerList(t.Context(), client.ContainerListOptions{Filters: make(client.Filters).
		Add("label", "org.testcontainers.ryuk=true").Add("label", "org.testcontainers.sessionId="+testcontainers.SessionID())})
	require.NoError(t, err)
	assert.Len(t, ryuks.Items, 1)
	assert.Nil(t, z.engine.life, "no second reaper")
}

// With Ryuk, too, nothing outlives a process that is killed.
func TestRyukRemovesWhatAKilledProcessLeaves(t *testing.T) {
	t.Parallel()
	e := available(t.Context(), t, Options{})
	if !e.has(t.Context(), ryukImage) {
		t.Skipf("this machine has no image %s, and no test pulls one", ryukImage)
	}
	run := startDoomed(t, "TESTCONTAINERS_RYUK_DISABLED=false")
	require.NoError(t, run.process.Kill())
	err := poll(t.Context(), "the clean-up of "+run.id, func() bool {
		runs, err := e.runs(t.Context())
		return err == nil && !runs[run.id]
	})
	assert.NoError(t, err)
}

func TestWithoutRyuksImageTheErrorNamesTheVariable(t *testing.T) {
	if os.Getenv(elsewhereEnv) == "" {
		t.Parallel()
		available(t.Context(), t, Options{})
	}
	if !inProcessOfItsOwn(t, "TESTCONTAINERS_RYUK_DISABLED=false", "TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX=zkcontainer.invalid") {
		return
	}
	e, err := Find()
	require.NoError(t, err)
	err = e.provideReaper(t.Context())
	require.ErrorContains(t, err, ryukImage)
	require.ErrorContains(t, err, "TESTCONTAINERS_RYUK_DISABLED=true")
}

// The engine is where DOCKER_HOST says, and the addresses are those of its machine.
func TestAnEngineBehindTCP(t *testing.T) {
	if os.Getenv(elsewhereEnv) == "" {
		t.Parallel()
		e := available(t.Context(), t, Options{})
		socket, ok := strings.CutPrefix(e.API.DaemonHost(), "unix://")
		if !ok {
			t.Skipf("the engine is at %s already", e.API.DaemonHost())
		}
		inProcessOfItsOwn(t, "DOCKER_HOST=tcp://"+forward(t, "unix", socket), "TESTCONTAINERS_HOST_OVERRIDE")
		return
	}
	z := RunEnsemble(t.Context(), t, 1)
	require.Equal(t, os.Getenv("DOCKER_HOST"), z.engine.API.DaemonHost())
	c, err := zklock.Connect(t.Context(), z.Addrs(), nil)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Mutex("/locks/x").Lock(t.Context())
	require.NoError(t, err)
	before := z.Addrs()
	require.NoError(t, z.Members[0].Stop(t.Context()))
	require.NoError(t, z.Members[0].Start(t.Context()), "it serves clients at the address that it had before")
	require.Equal(t, before, z.Addrs())
}

// forward listens on the loopback address and forwards each connection.
func forward(t *testing.T, network, address string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	// Ends when the test closes the listener; its connections end with their clients.
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer near.Close()
				far, err := net.Dial(network, address)
				if err != nil {
					return
				}
				defer far.Close()
				go func() { // ends with the connection
					_, _ = io.Copy(far, near)
					_ = far.(*net.UnixConn).CloseWrite()
				}()
				_, _ = io.Copy(near, far)
			}()
		}
	}()
	return l.Addr().String()
}

// Two processes that choose the same port do not fail: the second one takes the next.
func TestATakenPortIsNotUsed(t *testing.T) {
	t.Parallel()
	e := available(t.Context(), t, Options{})
	first := RunEnsemble(t.Context(), t, 1)
	_, port, err := net.SplitHostPort(first.Addrs()[0])
	require.NoError(t, err)
	chosen := e.publish()
	chosen[0].HostPort = port
	second, err := testcontainers.Run(t.Context(), first.Options.Image, bindTo(chosen))
	testcontainers.CleanupContainer(t, second)
	require.True(t, portTaken(err), "%v", err)
}

func TestTheModuleForm(t *testing.T) {
	t.Parallel()
	e := available(t.Context(), t, Options{})
	image, err := e.Image(t.Context())
	require.NoError(t, err)
	ctx := t.Context()
	server, err := Run(ctx, image, Options{SASL: map[string]string{"joe": "secret"}, TickTime: time.Second},
		testcontainers.WithLabels(e.Labels()), testcontainers.WithLogger(tclog.TestLogger(t)), bindTo(anyPort(e)))
	testcontainers.CleanupContainer(t, server)
	require.NoError(t, err)
	address, err := server.ConnectionString(ctx)
	require.NoError(t, err)
	c, err := zklock.Connect(ctx, []string{address}, &zklock.Options{Auth: []zklock.Auth{{Scheme: "sasl", Data: []byte("joe:secret")}}})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Mutex("/locks/x").TryLock(ctx)
	require.NoError(t, err)

	_, err = Run(ctx, image, Options{Servers: 3})
	require.ErrorContains(t, err, "RunEnsemble")
	broken, err := Run(ctx, image, Options{Config: []string{fmt.Sprintf("tickTime=%s", "x")}}, testcontainers.WithLabels(e.Labels()), bindTo(anyPort(e)))
	testcontainers.CleanupContainer(t, broken)
	require.ErrorContains(t, err, "the server has ended", "not after the whole patience")
}

// anyPort is a port that the engine chooses, where this test can reach it.
func anyPort(e *Engine) []network.PortBinding { return []network.PortBinding{{HostIP: e.publishAt()}} }

// bindTo publishes the client port at a fixed address.
func bindTo(binding []network.PortBinding) testcontainers.CustomizeRequestOption {
	return func(req *testcontainers.GenericContainerRequest) error {
		return errors.Join(testcontainers.WithExposedPorts(clientPort)(req), testcontainers.WithLogger(silent{}).Customize(req),
			testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
				h.PortBindings = network.PortMap{network.MustParsePort(clientPort): binding}
			})(req))
	}
}

func TestTheImageOfRyukIsTheOneOfTestcontainers(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/testcontainers/testcontainers-go").Output()
	require.NoError(t, err)
	config, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "internal", "config", "config.go"))
	require.NoError(t, err)
	require.Contains(t, string(config), `ReaperDefaultImage = "`+ryukImage+`"`)
}
