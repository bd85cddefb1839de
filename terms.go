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

	"github.com/zklock-go/zklock/internal/health"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// The causes with which the context of Run's function ends although the leadership was not lost and
// Run's own context has not ended.
var (
	// ErrPreferred means that a member that ElectionOptions.Prefer prefers waits to lead.
	ErrPreferred = errors.New("a preferred member waits to lead")
	// ErrUnhealthy means that ElectionOptions.Healthy has failed. The cause wraps its error.
	ErrUnhealthy = errors.New("not healthy")
)

// terms is one call of Run.
type terms struct {
	e        *Election
	value    []byte
	fn       func(ctx context.Context) error
	health   *health.Checks    // nil without ElectionOptions.Healthy
	known    map[string][]byte // the values of other members, by the names of their nodes; not used by two goroutines at the same time
	ceded    time.Time         // when this member last gave up a leadership for another one
	panicked any               // the value with which Prefer panicked while fn ran, or nil
}

// checkTerms checks the options of Run.
func (e *Election) checkTerms(value []byte) error {
	switch {
	case e.opts.HealthEvery < 0:
		return fmt.Errorf("%w: a health check every %v", ErrInvalid, e.opts.HealthEvery)
	case e.opts.Prefer != nil && e.opts.Prefer(value, value):
		return fmt.Errorf("%w: Prefer prefers a member to itself", ErrInvalid)
	}
	return nil
}

// next campaigns once and, if this member should lead, runs fn. It returns how long this member led.
// callCtx is ctx, and also ends with the client.
func (r *terms) next(ctx, callCtx context.Context) (led time.Duration, err error) {
	round, end, err := r.begin(ctx, callCtx)
	if err != nil {
		return 0, r.failure(outcome.NotAcquired(err))
	}
	defer end(nil)
	hold, err := r.e.Campaign(round, r.value)
	switch {
	case err != nil && r.isOver(ctx, round):
		return 0, nil
	case err != nil:
		return 0, err
	}
	if ceded, err := r.cede(round, hold); ceded || err != nil {
		return 0, err
	}
	start := time.Now()
	err = r.lead(ctx, round, end, hold)
	if err != nil {
		return 0, r.failure(err)
	}
	return time.Since(start), nil
}

func (r *terms) failure(err error) error {
	return fmt.Errorf("zklock: run %s: %w", node.Printable(r.e.path), err)
}

// begin returns a context for one campaign and its term, once the member is healthy. The context also
// ends, with ErrPreferred or ErrUnhealthy, when the member should not lead any more: see isOver.
func (r *terms) begin(ctx, callCtx context.Context) (context.Context, context.CancelCauseFunc, error) {
	if r.e.opts.Prefer == nil && r.health == nil {
		return ctx, func(error) {}, nil
	}
	round, end := context.WithCancelCause(ctx)
	if r.health == nil {
		return round, end, nil
	}
	if err := r.health.Await(callCtx, end); err != nil {
		end(nil)
		return nil, nil, err
	}
	return round, end, nil
}

// isOver reports whether a round was ended by choice, and not by the caller.
func (r *terms) isOver(ctx, round context.Context) bool {
	why := context.Cause(round)
	return ctx.Err() == nil && (errors.Is(why, ErrPreferred) || errors.Is(why, ErrUnhealthy))
}

// minTerm is how long a member leads before it gives up its leadership for a preferred member, and how
// long it waits before it does so again: a preferred member that comes and goes must not cause more.
func (r *terms) minTerm() time.Duration { return r.e.client().SessionTimeout() }

// cede releases a leadership that was just granted, if a preferred member waits: then this member campaigns
// again without leading. It also releases it if it returns an error, or if Prefer panics.
func (r *terms) cede(ctx context.Context, hold *Hold) (ceded bool, err error) {
	if r.e.opts.Prefer == nil || !r.ceded.IsZero() && time.Since(r.ceded) < r.minTerm() {
		return false, nil
	}
	keep := false
	defer func() {
		if !keep {
			hold.Unlock(context.WithoutCancel(ctx)) // if this fails, the leadership is lost, or its release continues
		}
	}()
	_, preferred, err := r.look(ctx, hold)
	switch {
	case err != nil && isHopeless(err):
		return false, r.failure(err)
	case preferred:
		r.ceded = time.Now()
		r.e.engine().Requests.Log.Info("zklock: leadership ended", "path", r.e.path, "err", ErrPreferred)
		return true, nil
	}
	keep = true // if there was no reply, the next look decides
	return false, nil
}

// isHopeless reports whether a look at the members failed in a way that the next one will, too.
func isHopeless(err error) bool {
	return errors.Is(err, ErrInvalid) || outcome.IsRefusal(err) && !errors.Is(err, zk.ErrNoNode)
}

// look reports whether a member is preferred to this one. It reads the values of the members that it does
// not know yet, those that joined last first, until one is preferred. The view shows when that may have
// changed.
func (r *terms) look(ctx context.Context, hold *Hold) (v *session.View, preferred bool, err error) {
	ctx, stop := session.Either(ctx, hold.Context())
	defer stop()
	own := hold.holding().nodes[0]
	v, err = r.e.engine().Watches.WatchChildren(ctx, own.Sess, own.Dir)
	if err != nil {
		return nil, false, err
	}
	known, unknown := make(map[string][]byte, len(v.Names)), []string{}
	for _, e := range node.NewQueue(v.Names).Entries {
		value, ok := r.known[e.Name]
		switch {
		case e.Name == own.Name:
		case ok:
			known[e.Name] = value
		default:
			unknown = append(unknown, e.Name)
		}
	}
	r.known = known
	mine := node.WithoutRevocation(own.OwnData())
	for _, value := range known {
		if preferred, err := r.prefers(value, mine); preferred || err != nil {
			return v, preferred, err
		}
	}
	for _, name := range slices.Backward(unknown) {
		n, err := r.e.engine().Requests.Get(ctx, own.Sess, own.Dir+"/"+name)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		r.known[name] = bytes.Clone(node.WithoutRevocation(n.Data))
		if preferred, err := r.prefers(r.known[name], mine); preferred || err != nil {
			return v, preferred, err
		}
	}
	return v, false, nil
}

// prefers reports whether a member with the value other is preferred to this one.
func (r *terms) prefers(other, mine []byte) (bool, error) {
	if !r.e.opts.Prefer(other, mine) {
		return false, nil
	}
	if r.e.opts.Prefer(mine, other) {
		return false, fmt.Errorf("%w: Prefer is no order: it prefers %.40q to %.40q and the other way around", ErrInvalid, mine, other)
	}
	return true, nil
}

// lead runs fn until it returns, and ends its context if a preferred member waits. It returns the error
// of fn, or nil if the leadership was lost or given up.
func (r *terms) lead(ctx, round context.Context, end context.CancelCauseFunc, hold *Hold) error {
	stop := r.follow(round, end, hold)
	t := hold.run(round, r.fn) // leaves the old place; otherwise the next campaign would wait behind it
	stop()
	if r.panicked != nil {
		panic(r.panicked)
	}
	why, lost, over := t.left, errors.Is(t.ended, ErrLost), r.isOver(ctx, round)
	switch {
	case lost:
		why = errors.Join(t.ended, t.failed)
	case over:
		why = errors.Join(context.Cause(round), t.left, unlessOf(round, t.failed))
	}
	if why != nil {
		r.e.engine().Requests.Log.Info("zklock: leadership ended", "path", r.e.path, "err", why)
	}
	if invalid := context.Cause(round); ctx.Err() == nil && errors.Is(invalid, errNoOrder) {
		return invalid
	}
	switch err := errors.Join(t.failed, t.ended); {
	case t.failed == nil || lost || over:
		return nil
	case !t.called:
		return outcome.NotAcquired(err)
	default:
		return err
	}
}

// unlessOf returns err, or nil if err only says that ctx has ended.
func unlessOf(ctx context.Context, err error) error {
	if err != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// errNoOrder is the cause with which a term ends because Prefer has failed.
var errNoOrder = errors.New("preference failed")

// follow ends a round when a preferred member waits, but not before the minimum length of a term. The
// returned function stops it and waits for it.
func (r *terms) follow(round context.Context, end context.CancelCauseFunc, hold *Hold) (stop func()) {
	if r.e.opts.Prefer == nil {
		return func() {}
	}
	ctx, cancel := session.Either(round, hold.Context())
	var done session.Latch
	watch := func() {
		defer done.Set()
		defer func() {
			if p := recover(); p != nil {
				r.panicked = p
				end(errNoOrder)
			}
		}()
		r.await(ctx, end, hold)
	}
	// Owned by the term, which waits for it; ends with the term.
	if !r.e.engine().Requests.Calls.Run(watch) {
		done.Set()
	}
	return func() {
		cancel()
		<-done.Done()
	}
}

// await waits until a preferred member waits, and then ends the round.
func (r *terms) await(ctx context.Context, end context.CancelCauseFunc, hold *Hold) {
	session.Sleep(ctx, r.minTerm())
	var p session.Pace
	for ctx.Err() == nil {
		v, preferred, err := r.look(ctx, hold)
		switch {
		case preferred:
			r.ceded = time.Now()
			end(ErrPreferred)
			return
		case err == nil:
			v.Await(ctx, nil)
			p = session.Pace{}
		case ctx.Err() != nil:
			return
		case isHopeless(err):
			end(fmt.Errorf("%w: %w", errNoOrder, err))
			return
		default:
			p.Next(ctx)
		}
	}
}

// startHealth checks the member's health until ctx ends. It returns nil if there is nothing to check.
func (e *Election) startHealth(ctx context.Context) *health.Checks {
	if e.opts.Healthy == nil {
		return nil
	}
	every := e.opts.HealthEvery
	if every == 0 {
		every = max(e.client().SessionTimeout(), time.Second)
	}
	checks := health.New(e.opts.Healthy, every, ErrUnhealthy)
	// Owned by Run; ends with ctx; Close waits for it.
	e.engine().Requests.Calls.Run(func() { checks.Run(ctx) })
	return checks
}
