package zktest

import "fmt"

// Apply commits steps in one transaction, as a third party with all rights: all
// of them or, with an error, none. Nodes get exactly the names that are given,
// whatever their parent's counter says; a sequential node of a foreign client is
// imitated by its full name and its session as the Owner.
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
