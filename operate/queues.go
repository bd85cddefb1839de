package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

func (c client) queues(ctx context.Context, path string) ([]*Queue, error) {
	inside := c.Inside(ctx)
	defer inside.Leave()
	below, err := checkBelow(path)
	if err != nil {
		return nil, fmt.Errorf("zklock: queues below %s: %w", node.Printable(path), err)
	}
	queues, err := session.Persist(inside, c.Requests, func(s *session.Session) ([]*Queue, error) {
		return session.UpToDate(inside, c.Requests, s, func() ([]*Queue, error) { return c.browse(inside, s, below) })
	})
	if err != nil {
		return queues, fmt.Errorf("zklock: queues below %s: %w", node.Printable(path), c.Explain(inside, err))
	}
	return queues, nil
}

// checkBelow checks a path, and returns it in the form that precedes the names below it.
func checkBelow(path string) (string, error) {
	if path == "/" {
		return "", nil
	}
	return path, node.CheckPath(path)
}

// browse reads the queue of a directory and those below it. With zk.ErrNoAuth it returns all
// queues that may be read.
func (c client) browse(ctx context.Context, s *session.Session, path string) ([]*Queue, error) {
	l, err := c.List(ctx, s, node.DirOf(c.Root+path))
	if errors.Is(err, zk.ErrNoAuth) {
		return nil, fmt.Errorf("%s: %w", node.Printable(path), err)
	}
	if err != nil {
		return nil, err
	}
	var queues []*Queue
	var hidden error
	if isQueue(l.Names) && path != "" {
		q, err := c.lookIn(ctx, s, path, l)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			hidden = fmt.Errorf("%s: %w", node.Printable(path), err)
		case err != nil:
			return nil, err
		case len(q.Contenders) > 0:
			queues = append(queues, q)
		}
	}
	for _, name := range beside(l.Names, path) {
		more, err := c.browse(ctx, s, path+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			hidden = cmp.Or(hidden, err)
		case err != nil && !errors.Is(err, zk.ErrNoNode): // else it has gone since
			return nil, err
		}
		queues = append(queues, more...)
	}
	return queues, hidden
}

// isQueue reports whether a directory with these children is a lock's.
func isQueue(names []string) bool {
	return slices.Contains(names, node.LeasesDir[1:]) || len(node.ParseEntries(names)) > 0
}

// beside returns, in order, the children that do not belong to a queue and may have queues
// below them.
func beside(names []string, path string) []string {
	semaphore := slices.Contains(names, node.LeasesDir[1:])
	var others []string
	for _, name := range names {
		_, contender := node.ParseEntry(name)
		switch {
		case contender, strings.HasSuffix(name, node.MarksSuffix), strings.HasSuffix(name, node.RecordSuffix), path == "" && name == "zookeeper":
		case semaphore && (name == node.LeasesDir[1:] || name == node.GateDir[1:]):
		default:
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return others
}

func (c client) watch(ctx context.Context, path string) iter.Seq2[*Queue, error] {
	return func(yield func(*Queue, error) bool) {
		failed := func(err error) { yield(nil, fmt.Errorf("zklock: watch %s: %w", node.Printable(path), err)) }
		below, err := checkBelow(path)
		if err != nil {
			failed(err)
			return
		}
		inside := c.Inside(ctx)
		defer inside.Leave()
		following, cancel := context.WithCancelCause(inside)
		defer cancel(nil)
		b := &browser{c: c, changed: make(chan *Queue), fail: cancel, known: map[string]bool{}}
		b.follow(following, below, true)
		if err := b.pass(following, yield); err != nil {
			failed(c.Explain(inside, err))
		}
	}
}

// browser is one Watch at work.
type browser struct {
	c       client
	changed chan *Queue
	fail    context.CancelCauseFunc

	mu    sync.Mutex
	known map[string]bool // guarded by mu: the directories that are followed
}

// pass yields the queues that change, until the loop ends, which is not an error.
func (b *browser) pass(ctx context.Context, yield func(*Queue, error) bool) error {
	for {
		select {
		case q := <-b.changed:
			if !yield(q, nil) {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follow watches a directory and what is below it, unless it is watched already.
func (b *browser) follow(ctx context.Context, path string, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[path] {
		return
	}
	if len(b.known) >= maxFollowed {
		b.fail(fmt.Errorf("more than %d directories: watch fewer", maxFollowed))
		return
	}
	b.known[path] = true
	// Owned by the client; ends with ctx or when the directory is gone; Close waits for it.
	if !b.c.Calls.Run(func() { b.stay(ctx, path, first) }) {
		b.fail(zklock.ErrClosed)
	}
}

func (b *browser) forget(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, path)
}

// maxFollowed bounds the directories of one Watch: each costs a goroutine and a watch.
const maxFollowed = 10_000

// browsePace is the least time between two looks at one directory.
const browsePace = 200 * time.Millisecond

// stay watches a directory until it is gone. It watches the first one until ctx ends.
func (b *browser) stay(ctx context.Context, path string, first bool) {
	last := &Queue{Path: path}
	for ctx.Err() == nil {
		err := b.step(ctx, path, &last)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			b.show(ctx, &Queue{Path: path}, &last)
			if !first {
				b.forget(path)
				return
			}
		case errors.Is(err, zk.ErrNoAuth) && !first:
			return // it stays among known, so that it is not followed again
		case err != nil && !outcome.IsTransient(err) && !errors.Is(err, outcome.ErrSessionOver) && ctx.Err() == nil:
			b.fail(err)
			return
		}
		session.Sleep(ctx, browsePace)
	}
}

// step looks at a directory and waits until it changes, or one of those that a semaphore has in it.
func (b *browser) step(ctx context.Context, path string, last **Queue) error {
	s, err := b.c.Link.Attached(ctx)
	if err != nil {
		return err
	}
	w, err := b.c.WatchChildren(ctx, s, node.DirOf(b.c.Root+path))
	if err != nil {
		return err
	}
	inner, err := b.watchInner(ctx, s, path, w.Names)
	if err != nil {
		return err
	}
	for _, name := range beside(w.Names, path) {
		b.follow(ctx, path+"/"+name, false)
	}
	if path != "" && (isQueue(w.Names) || len((*last).Contenders) > 0) {
		q, err := b.c.lookIn(ctx, s, path, session.NewListing(w.Names, w.Stat, time.Time{}))
		if err != nil {
			return err
		}
		b.show(ctx, q, last)
	}
	return awaitAny(ctx, append(inner, w))
}

// watchInner sets the watches on a semaphore's directories, as far as they exist: one that is made later changes the
// directory above it.
func (b *browser) watchInner(ctx context.Context, s *session.Session, path string, names []string) (inner []*session.NodeWatch, err error) {
	if !slices.Contains(names, node.LeasesDir[1:]) {
		return nil, nil
	}
	for _, sub := range []string{node.LeasesDir, node.GateDir} {
		w, err := b.c.WatchChildren(ctx, s, b.c.Root+path+sub)
		switch {
		case err == nil:
			inner = append(inner, w)
		case !errors.Is(err, zk.ErrNoNode):
			return nil, err
		}
	}
	return inner, nil
}

// awaitAny waits until one of the watches fires.
func awaitAny(ctx context.Context, watches []*session.NodeWatch) error {
	if len(watches) == 1 {
		_, err := watches[0].Await(ctx, nil)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for _, w := range watches {
		// Owned by this call, which waits; ends with ctx, or when the watch fires.
		all.Go(func() {
			defer cancel()
			w.Await(ctx, nil)
		})
	}
	all.Wait()
	return nil
}

// show passes a queue on if its contenders differ from those of the last one.
func (b *browser) show(ctx context.Context, q *Queue, last **Queue) {
	q.Issued = max(q.Issued, (*last).Issued)
	if reflect.DeepEqual(q.Contenders, (*last).Contenders) || len(q.Contenders)+len((*last).Contenders) == 0 {
		return
	}
	*last = q
	select {
	case b.changed <- q:
	case <-ctx.Done():
	}
}
