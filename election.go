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

// ErrNoLeader says that nobody stands for election.
var ErrNoLeader = errors.New("no leader")

// ElectionOptions are an election's. Nil means the defaults.
type ElectionOptions struct {
	// Latch names nodes as Curator's LeaderLatch does, to take part in one election
	// with it. Default: as its LeaderSelector does. All members must agree on it.
	Latch bool
}

// Election has one leader at a time among its members, granted in the order of asking.
// It has no state of its own: all that are made for one path and options are the same.
//
// A member's value is what others see of it while it leads: its address, say. It is the
// data of its node as it stands, where Curator's LeaderSelector and LeaderLatch read
// and write their participants' ids.
type Election struct {
	c      *Client
	path   string
	recipe *recipe
}

var (
	electionRecipe = &recipe{name: "election", infix: "-lock-", rule: afterAll, raw: true}
	latchRecipe    = &recipe{name: "election", infix: "-latch-", rule: afterAll, raw: true}
)

// maxValue keeps a value, with all else that goes with it, below what a server takes in one request.
const maxValue = 512 << 10

// Election returns the election at path, below which every member has a node.
func (c *Client) Election(path string, opts *ElectionOptions) *Election {
	r := electionRecipe
	if opts != nil && opts.Latch {
		r = latchRecipe
	}
	return &Election{c, path, r}
}

// Campaign waits until this member leads or ctx ends, as Mutex.Lock waits. Unlock
// resigns. Value must not look like a request to let go (see Client.Revoke) and not be
// longer than 512 KiB.
func (e *Election) Campaign(ctx context.Context, value []byte) (*Hold, error) {
	if err := checkValue(value); err != nil {
		return nil, fmt.Errorf("zklock: campaign %s: %w", printable(e.path), err)
	}
	return e.c.lock(ctx, "campaign", e.recipe, e.path, bytes.Clone(value))
}

func checkValue(value []byte) error {
	switch {
	case len(value) > maxValue:
		return fmt.Errorf("%w: value of %d bytes, the limit is %d", ErrInvalid, len(value), maxValue)
	case isRevocation(value):
		return fmt.Errorf("%w: the value reads as a request to let go", ErrInvalid)
	}
	return nil
}

// Run leads again and again: whenever this member is elected it calls fn, and stands
// for election again when fn has returned. fn's context is the hold's (HoldOf finds it)
// and ends with ctx as well. The place is given up only after fn has returned, so a
// leader that still cleans up is not overtaken; but a leadership that was lost, with its
// session or its node, is gone at once: fn must stop when its context ends.
//
// A leadership that is over before fn could be called is passed over. After a term that
// was shorter than the last pause Run pauses, 10 ms at first, twice as long each time up to a
// second: fn that returns at once must not keep the servers busy.
//
// No failed connection or lost session ends Run. It returns when ctx ends, the client
// is closed, somebody evicts this member while it waits (ErrEvicted), or the server refuses to let it stand (zk.ErrNoAuth); the error
// is never nil. If fn panics, the place is given up first.
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
	inside, stop := either(hold.Context(), ctx)
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

// Proclaim replaces this member's value while it leads. ctx must be the context of its
// hold, or made from it: ErrNotHeld if it is not, ErrLost if the leadership is over. If
// ctx ends first, the outcome is not known.
//
// ErrInvalid in an election with Latch: a LeaderLatch that waits behind us looks only
// for our end, and if our data changes instead, it never looks again.
func (e *Election) Proclaim(ctx context.Context, value []byte) error {
	h := e.leads(ctx)
	err := checkValue(value)
	switch {
	case err != nil:
	case e.recipe == latchRecipe:
		err = fmt.Errorf("%w: latches wait without looking at data", ErrInvalid)
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

// leads returns the leadership that ctx was made under, nil for none.
func (e *Election) leads(ctx context.Context) *Hold {
	for h := HoldOf(ctx); h != nil; h = h.outer {
		if h.c == e.c && h.path == e.path && h.recipe == e.recipe.name {
			return h
		}
	}
	return nil
}

// Leader returns who leads, with its value as Data, as of now: what it answers is no
// older than the call. ErrNoLeader if there is none. A new leader is seen here when the
// old one's place is free, which can be a moment before it knows itself.
func (e *Election) Leader(ctx context.Context) (Contender, error) {
	inside, stop := either(ctx, e.c.life)
	defer stop()
	if err := checkPath(e.path); err != nil {
		return Contender{}, fmt.Errorf("zklock: leader of %s: %w", printable(e.path), err)
	}
	leader, err := persist(inside, e.c, func(s *session) (Contender, error) { return e.look(inside, s) })
	if err == nil && leader.Node == "" {
		err = ErrNoLeader
	}
	if err != nil {
		return Contender{}, fmt.Errorf("zklock: leader of %s: %w", printable(e.path), e.c.explain(inside, err))
	}
	return leader, nil
}

// look reads the first node that is there; the zero Contender if there is none.
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

// queue lists the members in order. Nobody comes before one that is there, so the list
// stays right from its front on.
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

// inOrder sorts entries, and asks for what tells the order where numbers do not.
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

// Observe yields the leader, every next one, and each value that is proclaimed; nothing
// twice, and nothing older after something newer, across reconnects and sessions. A
// leader, or a value, that came and went while this client was not connected or before
// it could ask can be missed. The sequence ends when the loop does, or with an error:
// ctx's end, ErrClosed, or a refusal by the server.
//
// It watches the leader's node only: a handover costs an observer one event, whatever
// the number of members.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Contender, error] {
	return func(yield func(Contender, error) bool) {
		inside, stop := either(ctx, e.c.life)
		defer stop()
		err := checkPath(e.path)
		if err == nil {
			o := observation{e: e, dir: e.c.root + e.path}
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
	queue []entry   // the members behind the one that leads, as far as they were listed
	last  Contender // what was yielded last
	// moved is closed when the connection is another than the one on which the queue was
	// read and its changes seen. The next server may be behind, and the client library
	// lets it: events do not tell how new they are.
	moved <-chan struct{}
}

// run ends without an error when yield has answered false.
func (o *observation) run(ctx context.Context, yield func(Contender) bool) error {
	for {
		s, err := o.e.c.link.attached(ctx)
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

// step waits for one change: of the first member if there is one, else of the directory.
func (o *observation) step(ctx context.Context, s *session, yield func(Contender) bool) (more bool, err error) {
	if len(o.queue) == 0 {
		o.moved = s.reattached()
		if o.queue, err = o.e.queue(ctx, s); err != nil {
			return true, err
		}
	}
	if len(o.queue) == 0 {
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

// lookAt watches a node, which is there as far as all is known that was seen before.
func (o *observation) lookAt(ctx context.Context, s *session, path string) (*nodeWatch, error) {
	w, err := o.e.c.watchNow(ctx, s, path)
	if err != nil || !isClosed(o.moved) {
		return w, err
	}
	o.moved = s.reattached()
	_, err = upToDate(ctx, o.e.c, s, func() (*zk.Stat, error) { return o.e.c.stat(ctx, s, path) })
	return w, err
}

// show yields a leader unless there is nothing new about it. Where Curator's Revoker
// has overwritten a value, that is no news: the leader puts it back.
func (o *observation) show(who Contender, yield func(Contender) bool) bool {
	same := who.Node == o.last.Node && who.Token == o.last.Token
	if same && (bytes.Equal(who.Data, o.last.Data) || who.Data == nil && who.Revoked) {
		return true
	}
	o.last = who
	return yield(who)
}

// awaitFirst waits until somebody may stand.
func (o *observation) awaitFirst(ctx context.Context, s *session) error {
	w, err := o.e.c.watchChildren(ctx, s, o.dir)
	if errors.Is(err, zk.ErrNoNode) {
		// A watch for the directory's creation would stay for good if none came.
		return o.e.c.makeDir(ctx, s, o.dir, 1)
	}
	if err != nil || len(parseEntries(w.names)) > 0 {
		return err
	}
	_, err = w.await(ctx, s, nil)
	return err
}
