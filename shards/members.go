// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// data returns the content of this member's node.
func (m *Member) data() []byte {
	own, _ := node.ReadOwner(m.c.Identity) // written by this library
	d := node.Member{Host: own.Host, PID: own.PID, Label: own.Label, Member: strings.ToValidUTF8(m.opts.Label, "\uFFFD"), Shards: m.n, Weight: m.opts.Weight}
	if d.Member != "" {
		d.Label = d.Member
	}
	data, _ := json.Marshal(d) // cannot fail
	return data
}

// A view is what a member knows of the others.
type view struct {
	known map[string]node.Member // by the names of their nodes; with the zero value for a node that is no member's
	order []string               // the names, in the order in which they joined
}

// readersAtOnce limits how many members' nodes are read at the same time.
const readersAtOnce = 16

// update reads the nodes with these names that are not known yet, and forgets deleted nodes.
func (v *view) update(ctx context.Context, c bridge.Client, s *session.Session, dir string, names []string) error {
	queue := node.NewQueue(names)
	known, order := make(map[string]node.Member, len(names)), make([]string, 0, len(names))
	var fresh []string
	for _, e := range queue.Entries {
		if d, ok := v.known[e.Name]; ok {
			known[e.Name] = d
		} else {
			fresh = append(fresh, e.Name)
		}
		order = append(order, e.Name)
	}
	read := make([]*node.Member, len(fresh)) // nil for a node that is gone
	err := session.SideBySide(c.Requests.Calls, len(fresh), readersAtOnce, func(i int) error {
		n, err := c.Requests.Get(ctx, s, dir+"/"+fresh[i])
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		d, ok := node.ReadMember(n.Data)
		if !ok {
			d = node.Member{}
		}
		read[i] = &d
		return err
	})
	if err != nil {
		return err
	}
	for i, d := range read {
		if d != nil {
			known[fresh[i]] = *d
		}
	}
	v.known, v.order = known, order
	return nil
}

// shares returns the members that count, and which of them has the node named own: -1 if it does not
// count. Of several members with one label, the first counts. It returns ErrMismatch if the first member
// has a different number of shards than n; later ones with a different number do not count.
func (v *view) shares(own string, n int) (shares []share, self int, err error) {
	self = -1
	taken := map[string]bool{}
	for _, name := range v.order {
		d := v.known[name]
		switch {
		case d.Shards == 0 || taken[d.Member]:
			continue
		case len(shares) == 0 && d.Shards != n:
			return nil, -1, fmt.Errorf("%w: the fleet has %d shards, not %d", zklock.ErrMismatch, d.Shards, n)
		case d.Shards != n:
			continue
		}
		id := name
		if d.Member != "" {
			taken[d.Member], id = true, "label "+d.Member
		}
		if name == own {
			self = len(shares)
		}
		shares = append(shares, share{id, d.Weight})
	}
	return shares, self, nil
}

// isFinal reports whether a request failed so that the member cannot continue.
func isFinal(err error) bool {
	return !outcome.IsTransient(err) && !errors.Is(err, outcome.ErrSessionOver) && !errors.Is(err, zk.ErrNoNode)
}
