// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"slices"
	"strings"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/node"
)

// Shards is a fleet of package shards as observed: its members, and who holds each shard.
type Shards struct {
	Path    string        // as it was passed to package shards
	Number  int           // of shards; zero if there are no members
	Members []ShardMember // in the order in which they joined
	Free    []int         // the shards that no member holds
	Waiting int           // how many contenders wait for shards: while shards move, and for long if a member's work does not return
}

// ShardMember is a member of a fleet.
type ShardMember struct {
	zklock.Contender // its place among the members; Label is that of shards.Options, if it is set
	Weight           int
	// Held lists the shards that the member's session holds. If several members share a session, the first
	// member has them all.
	Held []int
}

// GroupShards combines the queues of each fleet of package shards, which are the mutexes of its shards
// and the places of its members. It returns the fleets, sorted by path, and all other queues in their
// order.
func GroupShards(queues []*Queue) (fleets []*Shards, others []*Queue) {
	var byPath map[string]*Queue
	belongs := map[*Queue]bool{}
	for _, q := range queues {
		path, ok := strings.CutSuffix(q.Path, node.MembersDir)
		f := fleetOf(path, q)
		if !ok || f == nil {
			continue
		}
		if byPath == nil {
			byPath = indexed(queues)
		}
		belongs[q] = true
		f.find(byPath, belongs)
		fleets = append(fleets, f)
	}
	slices.SortFunc(fleets, func(a, b *Shards) int { return strings.Compare(a.Path, b.Path) })
	return fleets, slices.DeleteFunc(slices.Clone(queues), func(q *Queue) bool { return belongs[q] })
}

func indexed(queues []*Queue) map[string]*Queue {
	byPath := make(map[string]*Queue, len(queues))
	for _, q := range queues {
		byPath[q.Path] = q
	}
	return byPath
}

// find records who holds each shard, and which queues belong to the fleet.
func (f *Shards) find(byPath map[string]*Queue, belongs map[*Queue]bool) {
	bySession := map[int64]int{}
	for i, m := range slices.Backward(f.Members) {
		bySession[m.Session] = i
	}
	for number := range f.Number {
		holder := -1
		if shard := byPath[node.ShardPath(f.Path, number)]; shard != nil {
			belongs[shard] = true
			holder = f.holder(shard, bySession)
		}
		if holder < 0 {
			f.Free = append(f.Free, number)
			continue
		}
		f.Members[holder].Held = append(f.Members[holder].Held, number)
	}
}

// holder returns which member holds a shard, or -1 if none does. It counts those that wait for it.
func (f *Shards) holder(shard *Queue, bySession map[int64]int) int {
	holder := -1
	for _, who := range shard.Contenders {
		member, known := bySession[who.Session]
		switch {
		case !who.Holds:
			f.Waiting++
		case known:
			holder = member
		}
	}
	return holder
}

// fleetOf returns the fleet whose members have the places in q, without their shards, or nil if these are
// no members.
func fleetOf(path string, q *Queue) *Shards {
	f := &Shards{Path: path}
	for _, who := range q.Contenders {
		m, ok := node.ReadMember(who.Data)
		if !ok {
			continue
		}
		if f.Number == 0 {
			f.Number = m.Shards // the first member decides
		}
		f.Members = append(f.Members, ShardMember{Contender: who, Weight: m.Weight})
	}
	if f.Number == 0 {
		return nil
	}
	return f
}
