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
func (co *contender) each(yield func(*member) bool) {
	if co.batch != nil {
		for _, x := range co.batch.others {
			if !yield(x) {
				return
			}
		}
	}
	yield(&co.member)
}

// members returns the members that each yields.
func (co *contender) members() []*member { return slices.Collect(co.each) }

// nodes returns the nodes of these members.
func (co *contender) nodes() []*session.OwnNode {
	var nodes []*session.OwnNode
	for x := range co.each {
		nodes = append(nodes, &x.OwnNode)
	}
	return nodes
}

// at returns the directory and the session of our node. Like the other methods of holder, it is
// called only once the node has a name.
func (co *contender) at() (dir string, s *session.Session) { return co.Dir, co.Sess }

func (co *contender) made() (name string, czxid int64) { return co.Name, co.czxid }

func (co *contender) isShared() bool { return co.recipe.Shared }

func (co *contender) nodesHeld(yield func(n *session.OwnNode, watched bool) bool) {
	for x := range co.each {
		if !yield(&x.OwnNode, x.isWatched()) {
			return
		}
	}
}

// errQueueNodeGone is returned by a create whose queue node is gone. It counts as a refusal.
var errQueueNodeGone = fmt.Errorf("%w: %w", outcome.ErrGone, zk.ErrNoNode)

// createBatch returns the transaction that creates the nodes of the batch, and the function that
// handles the reply and sets the nodes' names.
func (co *contender) createBatch(data []byte) (frames.Request, func(*frames.Answer) (struct{}, error)) {
	var ops []any
	for x := range co.each {
		ops = append(ops, co.creationOf(x, data))
	}
	created := len(ops)
	if co.queueNode != nil {
		ops = append(ops, co.queueNode.Exists())
	}
	read := session.ReadResults(len(ops))
	return frames.Multi(ops), func(a *frames.Answer) (none struct{}, err error) {
		answers, err := read(a)
		switch {
		case Refused(answers) == created && errors.Is(err, zk.ErrNoNode):
			return none, errQueueNodeGone
		case Refused(answers) == created && errors.Is(err, zk.ErrNoAuth):
			return none, session.ErrUnreadable
		case err != nil:
			return none, err
		}
		members := co.members()
		for i, x := range members {
			if err := co.checkMade(x, answers[i].String); err != nil {
				return none, err
			}
		}
		for i, x := range members {
			x.Name = node.BaseName(answers[i].String)
		}
		co.czxid = a.Zxid
		return none, nil
	}
}

// findNames sets the names of the nodes from a listing. The nodes were created together, so finding
// one shows that all were created. A missing node has been deleted since; it gets a name that no
// node has.
func (co *contender) findNames(names []string) {
	mine := map[string]*member{}
	for x := range co.each {
		mine[x.prefix()] = x
	}
	made := false
	for _, name := range names {
		if x := mine[name[:min(len(name), len(co.prefix()))]]; x != nil && strings.HasPrefix(name, x.prefix()+"-") {
			x.Name = name
			made = true
		}
	}
	for x := range co.each {
		if made && x.Name == "" {
			x.Name = node.BaseName(co.nameless(x))
		}
	}
}

// notOurs returns ahead without the nodes of this batch.
func (co *contender) notOurs(ahead []node.Entry) []node.Entry {
	if co.batch == nil {
		return ahead
	}
	ours := map[string]bool{}
	for _, x := range co.batch.others {
		ours[x.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(ahead), func(e node.Entry) bool { return ours[e.Name] })
}

// complete reports whether a listing shows all our nodes.
func (co *contender) complete(queue *node.Queue) bool {
	for x := range co.each {
		if !queue.Has(x.Name) {
			return false
		}
	}
	return true
}

// deleteAll deletes the nodes of the batch in one transaction; if some of them are gone, it deletes
// the rest.
func (co *contender) deleteAll(ctx context.Context, s *session.Session) error {
	left := slices.DeleteFunc(co.members(), func(x *member) bool { return x.Name == "" })
	for len(left) > 0 {
		var ops []any
		for _, x := range left {
			ops = append(ops, &zk.DeleteRequest{Path: x.Path(), Version: -1})
		}
		_, err := co.engine.Requests.Multi(ctx, s, ops...)
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		l, err := co.engine.Requests.List(ctx, s, co.Dir) // one of them is gone: find the others
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
// includes the bytes that servers add when they forward the transaction, such as the numbers in names,
// and the check of the queue node, which is shorter than a create.
func (en *Engine) batchSize(r *Recipe, dir string, data []byte, n int) int {
	co := en.newContender(r, dir, nil)
	co.guid = node.NewGUID(node.GUIDMark)
	one, _ := node.RequestSize([]any{co.creationOf(&co.member, node.WithRevocation(data))})
	return (n + 1) * (one + 16)
}
