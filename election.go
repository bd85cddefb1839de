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

// ErrNoLeader is returned by Election.Leader if no member stands for election.
var ErrNoLeader = errors.New("no leader")

// ElectionOptions configures an election. A nil *ElectionOptions means the defaults.
type ElectionOptions struct {
	// Latch names the nodes as Curator's LeaderLatch does, to share an election with it. By
	// default they are named as those of its LeaderSelector. All members must agree on it.
	Latch bool
}

// Election has one leader at a time among its members, in the order in which they stood for
// election. An Election has no state of its own: all values for one path and the same
// options are the same election.
//
// Each member has a value, which others see while it leads: its address, for example. The
// value is the data of the member's node, where Curator's LeaderSelector and LeaderLatch
// keep their participants' ids.
type Election struct {
	owner
	path  string
	latch bool // see ElectionOptions
}

var (
	electionRecipe = &queue.Recipe{Name: "election", Delays: true, Infix: node.LockInfix, Rule: node.AfterAll}
	latchRecipe    = &queue.Recipe{Name: "election", Delays: true, Infix: node.LatchInfix, Rule: node.AfterAll, Fixed: true}
)

// maxValue keeps a request that contains a value below the size that a server accepts.
const maxValue = 512 << 10

// Election returns the election at path, below which every member has a node.
func (c *Client) Election(path string, opts *ElectionOptions) *Election {
	return &Election{owner{c}, path, opts != nil && opts.Latch}
}

func (e *Election) recipe() *queue.Recipe {
	if e.latch {
		return latchRecipe
	}
	return electionRecipe
}

// Campaign waits until this member leads, and returns a hold whose Unlock resigns. If ctx
// ends first, it withdraws and returns an error, as Mutex.Lock does. For a value that is
// longer than 512 KiB or looks like a request to let go (see operate.Revoke) it returns
// ErrInvalid. So it does for one that looks like the data of a writer that was downgraded.
func (e *Election) Campaign(ctx context.Context, value []byte) (*Hold, error) {
	if err := checkValue(value); err != nil {
		return nil, fmt.Errorf("zklock: campaign for %s: %w", node.Printable(e.path), err)
	}
	return e.c().lock(ctx, "campaign for", e.recipe(), e.path, bytes.Clone(value))
}

// TryCampaign is Campaign without waiting: if another member leads or stands for election, it
// returns ErrLocked, and leaves nothing behind.
func (e *Election) TryCampaign(ctx context.Context, value []byte) (*Hold, error) {
	if err := checkValue(value); err != nil {
		return nil, fmt.Errorf("zklock: try to campaign for %s: %w", node.Printable(e.path), err)
	}
	return e.c().tryLock(ctx, "try to campaign for", e.recipe(), e.path, bytes.Clone(value))
}

func checkValue(value []byte) error {
	switch {
	case len(value) > maxValue:
		return fmt.Errorf("%w: value of %d bytes, the limit is %d", ErrInvalid, len(value), maxValue)
	case node.IsRevocation(value):
		return fmt.Errorf("%w: the value looks like a request to let go", ErrInvalid)
	case node.IsDowngraded(value):
		return fmt.Errorf("%w: the value looks like the data of a writer that has become a reader", ErrInvalid)
	}
	return nil
}

// Run stands for election again and again. It calls fn whenever this member leads, resigns
// when fn has returned, and, if fn has returned nil, stands again. The context of fn ends with
// ctx and with the hold, which HoldOf finds.
//
// If fn returns an error, Run resigns and returns that error. An error that fn returns after
// the leadership was lost does not count: Run logs it and stands again.
//
// fn must return soon after its context has ended. While fn cleans up after the end of ctx,
// no other member leads; but if the leadership was lost, another member may lead at once.
//
// Run goes on through failed connections and expired sessions. It returns when fn has failed,
// ctx ends, the client is closed, the member is evicted while it waits (ErrEvicted), or a
// server refuses to let it stand (zk.ErrNoAuth). The error is never nil. If fn panics, Run
// resigns before the panic goes on.
//
// Run does not call fn for a leadership that is over before it could. It pauses after each term:
// for 10 ms, or twice as long as the last time, up to a second, if the term was shorter than the
// last pause. So a fn that returns at once does not keep the servers busy.
func (e *Election) Run(ctx context.Context, value []byte, fn func(ctx context.Context) error) error {
	pausing := e.c().engine.Inside(ctx)
	defer pausing.Leave()
	var p session.Pace
	for {
		hold, err := e.Campaign(ctx, value)
		if err != nil {
			return err
		}
		start := time.Now()
		if err := e.lead(ctx, hold, fn); err != nil {
			return fmt.Errorf("zklock: run %s: %w", node.Printable(e.path), err)
		}
		if time.Since(start) > p.Wait {
			p = session.Pace{}
		}
		p.Next(pausing) // if that ends, the next campaign says so
	}
}

// lead returns the error of fn, nil if the leadership was lost.
func (e *Election) lead(ctx context.Context, hold *Hold, fn func(ctx context.Context) error) error {
	t := hold.run(ctx, fn) // leaves the old place, else the next campaign would wait behind it
	why, lost := t.left, errors.Is(t.ended, ErrLost)
	if lost {
		why = errors.Join(t.ended, t.failed)
	}
	if why != nil {
		e.c().engine.Log.Info("zklock: leadership ended", "path", e.path, "why", why)
	}
	if t.failed == nil || lost {
		return nil
	}
	return errors.Join(t.failed, t.ended)
}

// Proclaim replaces this member's value while it leads. ctx must be the context of its hold
// or derived from it; otherwise Proclaim returns ErrNotHeld. If the leadership is lost it
// returns ErrLost. If ctx ends first, the value may or may not have been replaced.
//
// In an election with Latch it returns ErrInvalid: a LeaderLatch waits for the end of the
// node before its own, and a change of that node's data would make it wait for ever.
func (e *Election) Proclaim(ctx context.Context, value []byte) error {
	h := e.leads(ctx)
	err := checkValue(value)
	switch {
	case err != nil:
	case e.recipe().Fixed:
		err = fmt.Errorf("%w: the value of a latch cannot change", ErrInvalid)
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

// leads returns the hold of this election that ctx was derived from, or nil.
func (e *Election) leads(ctx context.Context) *Hold {
	for h := range chainOf(ctx).each {
		g := h.of()
		if g.c == e.c().engine && g.path == e.path && g.recipe == e.recipe().Name && g.nodes[0].Fixed == e.recipe().Fixed {
			return h
		}
	}
	return nil
}

// Leader returns the leader, with its value as Data, or ErrNoLeader if there is none. The
// answer is not older than the call. A new leader shows as soon as the old one's node is
// gone, which can be a moment before the new leader itself knows. With Options.LockDelay, a
// member also shows while it waits for the delay.
func (e *Election) Leader(ctx context.Context) (Contender, error) {
	inside := e.c().engine.Inside(ctx)
	defer inside.Leave()
	if err := node.CheckPath(e.path); err != nil {
		return Contender{}, fmt.Errorf("zklock: leader of %s: %w", node.Printable(e.path), err)
	}
	leader, err := session.Persist(inside, e.c().engine.Requests, func(s *session.Session) (Contender, error) { return e.look(inside, s) })
	if err == nil && leader.Node == "" {
		err = ErrNoLeader
	}
	if err != nil {
		return Contender{}, fmt.Errorf("zklock: leader of %s: %w", node.Printable(e.path), e.c().engine.Explain(inside, err))
	}
	return leader, nil
}

// look reads the first member's node. It returns the zero Contender if there is none.
func (e *Election) look(ctx context.Context, s *session.Session) (Contender, error) {
	dir := e.c().root + e.path
	for {
		queue, err := e.queue(ctx, s)
		if err != nil || len(queue) == 0 {
			return Contender{}, err
		}
		for _, first := range queue {
			n, err := e.c().engine.Get(ctx, s, dir+"/"+first.Name)
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
	who := contenderOf(dir, e, n)
	who.Holds = true
	return who
}

// queue lists the members in order. New members only come at the end, so the list stays
// right from its front on.
func (e *Election) queue(ctx context.Context, s *session.Session) ([]node.Entry, error) {
	dir := e.c().root + e.path
	l, err := e.c().engine.FreshList(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := node.ParseEntries(l.Names)
	return e.c().inOrder(ctx, s, dir, entries)
}

// inOrder sorts entries. Where their numbers do not show the order, it reads the transactions
// that created them.
func (c *Client) inOrder(ctx context.Context, s *session.Session, dir string, entries []node.Entry) ([]node.Entry, error) {
	var there []node.Entry
	for _, e := range entries {
		if !node.IsPlain(e.Seq) {
			stat, err := c.engine.Stat(ctx, s, dir+"/"+e.Name)
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
