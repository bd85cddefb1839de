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
	ACL   []ACL         // of a create or setACL; nil is open to all
	Owner int64         // of a create: the session that the node is to end with, 0 for none
	TTL   time.Duration // of a create with OpCreateTTL
}

// Apply commits steps in one transaction, as a third party with all rights: all
// of them or, with an error, none. Nodes get exactly the names that are given,
// whatever their parent's counter says; a sequential node of a foreign client is
// imitated by its full name and its session as the Owner.
func (s *Server) Apply(steps ...Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.canCommit() {
		return fmt.Errorf("zktest: %s: no leader with a quorum", describe(steps))
	}
	for _, step := range steps {
		if step.Owner != 0 && s.sessions[step.Owner] == nil {
			return fmt.Errorf("zktest: %s: no session 0x%x", describe(steps), uint64(step.Owner))
		}
	}
	if t := s.intrude(steps); t.code != CodeOK {
		return fmt.Errorf("zktest: %s: error code %d", describe(steps), t.code)
	}
	return nil
}

// intrude commits steps past all access lists. The caller holds mu.
func (s *Server) intrude(steps []Step) *txn {
	if len(steps) == 1 {
		r := steps[0].call()
		return s.execute(&r, 0, superuser, nil)
	}
	m := &call{op: OpMulti}
	for _, step := range steps {
		m.subs = append(m.subs, step.call())
	}
	return s.executeMulti(m, 0, superuser, nil)
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

// DeleteNode deletes a node as a third party with all rights would, in a
// transaction of its own. A node with children stays, and is an error.
func (s *Server) DeleteNode(path string) error { return s.DeleteNodes(path) }

// DeleteNodes deletes nodes in one transaction, in the given order; if one of
// them cannot be deleted, none is.
func (s *Server) DeleteNodes(paths ...string) error {
	var steps []Step
	for _, path := range paths {
		steps = append(steps, Step{Op: OpDelete, Path: path})
	}
	return s.Apply(steps...)
}

// PutNode makes a node, with persistent parents as needed, or sets its data if
// it exists, as a third party would.
func (s *Server) PutNode(path string, data []byte) error {
	if err := s.putParents(path); err != nil {
		return err
	}
	if _, ok := s.Node(path); ok {
		return s.Apply(Step{Op: OpSetData, Path: path, Data: data})
	}
	return s.Apply(Step{Op: OpCreate, Path: path, Data: data})
}

func (s *Server) putParents(path string) error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if _, ok := s.Node(path[:i]); ok {
			continue
		}
		if err := s.Apply(Step{Op: OpCreate, Path: path[:i], Data: []byte{}}); err != nil {
			return err
		}
	}
	return nil
}
