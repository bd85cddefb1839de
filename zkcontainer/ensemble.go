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

// Ensemble is a running ensemble of one server or more.
type Ensemble struct {
	Options Options
	Members []*Member

	engine *Engine
	net    *testcontainers.DockerNetwork
	links  links
}

// Start starts an ensemble and waits until every member serves and one request
// has been answered. Stop must end it; if this process dies before, its reaper does.
func (e *Engine) Start(ctx context.Context, opts Options) (*Ensemble, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	if opts.Image == "" {
		if opts.Image, err = e.Image(ctx); err != nil {
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

// begin starts the members and waits until they serve.
func (z *Ensemble) begin(ctx context.Context) error {
	if err := z.each(func(m *Member) error { return m.create(ctx) }); err != nil {
		return err
	}
	err := z.Healthy(ctx)
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

// each runs do for all members at once.
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

// Addrs are the members' client addresses from here.
func (z *Ensemble) Addrs() []string {
	var addrs []string
	for _, m := range z.Members {
		addrs = append(addrs, m.Addr)
	}
	return addrs
}

// ConnectionString is Addrs as most clients want it: with commas between.
func (z *Ensemble) ConnectionString() string { return strings.Join(z.Addrs(), ",") }

// Inside are the members' client addresses for containers on the private network.
func (z *Ensemble) Inside() []string {
	var addrs []string
	for _, m := range z.Members {
		addrs = append(addrs, m.Name+":2181")
	}
	return addrs
}

// Network is the name of the private network.
func (z *Ensemble) Network() string { return z.net.Name }

// Logs are the last lines of every member's log, for a failure's report.
func (z *Ensemble) Logs(ctx context.Context) string {
	var b strings.Builder
	for _, m := range z.Members {
		fmt.Fprintf(&b, "the last lines of %s:\n%s\n", m.Name, m.Logs(ctx))
	}
	return b.String()
}

// Healthy waits until every member serves and they agree on one leader.
func (z *Ensemble) Healthy(ctx context.Context) error {
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

// Leader waits for a leader other than the given members and returns it.
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

// Followers returns all but the leader.
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

// HurtsNetworks returns what is missing for cuts and slow links, nil if nothing is.
func (z *Ensemble) HurtsNetworks(ctx context.Context) error {
	for _, tool := range []string{"iptables", "tc"} {
		if _, err := z.Members[0].tool(ctx, "which", tool); err != nil {
			return fmt.Errorf("zkcontainer: the image %s has no %s, and Options.Tools names none that has: %w", z.Options.Image, tool, err)
		}
	}
	return nil
}

// poll asks until ok. A server tells nobody when it has found its leader: there is nothing else to wait for.
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

// patience bounds waits for what must come.
const patience = 90 * time.Second
