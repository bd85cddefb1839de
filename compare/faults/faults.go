// Package faults puts the holders of several libraries' locks under the same nine faults of three servers, and records
// what the holder was told and who else was let in.
package faults

import (
	"context"
	"slices"
	"time"

	"github.com/zklock-go/zklock/compare/servers"
	"github.com/zklock-go/zklock/compare/ways"
)

// Fault is something that happens to three servers.
type Fault struct {
	Name   string
	leader bool // it hits the leader, and the holder is the leader's client; else a follower
	alone  bool // it needs a leader, or peers that talk to each other
	once   bool // it is over when hurt returns
	hurt   action
	heal   action
}

type action func(ctx context.Context, e *servers.Ensemble, victim *servers.Process) error

// All is the nine, under the names that they have in integration/fault_test.go.
var All = []Fault{
	{Name: "follower killed", hurt: kill, heal: restart},
	{Name: "leader killed", leader: true, alone: true, hurt: kill, heal: restart},
	{Name: "follower paused", hurt: pause, heal: resume},
	{Name: "leader paused", leader: true, alone: true, hurt: pause, heal: resume},
	{Name: "all paused", hurt: each(pause), heal: each(resume)},
	{Name: "follower cut off from its peers", alone: true, hurt: cutOff, heal: healed},
	{Name: "leader cut off from its peers", leader: true, alone: true, hurt: cutOff, heal: healed},
	{Name: "slow links", hurt: slow, heal: fast},
	{Name: "all restarted one by one", once: true, hurt: each(killAndRestart), heal: nothing},
}

// Named returns the faults of those names, all for none.
func Named(names []string) []Fault {
	if len(names) == 0 {
		return All
	}
	return slices.DeleteFunc(slices.Clone(All), func(f Fault) bool { return !slices.Contains(names, f.Name) })
}

// why tells why servers of a family cannot meet the fault; it is empty if they can.
func (f Fault) why(family string) string {
	if f.alone && family == redis {
		return "its servers have no leader and do not know of each other"
	}
	return ""
}

// lasts is how long it lasts: sessions end in it, and a follower without a leader gives up, which takes ten seconds.
func lasts() time.Duration { return max(ways.Lease, 4*time.Second) + 8*time.Second }

func kill(_ context.Context, _ *servers.Ensemble, victim *servers.Process) error {
	victim.Kill()
	return nil
}

func restart(ctx context.Context, _ *servers.Ensemble, victim *servers.Process) error {
	return victim.Start(ctx)
}

func pause(_ context.Context, _ *servers.Ensemble, victim *servers.Process) error {
	return victim.Pause()
}

func resume(_ context.Context, _ *servers.Ensemble, victim *servers.Process) error {
	return victim.Resume()
}

func cutOff(_ context.Context, e *servers.Ensemble, victim *servers.Process) error {
	return e.CutOff(victim)
}

func healed(_ context.Context, e *servers.Ensemble, _ *servers.Process) error { return e.Heal() }

func slow(_ context.Context, e *servers.Ensemble, _ *servers.Process) error {
	_, err := e.Slow()
	return err
}

func fast(_ context.Context, e *servers.Ensemble, _ *servers.Process) error { return e.Fast() }

func nothing(context.Context, *servers.Ensemble, *servers.Process) error { return nil }

func killAndRestart(ctx context.Context, e *servers.Ensemble, victim *servers.Process) error {
	victim.Kill()
	if err := victim.Start(ctx); err != nil {
		return err
	}
	return e.Healthy(ctx)
}

// each does it to one member after the other.
func each(do action) action {
	return func(ctx context.Context, e *servers.Ensemble, _ *servers.Process) error {
		for _, m := range e.Members {
			if err := do(ctx, e, m); err != nil {
				return err
			}
		}
		return nil
	}
}
