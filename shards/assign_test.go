// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func sharesOf(r *rand.Rand, n, weight int) []share {
	all := make([]share, n)
	for i := range all {
		all[i] = share{fmt.Sprintf("member-%x", r.Uint64()), 1 + r.IntN(weight)}
	}
	return all
}

func loads(owners []int, shares int) []int {
	all := make([]int, shares)
	for _, o := range owners {
		all[o]++
	}
	return all
}

// Each shard has a member, and loads differ by at most one; with weights, from their part by less than one.
//
//zklock:promise P21.3
func TestEachShardIsAssignedAndLoadsAreEven(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		weight := 1 + 9*r.IntN(2)
		shares, n := sharesOf(r, 1+r.IntN(40), weight), 1+r.IntN(200)
		owners := assign(shares, n)
		require.Len(t, owners, n)
		total := 0
		for _, s := range shares {
			total += s.weight
		}
		for i, load := range loads(owners, len(shares)) {
			least := n * shares[i].weight / total
			require.GreaterOrEqual(t, load, least)
			require.LessOrEqual(t, load, least+1)
		}
	}
	require.Nil(t, assign(nil, 5))
}

// Members that see the same others agree, in whatever order they see them.
//
//zklock:promise P21.5 A32
func TestTheAssignmentDependsOnTheMembersOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	byID := func(shares []share, owners []int) (ids []string) {
		for _, o := range owners {
			ids = append(ids, shares[o].id)
		}
		return ids
	}
	for range 300 {
		shares, n := sharesOf(r, 1+r.IntN(20), 3), 1+r.IntN(100)
		want := byID(shares, assign(shares, n))
		shuffled := slices.Clone(shares)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Equal(t, want, byID(shuffled, assign(shuffled, n)))
	}
	// Processes of different versions must agree, too: these values never change.
	require.Equal(t, []int{2, 0, 1, 2, 0, 1, 1, 0, 0, 2}, assign([]share{{"a", 1}, {"b", 1}, {"c", 1}}, 10))
}

// A member that comes or goes moves few shards more than it must.
//
//zklock:promise P21.5
func TestFewShardsMove(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ members, n, more int }{{4, 100, 8}, {30, 100, 9}, {10, 1000, 25}, {100, 1000, 40}} {
		moved, least := 0, 0
		const rounds = 40
		for i := range rounds {
			before := sharesOf(r, c.members, 1)
			after := slices.Clone(before)
			if i%2 == 0 {
				after = append(after, sharesOf(r, 1, 1)...)
				least += c.n / len(after)
			} else {
				after = after[1:]
				least += c.n / len(before)
			}
			a, b := assign(before, c.n), assign(after, c.n)
			for s := range a {
				if before[a[s]].id != after[b[s]].id {
					moved++
				}
			}
		}
		t.Logf("%d members, %d shards: %.1f move, %.1f must", c.members, c.n, float64(moved)/rounds, float64(least)/rounds)
		require.LessOrEqual(t, moved, least+c.more*rounds, "%+v", c)
	}
}

// A member with twice the weight gets twice the shards, and mostly keeps them.
func TestWeightsAreProportional(t *testing.T) {
	shares := []share{{"small", 1}, {"large", 2}, {"huge", 7}}
	require.Equal(t, []int{10, 20, 70}, loads(assign(shares, 100), 3))
	require.Equal(t, []int{0, 0, 1}, loads(assign([]share{{"a", 1}, {"b", 1}, {"c", 98}}, 1), 3))
}

func BenchmarkAssign(b *testing.B) {
	shares := sharesOf(rand.New(rand.NewPCG(1, 2)), 1000, 1)
	for b.Loop() {
		assign(shares, 1000)
	}
}
