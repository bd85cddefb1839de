package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
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
	c      *Client
	path   string
	recipe *recipe
}

var (
	electionRecipe = &recipe{name: "election", delays: true, infix: lockInfix, rule: afterAll}
	latchRecipe    = &recipe{name: "election", delays: true, infix: latchInfix, rule: afterAll, fixed: true}
)

// maxValue keeps a request that contains a value below the size that a server accepts.
const maxValue = 512 << 10

// Election returns the election at path, below which every member has a node.
func (c *Client) Election(path string, opts *ElectionOptions) *Election {
	r := electionRecipe
	if opts != nil && opts.Latch {
		r = latchRecipe
	}
	return &Election{c, path, r}
}

// Campaign waits until this member leads, and returns a hold whose Unlock resigns. If ctx
// ends first, it withdraws and returns an error, as Mutex.Lock does. For a value that is
// longer than 512 KiB or looks like a request to let go (see operate.Revoke) it returns
// ErrInvalid.
func (e *Election) Campaign(ctx context.Context, value []byte) (*Hold, error) {
	if err := checkValue(value); err != nil {
		return nil, fmt.Errorf("zklock: campaign %s: %w", printable(e.path), err)
	}
	return e.c.lock(ctx, "campaign", e.recipe, e.path, bytes.Clone(value))
}

// TryCampaign is Campaign without waiting: if another member leads or stands for election, it
// returns ErrLocked, and leaves nothing behind.
func (e *Election) TryCampaign(ctx context.Context, value []byte) (*Hold, error) {
	if err := checkValue(value); err != nil {
		return nil, fmt.Errorf("zklock: campaign %s: %w", printable(e.path), err)
	}
	return e.c.tryLock(ctx, e.recipe, e.path, bytes.Clone(value))
}

func checkValue(value []byte) error {
	switch {
	case len(value) > maxValue:
		return fmt.Errorf("%w: value of %d bytes, the limit is %d", ErrInvalid, len(value), maxValue)
	case isRevocation(value):
		return fmt.Errorf("%w: the value looks like a request to let go", ErrInvalid)
	}
	return nil
}

// Run stands for election again and again. It calls fn whenever this member leads, resigns
// when fn has returned, and stands again. The context of fn is that of the hold, which
// HoldOf finds, and also ends when ctx does.
//
// fn must return soon after its context has ended. While fn cleans up after the end of ctx,
// no other member leads; but if the leadership was lost, another member may lead at once.
//
// Run goes on through failed connections and expired sessions. It returns when ctx ends, the
// client is closed, the member is evicted while it waits (ErrEvicted), or a server refuses
// to let it stand (zk.ErrNoAuth). The error is never nil. If fn panics, Run resigns before
// the panic goes on.
//
// Run does not call fn for a leadership that is over before it could. It pauses after a term
// that was shorter than the last pause, for 10 ms at first and then twice as long each time
// up to a second, so that a fn that returns at once does not keep the servers busy.
func (e *Election) Run(ctx context.Context, value []byte, fn func(ctx context.Context)) error {
	pausing, stop := either(ctx, e.c.life)
	defer stop()
	var p pace
	for {
		hold, err := e.Campaign(ctx, value)
		if err != nil {
			return err
		}
		start := time.Now()
		e.lead(ctx, hold, fn)
		if time.Since(start) > p.wait {
			p = pace{}
		}
		p.next(pausing) // if that ends, the next campaign says so
	}
}

func (e *Election) lead(ctx context.Context, hold *Hold, fn func(ctx context.Context)) {
	inside, stop := hold.within(ctx)
	defer func() {
		stop()
		if err := hold.leave(ctx); err != nil { // else the next campaign would wait behind the old place
			e.c.log.Info("zklock: leadership ended", "path", e.path, "why", err)
		}
	}()
	if hold.Check() == nil && inside.Err() == nil {
		fn(inside)
	}
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
	case e.recipe.fixed:
		err = fmt.Errorf("%w: the value of a latch cannot change", ErrInvalid)
	case h == nil:
		err = ErrNotHeld
	default:
		err = h.rewrite(ctx, bytes.Clone(value))
	}
	if err != nil {
		return fmt.Errorf("zklock: proclaim %s: %w", printable(e.path), err)
	}
	return nil
}

// leads returns the hold of this election that ctx was derived from, or nil.
func (e *Election) leads(ctx context.Context) *Hold {
	for h := HoldOf(ctx); h != nil; h = h.outer {
		if h.of.c == e.c.engine && h.of.path == e.path && h.of.recipe == e.recipe.name {
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
	inside, stop := either(ctx, e.c.life)
	defer stop()
	if err := checkPath(e.path); err != nil {
		return Contender{}, fmt.Errorf("zklock: leader of %s: %w", printable(e.path), err)
	}
	leader, err := persist(inside, e.c.requests, func(s *session) (Contender, error) { return e.look(inside, s) })
	if err == nil && leader.Node == "" {
		err = ErrNoLeader
	}
	if err != nil {
		return Contender{}, fmt.Errorf("zklock: leader of %s: %w", printable(e.path), e.c.explain(inside, err))
	}
	return leader, nil
}

// look reads the first member's node. It returns the zero Contender if there is none.
func (e *Election) look(ctx context.Context, s *session) (Contender, error) {
	dir := e.c.root + e.path
	for {
		queue, err := e.queue(ctx, s)
		if err != nil || len(queue) == 0 {
			return Contender{}, err
		}
		for _, first := range queue {
			n, err := e.c.get(ctx, s, dir+"/"+first.name)
			switch {
			case err == nil:
				return leaderOf(dir, first, n), nil
			case !errors.Is(err, zk.ErrNoNode):
				return Contender{}, err
			}
		}
	}
}

func leaderOf(dir string, e entry, n node) Contender {
	who := newContenderOf(dir, e, n)
	who.Holds = true
	return who
}

// queue lists the members in order. New members only come at the end, so the list stays
// right from its front on.
func (e *Election) queue(ctx context.Context, s *session) ([]entry, error) {
	dir := e.c.root + e.path
	l, err := e.c.freshList(ctx, s, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := parseEntries(l.names)
	return e.c.inOrder(ctx, s, dir, entries)
}

// inOrder sorts entries. Where their numbers do not show the order, it reads the transactions
// that created them.
func (c *Client) inOrder(ctx context.Context, s *session, dir string, entries []entry) ([]entry, error) {
	var there []entry
	for _, e := range entries {
		if !isPlain(e.seq) {
			stat, err := c.stat(ctx, s, dir+"/"+e.name)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				return nil, err
			}
			e.czxid = stat.Czxid
		}
		there = append(there, e)
	}
	slices.SortFunc(there, order)
	return there, nil
}

// Observe yields the leader, each new leader, and each value that a leader proclaims. It
// yields nothing twice, and nothing older after something newer, even across reconnects and
// sessions. It can miss a leader or a value that was replaced before the client could read
// it, for example while it was not connected. The sequence ends when the loop does, or after
// an error: the end of ctx, ErrClosed, or a refusal by the server.
//
// An observer watches the leader's node only: a handover costs it one event, however many
// members there are. It makes no nodes. While the election's directory does not exist, it looks for
// it once a second.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Contender, error] {
	return e.observe(ctx, false)
}

// Follow is Observe, and also yields the zero Contender when nobody stands for election: at
// first, if that is so then, and whenever the last member has left. A leader that a member
// behind it follows leaves no such gap.
func (e *Election) Follow(ctx context.Context) iter.Seq2[Contender, error] {
	return e.observe(ctx, true)
}

func (e *Election) observe(ctx context.Context, vacancies bool) iter.Seq2[Contender, error] {
	return func(yield func(Contender, error) bool) {
		inside, stop := either(ctx, e.c.life)
		defer stop()
		err := checkPath(e.path)
		if err == nil {
			o := observation{e: e, dir: e.c.root + e.path, vacancies: vacancies}
			err = o.run(inside, func(who Contender) bool { return yield(who, nil) })
		}
		if err != nil {
			yield(Contender{}, fmt.Errorf("zklock: observe %s: %w", printable(e.path), e.c.explain(inside, err)))
		}
	}
}

// observation is one Observe at work.
type observation struct {
	e     *Election
	dir   string
	queue []entry   // the leader and the members behind it, as far as they were listed
	last  Contender // what was yielded last
	begun bool      // something was yielded
	// vacancies are to be yielded, too.
	vacancies bool
	// moved is closed when the client is no longer on the connection on which it read the
	// queue. The next server may lag behind the last one, and events do not show it.
	moved <-chan struct{}
}

// run yields until yield returns false, which is not an error.
func (o *observation) run(ctx context.Context, yield func(Contender) bool) error {
	for {
		s, err := o.e.c.link.Attached(ctx)
		if err != nil {
			return err
		}
		o.queue = nil
		var p pace
		for err == nil {
			var more bool
			if more, err = o.step(ctx, s, yield); err == nil && !more {
				return nil
			}
			if isTransient(err) && ctx.Err() == nil {
				err = p.next(ctx)
			} else {
				p = pace{}
			}
		}
		if !errors.Is(err, errSessionOver) {
			return err
		}
	}
}

// step waits for one change: of the first member, or of the directory if it has none.
func (o *observation) step(ctx context.Context, s *session, yield func(Contender) bool) (more bool, err error) {
	if len(o.queue) == 0 {
		o.moved = s.Reattached()
		if o.queue, err = o.e.queue(ctx, s); err != nil {
			return true, err
		}
	}
	if len(o.queue) == 0 {
		if o.vacancies && !o.show(Contender{}, yield) {
			return false, nil
		}
		return true, o.awaitFirst(ctx, s)
	}
	first := o.queue[0]
	w, err := o.lookAt(ctx, s, o.dir+"/"+first.name)
	if errors.Is(err, zk.ErrNoNode) {
		o.queue = o.queue[1:]
		return true, nil
	}
	if err != nil {
		return true, err
	}
	if !o.show(leaderOf(o.dir, first, node{w.data, w.stat}), yield) {
		return false, nil
	}
	saw, err := w.await(ctx, s, nil)
	if err == nil && saw == nodeGone {
		o.queue = o.queue[1:]
	}
	return true, err
}

// lookAt watches a node. On a new connection it first makes sure that the server knows
// everything that was seen on the last one.
func (o *observation) lookAt(ctx context.Context, s *session, path string) (*nodeWatch, error) {
	w, err := o.e.c.watchNow(ctx, s, path)
	if err != nil || !isClosed(o.moved) {
		return w, err
	}
	o.moved = s.Reattached()
	_, err = upToDate(ctx, o.e.c.requests, s, func() (*zk.Stat, error) { return o.e.c.stat(ctx, s, path) })
	return w, err
}

// show yields a leader if it or its value is new. A value that Curator's Revoker has
// overwritten is not: the leader restores it.
func (o *observation) show(who Contender, yield func(Contender) bool) bool {
	same := who.Node == o.last.Node && who.Token == o.last.Token
	if o.begun && same && (bytes.Equal(who.Data, o.last.Data) || who.Data == nil && who.Revoked) {
		return true
	}
	o.last, o.begun = who, true
	return yield(who)
}

// awaitFirst waits until there may be a member.
func (o *observation) awaitFirst(ctx context.Context, s *session) error {
	w, err := o.e.c.watchChildren(ctx, s, o.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return o.awaitDir(ctx, s)
	}
	if err != nil || len(parseEntries(w.names)) > 0 {
		return err
	}
	_, err = w.await(ctx, s, nil)
	return err
}

// awaitDir waits until the directory exists. A watch on its creation would stay for ever if nobody
// created it, and to create it here would take the permission to, and give it our access list.
func (o *observation) awaitDir(ctx context.Context, s *session) error {
	var p pace
	for {
		if err := p.next(ctx); err != nil {
			return err
		}
		if _, err := o.e.c.stat(ctx, s, o.dir); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}
