// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

func (c client) watch(ctx context.Context, path string, most limits) iter.Seq2[*Queue, error] {
	return func(yield func(*Queue, error) bool) {
		failed := func(err error) { yield(nil, fmt.Errorf("zklock: watch %s: %w", node.Printable(path), err)) }
		below, err := checkBelow(path)
		if err != nil {
			failed(err)
			return
		}
		callCtx := c.Requests.CallContext(ctx)
		defer callCtx.Cancel()
		following, cancel := context.WithCancelCause(callCtx)
		defer cancel(nil)
		b := &browser{c: c, ctx: following, changed: make(chan *Queue), fail: cancel, dirs: newDirectories(below, most)}
		b.begin()
		if err := b.pass(yield); err != nil {
			failed(c.Requests.Explain(callCtx, err))
		}
	}
}

// browser is the state of one call of Watch.
type browser struct {
	c       client
	ctx     context.Context // ends with the call
	changed chan *Queue
	fail    context.CancelCauseFunc

	mu   sync.Mutex
	dirs *directories // guarded by mu, as are the directories in it
}

// begin follows the watched path.
func (b *browser) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.start(b.dirs.find(b.dirs.base), inUse)
	// Owned by the client; ends with ctx; Close waits for it.
	if !b.c.Requests.Calls.Run(b.sweep) {
		b.fail(zklock.ErrClosed)
	}
}

// pass yields the queues that change, and what is missing if that changes. It returns nil when the
// loop ends.
func (b *browser) pass(yield func(*Queue, error) bool) error {
	tick := time.NewTicker(gapsPace)
	defer tick.Stop()
	last := Incomplete{}
	for {
		select {
		case q := <-b.changed:
			if !yield(q, nil) {
				return nil
			}
		case <-tick.C:
			now := b.gaps()
			if now == last {
				continue
			}
			last = now
			if !yield(nil, &now) {
				return nil
			}
		case <-b.ctx.Done():
			return context.Cause(b.ctx)
		}
	}
}

// gapsPace is the minimum time between two reports of what is missing.
const gapsPace = time.Second

func (b *browser) gaps() Incomplete {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dirs.gaps
}

// start follows a directory. It must be called with mu held.
func (b *browser) start(d *dir, c class) {
	ctx, end := context.WithCancel(b.ctx)
	b.dirs.insert(d, c)
	d.end, d.listed = end, false
	// Owned by the client; ends with ctx or when the directory is gone; Close waits for it.
	if !b.c.Requests.Calls.Run(func() { b.stay(ctx, d) }) {
		end()
		b.fail(zklock.ErrClosed)
	}
}

// add follows a directory if there is room for it. It must be called with mu held.
func (b *browser) add(d *dir, c class, isNew bool) {
	if d.place != nil {
		return
	}
	if !b.makeRoom(d, c, isNew) {
		b.dirs.class(d, c)
		b.omit(d, fateUnwatched)
		return
	}
	b.start(d, c)
}

// makeRoom reports whether d can be followed in a class. It must be called with mu held.
func (b *browser) makeRoom(d *dir, c class, isNew bool) bool {
	ok, instead := b.dirs.room(c, d.top, isNew)
	if instead != nil {
		b.omit(instead, fateUnwatched)
	}
	return ok
}

// omit ends following a directory, if it is followed. It must be called with mu held.
func (b *browser) omit(d *dir, why fate) {
	if d.end != nil {
		d.end()
	}
	b.dirs.remove(d)
	b.dirs.mark(d, why)
}

// settle puts a followed directory into the class that its children show. It returns false if the
// directory is not followed any more, because there is no room for it.
func (b *browser) settle(ctx context.Context, d *dir, children bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return false
	case d.place == nil || d.class == inUse || !children:
		return true
	case !b.makeRoom(d, inUse, false):
		b.dirs.class(d, inUse)
		b.omit(d, fateUnwatched)
		return false
	}
	b.dirs.insert(d, inUse)
	return true
}

// markShown records that a directory could be read.
func (b *browser) markShown(ctx context.Context, d *dir) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() == nil {
		b.dirs.mark(d, fateShown)
	}
}

// leave records why a directory is not followed any more, unless another one has its place.
func (b *browser) leave(ctx context.Context, d *dir, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case errors.Is(why, zk.ErrNoNode):
		d.end()
		b.dirs.forget(d)
	default:
		b.omit(d, fateUnreadable)
	}
}

// browsePace is the minimum time between two reads of one directory.
const browsePace = 200 * time.Millisecond

// stay watches a directory until it is gone, cannot be read, or is no longer followed. It watches
// the first one until ctx ends.
func (b *browser) stay(ctx context.Context, d *dir) {
	last, first := &Queue{Path: d.path}, d.path == b.dirs.base
	// What is no longer watched must not be shown as it was.
	defer func() { b.show(&Queue{Path: d.path}, &last) }()
	for ctx.Err() == nil {
		err := b.step(ctx, d, &last)
		switch {
		case errors.Is(err, errNoRoom):
			return
		case errors.Is(err, zk.ErrNoNode) && first:
			b.show(&Queue{Path: d.path}, &last)
		case (errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth)) && !first:
			b.leave(ctx, d, err)
			return
		case err != nil && !outcome.IsTransient(err) && !errors.Is(err, outcome.ErrSessionOver) && ctx.Err() == nil:
			b.fail(err)
			return
		}
		session.Sleep(ctx, browsePace)
	}
}

// errNoRoom reports that a directory is no longer followed because of the limits.
var errNoRoom = errors.New("too many directories")

// step reads a directory and waits until it changes, or until one of a semaphore's directories in
// it changes.
func (b *browser) step(ctx context.Context, d *dir, last **Queue) error {
	s, err := b.c.Requests.Link.Attached(ctx)
	if err != nil {
		return err
	}
	v, err := b.c.Watches.WatchChildren(ctx, s, node.DirOf(b.c.Root+d.path))
	if err != nil {
		return err
	}
	if !b.settle(ctx, d, len(v.Names) > 0) {
		return errNoRoom
	}
	inner, err := b.watchInner(ctx, s, d.path, v.Names)
	if err != nil {
		return err
	}
	if err := b.meet(ctx, s, d, otherChildren(v.Names, d.path)); err != nil {
		return err
	}
	if d.path != "" && (isQueue(v.Names) || len((*last).Contenders) > 0) {
		q, err := b.c.lookIn(ctx, s, d.path, session.NewListing(v.Names, v.Stat, time.Time{}))
		if err != nil {
			return err
		}
		b.show(q, last)
	}
	b.markShown(ctx, d)
	return awaitAny(ctx, append(inner, v))
}

// meet follows the children of a directory that it does not know yet, and forgets those that are
// gone and were not followed.
func (b *browser) meet(ctx context.Context, s *session.Session, parent *dir, names []string) error {
	unknown, direct := b.compare(parent, names)
	class := make([]class, len(unknown))
	err := session.SideBySide(b.c.Requests.Calls, len(unknown), readersAtOnce, func(i int) (err error) {
		if direct { // following it shows its class
			class[i] = empty
			return nil
		}
		class[i], err = b.classOf(ctx, s, unknown[i])
		return outcome.IgnoreMissing(err)
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, path := range unknown {
		if class[i] < classes {
			b.add(b.dirs.find(path), class[i], parent.listed)
		}
	}
	parent.listed = true
	return nil
}

// compare returns the paths of a directory's children that are not known. direct reports whether
// there is certainly room for all of them.
func (b *browser) compare(parent *dir, names []string) (unknown []string, direct bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	there := make(map[string]bool, len(names))
	for _, name := range names {
		path := parent.path + "/" + name
		there[path] = true
		if b.dirs.all[path] == nil {
			unknown = append(unknown, path)
		}
	}
	for path := range parent.aside {
		if !there[path] {
			b.dirs.forget(b.dirs.all[path])
		}
	}
	return unknown, b.dirs.n[empty]+len(unknown) <= b.dirs.most[empty]
}

// classOf returns a directory's class, or classes if it is gone.
func (b *browser) classOf(ctx context.Context, s *session.Session, path string) (class, error) {
	stat, err := b.c.Requests.Stat(ctx, s, b.c.Root+path)
	switch {
	case err != nil:
		return classes, err
	case stat.NumChildren == 0:
		return empty, nil
	}
	return inUse, nil
}

// sweptAtOnce limits how many directories without a watch are looked at in one round.
const sweptAtOnce = 1000

// sweep looks again, once in a session timeout, at directories that are not followed: whether they
// can be read now, or have become more than empty, or whether there is room for them now.
func (b *browser) sweep() {
	for b.ctx.Err() == nil {
		session.Sleep(b.ctx, max(b.c.Requests.Term(), browsePace))
		s, err := b.c.Requests.Link.Attached(b.ctx)
		if err != nil {
			continue
		}
		due := b.due()
		session.SideBySide(b.c.Requests.Calls, len(due), readersAtOnce, func(i int) error {
			class, err := b.classOf(b.ctx, s, due[i].path)
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			b.lookAgain(due[i], class)
			return nil
		})
	}
}

// due returns directories that are not followed, those that have waited longest first. Up to half of
// them cannot be read: they are usually few, and must not wait for thousands for which there is no room.
func (b *browser) due() (due []*dir) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirs.rounds++
	for _, d := range b.dirs.all {
		if d.place == nil && d.path != b.dirs.base {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *dir) int { return a.round - b.round })
	slices.SortStableFunc(due, func(a, b *dir) int { return cmp.Compare(a.fate, b.fate) }) // the unreadable ones first
	if n := slices.IndexFunc(due, func(d *dir) bool { return d.fate != fateUnreadable }); n > sweptAtOnce/2 {
		due = slices.Delete(due, sweptAtOnce/2, n)
	}
	due = due[:min(len(due), sweptAtOnce)]
	for _, d := range due {
		d.round = b.dirs.rounds
	}
	return due
}

// lookAgain follows a directory again if it can, or forgets it if it is gone.
func (b *browser) lookAgain(d *dir, c class) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case d.place != nil || b.dirs.all[d.path] != d: // in the meantime
	case c == classes:
		b.dirs.forget(d)
	default:
		b.add(d, min(c, d.class), false) // what was once in use stays so
	}
}

// watchInner watches a semaphore's directories, as far as they exist. A directory that is created
// later changes its parent.
func (b *browser) watchInner(ctx context.Context, s *session.Session, path string, names []string) (inner []*session.View, err error) {
	if !slices.Contains(names, node.LeasesDir[1:]) {
		return nil, nil
	}
	for _, sub := range []string{node.LeasesDir, node.PermitQueueDir} {
		v, err := b.c.Watches.WatchChildren(ctx, s, b.c.Root+path+sub)
		switch {
		case err == nil:
			inner = append(inner, v)
		case !errors.Is(err, zk.ErrNoNode):
			return nil, err
		}
	}
	return inner, nil
}

// awaitAny waits until the watch of one of the views fires.
func awaitAny(ctx context.Context, views []*session.View) error {
	if len(views) == 1 {
		_, err := views[0].Await(ctx, nil)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for _, v := range views {
		// Owned by this call, which waits for it; ends with ctx, or when the watch fires.
		all.Go(func() {
			defer cancel()
			v.Await(ctx, nil)
		})
	}
	all.Wait()
	return nil
}

// show passes on a queue if its contenders differ from those of last.
func (b *browser) show(q *Queue, last **Queue) {
	q.Issued = max(q.Issued, (*last).Issued)
	if reflect.DeepEqual(q.Contenders, (*last).Contenders) || len(q.Contenders)+len((*last).Contenders) == 0 {
		return
	}
	*last = q
	select {
	case b.changed <- q:
	case <-b.ctx.Done():
	}
}
