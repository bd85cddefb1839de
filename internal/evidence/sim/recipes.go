// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/evidence/history"
	"github.com/zklock-go/zklock/shards"
)

// takers has, for each recipe, a function that uses a lock once, in varying ways.
var takers = map[history.Recipe]func(p *user, l Lock, r *rand.Rand){
	history.Mutex:     takeMutex,
	history.Reentrant: takeReentrant,
	history.Election:  takeElection,
	history.RW:        takeRW,
	history.Semaphore: takePermits,
	history.Shards:    takeShards,
}

func takeMutex(p *user, l Lock, r *rand.Rand) {
	m := p.client.Mutex(p.local(l.Path))
	t := taking{op: history.Op{Recipe: l.Recipe, Path: l.Path}, lock: m.Lock}
	switch p.kind(r.IntN(12), 0, 3) {
	case 0, 1:
		t.lock, t.try = m.TryLock, true
	case 2:
		t.inside = func(hold *zklock.Hold, _ *history.Handle) *history.Handle {
			p.lockAllInside(hold, l)
			return nil
		}
	case 3:
		p.doWith(l, history.Op{Recipe: l.Recipe, Path: l.Path}, m.Do, r)
		return
	case 4, 5:
		if !p.f.plan.Hostile.Throttle { // otherwise contenders leave before it has its listing
			t.op.Behind = 1 + r.IntN(3)
			t.lock = zklock.AtMost(m, t.op.Behind-1).Lock
		}
	}
	p.take(r, t)
}

// immediately is how long a call may take that waits for nothing: goroutines may sleep for a moment between two statements, see
// internal/evidence/yields.
const immediately = 100 * time.Millisecond

// lockAllInside requests all locks, including the held one, which must fail at once.
func (p *user) lockAllInside(hold *zklock.Hold, l Lock) {
	var all []zklock.Locker
	for _, l := range p.f.plan.together() {
		all = append(all, p.locker(l, false))
	}
	since := time.Now()
	_, err := p.client.LockAll(hold.Context(), all...)
	if (!errors.Is(err, zklock.ErrDeadlock) || time.Since(since) > immediately) && hold.Check() == nil && p.alive.Err() == nil {
		p.f.report("P7", l.Path, fmt.Sprintf("%s: LockAll within a hold of one of the locks returned after %v: %v", p.name, time.Since(since), err))
	}
}

// doWith uses the lock with Do. Do must return within a session timeout after its function has returned, or after the servers
// received the last request of the process, since Do depends on their replies.
func (p *user) doWith(l Lock, of history.Op, do func(context.Context, func(context.Context) error) error, r *rand.Rand) {
	ctx, cancel := p.patience(r)
	defer cancel()
	op := p.begin(of)
	defer p.done(op)
	since := p.f.rec.Now()
	var ended time.Duration
	err := spared(func() error {
		return do(ctx, func(ctx context.Context) error {
			hold := zklock.HoldOf(ctx)
			p.grants(op, l.Path, hold.Node(), hold.Token())
			if of.Cohort {
				p.welcome(l, hold)
			}
			p.follows(of, hold)
			defer p.watch(hold, op)()
			p.use(r, history.Op{Path: l.Path}, hold)
			op.Ended()
			ended = p.f.rec.Now()
			return nil
		})
	})
	op.Left(err)
	switch {
	case ended == 0:
		p.eventCheck.fails(l.Path, err)
		p.judgeError(ctx, err, since, l)
	case p.unheard(ended) > p.f.term(p.name):
		p.f.report("P7", l.Path, fmt.Sprintf("%s: Do returned %v after its function", p.name, p.f.rec.Now()-ended))
	}
}

// locker returns the Locker of a lock for LockAll. If shared is set, an RWMutex is locked for reading.
func (p *user) locker(l Lock, shared bool) zklock.Locker {
	switch {
	case l.Recipe == history.Reentrant:
		return p.client.Reentrant(p.local(l.Path))
	case l.Recipe == history.RW && shared:
		return p.client.RWMutex(p.local(l.Path)).Reader()
	case l.Recipe == history.RW:
		return p.client.RWMutex(p.local(l.Path))
	case l.Recipe == history.Semaphore:
		return p.client.Semaphore(p.local(l.Path), l.Permits).Permits(1)
	}
	return p.client.Mutex(p.local(l.Path))
}

// takeAll uses several locks with LockAll.
func takeAll(p *user, locks []Lock, r *rand.Rand) {
	ctx, cancel := p.patience(r)
	defer cancel()
	var lockers []zklock.Locker
	var ops []*history.Handle
	since := p.f.rec.Now()
	for i := range locks {
		locks[i].Permits = p.f.permits(locks[i])
		l := locks[i]
		op := history.Op{Recipe: l.Recipe, Path: l.Path, Shared: l.Recipe == history.RW && r.IntN(2) == 0, Group: -1}
		if i > 0 {
			op.Group = ops[0].ID()
		}
		lockers = append(lockers, p.locker(l, op.Shared))
		ops = append(ops, p.begin(op))
		defer p.done(ops[i])
	}
	for _, l := range locks {
		p.eventCheck.isSilentOf(l.Path)
	}
	r.Shuffle(len(lockers), func(i, j int) { lockers[i], lockers[j] = lockers[j], lockers[i] })
	hold, err := sparedHold(func() (*zklock.Hold, error) { return p.client.LockAll(ctx, lockers...) })
	if err != nil {
		for _, op := range ops {
			op.Finished(history.Failed, err)
		}
		p.judgeError(ctx, err, since, locks...)
		return
	}
	if p.isLate(hold, ops...) {
		return
	}
	for i, op := range ops {
		p.grants(op, locks[i].Path, nodeBelow(hold, locks[i].Path), hold.TokenOf(p.local(locks[i].Path)))
		defer p.watch(hold, op)()
	}
	p.use(r, history.Op{Path: locks[0].Path}, hold)
	for _, op := range ops {
		op.Ended()
	}
	since = p.f.rec.Now()
	err = hold.Unlock(p.alive)
	p.judgeRelease(p.alive, hold, err, since, locks[0].Path, ops...)
	for _, op := range ops {
		op.Freed(err)
	}
}

func takeReentrant(p *user, l Lock, r *rand.Rand) {
	re := p.client.Reentrant(p.local(l.Path))
	t := taking{op: history.Op{Recipe: l.Recipe, Path: l.Path}, lock: re.Lock}
	switch p.kind(r.IntN(6), 0, never) {
	case 0:
		t.lock, t.try = re.TryLock, true
	case never:
		p.doWith(l, t.op, re.Do, r)
		return
	}
	t.inside = func(hold *zklock.Hold, outer *history.Handle) *history.Handle {
		switch r.IntN(4) {
		case 0:
			p.enterAgain(re, l, r, hold, outer)
		case 1: // after a while, in which the hold may have been lost
			p.rest(around(r, p.f.plan.Hold))
			p.enterAgain(re, l, r, hold, outer)
		}
		return nil
	}
	p.take(r, t)
}

// enterAgain locks again within a hold.
func (p *user) enterAgain(re *zklock.Reentrant, l Lock, r *rand.Rand, hold *zklock.Hold, outer *history.Handle) {
	op := p.begin(history.Op{Recipe: l.Recipe, Path: l.Path, Outer: outer.ID()})
	defer p.done(op)
	ctx := hold.Context()
	if r.IntN(2) == 0 {
		ctx = context.WithoutCancel(ctx) // Lock must notice the end of the hold even if the context is not done
	}
	inner, err := sparedHold(func() (*zklock.Hold, error) { return re.Lock(ctx) })
	if err != nil {
		op.Finished(history.Failed, err)
		if p.alive.Err() == nil && !p.closes(err) && !errors.Is(err, errWatcher) && (!errors.Is(err, zklock.ErrLost) || hold.Check() == nil) {
			p.f.report("P8", l.Path, fmt.Sprintf("%s: entering again failed: %v", p.name, err))
		}
		return
	}
	op.Granted(inner.Node(), inner.Token())
	defer p.watch(inner, op)()
	p.rest(around(r, p.f.plan.Hold/4))
	op.Ended()
	since := p.f.rec.Now()
	err = inner.Unlock(p.alive)
	p.judgeRelease(p.alive, inner, err, since, l.Path, op)
	op.Freed(err)
}

func takeElection(p *user, l Lock, r *rand.Rand) {
	e := p.client.Election(p.local(l.Path), p.f.plan.electionOptions())
	value := []byte(p.name)
	switch p.kind(r.IntN(8), never, 2) {
	case 0:
		p.askLeader(e, l)
	case 1:
		p.observe(e, l, r)
	case 2:
		p.run(e, l, r)
	default:
		p.take(r, taking{
			op:   history.Op{Recipe: l.Recipe, Path: l.Path},
			lock: func(ctx context.Context) (*zklock.Hold, error) { return e.Campaign(ctx, value) },
			inside: func(hold *zklock.Hold, _ *history.Handle) *history.Handle {
				if r.IntN(3) == 0 {
					p.proclaim(e, l, hold, append(value, '!'))
				}
				return nil
			},
		})
	}
}

// proclaim changes a leader's value. It may fail only if the leadership has ended.
func (p *user) proclaim(e *zklock.Election, l Lock, hold *zklock.Hold, value []byte) {
	since := p.f.rec.Now()
	err := e.Proclaim(hold.Context(), value)
	if err != nil && hold.Check() == nil && p.alive.Err() == nil && !p.wasRefused(err, since) {
		p.f.report("P8", l.Path, fmt.Sprintf("%s: proclaim failed: %v", p.name, err))
	}
}

// run leads with Election.Run. Its function takes a moment to return after its context is done, and the leadership must last until
// then.
func (p *user) run(e *zklock.Election, l Lock, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.alive, around(r, 4*p.f.plan.Hold))
	defer cancel()
	p.eventCheck.isSilentOf(l.Path)
	for ctx.Err() == nil {
		op, since, led := p.begin(history.Op{Recipe: l.Recipe, Path: l.Path}), p.f.rec.Now(), false
		err := spared(func() error {
			return e.Run(ctx, []byte(p.name), func(ctx context.Context) error {
				hold := zklock.HoldOf(ctx)
				led = true
				p.grants(op, l.Path, hold.Node(), hold.Token())
				p.follows(history.Op{Recipe: l.Recipe, Path: l.Path}, hold)
				defer p.watch(hold, op)()
				p.use(r, history.Op{Path: l.Path}, hold)
				<-ctx.Done()
				p.rest(around(r, p.f.plan.Hold/8))
				if errors.Is(context.Cause(hold.Context()), zklock.ErrReleased) {
					p.f.report("election", l.Path, p.name+": the leadership was released before its function had returned")
				}
				op.Ended()
				cancel()
				return nil
			})
		})
		op.Left(err)
		p.done(op)
		if !led {
			p.judgeError(ctx, err, since, l)
		}
		if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zklock.ErrMismatch) || errors.Is(err, zklock.ErrClosed) || errors.Is(err, errWatcher) {
			if !p.rest(p.f.plan.Tick) { // do not retry in a tight loop
				return
			}
		}
	}
}

// shardsOf is the number of shards of a fleet.
const shardsOf = 7

// takeShards is a member of a fleet for a while, mostly for so long that the fleet has to be balanced. Each shard that it holds is
// an operation.
func takeShards(p *user, l Lock, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.alive, around(r, 2*p.f.plan.Wake()))
	defer cancel()
	defer context.AfterFunc(p.f.until, cancel)()
	p.eventCheck.isSilentOf(l.Path + "/members")
	for shard := range shardsOf {
		p.eventCheck.isSilentOf(l.shard(shard))
	}
	member, since := p.begin(history.Op{Kind: history.Join, Recipe: l.Recipe, Path: l.Path, Weight: shardsOf}), p.f.rec.Now()
	defer p.done(member)
	defer context.AfterFunc(ctx, member.Ended)()
	slow := r.IntN(2) == 0 // its works take a moment to return
	err := shards.Run(ctx, p.client, p.local(l.Path), shardsOf, func(ctx context.Context, shard int) error {
		hold := zklock.HoldOf(ctx)
		op := p.begin(history.Op{Recipe: history.Mutex, Path: l.shard(shard), Member: member.ID()})
		defer p.done(op)
		p.grants(op, l.shard(shard), hold.Node(), hold.Token())
		defer p.watch(hold, op)()
		<-ctx.Done()
		if slow {
			p.rest(p.f.plan.Latency)
		}
		if errors.Is(context.Cause(hold.Context()), zklock.ErrReleased) {
			p.f.report("shards", l.Path, p.name+": a shard was released before its work had returned")
		}
		op.Ended()
		return ctx.Err()
	}, nil)
	member.Finished(history.Failed, err)
	if ctx.Err() == nil && !p.closes(err) && !p.wasRefused(err, since) {
		p.f.report("P8", l.Path, fmt.Sprintf("%s: a member of a fleet ended: %v", p.name, err))
	}
}

func (p *user) askLeader(e *zklock.Election, l Lock) {
	op := p.begin(history.Op{Kind: history.Observe, Recipe: l.Recipe, Path: l.Path, Fresh: true})
	defer p.done(op)
	since := p.f.rec.Now()
	leader, err := e.Leader(p.alive)
	switch {
	case errors.Is(err, zklock.ErrNoLeader):
		op.Finished(history.Refused, err)
		return
	case err != nil:
		op.Finished(history.Failed, err)
		p.judgeError(p.alive, err, since, l)
		return
	}
	op.Seen(leader.Node, leader.Token, string(leader.Data))
}

// observe observes the election for a while. Each call of Observe is a separate view: within one view, leaders come in order.
func (p *user) observe(e *zklock.Election, l Lock, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(p.alive, around(r, 5*p.f.plan.Hold))
	defer cancel()
	look := history.Op{Kind: history.Observe, Recipe: l.Recipe, Path: l.Path, Client: p.name + "/" + p.f.nextView(), Fresh: true, View: true}
	op := p.f.rec.Begin(look)
	look.Fresh = false // later leaders may come from a lagging server
	since := p.f.rec.Now()
	for leader, err := range e.Observe(ctx) {
		if err != nil {
			op.Finished(history.Failed, err)
			p.judgeError(ctx, err, since, l)
			return
		}
		op.Seen(leader.Node, leader.Token, string(leader.Data))
		op = p.f.rec.Begin(look)
	}
	op.Finished(history.Failed, ctx.Err())
}

func takeRW(p *user, l Lock, r *rand.Rand) {
	rw := p.client.RWMutex(p.local(l.Path))
	t := taking{op: history.Op{Recipe: l.Recipe, Path: l.Path, Shared: r.IntN(3) > 0}}
	kind := p.kind(r.IntN(6), 0, never)
	if kind == never {
		p.doWith(l, t.op, func(ctx context.Context, fn func(context.Context) error) error {
			return zklock.Do(ctx, p.locker(l, t.op.Shared), fn)
		}, r)
		return
	}
	switch try := kind == 0; {
	case t.op.Shared && try:
		t.lock, t.try = rw.TryRLock, true
	case t.op.Shared:
		t.lock = rw.RLock
	case try:
		t.lock, t.try = rw.TryLock, true
	default:
		t.lock = rw.Lock
	}
	if !t.op.Shared && r.IntN(2) == 0 {
		t.inside = func(hold *zklock.Hold, writer *history.Handle) *history.Handle {
			p.rest(around(r, p.f.plan.Hold/2))
			return p.downgrade(l, hold, writer)
		}
	}
	p.take(r, t)
}

// downgrade downgrades a writer's hold. In the history, it is a reader from the call on, even if the call fails.
func (p *user) downgrade(l Lock, hold *zklock.Hold, writer *history.Handle) *history.Handle {
	if hold.Check() != nil {
		return nil
	}
	writer.Ended()
	op := p.begin(history.Op{Recipe: l.Recipe, Path: l.Path, Shared: true, Outer: writer.ID()})
	op.Granted(hold.Node(), hold.Token())
	p.watch(hold, op)
	err := hold.Downgrade(p.alive)
	if err == nil {
		op.Downgraded()
	}
	if err != nil && !p.closes(err) && (!errors.Is(err, zklock.ErrLost) || hold.Check() == nil) && p.alive.Err() == nil {
		p.f.report("P8", l.Path, fmt.Sprintf("%s: downgrade failed: %v", p.name, err))
	}
	return op
}

// takePermits acquires some permits together. In the history, each permit is an operation with its own node, and together they are
// a group.
func takePermits(p *user, l Lock, r *rand.Rand) {
	if r.IntN(25) == 0 {
		p.resize(l, 1+r.IntN(p.f.plan.mostPermits()))
		takePermits(p.f.anyone(r).aUser(r), l, r) // a client that uses the new number at once must not fail, even at another server
		return
	}
	l.Permits = p.f.permits(l)
	kind := p.kind(r.IntN(6), 0, never)
	if kind == never {
		p.doWith(l, history.Op{Recipe: l.Recipe, Path: l.Path, Group: -1}, func(ctx context.Context, fn func(context.Context) error) error {
			return zklock.Do(ctx, p.locker(l, false), fn)
		}, r)
		return
	}
	ctx, cancel := p.patience(r)
	defer cancel()
	since := p.f.rec.Now()
	l.Permits = p.f.permits(l)
	s := p.client.Semaphore(p.local(l.Path), l.Permits)
	k, behind := 1+r.IntN(l.Permits), 0
	if kind == 1 && !p.f.plan.Hostile.Throttle {
		behind = 1 + r.IntN(3)
	}
	var ops []*history.Handle
	for i := range k {
		op := history.Op{Recipe: l.Recipe, Path: l.Path, Group: -1, Behind: behind}
		if i > 0 {
			op.Group, op.Outer = ops[0].ID(), ops[0].ID()
		}
		ops = append(ops, p.begin(op))
		defer p.done(ops[i])
	}
	acquire, try := s.Acquire, false
	switch {
	case kind == 0:
		acquire, try = s.TryAcquire, true
	case behind > 0:
		acquire = func(ctx context.Context, k int) (*zklock.Hold, error) {
			return zklock.AtMost(s.Permits(k), behind-1).Lock(ctx)
		}
	}
	hold, err := sparedHold(func() (*zklock.Hold, error) { return acquire(ctx, k) })
	if err != nil {
		p.eventCheck.fails(l.Path, err)
		outcome := history.Failed
		switch {
		case (try || behind > 0) && errors.Is(err, zklock.ErrLocked):
			outcome = history.Refused
		case try && errors.Is(err, zklock.ErrNotConnected):
		default:
			defer p.judgeError(ctx, err, since, l)
		}
		for _, op := range ops {
			op.Finished(outcome, err)
		}
		return
	}
	if p.isLate(hold, ops...) {
		return
	}
	p.eventCheck.holds(l.Path, hold.Node(), hold.Token())
	guard := hold.Guard()
	for i, op := range ops { // the first operation gets the last node, to which the token belongs
		op.Granted(guard[k-1-i].(*zk.CheckVersionRequest).Path, hold.Token())
		defer p.watch(hold, op)()
	}
	p.use(r, history.Op{Path: l.Path}, hold)
	if k == l.Permits && r.IntN(40) == 0 { // without a release, waiters must notice the additional permits
		p.resize(l, 2*l.Permits)
		p.rest(p.f.plan.Wake() + p.f.plan.Prompt()) // the time within which waiters must notice it
		p.resize(l, l.Permits)
	}
	for _, op := range ops {
		op.Ended()
	}
	since = p.f.rec.Now()
	err = hold.Unlock(p.alive)
	p.judgeRelease(p.alive, hold, err, since, l.Path, ops...)
	for _, op := range ops {
		op.Freed(err)
	}
}
