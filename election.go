// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
)

// ErrNoLeader is returned by Election.Leader if the election has no members.
var ErrNoLeader = errors.New("no leader")

// ElectionOptions configures an election. A nil *ElectionOptions means the defaults.
type ElectionOptions struct {
	// Latch names the nodes like those of Curator's LeaderLatch, to share an election with it. By
	// default they are named like those of Curator's LeaderSelector. All members must use the same
	// setting.
	Latch bool
	// Prefer, if set, reports whether a member with the value a should lead rather than one with the
	// value b. It must be a strict order, such as a comparison of versions or zones: if it is true for
	// (a, b), it is false for (b, a). Members without a preference lead in the order in which they joined.
	//
	// It applies to Run: a member that is granted the leadership while a preferred one waits
	// campaigns again without leading, and a leader that sees a preferred member join ends its
	// term. So that a preferred member that comes and goes cannot keep others from leading, a term
	// lasts for at least one session timeout before it ends for that reason, and a member gives up
	// its leadership at most once in a session timeout. If a preferred member has crashed and its
	// node is still in the queue, nobody leads until its session has ended.
	//
	// Members without Prefer do not give up their leadership. Prefer gets the values of all members, which
	// may be of other versions of the program and, in a shared election, of Curator. It must return
	// quickly.
	Prefer func(a, b []byte) bool
	// Healthy, if set, is called by Run every HealthEvery, whether the member leads or not. If it
	// returns an error, panics, or does not return within HealthEvery, the member leaves the election:
	// its term ends, and it does not campaign until a check has succeeded. Its context ends after
	// HealthEvery; there are never two checks at the same time.
	Healthy func(ctx context.Context) error
	// HealthEvery is the time between the starts of two checks, and the longest that one may take.
	// Default the session timeout.
	HealthEvery time.Duration
}

// Election has one leader at a time. Its members lead in the order in which they joined. An
// Election has no state: all values for one path and the same options are the same
// election.
//
// Each member has a value that others can read while it leads, for example its address. The value
// is the data of the member's node, where Curator's LeaderSelector and LeaderLatch keep their
// participants' ids.
type Election struct {
	owner
	path string
	opts ElectionOptions
}

var (
	electionRecipe = &queue.Recipe{Name: "election", TakesDelay: true, Infix: node.LockInfix, Rule: node.AfterAll}
	latchRecipe    = &queue.Recipe{Name: "election", TakesDelay: true, Infix: node.LatchInfix, Rule: node.AfterAll, Fixed: true}
)

// maxValue keeps a request that contains a value below the size limit of a server.
const maxValue = 512 << 10

// Election returns the election at path, below which every member has a node. It sends nothing; an
// invalid path is reported by the first call. The options can be left out; of several, the last ones
// count.
func (c *Client) Election(path string, opts ...*ElectionOptions) *Election {
	return &Election{owner{c}, path, lastOf(opts)}
}

// Path returns the election's path, as it was passed to the client.
func (e *Election) Path() string { return e.path }

func (e *Election) recipe() *queue.Recipe {
	if e.opts.Latch {
		return latchRecipe
	}
	return electionRecipe
}

// Campaign waits until this member leads, and returns a hold whose Unlock resigns. If ctx ends
// first, it withdraws and returns an error, as Mutex.Lock does. Campaign returns ErrInvalid if the
// value is longer than 512 KiB or looks like a revocation (see operate.Revoke) or like the data of
// a writer that was downgraded.
func (e *Election) Campaign(ctx context.Context, value []byte) (*Hold, error) {
	if err := checkValue(value); err != nil {
		return nil, notAcquired("campaign for", e.path, err)
	}
	return e.client().lock(ctx, "campaign for", e.recipe(), e.path, bytes.Clone(value), nil)
}

// TryCampaign is Campaign without waiting: if the election has another member, it returns ErrLocked
// and leaves nothing behind.
func (e *Election) TryCampaign(ctx context.Context, value []byte) (*Hold, error) {
	if err := checkValue(value); err != nil {
		return nil, notAcquired("try to campaign for", e.path, err)
	}
	return e.client().tryLock(ctx, "try to campaign for", e.recipe(), e.path, bytes.Clone(value))
}

func checkValue(value []byte) error {
	switch {
	case len(value) > maxValue:
		return fmt.Errorf("%w: value of %d bytes, the limit is %d", ErrInvalid, len(value), maxValue)
	case node.IsRevocation(value):
		return fmt.Errorf("%w: the value looks like a revocation", ErrInvalid)
	case node.IsDowngraded(value):
		return fmt.Errorf("%w: the value looks like the data of a downgraded writer", ErrInvalid)
	}
	return nil
}

// Run campaigns repeatedly. It calls fn whenever this member leads, resigns when fn returns, and
// campaigns again if fn returned nil. The context of fn ends with ctx and with the hold; HoldAt
// returns that hold.
//
// If fn returns an error, Run resigns and returns that error. An error that fn returns after the
// leadership was lost does not count: Run logs it and campaigns again. The same applies after the context
// has ended with the cause ErrPreferred or ErrUnhealthy: see ElectionOptions.
//
// fn must return soon after its context ends. While fn cleans up after the end of ctx, no other
// member leads; but if the leadership was lost, another member may already lead.
//
// Run continues through failed connections and expired sessions. It returns when fn fails, ctx
// ends, the client is closed, the member is evicted while it waits (ErrEvicted), or a server
// refuses the request (zk.ErrNoAuth). The error is never nil. If fn panics, Run resigns before the
// panic continues.
//
// Run does not call fn for a leadership that ended before it could. It pauses after each term for
// 10 ms. If the term was shorter than the last pause, it pauses twice as long as the last time, up
// to a second. So a fn that returns at once does not overload the servers.
func (e *Election) Run(ctx context.Context, value []byte, fn func(ctx context.Context) error) error {
	if err := e.checkTerms(value); err != nil {
		return fmt.Errorf("zklock: run %s: %w", node.Printable(e.path), err)
	}
	callCtx := e.engine().Requests.CallContext(ctx)
	defer callCtx.Cancel()
	running, stop := context.WithCancel(callCtx)
	defer stop()
	r := &terms{e: e, value: value, fn: fn, health: e.startHealth(running)}
	var p session.Pace
	for {
		led, err := r.next(ctx, callCtx)
		switch {
		case err != nil:
			return err
		case led > p.Wait:
			p = session.Pace{}
		}
		p.Next(callCtx) // if the context ends, the next campaign returns the error
	}
}

// Proclaim replaces this member's value while it leads. ctx must be the context of its hold or
// derived from it; otherwise Proclaim returns ErrNotHeld. If the leadership is lost, it returns
// ErrLost. If ctx ends first, the value may or may not have been replaced.
//
// Proclaim returns ErrInvalid for a value that Campaign would not accept.
//
// With ElectionOptions.Latch it returns ErrInvalid: a LeaderLatch waits for the node before its own
// to be deleted, and would wait forever if that node's data changed.
func (e *Election) Proclaim(ctx context.Context, value []byte) error {
	h := e.leads(ctx)
	err := checkValue(value)
	switch {
	case err != nil:
	case e.recipe().Fixed:
		err = fmt.Errorf("%w: the value of a latch member cannot be changed", ErrInvalid)
	case h == nil:
		err = ErrNotHeld
	default:
		err = h.rewrite(ctx, bytes.Clone(value))
	}
	if err != nil {
		return fmt.Errorf("zklock: proclaim %s: %w", node.Printable(e.path), err)
	}
	return nil
}

// leads returns the hold of this election that ctx was derived from, or nil if there is none.
func (e *Election) leads(ctx context.Context) *Hold {
	for h := range chainOf(ctx).each {
		g := h.holding()
		if g.engine == e.engine() && g.path == e.path && g.recipe == e.recipe().Name && g.nodes[0].Fixed == e.recipe().Fixed {
			return h
		}
	}
	return nil
}

// Leader returns the leader, with its value as Data, or ErrNoLeader if there is none. The result is
// at least as recent as the call. A new leader is returned as soon as the old one's node is gone,
// which can be a moment before the new leader itself knows. With Options.LockDelay, a member is
// also returned while it waits for the delay.
func (e *Election) Leader(ctx context.Context) (Contender, error) {
	requests := e.engine().Requests
	inside := requests.CallContext(ctx)
	defer inside.Cancel()
	if err := node.CheckPath(e.path); err != nil {
		return Contender{}, fmt.Errorf("zklock: leader of %s: %w", node.Printable(e.path), err)
	}
	leader, err := session.Persist(inside, requests, func(s *session.Session) (Contender, error) { return e.look(inside, s) })
	if err == nil && leader.Node == "" {
		err = ErrNoLeader
	}
	if err != nil {
		return Contender{}, fmt.Errorf("zklock: leader of %s: %w", node.Printable(e.path), requests.Explain(inside, err))
	}
	return leader, nil
}

// look reads the first member's node. It returns the zero Contender if there is no member.
func (e *Election) look(ctx context.Context, s *session.Session) (Contender, error) {
	dir := e.client().root + e.path
	for {
		queue, err := e.queue(ctx, s)
		if err != nil || len(queue) == 0 {
			return Contender{}, err
		}
		for _, first := range queue {
			n, err := e.engine().Requests.Get(ctx, s, dir+"/"+first.Name)
			switch {
			case err == nil:
				return leaderOf(dir, first, n), nil
			case !errors.Is(err, zk.ErrNoNode):
				return Contender{}, err
			}
		}
	}
}

func leaderOf(dir string, e node.Entry, n session.Node) Contender {
	leader := contenderOf(dir, e, n)
	leader.Holds = true
	return leader
}

// queue lists the members in order. New members are only added at the end, so the front of the list
// stays valid.
func (e *Election) queue(ctx context.Context, s *session.Session) ([]node.Entry, error) {
	dir := e.client().root + e.path
	l, err := e.engine().Requests.FreshList(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := node.ParseEntries(l.Names)
	return e.client().inOrder(ctx, s, dir, entries)
}

// inOrder sorts entries. If their sequence numbers do not show the order, it reads the ids of the
// transactions that created them.
func (c *Client) inOrder(ctx context.Context, s *session.Session, dir string, entries []node.Entry) ([]node.Entry, error) {
	var there []node.Entry
	for _, e := range entries {
		if !node.IsPlain(e.Seq) {
			stat, err := c.engine.Requests.Stat(ctx, s, dir+"/"+e.Name)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				return nil, err
			}
			e.Czxid = stat.Czxid
		}
		there = append(there, e)
	}
	slices.SortFunc(there, node.Compare)
	return there, nil
}

// Contender is a node in a queue, created by zklock or by another client library.
type Contender struct {
	Node    string    // the full path in ZooKeeper
	Kind    string    // what it requests: operate.KindLock …
	Client  string    // the library that created it, judging by the node's name: operate.ClientZklock …; empty if unknown
	Holds   bool      // whether it holds the lock; false for all contenders while a lock-delay runs
	Token   int64     // Hold.Token, if the contender is a zklock hold
	Session int64     // the session that it belongs to; zero if it is not ephemeral
	Since   time.Time // when it was created, by the server's clock
	Revoked bool      // whether it was asked to release the lock
	Data    []byte    // the node's data without that request; in an election, the member's value
	Omitted int       // the number of bytes that Inspect cut from Data, which it limits to 4 KiB

	Anonymous bool // created with Options.Anonymous: without host name and process ID
	Cohort    bool // a Cohort's place: it may exist while none of the process's goroutines holds

	// A zklock contender describes itself in its data.
	Host  string
	PID   int
	Label string
}

// contenderOf returns the Contender for a node.
func contenderOf(dir string, e node.Entry, n session.Node) Contender {
	return Contender(e.View(dir, n.Data, n.Stat))
}
