// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// label marks every container and network of this package. Its value identifies the process that they belong to.
const label = "zklock.zkcontainer.run"

// enginePatience limits the wait for the engine's first answer.
const enginePatience = 10 * time.Second

// ErrNoEngine is returned if no container engine answers.
var ErrNoEngine = errors.New("no container engine answers")

// Engine is this process's connection to the container engine that testcontainers uses.
type Engine struct {
	// API is a client of the engine, for what testcontainers does not do. The caller must not close it.
	API *client.Client

	host string   // the host at which published ports can be reached, as testcontainers sees it
	run  string   // the value of label for everything that this process creates
	life *os.File // locked while this process lives; nil if Ryuk removes what is left
}

var find = sync.OnceValues(open)

// Find returns the engine that testcontainers uses. The first call connects to it. It changes no setting of testcontainers.
func Find() (*Engine, error) { return find() }

// Labels returns the labels that other containers need to be removed with this process.
func (e *Engine) Labels() map[string]string { return map[string]string{label: e.run} }

// open connects to the engine. If testcontainers' own reaper, Ryuk, is disabled, it removes what dead runs left behind and
// starts the reaper of this package, so that nothing of this process outlives it.
func open() (*Engine, error) {
	e, err := connect()
	if err != nil {
		return nil, err
	}
	e.run = fmt.Sprintf("%s%d-%d", ours(), time.Now().Unix(), os.Getpid())
	if !ryukDisabled() {
		return e, nil
	}
	e.life, err = begin(e.run)
	if err != nil {
		return nil, err
	}
	if err := e.startReaper(); err != nil {
		return nil, err
	}
	return e, e.sweepDeadRuns(context.Background())
}

// connect connects to the engine as testcontainers does.
func connect() (*Engine, error) {
	type result struct {
		e   *Engine
		err error
	}
	answered := make(chan result, 1)
	// Ends when the engine answers; nobody waits for it. testcontainers remembers how this ends for the whole process, so it
	// is not given up: only the caller stops waiting.
	go func() {
		e, err := connectSlowly(context.Background())
		answered <- result{e, err}
	}()
	select {
	case r := <-answered:
		if r.err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoEngine, r.err)
		}
		return r.e, nil
	case <-time.After(enginePatience):
		return nil, fmt.Errorf("%w in %v", ErrNoEngine, enginePatience)
	}
}

func connectSlowly(ctx context.Context) (*Engine, error) {
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	host, err := provider.DaemonHost(ctx)
	if err != nil {
		return nil, err
	}
	api, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, err
	}
	return &Engine{API: api.Client, host: host}, nil
}

// Close removes everything that this process created.
func (e *Engine) Close(ctx context.Context) error { return e.remove(ctx, e.run) }

// runs returns the runs that have containers or networks on the engine.
func (e *Engine) runs(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	containers, err := e.API.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labeled("")})
	for _, c := range containers.Items {
		found[c.Labels[label]] = true
	}
	networks, err2 := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: labeled("")})
	for _, n := range networks.Items {
		found[n.Labels[label]] = true
	}
	return found, errors.Join(err, err2)
}

// remove removes everything that a run created. It ignores what is already gone.
func (e *Engine) remove(ctx context.Context, run string) error {
	var errs []error
	containers, err := e.API.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labeled(run)})
	errs = append(errs, err)
	for _, c := range containers.Items {
		_, err := e.API.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		errs = append(errs, unlessGone(err))
	}
	networks, err := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: labeled(run)})
	errs = append(errs, err)
	for _, n := range networks.Items {
		_, err := e.API.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		errs = append(errs, unlessGone(err))
	}
	return errors.Join(errs...)
}

func labeled(run string) client.Filters {
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
