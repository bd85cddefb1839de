package zklock

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
)

func (c operator) Queues(ctx context.Context, path string) ([]*snapshot, error) {
	inside, stop := either(ctx, c.life)
	defer stop()
	below, err := checkBelow(path)
	if err != nil {
		return nil, fmt.Errorf("zklock: queues below %s: %w", printable(path), err)
	}
	queues, err := persist(inside, c.requests, func(s *session) ([]*snapshot, error) {
		if err := c.sync(inside, s, dirOf(c.root+below)); err != nil {
			return nil, err
		}
		return c.browse(inside, s, below)
	})
	if err != nil {
		return queues, fmt.Errorf("zklock: queues below %s: %w", printable(path), c.explain(inside, err))
	}
	return queues, nil
}

// checkBelow checks a path, and returns it in the form that precedes the names below it.
func checkBelow(path string) (string, error) {
	if path == "/" {
		return "", nil
	}
	return path, checkPath(path)
}

// browse reads the queue of a directory and those below it. With zk.ErrNoAuth it returns all
// queues that may be read.
func (c *Client) browse(ctx context.Context, s *session, path string) ([]*snapshot, error) {
	l, err := c.list(ctx, s, dirOf(c.root+path))
	if errors.Is(err, zk.ErrNoAuth) {
		return nil, fmt.Errorf("%s: %w", printable(path), err)
	}
	if err != nil {
		return nil, err
	}
	var queues []*snapshot
	var hidden error
	if isQueue(l.names) && path != "" {
		q, err := c.look(ctx, s, path)
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			hidden = fmt.Errorf("%s: %w", printable(path), err)
		case err != nil:
			return nil, err
		case len(q.Contenders) > 0:
			queues = append(queues, q)
		}
	}
	for _, name := range beside(l.names, path) {
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
	return slices.Contains(names, leasesDir[1:]) || len(parseEntries(names)) > 0
}

// beside returns, in order, the children that do not belong to a queue and may have queues
// below them.
func beside(names []string, path string) []string {
	semaphore := slices.Contains(names, leasesDir[1:])
	var others []string
	for _, name := range names {
		_, contender := parseEntry(name)
		switch {
		case contender, strings.HasSuffix(name, marksSuffix), strings.HasSuffix(name, recordSuffix), path == "" && name == "zookeeper":
		case semaphore && (name == leasesDir[1:] || name == gateDir[1:]):
		default:
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return others
}

func (c operator) Watch(ctx context.Context, path string) iter.Seq2[*snapshot, error] {
	return func(yield func(*snapshot, error) bool) {
		failed := func(err error) { yield(nil, fmt.Errorf("zklock: watch %s: %w", printable(path), err)) }
		below, err := checkBelow(path)
		if err != nil {
			failed(err)
			return
		}
		inside, stop := either(ctx, c.life)
		defer stop()
		following, cancel := context.WithCancelCause(inside)
		defer cancel(nil)
		b := &browser{c: c.Client, changed: make(chan *snapshot), fail: cancel, known: map[string]bool{}}
		b.follow(following, below, true)
		if err := b.pass(following, yield); err != nil {
			failed(c.explain(following, err))
		}
	}
}

// browser is one Watch at work.
type browser struct {
	c       *Client
	changed chan *snapshot
	fail    context.CancelCauseFunc

	mu    sync.Mutex
	known map[string]bool // guarded by mu: the directories that are followed
}

// pass yields the queues that change, until the loop ends, which is not an error.
func (b *browser) pass(ctx context.Context, yield func(*snapshot, error) bool) error {
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
	if !b.c.calls.run(func() { b.stay(ctx, path, first) }) {
		b.fail(ErrClosed)
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
	last := &snapshot{Path: path}
	for ctx.Err() == nil {
		err := b.step(ctx, path, &last)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			b.show(ctx, &snapshot{Path: path}, &last)
			if !first {
				b.forget(path)
				return
			}
		case errors.Is(err, zk.ErrNoAuth) && !first:
			return // it stays among known, so that it is not followed again
		case err != nil && !isTransient(err) && !errors.Is(err, errSessionOver) && ctx.Err() == nil:
			b.fail(err)
			return
		}
		sleep(ctx, browsePace)
	}
}

// step looks at a directory and waits until it changes.
func (b *browser) step(ctx context.Context, path string, last **snapshot) error {
	s, err := b.c.link.Attached(ctx)
	if err != nil {
		return err
	}
	w, err := b.c.watchChildren(ctx, s, dirOf(b.c.root+path))
	if err != nil {
		return err
	}
	for _, name := range beside(w.names, path) {
		b.follow(ctx, path+"/"+name, false)
	}
	if path != "" && (isQueue(w.names) || len((*last).Contenders) > 0) {
		q, err := b.c.look(ctx, s, path)
		if err != nil {
			return err
		}
		b.show(ctx, q, last)
	}
	if slices.Contains(w.names, leasesDir[1:]) {
		return b.awaitAny(ctx, s, path)
	}
	_, err = w.await(ctx, s, nil)
	return err
}

// awaitAny waits until one of a semaphore's directories changes, but no longer than a second,
// because the directory above them is not watched meanwhile.
func (b *browser) awaitAny(ctx context.Context, s *session, path string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var any sync.WaitGroup
	for _, sub := range []string{leasesDir, gateDir} {
		// Owned by this call, which waits; ends with ctx.
		any.Go(func() {
			defer cancel()
			w, err := b.c.watchChildren(ctx, s, b.c.root+path+sub)
			if errors.Is(err, zk.ErrNoNode) {
				<-ctx.Done()
			}
			if err == nil {
				w.await(ctx, s, nil)
			}
		})
	}
	any.Wait()
	return nil
}

// show passes a queue on if its contenders differ from those of the last one.
func (b *browser) show(ctx context.Context, q *snapshot, last **snapshot) {
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
