// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/integration/internal/images"
	"github.com/zklock-go/zklock/integration/internal/peers"
	"github.com/zklock-go/zklock/internal/evidence/engine"
	"github.com/zklock-go/zklock/internal/evidence/family"
	"github.com/zklock-go/zklock/zkcontainer"
)

// patience limits waits for events that must happen. No test depends on how long they take.
const patience = 90 * time.Second

// lab has the resources that the tests of one run share.
var lab struct {
	engine   *zkcontainer.Engine // nil if there are only external servers
	external []string            // ZKLOCK_TEST_SERVERS; tests must not cause faults in them
	image    string              // image of the servers
	run      string              // distinguishes the nodes of this run

	mu     sync.Mutex
	shared map[string]*zkcontainer.Ensemble // guarded by mu: started on first use
	peers  *peers.Host                      // guarded by mu: started on first use
	parts  []string                         // guarded by mu: result and duration of each test
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	family.DefaultSignals()
	engine.Prepare()
	start := time.Now()
	ctx := context.Background()
	lab.shared = map[string]*zkcontainer.Ensemble{}
	lab.run = fmt.Sprintf("%x", start.UnixNano())
	if list := os.Getenv("ZKLOCK_TEST_SERVERS"); list != "" {
		lab.external = strings.Split(list, ",")
	}
	if err := openLab(ctx); err != nil {
		if len(lab.external) == 0 {
			return nothingRun(err)
		}
		fmt.Println("integration: no containers, skipping tests with faults and with clients in other languages:", err)
	}
	code := m.Run()
	if lab.engine != nil {
		if err := lab.engine.Close(ctx); err != nil {
			fmt.Println("integration: cleaning up:", err)
			code = max(code, 1)
		}
	}
	for _, line := range lab.parts {
		fmt.Println(line)
	}
	fmt.Printf("%6.1fs  total\n", time.Since(start).Seconds())
	return code
}

// nothingRun reports that there is no engine or no image. It returns 1, a failure, if ZKLOCK_TEST_REQUIRE or CI is set.
func nothingRun(err error) int {
	note("NOTHING was tested on real servers: " + strings.ReplaceAll(err.Error(), "\n", "; "))
	if os.Getenv("ZKLOCK_TEST_REQUIRE") != "" || os.Getenv("CI") != "" {
		return 1
	}
	return 0
}

// note prints that something was not tested, and appends it to the file named by ZKLOCK_TEST_NOTES, which integration/run
// prints at the end.
func note(text string) {
	fmt.Println("integration:", text)
	name := os.Getenv("ZKLOCK_TEST_NOTES")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintln(f, text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Println("integration: notes:", err)
	}
}

func openLab(ctx context.Context) (err error) {
	if lab.engine, err = zkcontainer.Find(); err != nil {
		lab.engine = nil
		return err
	}
	if len(lab.external) > 0 {
		fmt.Println("integration: servers: ZKLOCK_TEST_SERVERS")
		return nil
	}
	start := time.Now()
	image, why, err := images.Servers(ctx, lab.engine)
	if err != nil {
		return errors.Join(err, lab.engine.Close(ctx))
	}
	lab.image = image
	fmt.Printf("integration: servers: %s (%s, found in %.1fs)\n", image, why, time.Since(start).Seconds())
	return nil
}

// part makes the run print the result and duration of this test at its end.
func part(t *testing.T) {
	start := time.Now()
	t.Cleanup(func() {
		lab.mu.Lock()
		defer lab.mu.Unlock()
		verdict := "ok"
		switch {
		case t.Failed():
			verdict = "FAILED"
		case t.Skipped():
			verdict = "skipped"
			defer note(t.Name() + " was skipped")
		}
		lab.parts = append(lab.parts, fmt.Sprintf("%6.1fs  %-7s %s", time.Since(start).Seconds(), verdict, t.Name()))
	})
}

// needsOwn skips a test that needs its own servers if there are only external ones.
func needsOwn(t *testing.T) {
	if lab.engine == nil || len(lab.external) > 0 {
		t.Skip("needs its own servers, in containers")
	}
}

// officialSettings are lines of zoo.cfg in which the official image's configuration differs from zkcontainer's.
var officialSettings = []string{"initLimit=5", "maxClientCnxns=60"}

// adjusted returns opts with the image of this run and, with ZKLOCK_TEST_SETTINGS=official, with the official image's settings,
// unless a test needs others. Debian's packages cannot start its AdminServer, because they lack Jetty.
func adjusted(opts zkcontainer.Options) zkcontainer.Options {
	opts.Image = lab.image
	if os.Getenv("ZKLOCK_TEST_SETTINGS") == "official" {
		opts.Config = append(slices.Clone(officialSettings), opts.Config...)
		opts.SyncLimit = cmp.Or(opts.SyncLimit, 2)
	}
	return opts
}

// start starts an ensemble for one test.
func start(t *testing.T, opts zkcontainer.Options) *zkcontainer.Ensemble {
	needsOwn(t)
	opts = adjusted(opts)
	return zkcontainer.RunEnsemble(t.Context(), t, max(1, opts.Servers), opts)
}

// share returns an ensemble that several tests use one after the other. The first call starts it.
func share(t *testing.T, name string, opts zkcontainer.Options) *zkcontainer.Ensemble {
	needsOwn(t)
	lab.mu.Lock()
	defer lab.mu.Unlock()
	if lab.shared[name] == nil {
		z, err := lab.engine.Start(context.Background(), adjusted(opts))
		require.NoError(t, err)
		t.Logf("%s: ZooKeeper %s", name, z.Members[0].Version(t.Context()))
		lab.shared[name] = z
	}
	z := lab.shared[name]
	require.NoError(t, z.WaitHealthy(t.Context()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(z.Logs(context.Background()))
		}
	})
	return z
}

// one returns a single healthy server. Tests must not cause faults in it.
func one(t *testing.T) *zkcontainer.Ensemble { return share(t, "one server", zkcontainer.Options{}) }

// three returns an ensemble of three servers. A follower without its leader serves its clients for eight seconds, which is
// longer than the sessions in these tests. This makes a stale follower dangerous.
func three(t *testing.T) *zkcontainer.Ensemble { return threeOf(t, "three servers") }

// threeOf returns an ensemble like three, with its own name.
func threeOf(t *testing.T, name string) *zkcontainer.Ensemble {
	return share(t, name, zkcontainer.Options{Servers: 3, SyncLimit: 16})
}

// servers returns the addresses of healthy servers: the external ones, or those of one.
func servers(t *testing.T) []string {
	if len(lab.external) > 0 {
		return lab.external
	}
	return one(t).Addrs()
}

// root returns a path that no other test and no other run uses.
func root(t *testing.T) string {
	return "/" + strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()) + "-" + lab.run
}

// dial connects a client of go-zookeeper and waits for its session.
func dial(t *testing.T, timeout time.Duration, addrs ...string) (*zk.Conn, <-chan zk.Event) {
	return dialWith(t, net.DialTimeout, timeout, addrs...)
}

// dialWith is dial with a custom dialer.
func dialWith(t *testing.T, dialer zk.Dialer, timeout time.Duration, addrs ...string) (*zk.Conn, <-chan zk.Event) {
	conn, events, err := zk.Connect(addrs, timeout, zk.WithLogInfo(false), zk.WithLogger(quiet{}), zk.WithDialer(dialer))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	bound := time.After(patience)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn, events
			}
		case <-bound:
			require.FailNow(t, "no session", "from %v", addrs)
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// connect connects a client of zklock.
func connect(t *testing.T, opts *zklock.Options, addrs ...string) *zklock.Client {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := zklock.Connect(ctx, addrs, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// buildCommand builds the command and returns its path.
func buildCommand(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "zklock")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/zklock-go/zklock/cmd/zklock").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// soon returns a context that is done after patience.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
