// SPDX-License-Identifier: Apache-2.0

package zkcontainer

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
	"sync"
	"time"

	"github.com/moby/moby/client"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// label marks every container and network of this package. Its value identifies the process that they belong to.
const label = "zklock.zkcontainer.run"

// reaperEnv makes a copy of the test binary act as the reaper of another process.
const reaperEnv = "ZKCONTAINER_REAPER"

// ErrNone is returned if no container engine answers.
var ErrNone = errors.New("no container engine answers")

// Engine is this process's connection to the machine's container engine.
type Engine struct {
	API *client.Client

	run  string   // the value of label for everything that this process creates
	life *os.File // locked while this process lives; the reaper waits for that lock, and later runs try it
}

// Find returns the engine. The first call connects to it.
var Find = sync.OnceValues(func() (*Engine, error) { return open(context.Background()) })

// Labels returns the labels that other containers need to be removed with this process.
func (e *Engine) Labels() map[string]string { return map[string]string{label: e.run} }

// open connects to the engine, removes what dead runs left behind and starts the reaper, so that nothing of this process
// outlives it. It first sets the environment of testcontainers, which reads it only once.
func open(ctx context.Context) (*Engine, error) {
	api, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	settle()
	e := &Engine{API: api, run: fmt.Sprintf("%s%d-%d", ours(), time.Now().Unix(), os.Getpid())}
	e.life, err = begin(e.run)
	if err != nil {
		return nil, err
	}
	if err := e.startReaper(); err != nil {
		return nil, err
	}
	return e, e.sweepDeadRuns(ctx)
}

// connect connects to the engine at DOCKER_HOST or, if that is not set, at one of the usual sockets.
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

// settle sets the environment of testcontainers. Its reaper, Ryuk, needs an image from a registry, which may not be
// reachable; the reaper of this package does the same without an image. Every port is published on the loopback address, so a
// process that runs in a container must not look for the ports at its gateway.
func settle() {
	tclog.SetDefault(log.New(io.Discard, "", 0)) // it logs several lines per container
	for name, value := range map[string]string{
		"TESTCONTAINERS_RYUK_DISABLED": "true",
		"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
	} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, value)
		}
	}
}

// ours returns the prefix of this user's runs.
func ours() string { return fmt.Sprintf("u%d-", os.Getuid()) }

// Close removes everything that this process created.
func (e *Engine) Close(ctx context.Context) error { return e.remove(ctx, e.run) }

// sweepDeadRuns removes what this user's dead runs left behind.
func (e *Engine) sweepDeadRuns(ctx context.Context) error {
	runs, err := e.runs(ctx)
	for run := range runs {
		if run == e.run || !strings.HasPrefix(run, ours()) {
			continue
		}
		life, claimed := claim(run)
		if claimed != nil {
			continue // alive, or being swept by another process
		}
		err = errors.Join(err, e.remove(ctx, run), os.Remove(life.Name()), life.Close())
	}
	return err
}

// runs returns the runs that have containers or networks on the engine.
func (e *Engine) runs(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	containers, err := e.API.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled("")})
	for _, c := range containers.Items {
		found[c.Labels[label]] = true
	}
	networks, err2 := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: labelled("")})
	for _, n := range networks.Items {
		found[n.Labels[label]] = true
	}
	return found, errors.Join(err, err2)
}

// remove removes everything that a run created. It ignores what is already gone.
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
		return make(client.Filters).Add("label", label)
	}
	return make(client.Filters).Add("label", label+"="+run)
}

func unlessGone(err error) error {
	if err != nil && (strings.Contains(err.Error(), "No such") || strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "already in progress")) {
		return nil
	}
	return err
}

// startReaper starts a copy of this program that cleans up after this process has ended. It has its own session, so that an
// interrupt that ends the tests does not end it too.
func (e *Engine) startReaper() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	reaper := exec.Command(self)
	reaper.Env = append(os.Environ(), reaperEnv+"="+e.run)
	reaper.SysProcAttr = detached()
	if err := reaper.Start(); err != nil {
		return err
	}
	return reaper.Process.Release()
}

// If the test binary was started as a reaper, it does nothing else. This has to happen in init, before main, so that users
// need no TestMain.
func init() {
	if run := os.Getenv(reaperEnv); run != "" {
		reap(run)
	}
}

// reap waits until a run's process has ended, removes what it left behind and exits.
func reap(run string) {
	life, err := outlive(run)
	if err == nil {
		var api *client.Client
		api, err = connect(context.Background())
		if err == nil {
			err = (&Engine{API: api}).remove(context.Background(), run)
		}
		_ = os.Remove(life.Name())
	}
	if err != nil {
		os.Exit(1) // there is nowhere to report the error to
	}
	os.Exit(0)
}
