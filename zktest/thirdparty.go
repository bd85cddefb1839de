// SPDX-License-Identifier: Apache-2.0

package zktest

import "fmt"

// Apply commits steps in one transaction, as a third party with all permissions. If
// it returns an error, none of the steps was applied. Nodes get exactly the given
// names, independent of their parent's counter. To imitate a sequential ephemeral
// node of another client, use its full name, and its session as the Owner.
func (s *Server) Apply(steps ...Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ens.peers.canCommit() {
		return fmt.Errorf("zktest: %s: no leader with a quorum", describe(steps))
	}
	if id := s.ens.proposer.missing(steps); id != 0 {
		return fmt.Errorf("zktest: %s: no session %s", describe(steps), hex(id))
	}
	if t := s.ens.proposer.intrude(steps); t.code != CodeOK {
		return fmt.Errorf("zktest: %s: error code %d", describe(steps), t.code)
	}
	return nil
}

// DeleteNode deletes a node in its own transaction, as a third party with all
// permissions. It returns an error if the node has children.
func (s *Server) DeleteNode(path string) error { return s.DeleteNodes(path) }

// DeleteNodes deletes nodes in one transaction, in the given order. If one of them
// cannot be deleted, none is.
func (s *Server) DeleteNodes(paths ...string) error {
	var steps []Step
	for _, path := range paths {
		steps = append(steps, Step{Op: OpDelete, Path: path})
	}
	return s.Apply(steps...)
}

// PutNode creates a node, with persistent parents as needed, or sets its data if it
// exists, as a third party with all permissions.
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
