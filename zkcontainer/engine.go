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

// label marks every container and network of this package; its value is the process that they belong to.
const label = "zklock.zkcontainer.run"

// reaperEnv tells a copy of the test binary that it is the reaper of another.
const reaperEnv = "ZKCONTAINER_REAPER"

// ErrNone is returned when no container engine answers.
var ErrNone = errors.New("no container engine answers")

// Engine is the machine's container engine as this process uses it.
type Engine struct {
	API *client.Client

	run  string   // the value of label for everything that this process makes
	life *os.File // locked while this process lives; the reaper and later runs wait for that lock
}

// Find returns the engine. The first call looks for it.
var Find = sync.OnceValues(func() (*Engine, error) { return open(context.Background()) })

// Labels are what further containers need to end with this process.
func (e *Engine) Labels() map[string]string { return map[string]string{label: e.run} }

// open finds the engine, removes what dead runs left behind and makes sure that nothing of this process outlives it. It
// also settles what testcontainers would ask the user for, which reads its settings once.
func open(ctx context.Context) (*Engine, error) {
	api, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	settle()
	e := &Engine{API: api, run: fmt.Sprintf("%s%d-%d", ours(), time.Now().Unix(), os.Getpid())}
	if e.life, err = begin(e.run); err != nil {
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

// Close removes everything that this process made.
func (e *Engine) Close(ctx context.Context) error { return e.remove(ctx, e.run) }

// sweepDeadRuns removes what this user's runs that are no more left behind.
func (e *Engine) sweepDeadRuns(ctx context.Context) error {
	runs, err := e.runs(ctx)
	for run := range runs {
		if run == e.run || !strings.HasPrefix(run, ours()) {
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
		found[c.Labels[label]] = true
	}
	networks, err2 := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: labelled("")})
	for _, n := range networks.Items {
		found[n.Labels[label]] = true
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

// startReaper starts a copy of this program that outlives it by as long as the clean-up takes. It is in a session of its
// own, so that the interrupt which ends the tests does not end it too.
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

// A test binary that was started as the reaper of another does nothing else. It must be here, before main: users have no
// reason to write a TestMain.
func init() {
	if run := os.Getenv(reaperEnv); run != "" {
		reap(run)
	}
}

// reap waits for the end of a process, removes what it has left and ends this one.
func reap(run string) {
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
