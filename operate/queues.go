// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

func (c client) queues(ctx context.Context, path string) ([]*Queue, error) {
	callCtx := c.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	below, err := checkBelow(path)
	if err != nil {
		return nil, fmt.Errorf("zklock: queues below %s: %w", node.Printable(path), err)
	}
	queues, err := session.Persist(callCtx, c.Requests, func(s *session.Session) ([]*Queue, error) {
		return session.UpToDate(callCtx, c.Requests, s, func() ([]*Queue, error) { return c.browse(callCtx, s, below) })
	})
	if err != nil {
		return queues, fmt.Errorf("zklock: queues below %s: %w", node.Printable(path), c.Requests.Explain(callCtx, err))
	}
	return queues, nil
}

// checkBelow checks a path, and returns it as the prefix of the names below it.
func checkBelow(path string) (string, error) {
	if path == "/" {
		return "", nil
	}
	return path, node.CheckPath(path)
}

// browse reads the queue of a directory and of those below it. With zk.ErrNoAuth it returns all
// queues that can be read.
func (c client) browse(ctx context.Context, s *session.Session, path string) ([]*Queue, error) {
	l, err := c.Requests.List(ctx, s, node.DirOf(c.Root+path))
	if errors.Is(err, zk.ErrNoAuth) {
		return nil, fmt.Errorf("%s: %w", node.Printable(path), err)
	}
	if err != nil {
		return nil, err
	}
	var queues []*Queue
	var hidden error
	if isQueue(l.Names) && path != "" {
		q, err := c.lookIn(ctx, s, path, l)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			hidden = fmt.Errorf("%s: %w", node.Printable(path), err)
		case err != nil:
			return nil, err
		case len(q.Contenders) > 0:
			queues = append(queues, q)
		}
	}
	for _, name := range otherChildren(l.Names, path) {
		more, err := c.browse(ctx, s, path+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			hidden = cmp.Or(hidden, err)
		case err != nil && !errors.Is(err, zk.ErrNoNode): // otherwise it was deleted in the meantime
			return nil, err
		}
		queues = append(queues, more...)
	}
	return queues, hidden
}

// isQueue reports whether a directory with these children is that of a lock.
func isQueue(names []string) bool {
	return slices.Contains(names, node.LeasesDir[1:]) || len(node.ParseEntries(names)) > 0
}

// otherChildren returns, sorted, the children that do not belong to a queue and may have queues below
// them.
func otherChildren(names []string, path string) []string {
	semaphore := slices.Contains(names, node.LeasesDir[1:])
	var others []string
	for _, name := range names {
		_, contender := node.ParseEntry(name)
		switch {
		case contender, node.IsReserved(name), path == "" && name == "zookeeper":
		case semaphore && (name == node.LeasesDir[1:] || name == node.PermitQueueDir[1:]):
		default:
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return others
}
