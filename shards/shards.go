// SPDX-License-Identifier: Apache-2.0

// Package shards spreads n pieces of work, the shards, evenly over the live members of a fleet. Each
// shard is run by one member at a time, under a lock with a token.
//
//	err := shards.Run(ctx, client, "/shards/orders", 100, func(ctx context.Context, shard int) error {
//		token := zklock.HoldAt(ctx, shards.Path("/shards/orders", shard)).Token()
//		...
//		<-ctx.Done() // the shard moves to another member, or its lock is lost
//		return nil
//	})
//
// Package shards is built on [zklock.Mutex]: shard 7 of /shards/orders is the mutex /shards/orders/0007.
// So one shard has one member at a time even if members disagree for a moment about who they are: then
// one of them waits for the other.
package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
)

// ErrMoved is the cause with which the context of a shard's work ends because the shard now belongs to
// another member.
var ErrMoved = errors.New("shard belongs to another member")

// Work is what a member does with a shard. Its context is derived from that of Run. It also ends when the
// shard moves to another member, with the cause ErrMoved, and when the shard's lock is lost, with a cause
// that wraps zklock.ErrLost. zklock.HoldAt returns the hold of the shard, and so its token: see Path.
//
// After a move, the lock is held until Work has returned, so Work can finish: the
// context of the hold (Hold.Context) has not ended then. See Options.Grace.
type Work = func(ctx context.Context, shard int) error

// Options configures a member. They can be left out; of several, the last ones count.
type Options struct {
	// Label names the member, for example by its host. A member that leaves and comes back with the same
	// label gets the same shards. If another member has the label, the new one stands by until that one
	// has left or its session has ended; so a process that was restarted after a crash waits, and no
	// shard moves to a third member. At most 1024 bytes. By default every call of Run is a member of its
	// own.
	Label string
	// Weight is how many shards the member gets, in proportion to the other members' weights. From 1 to
	// 100; default 1.
	Weight int
	// Grace limits how long Work may continue after its shard has moved or the context of Run has ended.
	// Then the lock is released although Work has not returned, and another member runs the shard: the
	// context of the hold ends with zklock.ErrReleased. The default, zero, means no limit.
	Grace time.Duration
}

// Run is New followed by Member.Run.
func Run(ctx context.Context, c *zklock.Client, path string, n int, work Work, opts ...*Options) error {
	return New(c, path, n, opts...).Run(ctx, work)
}

// Member is a member of a fleet: one process, or one of several in a process. It is safe for concurrent
// use by multiple goroutines.
type Member struct {
	client *zklock.Client
	c      bridge.Client
	path   string
	n      int
	opts   Options

	mu      sync.Mutex
	current *tenure // guarded by mu: nil while Run does not run
}

// New returns a member of the fleet that shares the n shards at path. It sends nothing; an invalid
// argument is reported by Run.
func New(c *zklock.Client, path string, n int, opts ...*Options) *Member {
	m := &Member{client: c, c: bridge.ClientOf(c), path: path, n: n}
	for _, o := range opts {
		if o != nil {
			m.opts = *o
		}
	}
	if m.opts.Weight == 0 {
		m.opts.Weight = 1
	}
	return m
}

// Run joins the fleet and calls work for each shard that belongs to this member, for each in a goroutine
// of its own, while it holds the shard's lock. When members come or go, shards move. If work returns nil
// before its context has ended, Run releases the lock, pauses as Election.Run does, and calls work again.
//
// If work returns an error before its context has ended, Run ends the contexts of all others, waits for
// them, leaves the fleet, and returns that error. Errors that work returns after its context has ended
// do not count: Run writes them to the client's log. If work panics, the others are ended in the same
// way, and Run panics.
//
// Run continues through failed connections and expired sessions. It returns when work fails, ctx ends,
// the client is closed, an operator evicts the member while it waits (zklock.ErrEvicted), or a server
// refuses a request. The error is never nil. When Run returns, every call of work has returned, and no
// node is left.
//
// Run returns zklock.ErrMismatch if the first member of the fleet has a different number of shards: use
// another path for another number. It returns zklock.ErrInvalid for an invalid argument and if Run is
// already running, and zklock.ErrLimit, before anything is sent, if the nodes of all shards do not fit
// into one client, because the last member would have to hold all of them.
func (m *Member) Run(ctx context.Context, work Work) error {
	t, err := m.begin(ctx, work)
	if err != nil {
		return m.failure("run", err)
	}
	defer m.end()
	return m.failure("run", t.run())
}

func (m *Member) begin(ctx context.Context, work Work) (*tenure, error) {
	if err := m.check(work); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		return nil, fmt.Errorf("%w: Run is already running", zklock.ErrInvalid)
	}
	m.current = newTenure(ctx, m, work)
	return m.current, nil
}

func (m *Member) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = nil
}

func (m *Member) check(work Work) error {
	switch {
	case m.n < 1 || m.n > node.MaxShards:
		return fmt.Errorf("%w: %d shards; use 1 to %d", zklock.ErrInvalid, m.n, node.MaxShards)
	case m.opts.Weight < 0 || m.opts.Weight > node.MaxWeight:
		return fmt.Errorf("%w: weight %d; use 1 to %d", zklock.ErrInvalid, m.opts.Weight, node.MaxWeight)
	case m.opts.Grace < 0:
		return fmt.Errorf("%w: grace %v is negative", zklock.ErrInvalid, m.opts.Grace)
	case len(m.opts.Label) > node.MaxLabel:
		return fmt.Errorf("%w: label of %d bytes, the limit is %d", zklock.ErrInvalid, len(m.opts.Label), node.MaxLabel)
	case work == nil:
		return fmt.Errorf("%w: no function given", zklock.ErrInvalid)
	}
	if err := node.CheckPath(m.path); err != nil {
		return err
	}
	if bytes := m.n * nodeBytes(m.c.Root+Path(m.path, m.n-1)); bytes > queue.MaxOwned {
		return fmt.Errorf("%w: the nodes of %d shards take %d bytes, and one client can have %d", zklock.ErrLimit, m.n, bytes, queue.MaxOwned)
	}
	return nil
}

// nodeBytes returns how long the path of a contender's node in a directory is.
func nodeBytes(dir string) int {
	return len(dir) + len("/"+node.NamePrefix) + len(node.NewGUID(node.GUIDMark)) + len(node.LockInfix) + 10
}

// Path returns the path of the mutex of a shard, or of a number of Number, below path.
func Path(path string, number int) string { return node.ShardPath(path, number) }

// Assigned returns, in order, the shards that belong to this member as far as it knows. It sends no
// request.
func (m *Member) Assigned() []int { return m.shards(func(*shard) bool { return true }) }

// Held returns, in order, the assigned shards whose locks this member holds. A member is ready when both
// have the same length.
func (m *Member) Held() []int { return m.shards((*shard).isHeld) }

func (m *Member) shards(want func(*shard) bool) (numbers []int) {
	m.mu.Lock()
	t := m.current
	m.mu.Unlock()
	if t == nil {
		return nil
	}
	for number, s := range t.assigned() {
		if want(s) {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

func (m *Member) failure(op string, err error) error {
	return fmt.Errorf("zklock: %s shards of %s: %w", op, node.Printable(m.path), err)
}
