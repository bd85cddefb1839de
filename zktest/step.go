// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"fmt"
	"strings"
	"time"
)

// Step is one write of Apply: a create, delete, setData, setACL or check.
type Step struct {
	Op    Op
	Path  string
	Data  []byte
	ACL   []ACL         // for a create or setACL; nil means everyone has all permissions
	Owner int64         // for a create, the session of an ephemeral node; 0 for other nodes
	TTL   time.Duration // for OpCreateTTL
}

func (step Step) call() call {
	r := call{op: step.Op, path: step.Path, data: step.Data, acl: step.ACL, version: -1, ttl: -1, owner: step.Owner}
	if r.acl == nil {
		r.acl = openACL
	}
	switch {
	case step.Op == OpCreateTTL:
		r.flags, r.ttl = flagTTL, step.TTL.Milliseconds()
	case step.Op == OpCreateContainer:
		r.flags = flagContainer
	case step.Owner != 0:
		r.flags = flagEphemeral
	}
	return r
}

func describe(steps []Step) string {
	var parts []string
	for _, step := range steps {
		parts = append(parts, fmt.Sprintf("%v %s", step.Op, strings.ToValidUTF8(step.Path, "?")))
	}
	return strings.Join(parts, ", ")
}
