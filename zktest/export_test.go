// SPDX-License-Identifier: Apache-2.0

package zktest

// DecodeFrame decodes a request and a connect request, for the fuzzer. It
// answers how many steps and strings the frame made the server keep.
func DecodeFrame(frame []byte) (kept int) {
	_, _ = decodeConnect(frame)
	c, err := decodeCall(frame)
	if err != nil {
		return 0
	}
	for _, list := range c.watches {
		kept += cap(list)
	}
	return kept + len(c.subs) + cap(c.acl)
}

// Replicas answers each member's whole tree in a comparable form, and whether
// the member is in service.
func (s *Server) Replicas() (trees []map[string]Node, serving []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		nodes := make(map[string]Node)
		for path, n := range m.r.tree.nodes {
			nodes[path] = n.public()
		}
		trees, serving = append(trees, nodes), append(serving, m.r.serving && len(m.r.backlog) == 0)
	}
	return trees, serving
}
