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
	"github.com/zklock-go/zklock/internal/session"
)

// A batch is several contenders that one transaction creates: all or none, with no other
// contender between them. So two callers that want several permits each can never hold a part
// each and wait for the rest. The last contender of the batch leads it: it enters, is settled
// and is removed for all. The others are in its field with.

// create creates the node, and those of the batch, in one request. It returns their names, in
// the order of whole. Note is what createWith leaves.
func (t *contender) create(data []byte, note *zk.SetDataRequest) ([]string, error) {
	if len(t.with) == 0 {
		path, err := t.createOne(data, note)
		if err == nil {
			err = t.checkMade(path)
		}
		return []string{node.BaseName(path)}, err
	}
	var ops []any
	for x := range t.each {
		ops = append(ops, x.creation(data))
	}
	answers, err := session.Transact(t.c.Conn, ops)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(answers))
	for i, x := range t.whole() {
		if err := x.checkMade(answers[i].String); err != nil {
			return nil, err
		}
		names[i] = node.BaseName(answers[i].String)
	}
	return names, nil
}

func (t *contender) createOne(data []byte, note *zk.SetDataRequest) (path string, err error) {
	if t.counted != nil || t.replaces != nil {
		return t.createWith(data, note)
	}
	return t.c.Conn.Create(t.nameless(), data, zk.FlagEphemeralSequential, t.c.ACL)
}

// checkMade returns an error for a path that no server makes of the one that it was asked for.
// The node is then looked for, as after a lost answer.
func (t *contender) checkMade(path string) error {
	number, ok := strings.CutPrefix(path, t.nameless())
	if _, isSeq := node.ParseSeq(number); !ok || !isSeq {
		return fmt.Errorf("%w: it has made %s", frames.ErrMalformed, node.Printable(path))
	}
	return nil
}

// newGUIDs returns a new guid for each of the batch.
func (t *contender) newGUIDs() []string {
	guids := make([]string, len(t.with)+1)
	attempt := node.NewGUID(node.GUIDMark)[len(node.GUIDMark):][:32-len(node.GUIDMark)-node.GroupDigits-4]
	for i := range guids {
		guids[i] = node.NewGUID(t.mark())
		if t.group != "" {
			guids[i] = fmt.Sprintf("%s%s%s%04x", node.GUIDMark, t.group, attempt, i)
		}
	}
	return guids
}

// recognise sets the names of the batch from a listing. Because they were created together, one
// node shows that all were created. A node that is missing was deleted since; its contender
// gets a name that no node has.
func (t *contender) recognise(names []string) {
	mine := map[string]*contender{}
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
			x.Name = node.BaseName(x.nameless())
		}
	}
}

// notOurs returns ahead without the contenders of the batch.
func (t *contender) notOurs(ahead []node.Entry) []node.Entry {
	if len(t.with) == 0 {
		return ahead
	}
	ours := map[string]bool{}
	for _, x := range t.with {
		ours[x.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(ahead), func(e node.Entry) bool { return ours[e.Name] })
}

// complete reports whether a listing shows the whole batch.
func (t *contender) complete(line *node.Line) bool {
	for x := range t.each {
		if !line.Has(x.Name) {
			return false
		}
	}
	return true
}

// deleteAll deletes the nodes of the batch, in one transaction as long as all of them exist.
func (t *contender) deleteAll(ctx context.Context, s *session.Session) error {
	left := slices.DeleteFunc(t.whole(), func(x *contender) bool { return x.Name == "" })
	for len(left) > 0 {
		var ops []any
		for _, x := range left {
			ops = append(ops, &zk.DeleteRequest{Path: x.Path(), Version: -1})
		}
		_, err := t.c.Multi(ctx, s, ops...)
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		l, err := t.c.List(ctx, s, t.Dir) // somebody has deleted one: which are left?
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, name := range l.Names {
			there[name] = true
		}
		before := len(left)
		left = slices.DeleteFunc(left, func(x *contender) bool { return !there[x.Name] })
		if len(left) == before {
			return errors.New("a server that lags shows what is gone") // is tried again
		}
	}
	return nil
}

// batchSize returns about how long the transaction for a batch of n will be. It includes what
// servers add when they pass it on, such as the numbers in names.
func (c *Engine) batchSize(r *Recipe, dir string, data []byte, n int) int {
	t := c.newContender(r, dir, nil)
	t.guid = node.NewGUID(node.GUIDMark)
	one, _ := node.RequestSize([]any{t.creation(node.WithRevocation(data))})
	return n * (one + 16)
}
