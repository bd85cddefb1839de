package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
)

// session is one ZooKeeper session.
type session = conn.Session

// A wire is what this library uses of its client library, and the only way to it: a *zk.Conn,
// or whatever speaks to ZooKeeper in its place one day.
type wire interface {
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Get(path string) ([]byte, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	Children(path string) ([]string, *zk.Stat, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Exists(path string) (bool, *zk.Stat, error)
	GetACL(path string) ([]zk.ACL, *zk.Stat, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Delete(path string, version int32) error
	Multi(ops ...any) ([]zk.MultiResponse, error)
	Sync(path string) (string, error)
	AddAuth(scheme string, auth []byte) error
	SessionID() int64
	State() zk.State
	Close()
}

// requests sends requests on one connection, and knows which of their answers count.
type requests struct {
	conn      wire
	link      *conn.Link
	log       *slog.Logger
	calls     *tasks          // requests and watches: they end when the connection has
	life      context.Context // ends, with ErrClosed, when Close begins
	afterlife context.Context // ends, with ErrClosed, when Close gives up cleaning
}

// ask runs fn, which is one request of the client library, and returns its answer. The client
// library takes no context: if ctx ends first, ask returns its cause, and the request goes on
// without anybody waiting for it. If s is not nil, the answer counts only if the connection
// carried s before and after the request; otherwise ask returns errSessionOver.
func ask[T any](ctx context.Context, r *requests, s *session, fn func(wire) (T, error)) (T, error) {
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
		if !r.link.Carries(s) {
			return none, errSessionOver
		}
		over = s.Over()
	}
	answered := make(chan answer, 1)
	// Ends with the request, at the latest when Close ends the connection and then waits for it.
	if !r.calls.run(func() {
		v, err := fn(r.conn)
		answered <- answer{v, err}
	}) {
		return none, ErrClosed
	}
	select {
	case a := <-answered:
		if s != nil && !r.link.Carries(s) {
			return none, errSessionOver
		}
		return a.v, a.err
	case <-over:
		return none, errSessionOver
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// listing is what a server has answered about a directory: its children and its own state.
type listing struct {
	names []string
	stat  *zk.Stat
	at    time.Time // when the answer came in
}

func (r *requests) list(ctx context.Context, s *session, dir string) (listing, error) {
	return ask(ctx, r, s, func(conn wire) (listing, error) {
		names, stat, err := conn.Children(dir)
		return listing{names, stat, time.Now()}, err
	})
}

// node is what a server has answered about a node: its data and its state.
type node struct {
	data []byte
	stat *zk.Stat
}

func (r *requests) get(ctx context.Context, s *session, path string) (node, error) {
	return ask(ctx, r, s, func(conn wire) (node, error) {
		data, stat, err := conn.Get(path)
		return node{data, stat}, err
	})
}

func (r *requests) stat(ctx context.Context, s *session, path string) (*zk.Stat, error) {
	return ask(ctx, r, s, func(conn wire) (*zk.Stat, error) {
		found, stat, err := conn.Exists(path)
		if err == nil && !found {
			err = zk.ErrNoNode
		}
		return stat, err
	})
}

// upToDate runs read on a server that has just passed on the answer of a quorum, so that read
// sees everything that was committed before the call. A sync would prove nothing: a leader
// that was replaced and does not know it answers a sync by itself.
func upToDate[T any](ctx context.Context, r *requests, s *session, read func() (T, error)) (T, error) {
	for {
		moved := s.Reattached()
		if err := r.askQuorum(ctx, s); err != nil {
			var none T
			return none, err
		}
		v, err := read()
		if !isClosed(moved) { // otherwise another server may have answered
			return v, err
		}
	}
}

// askQuorum waits until a quorum has answered under s. It changes nothing and fires no watch.
func (r *requests) askQuorum(ctx context.Context, s *session) error {
	_, err := r.multi(ctx, s, &zk.CheckVersionRequest{Path: "/", Version: -1})
	if isRefusal(err) {
		return nil // it went through the quorum all the same
	}
	return err
}

// sync brings the server that we are connected to up to the state of its leader. That state
// need not be the quorum's: a leader that was deposed and does not know it answers as well.
func (r *requests) sync(ctx context.Context, s *session, path string) error {
	_, err := ask(ctx, r, s, func(conn wire) (string, error) { return conn.Sync(path) })
	return err
}

// getW sets a watch. It blocks until the server answers or the connection ends.
func (r *requests) getW(path string) (seen, error) {
	data, stat, events, err := r.conn.GetW(path)
	return seen{stat: stat, data: data, events: events}, err
}

// childrenW sets a watch on a directory's children, as getW does on data.
func (r *requests) childrenW(dir string) (seen, error) {
	names, stat, events, err := r.conn.ChildrenW(dir)
	return seen{stat: stat, names: names, events: events}, err
}

// seen is what a server answered when it set a watch.
type seen struct {
	stat   *zk.Stat
	data   []byte   // of a data watch
	names  []string // of a watch on children
	events <-chan zk.Event
}

// set writes a node's data if it has that version.
func (r *requests) set(ctx context.Context, s *session, path string, data []byte, version int32) (*zk.Stat, error) {
	return ask(ctx, r, s, func(conn wire) (*zk.Stat, error) { return conn.Set(path, data, version) })
}

func (r *requests) delete(ctx context.Context, s *session, path string) error {
	return r.deleteVersion(ctx, s, path, -1)
}

func (r *requests) deleteVersion(ctx context.Context, s *session, path string, version int32) error {
	_, err := ask(ctx, r, s, func(conn wire) (none struct{}, err error) {
		return none, conn.Delete(path, version)
	})
	return err
}

func (r *requests) multi(ctx context.Context, s *session, ops ...any) ([]zk.MultiResponse, error) {
	return ask(ctx, r, s, func(conn wire) ([]zk.MultiResponse, error) { return transact(conn, ops) })
}

// transact executes ops in one transaction. Without an error there is a result for each.
func transact(conn wire, ops []any) ([]zk.MultiResponse, error) {
	answers, err := conn.Multi(ops...)
	if err == nil && len(answers) != len(ops) {
		err = fmt.Errorf("%d results for %d operations", len(answers), len(ops))
	}
	return answers, err
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
func persist[T any](ctx context.Context, r *requests, fn func(s *session) (T, error)) (T, error) {
	var p pace
	for {
		s, err := r.link.Attached(ctx)
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

// listAgain lists until there is an answer.
func (r *requests) listAgain(ctx context.Context, s *session, dir string) (listing, error) {
	return again(ctx, func() (listing, error) { return r.list(ctx, s, dir) })
}

// freshList lists a directory as the quorum knows it, and not an earlier state that a lagging
// server would show.
func (r *requests) freshList(ctx context.Context, s *session, dir string) (listing, error) {
	return upToDate(ctx, r, s, func() (listing, error) { return r.list(ctx, s, dir) })
}

// ownAmong returns the name that begins with prefix, which contains our guid, if its node was
// created under one of the sessions. It checks the session because anybody can imitate a name.
func (r *requests) ownAmong(ctx context.Context, s *session, dir string, names []string, prefix string, sessions ...*session) (string, error) {
	for _, name := range names {
		if !strings.HasPrefix(name, prefix+"-") {
			continue
		}
		stat, err := r.stat(ctx, s, dir+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return "", err
		case slices.ContainsFunc(sessions, func(o *session) bool { return o.ID == stat.EphemeralOwner }):
			return name, nil
		}
	}
	return "", nil
}

// explain adds the context's error to that of a wait under ctx, and the last trouble that
// the connection met if there is no session or servers refuse this client.
func (r *requests) explain(ctx context.Context, err error) error {
	err = causeOf(ctx, err)
	if trouble := r.link.LastTrouble(); trouble != nil && ctx.Err() != nil {
		if s, _ := r.link.State(); s == nil || r.link.IsDenied() {
			return fmt.Errorf("%w (last trouble: %w)", err, trouble)
		}
	}
	return err
}

// term returns the session's timeout, zero before the first session.
func (r *requests) term() time.Duration {
	s := r.link.Latest()
	if s == nil {
		return 0
	}
	return s.Lease.Term()
}
