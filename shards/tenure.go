// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/bridge"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// settle is how long a member waits after a change before it looks at the members, so that members which
// come or go together cause one change: each change wakes every member.
const settle = 200 * time.Millisecond

// A tenure is one call of Run.
type tenure struct {
	m    *Member
	work Work
	ctx  context.Context // ends with the caller's, with the client, and when work fails
	fail context.CancelCauseFunc
	wg   sync.WaitGroup // the shards' goroutines

	mu     sync.Mutex
	shards map[int]*shard // guarded by mu: those that belong to this member
	crash  *crash         // guarded by mu: the first panic of work, or nil
}

// A shard is a shard that belongs to this member.
type shard struct {
	number int
	move   context.CancelCauseFunc // ends its context

	mu   sync.Mutex
	held bool // guarded by mu
}

// A crash is a panic of work.
type crash struct {
	shard int
	value any
	stack []byte
}

func newTenure(ctx context.Context, m *Member, work Work) *tenure {
	t := &tenure{m: m, work: work, shards: map[int]*shard{}}
	t.ctx, t.fail = context.WithCancelCause(ctx)
	return t
}

// run is Member.Run.
func (t *tenure) run() error {
	callCtx := t.m.c.Requests.CallContext(t.ctx)
	defer callCtx.Cancel()
	// Owned by this call; starts when the client is closed and ends at once.
	stop := context.AfterFunc(t.m.c.Requests.Life, func() { t.fail(context.Cause(t.m.c.Requests.Life)) })
	defer stop()
	var p session.Pace
	for {
		start := time.Now()
		err := t.serve(callCtx)
		if t.ctx.Err() != nil {
			err = outcome.CauseOf(t.ctx, t.ctx.Err())
		}
		if err != nil {
			t.fail(err)
			t.wg.Wait()
			if t.crash != nil {
				panic(fmt.Sprintf("zklock: shard %d of %s: %v\n\n%s", t.crash.shard, node.Printable(t.m.path), t.crash.value, t.crash.stack))
			}
			return unwrapped(t.ctx, err)
		}
		if time.Since(start) > time.Second {
			p = session.Pace{}
		}
		p.Next(callCtx) // if the context ends, serve returns the error
	}
}

// workFailed is the cause with which a tenure ends because of work, so that it can be told from that of
// the caller's context.
type workFailed struct{ error }

func (w workFailed) Unwrap() error { return w.error }

// unwrapped returns the error of work if it has ended the tenure, and otherwise err.
func unwrapped(ctx context.Context, err error) error {
	var failed workFailed
	if errors.As(context.Cause(ctx), &failed) {
		return failed.error
	}
	return err
}

// serve joins the fleet and follows it until the place in it is lost. Then it returns nil. Before it
// returns, no shard belongs to this member.
func (t *tenure) serve(ctx context.Context) error {
	joined, err := bridge.Join(ctx, t.m.client, t.m.path+node.MembersDir, t.m.data())
	if err != nil {
		return err
	}
	place := joined.(*zklock.Hold)
	defer t.leave(place)
	defer t.assign(nil)
	inside, stop := session.Either(ctx, place.Context())
	defer stop()
	err = t.follow(inside, ctx, place)
	if err != nil {
		t.fail(err) // before assign, so that work does not end with ErrMoved
	}
	return err
}

// leave releases the place. It waits for the release, but no longer than the session timeout.
func (t *tenure) leave(place *zklock.Hold) {
	if err := place.Unlock(context.WithoutCancel(t.ctx)); err != nil {
		t.m.c.Requests.Log.Info("zklock: shards: left the fleet", "path", t.m.path, "err", err)
	}
}

// follow assigns shards whenever the members change, until the place is lost; then it returns nil.
// inside ends with ctx and with the place.
func (t *tenure) follow(inside, ctx context.Context, place *zklock.Hold) error {
	own := bridge.HoldOf(place).Nodes[0]
	var v view
	var p session.Pace
	for {
		session.Sleep(inside, settle)
		err := t.look(inside, own, &v)
		switch why := context.Cause(place.Context()); {
		case errors.Is(why, zklock.ErrClosed): // the client's life ends a moment later
			return why
		case why != nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && isFinal(err):
			return t.m.c.Requests.Explain(ctx, err)
		case err != nil:
			p.Next(inside)
		default:
			p = session.Pace{}
		}
	}
}

// look reads the members, assigns the shards, and waits until the members change.
func (t *tenure) look(ctx context.Context, own *session.OwnNode, v *view) error {
	if _, err := t.m.c.Requests.Link.Attached(ctx); err != nil {
		return err
	}
	list, err := t.m.c.Watches.WatchChildren(ctx, own.Sess, own.Dir)
	if err != nil {
		return err
	}
	if err := v.update(ctx, t.m.c, own.Sess, own.Dir, list.Names); err != nil {
		return err
	}
	shares, self, err := v.shares(own.Name, t.m.n)
	if err != nil {
		return err
	}
	if self < 0 && slices.Contains(list.Names, own.Name) {
		t.m.c.Requests.Log.Warn("zklock: shards: another member has the same label", "path", t.m.path, "label", t.m.opts.Label)
	}
	var mine []int
	for number, owner := range assign(shares, t.m.n) {
		if owner == self {
			mine = append(mine, number)
		}
	}
	t.assign(mine)
	_, err = list.Await(ctx, nil)
	return err
}

// assign starts and stops the work on shards so that exactly these belong to this member.
func (t *tenure) assign(mine []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone := maps.Clone(t.shards)
	for _, number := range mine {
		delete(gone, number)
		if t.shards[number] != nil {
			continue
		}
		ctx, move := context.WithCancelCause(t.ctx)
		s := &shard{number: number, move: move}
		t.shards[number] = s
		// Owned by Run, which waits for it; ends when its work has returned after the shard has moved.
		t.wg.Go(func() { t.keep(ctx, s) })
	}
	for number, s := range gone {
		delete(t.shards, number)
		s.move(ErrMoved)
	}
	if len(gone) > 0 || len(mine) > 0 {
		t.m.c.Requests.Log.Debug("zklock: shards assigned", "path", t.m.path, "shards", len(mine), "moved", len(gone))
	}
}

// assigned returns a copy of the shards that belong to this member.
func (t *tenure) assigned() map[int]*shard {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.shards)
}

// keep runs work on a shard whenever this member holds it, until ctx ends.
func (t *tenure) keep(ctx context.Context, s *shard) {
	returned := false
	defer func() {
		if returned {
			return
		}
		t.crashed(s.number, recover())
	}()
	t.hold(ctx, s)
	returned = true
}

// crashed ends the tenure because work has panicked with value or, if value is nil, has ended its
// goroutine.
func (t *tenure) crashed(shard int, value any) {
	if value == nil {
		t.fail(workFailed{fmt.Errorf("shard %d: work has called runtime.Goexit", shard)})
		return
	}
	t.mu.Lock()
	if t.crash == nil {
		t.crash = &crash{shard, value, debug.Stack()}
	}
	t.mu.Unlock()
	t.fail(errors.New("work panicked"))
}

func (t *tenure) hold(ctx context.Context, s *shard) {
	mutex := t.m.client.Mutex(Path(t.m.path, s.number))
	var p session.Pace
	for {
		hold, err := mutex.Lock(ctx)
		switch {
		case errors.Is(err, zklock.ErrEvicted) && p.Next(ctx) == nil: // the shard still belongs to this member
			continue
		case ctx.Err() != nil && err != nil:
			return
		case err != nil:
			t.fail(workFailed{err})
			return
		}
		start := time.Now()
		if err := t.under(ctx, hold, s); err != nil {
			t.fail(workFailed{fmt.Errorf("shard %d: %w", s.number, err)})
			return
		}
		if time.Since(start) > p.Wait {
			p = session.Pace{}
		}
		if p.Next(ctx) != nil {
			return
		}
	}
}

// under runs work under a hold, and returns its error if the context of work had not ended.
func (t *tenure) under(ctx context.Context, hold *zklock.Hold, s *shard) (failed error) {
	s.setHeld(true)
	defer s.setHeld(false)
	defer t.limitGrace(ctx, hold, s.number)()
	var late error
	err := hold.Do(ctx, func(ctx context.Context) error {
		err := t.work(ctx, s.number)
		if ctx.Err() == nil {
			failed = err
		} else if !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)) {
			late = err
		}
		return nil
	})
	if why := errors.Join(late, unlessMoved(ctx, err)); why != nil {
		t.m.c.Requests.Log.Info("zklock: shard ended", "path", hold.Path(), "err", why)
	}
	return failed
}

// unlessMoved returns the error of a hold unless it only says that ctx has ended.
func unlessMoved(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// limitGrace releases the hold when Options.Grace has passed since the end of ctx. Call the returned
// function when work has returned.
func (t *tenure) limitGrace(ctx context.Context, hold *zklock.Hold, number int) (stop func()) {
	grace := t.m.opts.Grace
	if grace == 0 {
		return func() {}
	}
	returned := make(chan struct{})
	// Owned by Run; starts when ctx ends; ends when work has returned or the lock is released.
	t.wg.Add(1)
	cancel := context.AfterFunc(ctx, func() {
		defer t.wg.Done()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-returned:
			return
		case <-timer.C:
		}
		err := hold.Unlock(context.WithoutCancel(ctx))
		t.m.c.Requests.Log.Warn("zklock: shard released before its work returned", "path", hold.Path(), "shard", number, "err", err)
	})
	return func() {
		close(returned)
		if cancel() {
			t.wg.Done()
		}
	}
}

func (s *shard) setHeld(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
}

func (s *shard) isHeld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}
