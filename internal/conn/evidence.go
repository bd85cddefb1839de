package conn

import (
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/lease"
)

// isVerdict reports whether an answer's code is what a quorum has agreed on, success or a refusal.
func isVerdict(code int32) bool {
	switch code {
	case frames.CodeOK, frames.CodeNoNode, frames.CodeBadVersion, frames.CodeNoChildrenForEphemerals, frames.CodeNodeExists, frames.CodeNotEmpty:
		return true
	}
	return false
}

// evidenceOf returns what an answer with that code proves. If ok is false, it proves nothing
// at all.
func evidenceOf(op, code int32) (of lease.Evidence, ok bool) {
	switch op {
	case frames.OpAuth, frames.OpSASL:
		return 0, false // a server answers these by itself, and notes no touch
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
