// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/session"
)

// pickDir is the lock that a caller of Number holds while it looks for a free number.
const pickDir = "/pick"

// Number returns the smallest free number from 0 to n-1, for example the worker ID of a
// generator of unique IDs, and a hold of it. The number is yours until the hold ends. Number does not
// wait for a number: if all are taken, it returns zklock.ErrLocked. Callers pick one after another.
//
// When the hold is lost, stop using the number: others can get it. If its process may continue for a while
// without noticing, as after a suspension, set zklock.Options.LockDelay: a number whose holder has
// crashed then stays free for that long, and Number skips it.
//
// Number 7 below path is the mutex path/0007. All callers must use the same n. Do not use
// the path of Run. The error is zklock.ErrInvalid if n is not from 1 to 100,000.
func Number(ctx context.Context, c *zklock.Client, path string, n int) (hold *zklock.Hold, number int, err error) {
	p := picker{client: c, c: bridge.ClientOf(c), path: path, n: n}
	if err := p.check(); err != nil {
		return nil, -1, p.failure(err)
	}
	err = c.Mutex(path+pickDir).Do(ctx, func(picking context.Context) (err error) {
		hold, number, err = p.pick(picking, ctx)
		return err
	})
	if hold != nil { // it stays valid even if the lock for picking was lost meanwhile
		return hold, number, nil
	}
	return nil, -1, p.failure(err)
}

// A picker is one call of Number.
type picker struct {
	client *zklock.Client
	c      bridge.Client
	path   string
	n      int
}

func (p *picker) check() error {
	if p.n < 1 || p.n > node.MaxShards {
		return fmt.Errorf("%w: %d numbers; use 1 to %d", zklock.ErrInvalid, p.n, node.MaxShards)
	}
	return node.CheckPath(p.path)
}

func (p *picker) failure(err error) error {
	return fmt.Errorf("zklock: pick a number below %d of %s: %w", p.n, node.Printable(p.path), err)
}

// pick acquires the smallest free number under ctx. picking also ends with the lock for picking.
func (p *picker) pick(picking, ctx context.Context) (*zklock.Hold, int, error) {
	taken, err := p.taken(picking)
	if err != nil {
		return nil, -1, err
	}
	for number := range p.n {
		if taken[number] {
			continue
		}
		if picking.Err() != nil {
			return nil, -1, context.Cause(picking)
		}
		hold, err := p.client.Mutex(Path(p.path, number)).TryLock(ctx)
		if err == nil || !errors.Is(err, zklock.ErrLocked) {
			return hold, number, err
		}
	}
	return nil, -1, fmt.Errorf("%w: every number", zklock.ErrLocked)
}

// taken returns the numbers that have a contender. It reads only the directories that exist: those of
// the numbers in use now or until recently.
func (p *picker) taken(ctx context.Context) (map[int]bool, error) {
	callCtx := p.c.Requests.CallContext(ctx)
	defer callCtx.Cancel()
	taken, err := session.Persist(callCtx, p.c.Requests, func(s *session.Session) (map[int]bool, error) {
		return p.look(callCtx, s)
	})
	if err != nil {
		return nil, p.c.Requests.Explain(callCtx, err)
	}
	return taken, nil
}

func (p *picker) look(ctx context.Context, s *session.Session) (map[int]bool, error) {
	list, err := p.c.Requests.FreshList(ctx, s, p.c.Root+p.path)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, name := range list.Names {
		there[name] = true
	}
	var numbers []int
	for number := range p.n {
		if there[fmt.Sprintf("%04d", number)] {
			numbers = append(numbers, number)
		}
	}
	used := make([]bool, len(numbers))
	err = session.SideBySide(p.c.Requests.Calls, len(numbers), readersAtOnce, func(i int) error {
		stat, err := p.c.Requests.Stat(ctx, s, p.c.Root+Path(p.path, numbers[i]))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		used[i] = err == nil && stat.NumChildren > 0
		return err
	})
	taken := map[int]bool{}
	for i, number := range numbers {
		taken[number] = used[i]
	}
	return taken, err
}
