// SPDX-License-Identifier: Apache-2.0

package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

// Ensemble is a running ensemble of one or more servers.
type Ensemble struct {
	// Options are the options that the ensemble was started with, with their defaults.
	// Image is the image that was chosen.
	Options Options
	// Members are the servers, in the order of their IDs.
	Members []*Member

	engine *Engine
	net    *testcontainers.DockerNetwork
	links  links
}

// Start starts an ensemble and waits until every member serves clients and one request
// has been answered. The caller must call Stop. If this process dies first, its reaper
// removes the ensemble.
func (e *Engine) Start(ctx context.Context, opts Options) (*Ensemble, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	if opts.Image == "" {
		opts.Image, err = e.Image(ctx)
		if err != nil {
			return nil, err
		}
	}
	z := &Ensemble{Options: opts, engine: e}
	z.net, err = tcnetwork.New(ctx, tcnetwork.WithLabels(e.Labels()))
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: network: %w", err)
	}
	for i := range opts.Servers {
		z.Members = append(z.Members, &Member{Name: memberName(i), id: i, all: z})
	}
	if err := z.begin(ctx); err != nil {
		return nil, errors.Join(err, z.Stop(context.WithoutCancel(ctx)))
	}
	return z, nil
}

// begin starts the members and waits until they serve clients.
func (z *Ensemble) begin(ctx context.Context) error {
	created, cancel := context.WithCancel(ctx)
	defer cancel()
	err := z.each(func(m *Member) error {
		err := m.create(created)
		if err != nil {
			cancel() // the other members would wait for this one
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("zkcontainer: %w\n%s", err, z.Logs(context.WithoutCancel(ctx)))
	}
	err = z.WaitHealthy(ctx)
	if err == nil {
		err = answers(ctx, z.Options, z.Addrs())
	}
	if err != nil {
		return fmt.Errorf("zkcontainer: %w\n%s", err, z.Logs(context.WithoutCancel(ctx)))
	}
	return nil
}

// Stop removes the ensemble and its network.
func (z *Ensemble) Stop(ctx context.Context) error {
	z.links.closeAll()
	err := z.each(func(m *Member) error { return m.remove(ctx) })
	return errors.Join(err, z.net.Remove(ctx))
}

// each calls do for all members concurrently.
func (z *Ensemble) each(do func(m *Member) error) error {
	errs := make([]error, len(z.Members))
	var wg sync.WaitGroup
	for i, m := range z.Members {
		// Ends when do does; each waits for it.
		wg.Go(func() {
			if err := do(m); err != nil {
				errs[i] = fmt.Errorf("%s: %w", m.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Addrs returns the members' client addresses, as seen from this process.
func (z *Ensemble) Addrs() []string {
	var addrs []string
	for _, m := range z.Members {
		addrs = append(addrs, m.Addr)
	}
	return addrs
}

// ConnectionString returns Addrs in the form that most clients expect: separated by commas.
func (z *Ensemble) ConnectionString() string { return strings.Join(z.Addrs(), ",") }

// InternalAddrs returns the members' client addresses, as seen from containers on the private network.
func (z *Ensemble) InternalAddrs() []string {
	var addrs []string
	for _, m := range z.Members {
		addrs = append(addrs, m.Name+":2181")
	}
	return addrs
}

// Network returns the name of the private network.
func (z *Ensemble) Network() string { return z.net.Name }

// Logs returns the last lines of every member's log, for the report of a failure.
func (z *Ensemble) Logs(ctx context.Context) string {
	var b strings.Builder
	for _, m := range z.Members {
		fmt.Fprintf(&b, "the last lines of %s:\n%s\n", m.Name, m.Logs(ctx))
	}
	return b.String()
}

// WaitHealthy waits until every member serves clients and there is one leader.
func (z *Ensemble) WaitHealthy(ctx context.Context) error {
	return poll(ctx, "a healthy ensemble", func() bool {
		modes := map[string]int{}
		for _, m := range z.Members {
			modes[m.Mode(ctx)]++
		}
		if len(z.Members) == 1 {
			return modes[Standalone] == 1
		}
		return modes[Leader] == 1 && modes[Follower]+modes[Observer] == len(z.Members)-1
	})
}

// Leader waits for a leader that is not one of the given members, and returns it.
func (z *Ensemble) Leader(ctx context.Context, except ...*Member) (*Member, error) {
	var leader *Member
	err := poll(ctx, "a leader", func() bool {
		for _, m := range z.Members {
			if !slices.Contains(except, m) && m.Mode(ctx) == Leader {
				leader = m
			}
		}
		return leader != nil
	})
	return leader, err
}

// Followers returns all members except the leader.
func (z *Ensemble) Followers(ctx context.Context) ([]*Member, error) {
	leader, err := z.Leader(ctx)
	var followers []*Member
	for _, m := range z.Members {
		if m != leader {
			followers = append(followers, m)
		}
	}
	return followers, err
}

// CheckTools returns nil if CutOff and Slow are possible. Otherwise the error names the tool that is missing.
func (z *Ensemble) CheckTools(ctx context.Context) error {
	for _, tool := range []string{"iptables", "tc"} {
		if _, err := z.Members[0].tool(ctx, "which", tool); err != nil {
			return fmt.Errorf("zkcontainer: neither the image %s nor Options.Tools has %s: %w", z.Options.Image, tool, err)
		}
	}
	return nil
}

// poll calls ok repeatedly until it returns true. Servers send no notification when they have a leader, so polling is the only
// way to wait for it.
func poll(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// patience is the time limit for waits.
const patience = 90 * time.Second
