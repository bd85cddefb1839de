// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKindsOfFaultsAreSwitchedByName(t *testing.T) {
	var h Hostile
	require.NoError(t, h.Parse(""))
	require.Zero(t, h)
	require.NoError(t, h.Parse("short,wipes"))
	require.Equal(t, Hostile{Short: true, Wipes: true}, h)
	require.ErrorContains(t, h.Parse("rain"), `unknown kind of faults "rain"`)
	require.NoError(t, h.Parse("all"))
	require.Equal(t, Hostile{Streams: true, Buckets: true, Wipes: true, Later: true, Short: true, Closing: true, Keeper: true, Evicts: true, Curator: true, Backups: true, Logins: true, Delays: true, Forged: true, Blind: true, Withheld: true, Secret: true, Minimums: true, Crowds: true, Looks: true, Throttle: true, Ticks: true}, h)
}

func TestAKindOfFaultDoesNotChangeTheRestOfThePlan(t *testing.T) {
	for seed := range uint64(50) {
		usual := NewHostilePlan(seed, Hostile{})
		for _, kind := range []Hostile{{Streams: true}, {Wipes: true}, {Evicts: true}, {Curator: true}, {Blind: true}, {Forged: true}, {Withheld: true}, {Minimums: true}, {Crowds: true}, {Throttle: true}, {Ticks: true}} {
			plan := NewHostilePlan(seed, kind)
			plan.Hostile, plan.MinSessions, plan.Ticks = Hostile{}, nil, nil
			require.Equal(t, usual, plan)
		}
		buckets := NewHostilePlan(seed, Hostile{Buckets: true})
		require.Equal(t, usual.Clients, buckets.Clients)
		require.Equal(t, usual.During, buckets.During)
	}
}

func TestSomeSeedsHaveTheRareKindsOfFaults(t *testing.T) {
	kinds, plain := map[string]int{}, 0
	for seed := range uint64(400) {
		h := NewPlan(seed).Hostile
		require.True(t, h.Buckets && h.Wipes && h.Later && h.Evicts && h.Curator)
		for name, has := range map[string]bool{"streams": h.Streams, "short": h.Short, "closing": h.Closing, "keeper": h.Keeper, "blind": h.Blind, "withheld": h.Withheld, "secret": h.Secret, "minimums": h.Minimums, "crowds": h.Crowds, "throttle": h.Throttle, "ticks": h.Ticks} {
			if has {
				kinds[name]++
			}
		}
		if !h.Streams && !h.Short {
			plain++
		}
	}
	for _, name := range []string{"streams", "short", "closing", "keeper", "blind", "withheld", "secret", "minimums", "crowds", "throttle", "ticks"} {
		require.GreaterOrEqual(t, kinds[name], 60, name)
	}
	require.GreaterOrEqual(t, plain, 150)
}

func TestEachKindOfFaultIsDrawnByManySeeds(t *testing.T) {
	all := Hostile{}
	require.NoError(t, all.Parse("all"))
	count := map[string]int{}
	for seed := range uint64(200) {
		p := NewHostilePlan(seed, all)
		tell := func(name string, drawn bool) {
			if drawn {
				count[name]++
			}
		}
		tell("expiry gap", p.ExpiryGap > 0)
		tell("lost touches", p.LoseTouches > 0)
		tell("late pings", p.LatePing > 0)
		tell("flavors", p.Flavor != 0)
		tell("logins", p.Logins)
		tell("restricted", p.Restricted)
		tell("unknown requests", len(p.UnknownOps) > 0)
		tell("slow streams", len(p.troubles()["ensemble"]) > len(troubles["ensemble"]))
		for _, c := range p.Clients {
			if c.Session < 2*p.Tick {
				tell("short sessions", true)
				break
			}
		}
		require.LessOrEqual(t, p.Virtual().Hours(), 24.0)
	}
	for _, name := range []string{"expiry gap", "lost touches", "late pings", "flavors", "logins", "restricted", "unknown requests", "slow streams", "short sessions"} {
		require.GreaterOrEqual(t, count[name], 40, name)
	}
}
