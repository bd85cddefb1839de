// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// isVerdict reports whether a reply's code is one that a quorum has agreed on, success or a
// refusal.
func isVerdict(code int32) bool {
	switch code {
	case frames.CodeOK, frames.CodeNoNode, frames.CodeBadVersion, frames.CodeNoChildrenForEphemerals, frames.CodeNodeExists, frames.CodeNotEmpty:
		return true
	}
	return false
}

// evidenceOf returns the evidence in a reply with that code. If ok is false, it proves nothing.
func evidenceOf(op, code int32) (of lease.Evidence, ok bool) {
	switch op {
	case frames.OpAuth, frames.OpSASL:
		return 0, false // a server replies to these by itself, and records no touch
	case frames.OpSync:
		if code == frames.CodeOK {
			return lease.OfLeader, true
		}
	case frames.OpCreate, frames.OpDelete, frames.OpSetData, frames.OpSetACL, frames.OpMulti, frames.OpCreate2, frames.OpCreateContainer, frames.OpCreateTTL:
		if isVerdict(code) {
			return lease.OfQuorum, true
		}
	}
	return lease.OfServer, code != frames.CodeThrottled
}
