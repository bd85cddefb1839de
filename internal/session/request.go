// Package session asks servers: requests with a context whose answers count only for one session, watches that waiters share,
// and the heartbeats that prove that the session lives. It knows nothing of queues.
package session

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
	"github.com/zklock-go/zklock/internal/outcome"
)

// Session is one ZooKeeper session.
type Session = conn.Session

// A Wire is what this library uses of its client library, and the only way to it: a *zk.Conn,
// or whatever speaks to ZooKeeper in its place one day.
type Wire interface {
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

// Requests sends requests on one connection, and knows which of their answers count.
type Requests struct {
	Conn      Wire
	Link      *conn.Link
	Log       *slog.Logger
	Calls     *Tasks          // requests and watches: they end when the connection has
	listings  listings        // that are under way
	Life      context.Context // ends, with ErrClosed, when Close begins
	Afterlife context.Context // ends, with ErrClosed, when Close gives up cleaning
}

// Ask runs fn, which is one request of the client library, and returns its answer. The client
// library takes no context: if ctx ends first, ask returns its cause, and the request goes on
// without anybody waiting for it. If s is not nil, the answer counts only if the connection
// carried s before and after the request; otherwise ask returns errSessionOver.
func Ask[T any](ctx context.Context, r *Requests, s *Session, fn func(Wire) (T, error)) (T, error) {
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
		if !r.Link.Carries(s) {
			return none, outcome.ErrSessionOver
		}
		over = s.Over()
	}
	answered := make(chan answer, 1)
	// Ends with the request, at the latest when Close ends the connection and then waits for it.
	if !r.Calls.Run(func() {
		v, err := fn(r.Conn)
		answered <- answer{v, err}
	}) {
		return none, outcome.ErrClosed
	}
	select {
	case a := <-answered:
		if s != nil && !r.Link.Carries(s) {
			return none, outcome.ErrSessionOver
		}
		return a.v, a.err
	case <-over:
		return none, outcome.ErrSessionOver
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// List lists a directory. The request for it is sent after the call, but others may share its answer.
func (r *Requests) List(ctx context.Context, s *Session, dir string) (none Listing, _ error) {
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	if !r.Link.Carries(s) {
		return none, outcome.ErrSessionOver
	}
	l := r.listings.share(r.Calls, listed{s, dir}, r.children)
	select {
	case <-l.done.Done():
		if !r.Link.Carries(s) {
			return none, outcome.ErrSessionOver
		}
		return l.Listing, l.err
	case <-s.Over():
		return none, outcome.ErrSessionOver
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

func (r *Requests) children(dir string) (Listing, error) {
	names, stat, err := r.Conn.Children(dir)
	return NewListing(names, stat, time.Now()), err
}

// Node is what a server has answered about a node: its data and its state.
type Node struct {
	Data []byte
	Stat *zk.Stat
}

func (r *Requests) Get(ctx context.Context, s *Session, path string) (Node, error) {
	return Ask(ctx, r, s, func(conn Wire) (Node, error) {
		data, stat, err := conn.Get(path)
		return Node{data, stat}, err
	})
}

func (r *Requests) Stat(ctx context.Context, s *Session, path string) (*zk.Stat, error) {
	return Ask(ctx, r, s, func(conn Wire) (*zk.Stat, error) {
		found, stat, err := conn.Exists(path)
		if err == nil && !found {
			err = zk.ErrNoNode
		}
		return stat, err
	})
}

// UpToDate runs read on a server that has just passed on the answer of a quorum, so that read
// sees everything that was committed before the call. A sync would prove nothing: a leader
// that was replaced and does not know it answers a sync by itself.
func UpToDate[T any](ctx context.Context, r *Requests, s *Session, read func() (T, error)) (T, error) {
	for {
		moved := s.Reattached()
		if err := r.askQuorum(ctx, s); err != nil {
			var none T
			return none, err
		}
		v, err := read()
		if !IsClosed(moved) { // otherwise another server may have answered
			return v, err
		}
	}
}

// askQuorum waits until a quorum has answered under s. It changes nothing and fires no watch.
func (r *Requests) askQuorum(ctx context.Context, s *Session) error {
	_, err := r.Multi(ctx, s, &zk.CheckVersionRequest{Path: "/", Version: -1})
	if outcome.IsRefusal(err) {
		return nil // it went through the quorum all the same
	}
	return err
}

// Sync brings the server that we are connected to up to the state of its leader. That state
// need not be the quorum's: a leader that was deposed and does not know it answers as well.
func (r *Requests) Sync(ctx context.Context, s *Session, path string) error {
	_, err := Ask(ctx, r, s, func(conn Wire) (string, error) { return conn.Sync(path) })
	return err
}

// Set writes a node's data if it has that version.
func (r *Requests) Set(ctx context.Context, s *Session, path string, data []byte, version int32) (*zk.Stat, error) {
	return Ask(ctx, r, s, func(conn Wire) (*zk.Stat, error) { return conn.Set(path, data, version) })
}

func (r *Requests) Delete(ctx context.Context, s *Session, path string) error {
	return r.DeleteVersion(ctx, s, path, -1)
}

func (r *Requests) DeleteVersion(ctx context.Context, s *Session, path string, version int32) error {
	_, err := Ask(ctx, r, s, func(conn Wire) (none struct{}, err error) {
		return none, conn.Delete(path, version)
	})
	return err
}

func (r *Requests) Multi(ctx context.Context, s *Session, ops ...any) ([]zk.MultiResponse, error) {
	return Ask(ctx, r, s, func(conn Wire) ([]zk.MultiResponse, error) { return Transact(conn, ops) })
}

// Transact executes ops in one transaction. Without an error there is a result for each.
func Transact(conn Wire, ops []any) ([]zk.MultiResponse, error) {
	answers, err := conn.Multi(ops...)
	if err == nil && len(answers) != len(ops) {
		err = fmt.Errorf("%d results for %d operations", len(answers), len(ops))
	}
	return answers, err
}

// Again asks until there is an answer.
func Again[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	var p Pace
	for {
		v, err := fn()
		if !outcome.IsTransient(err) || ctx.Err() != nil {
			return v, err
		}
		if err := p.Next(ctx); err != nil {
			return v, err
		}
	}
}

// Persist asks until there is an answer, under whatever session the client has by then.
func Persist[T any](ctx context.Context, r *Requests, fn func(s *Session) (T, error)) (T, error) {
	var p Pace
	for {
		s, err := r.Link.Attached(ctx)
		var v T
		if err == nil {
			v, err = fn(s)
		}
		if ctx.Err() != nil || !outcome.IsTransient(err) && !errors.Is(err, outcome.ErrSessionOver) {
			return v, err
		}
		if err := p.Next(ctx); err != nil {
			return v, err
		}
	}
}

// ListAgain lists until there is an answer.
func (r *Requests) ListAgain(ctx context.Context, s *Session, dir string) (Listing, error) {
	return Again(ctx, func() (Listing, error) { return r.List(ctx, s, dir) })
}

// FreshList lists a directory as the quorum knows it, and not an earlier state that a lagging
// server would show.
func (r *Requests) FreshList(ctx context.Context, s *Session, dir string) (Listing, error) {
	return UpToDate(ctx, r, s, func() (Listing, error) { return r.List(ctx, s, dir) })
}

// OwnAmong returns the name that begins with prefix, which contains our guid, if its node was
// created under one of the sessions. It checks the session because anybody can imitate a name.
func (r *Requests) OwnAmong(ctx context.Context, s *Session, dir string, names []string, prefix string, sessions ...*Session) (string, error) {
	for _, name := range names {
		if !strings.HasPrefix(name, prefix+"-") {
			continue
		}
		stat, err := r.Stat(ctx, s, dir+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return "", err
		case slices.ContainsFunc(sessions, func(o *Session) bool { return o.ID == stat.EphemeralOwner }):
			return name, nil
		}
	}
	return "", nil
}

// Explain adds the context's error to that of a wait under ctx, and the last trouble that
// the connection met if there is no session or servers refuse this client.
func (r *Requests) Explain(ctx context.Context, err error) error {
	err = outcome.CauseOf(ctx, err)
	if trouble := r.Link.LastTrouble(); trouble != nil && ctx.Err() != nil {
		if s, _ := r.Link.State(); s == nil || r.Link.IsDenied() {
			return fmt.Errorf("%w (last trouble: %w)", err, trouble)
		}
	}
	return err
}

// Term returns the session's timeout, zero before the first session.
func (r *Requests) Term() time.Duration {
	s := r.Link.Latest()
	if s == nil {
		return 0
	}
	return s.Lease.Term()
}
