// Package engine finds the machine's container engine and keeps order on it: what a run of the tests makes there carries
// the run's label, and is gone when the run is over, however it ended.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/client"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// Label marks every container and network of these tests; its value is the run they belong to.
const Label = "zklock.integration.run"

// reaperEnv tells a copy of the test binary that it is a run's reaper.
const reaperEnv = "ZKLOCK_INTEGRATION_REAPER"

// ErrNone says that no container engine answers.
var ErrNone = errors.New("no container engine answers")

// Engine is the container engine, as one run of the tests sees it.
type Engine struct {
	API *client.Client
	Run string // the value of Label for everything this run makes

	life *os.File // locked while this process lives; the reaper and later runs wait for that lock
}

// Open finds the engine, removes what dead runs left behind and makes sure that nothing of this run outlives it. It also
// settles what testcontainers would ask the user for. It must be called before the first use of testcontainers.
func Open(ctx context.Context) (*Engine, error) {
	api, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	settle()
	e := &Engine{API: api, Run: fmt.Sprintf("%s%d-%d", ours(), time.Now().Unix(), os.Getpid())}
	if e.life, err = claim(e.Run); err != nil {
		return nil, err
	}
	if err := e.startReaper(); err != nil {
		return nil, err
	}
	return e, e.sweepDeadRuns(ctx)
}

// connect tries the engine that DOCKER_HOST names, or the usual sockets.
func connect(ctx context.Context) (*client.Client, error) {
	hosts := []string{os.Getenv("DOCKER_HOST")}
	if hosts[0] == "" {
		home, _ := os.UserHomeDir()
		hosts = []string{
			"unix:///var/run/docker.sock",
			"unix://" + filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "docker.sock"),
			"unix://" + filepath.Join(home, ".docker/run/docker.sock"),
		}
	}
	var errs []error
	for _, host := range hosts {
		api, err := client.New(client.FromEnv, client.WithHost(host))
		if err == nil {
			pingCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
			_, err = api.Ping(pingCtx, client.PingOptions{NegotiateAPIVersion: true})
			cancel()
		}
		if err == nil {
			return api, os.Setenv("DOCKER_HOST", host)
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNone, errors.Join(errs...))
}

// settle decides testcontainers' settings. Its reaper Ryuk is an image of its own from a registry, which need not be within
// reach; the reaper of this package does the same and needs none. Every port is published on the loopback address, so a
// client that believes to sit in a container must not look for the engine at its gateway.
func settle() {
	tclog.SetDefault(log.New(io.Discard, "", 0)) // a container per line is too much to read
	for name, value := range map[string]string{
		"TESTCONTAINERS_RYUK_DISABLED": "true",
		"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
	} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, value)
		}
	}
}

// ours is how the runs of this user begin.
func ours() string { return fmt.Sprintf("u%d-", os.Getuid()) }

// Close removes everything this run made.
func (e *Engine) Close(ctx context.Context) error { return e.remove(ctx, e.Run) }

// sweepDeadRuns removes what this user's runs that are no more left behind.
func (e *Engine) sweepDeadRuns(ctx context.Context) error {
	runs, err := e.runs(ctx)
	for run := range runs {
		if run == e.Run || !strings.HasPrefix(run, ours()) {
			continue
		}
		life, claimed := claim(run)
		if claimed != nil {
			continue // alive, or being swept by another
		}
		err = errors.Join(err, e.remove(ctx, run), os.Remove(life.Name()), life.Close())
	}
	return err
}

// runs lists the runs that have anything on the engine.
func (e *Engine) runs(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	containers, err := e.API.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled("")})
	for _, c := range containers.Items {
		found[c.Labels[Label]] = true
	}
	networks, err2 := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: labelled("")})
	for _, n := range networks.Items {
		found[n.Labels[Label]] = true
	}
	return found, errors.Join(err, err2)
}

// remove removes everything that a run made. What is gone already is no error.
func (e *Engine) remove(ctx context.Context, run string) error {
	var errs []error
	containers, err := e.API.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled(run)})
	errs = append(errs, err)
	for _, c := range containers.Items {
		_, err := e.API.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		errs = append(errs, unlessGone(err))
	}
	networks, err := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: labelled(run)})
	errs = append(errs, err)
	for _, n := range networks.Items {
		_, err := e.API.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		errs = append(errs, unlessGone(err))
	}
	return errors.Join(errs...)
}

func labelled(run string) client.Filters {
	if run == "" {
		return make(client.Filters).Add("label", Label)
	}
	return make(client.Filters).Add("label", Label+"="+run)
}

func unlessGone(err error) error {
	if err != nil && (strings.Contains(err.Error(), "No such") || strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "already in progress")) {
		return nil
	}
	return err
}

// startReaper starts a copy of this program that outlives it by as long as the clean-up takes. It is in a session of its
// own, so that the interrupt which ends the tests does not end it too.
func (e *Engine) startReaper() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	reaper := exec.Command(self)
	reaper.Env = append(os.Environ(), reaperEnv+"="+e.Run)
	reaper.SysProcAttr = detached()
	if err := reaper.Start(); err != nil {
		return err
	}
	return reaper.Process.Release()
}

// ReapIfAsked turns this process into the reaper of another run if it was started as one; then it does not return. Call it
// first thing in TestMain.
func ReapIfAsked() {
	run := os.Getenv(reaperEnv)
	if run == "" {
		return
	}
	life, err := outlive(run)
	if err == nil {
		var api *client.Client
		if api, err = connect(context.Background()); err == nil {
			err = (&Engine{API: api}).remove(context.Background(), run)
		}
		_ = os.Remove(life.Name())
	}
	if err != nil {
		os.Exit(1) // nobody is left who could be told more
	}
	os.Exit(0)
}
