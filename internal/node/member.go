// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"fmt"
)

// MembersDir is the directory of the nodes of a fleet's members, below the path of its shards.
const MembersDir = "/members"

// Limits of a fleet.
const (
	MaxShards = 100_000
	MaxWeight = 100
)

// ShardPath returns the path of the mutex of a shard, or of a number, below path.
func ShardPath(path string, number int) string { return fmt.Sprintf("%s/%04d", path, number) }

// Member is the content of the node of a fleet's member. It never changes. Its first fields are those of
// other contenders, for operators.
type Member struct {
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Label  string `json:"label,omitempty"`
	Member string `json:"member,omitempty"` // the label that its options set
	Shards int    `json:"shards"`
	Weight int    `json:"weight"`
}

// ReadMember parses the content of a member's node. ok is false for a node that is no member's.
func ReadMember(data []byte) (m Member, ok bool) {
	data = WithoutRevocation(data)
	ok = json.Unmarshal(data, &m) == nil && m.Shards >= 1 && m.Shards <= MaxShards && m.Weight >= 1 && m.Weight <= MaxWeight
	return m, ok
}
