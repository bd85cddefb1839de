// SPDX-License-Identifier: Apache-2.0

package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/queue"
	"github.com/zklock-go/zklock/internal/session"
)

// Observe yields the leader, each new leader, and each value that a leader proclaims. It yields
// nothing twice, and nothing older after something newer, even across reconnects and sessions. It
// can miss a leader or a value that was replaced before the client could read it, for example while
// it was disconnected. The sequence ends when the loop does, or after an error: ctx ends, the
// client is closed, or a server refuses the request.
//
// While no server answers, Observe yields nothing, and its last leader may have been replaced: see
// Follow.
//
// An observer watches only the leader's node, so a hand-over costs it one event, however many
// members there are. It creates no nodes. While the election's directory does not exist, it checks
// for it once a second.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Contender, error] {
	return e.observe(ctx, false)
}

// Follow is like Observe, but also yields the zero Contender when no leader is known. That is the
// case when the election has no members: at the start, and whenever the last member has left. It is
// also the case when the client has had no connection for a session timeout: the last leader may have
// died, and another one may lead. Follow yields the leader again when a server answers. It yields no
// zero Contender when the next member takes over directly.
func (e *Election) Follow(ctx context.Context) iter.Seq2[Contender, error] {
	return e.observe(ctx, true)
}

func (e *Election) observe(ctx context.Context, vacancies bool) iter.Seq2[Contender, error] {
	return func(yield func(Contender, error) bool) {
		requests := e.engine().Requests
		inside := requests.CallContext(ctx)
		defer inside.Cancel()
		err := node.CheckPath(e.path)
		if err == nil {
			o := observation{e: e, engine: e.engine(), dir: e.client().root + e.path, vacancies: vacancies}
			err = o.run(inside, func(leader Contender) bool {
				o.stopped = !yield(leader, nil)
				return !o.stopped
			})
		}
		if err != nil {
			yield(Contender{}, fmt.Errorf("zklock: observe %s: %w", node.Printable(e.path), requests.Explain(inside, err)))
		}
	}
}

// observation is the state of one call of Observe or Follow.
type observation struct {
	e      *Election
	engine *queue.Engine
	dir    string
	queue  []node.Entry // the leader and the listed members behind it
	last   Contender    // the last value yielded
	begun  bool         // whether anything was yielded
	// stopped reports whether the loop over the sequence has ended.
	stopped bool
	// vacancies reports whether to yield the zero Contender when there are no members.
	vacancies bool
	// moved is closed when the client leaves the connection on which it read the queue. The next
	// server may lag behind the last one, and events do not show that.
	moved <-chan struct{}
}

// errAway ends an attempt to follow when the client has had no connection for a session timeout.
var errAway = errors.New("no server has answered for a session timeout")

// run yields contenders until yield returns false, which is not an error.
func (o *observation) run(ctx context.Context, yield func(Contender) bool) error {
	for {
		inside, stop := o.whileConnected(ctx)
		err := o.follow(inside, yield)
		away := context.Cause(inside) == errAway
		stop()
		if o.stopped || !away {
			return err
		}
		if !o.show(Contender{}, yield) {
			return nil
		}
		if _, err := o.engine.Requests.Link.Attached(ctx); err != nil {
			return err
		}
	}
}

// whileConnected returns a context that ends with ctx or, with errAway, when the client has had no
// connection for a session timeout. Only Follow needs it.
func (o *observation) whileConnected(ctx context.Context) (context.Context, func()) {
	if !o.vacancies {
		return ctx, func() {}
	}
	inside, cut := context.WithCancelCause(ctx)
	// Owned by the call; ends with inside; Close waits for it.
	o.engine.Requests.Calls.Run(func() {
		if o.awaitAway(inside) {
			cut(errAway)
		}
	})
	return inside, func() { cut(nil) }
}

// awaitAway waits until the client has had no connection for a session timeout, and returns true. If
// ctx ends first, it returns false.
func (o *observation) awaitAway(ctx context.Context) bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for since := time.Now(); ; {
		attached, changed := o.engine.Requests.Link.State()
		if attached != nil {
			since = time.Time{}
			timer.Stop()
		} else {
			if since.IsZero() {
				since = time.Now()
			}
			timer.Reset(time.Until(since.Add(o.engine.Requests.Term())))
		}
		select {
		case <-changed:
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// follow is run until the context of whileConnected ends.
func (o *observation) follow(ctx context.Context, yield func(Contender) bool) error {
	for {
		s, err := o.engine.Requests.Link.Attached(ctx)
		if err != nil {
			return err
		}
		o.queue = nil
		var p session.Pace
		for err == nil {
			var more bool
			more, err = o.step(ctx, s, yield)
			if err == nil && !more {
				return nil
			}
			if outcome.IsTransient(err) && ctx.Err() == nil {
				err = p.Next(ctx)
			} else {
				p = session.Pace{}
			}
		}
		if !errors.Is(err, outcome.ErrSessionOver) {
			return err
		}
	}
}

// step waits for one change of the first member, or of the directory if it has no members.
func (o *observation) step(ctx context.Context, s *session.Session, yield func(Contender) bool) (more bool, err error) {
	if len(o.queue) == 0 {
		o.moved = s.Reattached()
		o.queue, err = o.e.queue(ctx, s)
		if err != nil {
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
	v, err := o.lookAt(ctx, s, o.dir+"/"+first.Name)
	if errors.Is(err, zk.ErrNoNode) {
		o.queue = o.queue[1:]
		return true, nil
	}
	if err != nil {
		return true, err
	}
	if !o.show(leaderOf(o.dir, first, session.Node{Data: v.Data, Stat: v.Stat}), yield) {
		return false, nil
	}
	saw, err := v.Await(ctx, nil)
	if err == nil && saw == session.Gone {
		o.queue = o.queue[1:]
	}
	return true, err
}

// lookAt watches a node. On a new connection it first makes sure that the server has seen
// everything that was read on the last one.
func (o *observation) lookAt(ctx context.Context, s *session.Session, path string) (*session.View, error) {
	v, err := o.engine.Watches.WatchNow(ctx, s, path)
	if err != nil || !session.IsClosed(o.moved) {
		return v, err
	}
	o.moved = s.Reattached()
	_, err = session.UpToDate(ctx, o.engine.Requests, s, func() (*zk.Stat, error) { return o.engine.Requests.Stat(ctx, s, path) })
	return v, err
}

// show yields a leader if the leader or its value is new. A value that Curator's Revoker has
// overwritten does not count as new: the leader restores it.
func (o *observation) show(leader Contender, yield func(Contender) bool) bool {
	same := leader.Node == o.last.Node && leader.Token == o.last.Token
	if o.begun && same && (bytes.Equal(leader.Data, o.last.Data) || leader.Data == nil && leader.Revoked) {
		return true
	}
	o.last, o.begun = leader, true
	return yield(leader)
}

// awaitFirst waits until the directory changes, if it has no members.
func (o *observation) awaitFirst(ctx context.Context, s *session.Session) error {
	v, err := o.engine.Watches.WatchChildren(ctx, s, o.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return o.awaitDir(ctx, s)
	}
	if err != nil || len(node.ParseEntries(v.Names)) > 0 {
		return err
	}
	_, err = v.Await(ctx, nil)
	return err
}

// awaitDir waits until the directory exists. It polls: a watch for its creation would stay forever
// if the directory were never created. Creating it here would need permission, and would give it
// this client's ACL.
func (o *observation) awaitDir(ctx context.Context, s *session.Session) error {
	var p session.Pace
	for {
		if err := p.Next(ctx); err != nil {
			return err
		}
		if _, err := o.engine.Requests.Stat(ctx, s, o.dir); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}
