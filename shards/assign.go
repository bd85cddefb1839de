// SPDX-License-Identifier: Apache-2.0

package shards

import "hash/fnv"

// A share is a member's weight in the assignment. IDs are distinct.
type share struct {
	id     string
	weight int
}

// assign returns for each of n shards the index of the share that it belongs to. The result depends on
// nothing else, so all members that see the same shares agree. The order of the shares does not matter.
//
// A share gets as many shards as its part of the weights, rounded down or up: with equal weights, two
// shares differ by at most one shard. Within these limits, each shard belongs to the share that has
// the highest score for it (rendezvous hashing), so few shards move when a share comes or goes.
func assign(shares []share, n int) []int {
	if len(shares) == 0 {
		return nil
	}
	seeds, room, spare := make([]uint64, len(shares)), make([]int, len(shares)), n
	total := 0
	for _, s := range shares {
		total += s.weight
	}
	for i, s := range shares {
		seeds[i] = seedOf(s.id)
		room[i] = n * s.weight / total
		spare -= room[i]
	}
	owners := make([]int, n)
	for shard := range owners {
		owners[shard] = pick(shares, seeds, room, spare > 0, shard)
		room[owners[shard]]--
		if room[owners[shard]] < 0 {
			spare--
		}
	}
	return owners
}

// pick returns the share with the highest score for a shard among those with room. With spare, a share
// whose room is used up may get one more.
func pick(shares []share, seeds []uint64, room []int, spare bool, shard int) int {
	best, most := -1, uint64(0)
	for i, s := range shares {
		if room[i] < 0 || room[i] == 0 && !spare {
			continue
		}
		score := scoreOf(seeds[i], s.weight, shard)
		if best < 0 || score > most || score == most && s.id < shares[best].id {
			best, most = i, score
		}
	}
	return best
}

// scoreOf returns the highest of as many scores as the weight. They are integers, because members on
// different processors must agree.
func scoreOf(seed uint64, weight, shard int) (most uint64) {
	for k := range weight {
		most = max(most, mix(seed+uint64(k)*golden^mix(uint64(shard)+golden)))
	}
	return most
}

func seedOf(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return mix(h.Sum64())
}

// golden is 2^64 divided by the golden ratio: its multiples are spread evenly.
const golden = 0x9e3779b97f4a7c15

// mix is the finalizer of MurmurHash3: each bit of x changes about half of the bits of the result.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
