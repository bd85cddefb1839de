package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/lease"
)

// tasks counts goroutines of one kind, so that Close can wait for them.
type tasks struct {
	mu     sync.Mutex    // guards what follows
	n      int           // running
	closed bool          // no more may start
	idle   chan struct{} // closed when closed and none is left
}

func newTasks() *tasks { return &tasks{idle: make(chan struct{})} }

// enter registers the caller as a task; it must call leave unless the answer is false.
func (t *tasks) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.n++
	return true
}

// running reports whether there are any.
func (t *tasks) running() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n > 0
}

func (t *tasks) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.closed && t.n == 0 {
		close(t.idle)
	}
}

// run starts fn as a task, or answers false after close.
func (t *tasks) run(fn func()) bool {
	if !t.enter() {
		return false
	}
	// Owned by t; ends with fn; whoever closes t waits.
	go func() {
		defer t.leave()
		fn()
	}()
	return true
}

// close refuses new tasks and returns what is closed when the last one has ended.
func (t *tasks) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		if t.n == 0 {
			close(t.idle)
		}
	}
	return t.idle
}

// session is one ZooKeeper session.
type session = conn.Session

// errSessionOver is the error of what was begun under a session that is over.
var errSessionOver = conn.ErrSessionOver

// What a request's answer proves where the wire is not seen.
const (
	isRead  = lease.OfServer
	isSync  = lease.OfLeader
	isWrite = lease.OfQuorum
)

// ask runs fn, one request of the client library, which takes no context: when ctx ends
// first the request goes on and its answer is dropped. With a session the answer counts
// only if the client carried that session before and after, else it is errSessionOver.
func ask[T any](ctx context.Context, c *Client, s *session, of lease.Evidence, fn func(*zk.Conn) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	var over <-chan struct{}
	if s != nil {
		if !c.link.Carries(s) {
			return none, errSessionOver
		}
		over = s.Over()
	}
	answered := make(chan answer, 1)
	// Ends with the request, at the latest when Close ends the connection and then waits for it.
	if !c.calls.run(func() {
		sent := c.link.Now()
		v, err := fn(c.conn)
		c.witness(sent, of, err)
		answered <- answer{v, err}
	}) {
		return none, ErrClosed
	}
	select {
	case a := <-answered:
		if s != nil && !c.link.Carries(s) {
			return none, errSessionOver
		}
		return a.v, a.err
	case <-over:
		return none, errSessionOver
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// listing is a directory's children and its own state.
type listing struct {
	names []string
	stat  *zk.Stat
	at    time.Time // when the answer came in
}

func (c *Client) list(ctx context.Context, s *session, dir string) (listing, error) {
	return ask(ctx, c, s, isRead, func(conn *zk.Conn) (listing, error) {
		names, stat, err := conn.Children(dir)
		return listing{names, stat, time.Now()}, err
	})
}

// node is what a node holds.
type node struct {
	data []byte
	stat *zk.Stat
}

func (c *Client) get(ctx context.Context, s *session, path string) (node, error) {
	return ask(ctx, c, s, isRead, func(conn *zk.Conn) (node, error) {
		data, stat, err := conn.Get(path)
		return node{data, stat}, err
	})
}

func (c *Client) stat(ctx context.Context, s *session, path string) (*zk.Stat, error) {
	return ask(ctx, c, s, isRead, func(conn *zk.Conn) (*zk.Stat, error) {
		found, stat, err := conn.Exists(path)
		if err == nil && !found {
			err = zk.ErrNoNode
		}
		return stat, err
	})
}

// upToDate runs read where a quorum has just answered, so that it shows all that was
// committed before the call. A sync would prove nothing: a leader that was replaced and
// does not know it answers that by itself.
func upToDate[T any](ctx context.Context, c *Client, s *session, read func() (T, error)) (T, error) {
	for {
		moved := s.Reattached()
		if err := c.confirm(ctx, s, nil); err != nil {
			var none T
			return none, err
		}
		v, err := read()
		if !isClosed(moved) { // else another server has answered, perhaps
			return v, err
		}
	}
}

// sync brings the server that we are connected to up to the state of its leader. That need
// not be the quorum's: a leader that was deposed and does not know it answers as well.
func (c *Client) sync(ctx context.Context, s *session, path string) error {
	_, err := ask(ctx, c, s, isSync, func(conn *zk.Conn) (string, error) { return conn.Sync(path) })
	return err
}

// getW sets a watch. It blocks until the server answers or the connection ends.
func (c *Client) getW(path string) (seen, error) {
	sent := c.link.Now()
	data, stat, events, err := c.conn.GetW(path)
	c.witness(sent, isRead, err)
	return seen{stat: stat, data: data, events: events}, err
}

// childrenW sets a watch on a directory's children, as getW does on data.
func (c *Client) childrenW(dir string) (seen, error) {
	sent := c.link.Now()
	names, stat, events, err := c.conn.ChildrenW(dir)
	c.witness(sent, isRead, err)
	return seen{stat: stat, names: names, events: events}, err
}

// set writes a node's data if it has that version.
func (c *Client) set(ctx context.Context, s *session, path string, data []byte, version int32) (*zk.Stat, error) {
	return ask(ctx, c, s, isWrite, func(conn *zk.Conn) (*zk.Stat, error) { return conn.Set(path, data, version) })
}

func (c *Client) delete(ctx context.Context, s *session, path string) error {
	return c.deleteVersion(ctx, s, path, -1)
}

func (c *Client) deleteVersion(ctx context.Context, s *session, path string, version int32) error {
	_, err := ask(ctx, c, s, isWrite, func(conn *zk.Conn) (none struct{}, err error) {
		return none, conn.Delete(path, version)
	})
	return err
}

func (c *Client) multi(ctx context.Context, s *session, ops ...any) ([]zk.MultiResponse, error) {
	return ask(ctx, c, s, isWrite, func(conn *zk.Conn) ([]zk.MultiResponse, error) { return transact(conn, ops) })
}

// transact executes ops in one transaction. Without an error there is a result for each.
func transact(conn *zk.Conn, ops []any) ([]zk.MultiResponse, error) {
	answers, err := conn.Multi(ops...)
	if err == nil && len(answers) != len(ops) {
		err = fmt.Errorf("%d results for %d operations", len(answers), len(ops))
	}
	return answers, err
}

// refusals are the errors that say for certain that a server did not do what was asked.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists,
	zk.ErrNotEmpty, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags,
}

// isRefusal says whether err is final: asking again gives the same answer.
func isRefusal(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// wasNotSent says whether a request that failed so cannot have been carried out.
func wasNotSent(err error) bool { return isRefusal(err) || errors.Is(err, zk.ErrNoServer) }

// isTransient says whether trying again, on this connection or the next, can help.
// What is unknown to us is: the library hands out raw network errors and server codes
// that it has no name for.
func isTransient(err error) bool {
	return err != nil && !isRefusal(err) && !isFinal(err)
}

// isFinal says whether err is one of ours, or of a context.
func isFinal(err error) bool {
	for _, f := range []error{errSessionOver, errGone, ErrClosed, ErrLocked, ErrLimit, ErrInvalid, ErrEvicted, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

// again asks until there is an answer.
func again[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	var p pace
	for {
		v, err := fn()
		if !isTransient(err) || ctx.Err() != nil {
			return v, err
		}
		if err := p.next(ctx); err != nil {
			return v, err
		}
	}
}

// persist asks until there is an answer, under whatever session the client has by then.
func persist[T any](ctx context.Context, c *Client, fn func(s *session) (T, error)) (T, error) {
	var p pace
	for {
		s, err := c.link.Attached(ctx)
		var v T
		if err == nil {
			v, err = fn(s)
		}
		if ctx.Err() != nil || !isTransient(err) && !errors.Is(err, errSessionOver) {
			return v, err
		}
		if err := p.next(ctx); err != nil {
			return v, err
		}
	}
}

// pace spaces out repeated attempts.
type pace struct {
	wait time.Duration
	most time.Duration // zero for a second
}

// longer is the next time to wait, twice the last.
func (p *pace) longer() time.Duration {
	p.wait = min(max(2*p.wait, 10*time.Millisecond), cmp.Or(p.most, time.Second))
	return p.wait
}

// next waits a little, longer each time, or until ctx ends, which is the error.
func (p *pace) next(ctx context.Context) error {
	timer := time.NewTimer(p.longer())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// untilProven waits until the heartbeats have proven that s lives.
func untilProven(ctx context.Context, s *session) error {
	var p pace
	for !s.Lease.IsProven() {
		if err := p.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// yield lets a goroutine that was just started put its request in front of ours.
func yield() { runtime.Gosched() }
