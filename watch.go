package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

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
		inside := e.c().engine.Inside(ctx)
		defer inside.Leave()
		err := node.CheckPath(e.path)
		if err == nil {
			o := observation{e: e, dir: e.c().root + e.path, vacancies: vacancies}
			err = o.run(inside, func(who Contender) bool { return yield(who, nil) })
		}
		if err != nil {
			yield(Contender{}, fmt.Errorf("zklock: observe %s: %w", node.Printable(e.path), e.c().engine.Explain(inside, err)))
		}
	}
}

// observation is one Observe at work.
type observation struct {
	e     *Election
	dir   string
	queue []node.Entry // the leader and the members behind it, as far as they were listed
	last  Contender    // what was yielded last
	begun bool         // something was yielded
	// vacancies are to be yielded, too.
	vacancies bool
	// moved is closed when the client is no longer on the connection on which it read the
	// queue. The next server may lag behind the last one, and events do not show it.
	moved <-chan struct{}
}

// run yields until yield returns false, which is not an error.
func (o *observation) run(ctx context.Context, yield func(Contender) bool) error {
	for {
		s, err := o.e.c().engine.Link.Attached(ctx)
		if err != nil {
			return err
		}
		o.queue = nil
		var p session.Pace
		for err == nil {
			var more bool
			if more, err = o.step(ctx, s, yield); err == nil && !more {
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

// step waits for one change: of the first member, or of the directory if it has none.
func (o *observation) step(ctx context.Context, s *session.Session, yield func(Contender) bool) (more bool, err error) {
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
	w, err := o.lookAt(ctx, s, o.dir+"/"+first.Name)
	if errors.Is(err, zk.ErrNoNode) {
		o.queue = o.queue[1:]
		return true, nil
	}
	if err != nil {
		return true, err
	}
	if !o.show(leaderOf(o.dir, first, session.Node{Data: w.Data, Stat: w.Stat}), yield) {
		return false, nil
	}
	saw, err := w.Await(ctx, nil)
	if err == nil && saw == session.NodeGone {
		o.queue = o.queue[1:]
	}
	return true, err
}

// lookAt watches a node. On a new connection it first makes sure that the server knows
// everything that was seen on the last one.
func (o *observation) lookAt(ctx context.Context, s *session.Session, path string) (*session.NodeWatch, error) {
	w, err := o.e.c().engine.WatchNow(ctx, s, path)
	if err != nil || !session.IsClosed(o.moved) {
		return w, err
	}
	o.moved = s.Reattached()
	_, err = session.UpToDate(ctx, o.e.c().engine.Requests, s, func() (*zk.Stat, error) { return o.e.c().engine.Stat(ctx, s, path) })
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
func (o *observation) awaitFirst(ctx context.Context, s *session.Session) error {
	w, err := o.e.c().engine.WatchChildren(ctx, s, o.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return o.awaitDir(ctx, s)
	}
	if err != nil || len(node.ParseEntries(w.Names)) > 0 {
		return err
	}
	_, err = w.Await(ctx, nil)
	return err
}

// awaitDir waits until the directory exists. A watch on its creation would stay for ever if nobody
// created it, and to create it here would take the permission to, and give it our access list.
func (o *observation) awaitDir(ctx context.Context, s *session.Session) error {
	var p session.Pace
	for {
		if err := p.Next(ctx); err != nil {
			return err
		}
		if _, err := o.e.c().engine.Stat(ctx, s, o.dir); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}
