// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// each yields the contender's nodes in queue order.
func (t *contender) each(yield func(*member) bool) {
	if t.batch != nil {
		for _, x := range t.batch.others {
			if !yield(x) {
				return
			}
		}
	}
	yield(&t.member)
}

// members returns the members that each yields.
func (t *contender) members() []*member { return slices.Collect(t.each) }

// nodes returns the nodes of these members.
func (t *contender) nodes() []*session.OwnNode {
	var nodes []*session.OwnNode
	for x := range t.each {
		nodes = append(nodes, &x.OwnNode)
	}
	return nodes
}

// at returns the directory and the session of our node. Like the other methods of holder, it is
// called only once the node has a name.
func (t *contender) at() (dir string, s *session.Session) { return t.Dir, t.Sess }

func (t *contender) made() (name string, czxid int64) { return t.Name, t.czxid }

func (t *contender) isShared() bool { return t.recipe.Shared }

func (t *contender) nodesHeld(yield func(n *session.OwnNode, watched bool) bool) {
	for x := range t.each {
		if !yield(&x.OwnNode, x.isWatched()) {
			return
		}
	}
}

// errNoGate is returned by a create whose queue node is gone. It counts as a refusal.
var errNoGate = fmt.Errorf("%w: %w", outcome.ErrGone, zk.ErrNoNode)

// createBatch returns the transaction that creates the nodes of the batch, and the function that
// handles the reply and sets the nodes' names.
func (t *contender) createBatch(data []byte) (frames.Request, func(*frames.Answer) (struct{}, error)) {
	var ops []any
	for x := range t.each {
		ops = append(ops, t.creationOf(x, data))
	}
	created := len(ops)
	if t.queueNode != nil {
		ops = append(ops, t.queueNode.Exists())
	}
	read := session.ReadResults(len(ops))
	return frames.Multi(ops), func(a *frames.Answer) (none struct{}, err error) {
		answers, err := read(a)
		switch {
		case Refused(answers) == created && errors.Is(err, zk.ErrNoNode):
			return none, errNoGate
		case Refused(answers) == created && errors.Is(err, zk.ErrNoAuth):
			return none, session.ErrUnreadable
		case err != nil:
			return none, err
		}
		members := t.members()
		for i, x := range members {
			if err := t.checkMade(x, answers[i].String); err != nil {
				return none, err
			}
		}
		for i, x := range members {
			x.Name = node.BaseName(answers[i].String)
		}
		t.czxid = a.Zxid
		return none, nil
	}
}

// findNames sets the names of the nodes from a listing. The nodes were created together, so finding
// one shows that all were created. A missing node was deleted since; it gets a name that no node
// has.
func (t *contender) findNames(names []string) {
	mine := map[string]*member{}
	for x := range t.each {
		mine[x.prefix()] = x
	}
	made := false
	for _, name := range names {
		if x := mine[name[:min(len(name), len(t.prefix()))]]; x != nil && strings.HasPrefix(name, x.prefix()+"-") {
			x.Name = name
			made = true
		}
	}
	for x := range t.each {
		if made && x.Name == "" {
			x.Name = node.BaseName(t.nameless(x))
		}
	}
}

// notOurs returns ahead without the nodes of this batch.
func (t *contender) notOurs(ahead []node.Entry) []node.Entry {
	if t.batch == nil {
		return ahead
	}
	ours := map[string]bool{}
	for _, x := range t.batch.others {
		ours[x.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(ahead), func(e node.Entry) bool { return ours[e.Name] })
}

// complete reports whether a listing shows all our nodes.
func (t *contender) complete(queue *node.Queue) bool {
	for x := range t.each {
		if !queue.Has(x.Name) {
			return false
		}
	}
	return true
}

// deleteAll deletes the nodes of the batch in one transaction; if some of them are gone, it deletes
// the rest.
func (t *contender) deleteAll(ctx context.Context, s *session.Session) error {
	left := slices.DeleteFunc(t.members(), func(x *member) bool { return x.Name == "" })
	for len(left) > 0 {
		var ops []any
		for _, x := range left {
			ops = append(ops, &zk.DeleteRequest{Path: x.Path(), Version: -1})
		}
		_, err := t.engine.Requests.Multi(ctx, s, ops...)
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		l, err := t.engine.Requests.List(ctx, s, t.Dir) // one of them is gone: find out which are left
		if err != nil {
			return err
		}
		before, queue := len(left), l.Queue()
		left = slices.DeleteFunc(left, func(x *member) bool { return !queue.Has(x.Name) })
		if len(left) == before {
			return errors.New("stale reply from a lagging server") // the caller retries
		}
	}
	return nil
}

// batchSize returns the approximate size of the transaction that creates a batch of n nodes. It
// includes what servers add when they forward the transaction, such as the numbers in names, and
// the check of the queue node, which is shorter than a create.
func (c *Engine) batchSize(r *Recipe, dir string, data []byte, n int) int {
	t := c.newContender(r, dir, nil)
	t.guid = node.NewGUID(node.GUIDMark)
	one, _ := node.RequestSize([]any{t.creationOf(&t.member, node.WithRevocation(data))})
	return (n + 1) * (one + 16)
}
