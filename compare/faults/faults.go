// SPDX-License-Identifier: Apache-2.0

// Package faults subjects three servers to nine faults while a lock is held through each of several client libraries. It
// records which signals the holder received, and who else was granted the lock.
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
	leader bool // the fault hits the leader, to which the holder is connected; otherwise a follower, likewise
	alone  bool // the fault needs servers that have a leader or talk to each other
	once   bool // the fault is over when hurt returns
	hurt   action
	heal   action
}

type action func(ctx context.Context, e *servers.Ensemble, victim *servers.Process) error

// All lists the nine faults. integration/fault_test.go uses the same names.
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

// Named returns the faults with those names, or all faults if names is empty.
func Named(names []string) []Fault {
	if len(names) == 0 {
		return All
	}
	return slices.DeleteFunc(slices.Clone(All), func(f Fault) bool { return !slices.Contains(names, f.Name) })
}

// why returns the reason why the fault does not apply to a family of servers, or "" if it applies.
func (f Fault) why(family string) string {
	if f.alone && family == redis {
		return "its servers have no leader and do not know of each other"
	}
	return ""
}

// lasts returns how long a fault lasts. That is long enough for sessions to expire, and for a follower that lost its leader
// to stop serving clients, which takes ten seconds.
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

// each returns an action that calls do for every member, one after the other.
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
