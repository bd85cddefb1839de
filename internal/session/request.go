// SPDX-License-Identifier: Apache-2.0

// Package session communicates with servers: it sends requests whose replies are valid only for one
// session, manages the watches that waiters share, and sends the heartbeats that prove that the
// session is alive. It does not depend on queues.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// Session is one ZooKeeper session.
type Session = conn.Session

// Library is the part of the client library, a *zk.Conn, that this library uses: it creates
// sessions and keeps them alive. We send all other requests ourselves, on the connection that it has
// made: see conn.Link.
type Library interface {
	SessionID() int64
	State() zk.State
	Close()
}

// Requests sends requests on a client's connection and decides which replies are valid.
type Requests struct {
	Library    Library
	Link       *conn.Link
	Root       string // the prefix of every path in ZooKeeper: see Options.Root
	Log        *slog.Logger
	Calls      *Tasks          // tasks of the client other than acquires and clean-ups
	listings   listings        // the listings in progress
	Life       context.Context // canceled, with ErrClosed, when Close begins
	CleanupCtx context.Context // canceled, with ErrClosed, when Close stops waiting for clean-up

	onClickHouse atomic.Pointer[bool] // whether the servers are ClickHouse Keeper's; nil until one has replied: see OnClickHouse
}

// CallerPath returns the directory dir in ZooKeeper as the caller passed it, for log lines.
func (r *Requests) CallerPath(dir string) string { return strings.TrimPrefix(dir, r.Root) }

// A call is a request that was sent.
type call[T any] struct {
	read   func(*frames.Answer) (T, error)
	then   func(T, error) // nil if there is none
	answer frames.Answer  // the argument of read
	done   Latch

	// Set before done:
	value T
	err   error
}

// Answered handles the reply.
func (c *call[T]) Answered(r frames.Reply, err error) {
	if err == nil {
		c.answer = r.Answer()
		c.value, err = c.read(&c.answer)
	}
	c.err = err
	c.done.Set()
	if c.then != nil {
		c.then(c.value, c.err)
	}
}

// CallContext returns the context of a user's call. The caller must call Cancel when the call returns.
func (r *Requests) CallContext(ctx context.Context) *CallContext {
	return &CallContext{Context: ctx, life: r.Life}
}

// Ready waits until a request can be sent under s.
func (r *Requests) Ready(ctx context.Context, s *Session) error {
	return r.Link.Ready(ctx, s)
}

// Begin sends a request as soon as possible and does not wait for its reply. If ctx is done first,
// it returns its cause. When the reply arrives, it is read with read and then is called; then may be
// nil and must not wait. If Begin returns an error, nothing was sent and then is not called.
func Begin[T any](ctx context.Context, r *Requests, s *Session, q frames.Request, read func(*frames.Answer) (T, error), then func(T, error)) (*call[T], error) {
	c := &call[T]{read: read, then: then}
	return c, r.Link.Send(ctx, s, conn.Outgoing{Request: q, By: c})
}

// Ask sends a request under s as soon as possible and returns its reply. If ctx is done first, it
// returns its cause, and the reply is discarded. The reply is valid only if s is still the client's
// session when it arrives; otherwise Ask returns ErrSessionOver. read may return an error in
// addition to a value.
func Ask[T any](ctx context.Context, r *Requests, s *Session, q frames.Request, read func(*frames.Answer) (T, error)) (none T, _ error) {
	c, err := Begin(ctx, r, s, q, read, nil)
	if err != nil {
		return none, err
	}
	return await(ctx, r, s, c)
}

// sendBeat sends a request of a heartbeat, which goes before the client's other requests. When it has ended, its reply is read with
// read and then, which must not wait, is called.
func sendBeat[T any](r *Requests, s *Session, q frames.Request, read func(*frames.Answer) (T, error), then func(T, error)) {
	c := &call[T]{read: read, then: then}
	if err := r.Link.SendBeatNow(s, conn.Outgoing{Request: q, By: c}); err != nil {
		c.Answered(frames.Reply{}, err)
	}
}

// askBeat is like Ask for a request of a heartbeat.
func askBeat[T any](ctx context.Context, r *Requests, s *Session, q frames.Request, read func(*frames.Answer) (T, error)) (none T, _ error) {
	c := &call[T]{read: read}
	if err := r.Link.SendBeat(ctx, s, conn.Outgoing{Request: q, By: c}); err != nil {
		return none, err
	}
	return await(ctx, r, s, c)
}

// await returns the reply to a request that was sent.
func await[T any](ctx context.Context, r *Requests, s *Session, c *call[T]) (none T, _ error) {
	if err := r.await(ctx, s, &c.done); err != nil {
		return none, err
	}
	return c.value, c.err
}

// await waits for the reply. It returns ErrSessionOver if s is no longer the client's session when
// the reply arrives.
func (r *Requests) await(ctx context.Context, s *Session, answered *Latch) error {
	caller, client := ends(ctx)
	select {
	case <-answered.Done():
		if !r.Link.Carries(s) {
			return outcome.ErrSessionOver
		}
		return nil
	case <-s.Over():
		return outcome.ErrSessionOver
	case <-caller:
	case <-client:
	}
	return endOf(ctx)
}

// Authenticate presents a credential. Once a server has accepted it, the link presents it on every
// later connection, before anything else.
func (r *Requests) Authenticate(ctx context.Context, scheme string, data []byte) error {
	_, err := Persist(ctx, r, func(s *Session) (struct{}, error) {
		return Ask(ctx, r, s, frames.Auth(scheme, data), readNothing)
	})
	return err
}

// Node is the data and the stat of a node in a server's reply.
type Node struct {
	Data []byte
	Stat *zk.Stat
}

func (r *Requests) Get(ctx context.Context, s *Session, path string) (Node, error) {
	return Ask(ctx, r, s, frames.Get(path, false), readNode)
}

func readNode(a *frames.Answer) (Node, error) { return Node{a.Data(), a.Stat()}, nil }

func (r *Requests) Stat(ctx context.Context, s *Session, path string) (*zk.Stat, error) {
	return Ask(ctx, r, s, frames.Exists(path), readStat)
}

func readStat(a *frames.Answer) (*zk.Stat, error) { return a.Stat(), nil }

// readNothing reads a reply that only confirms that the request was executed.
func readNothing(*frames.Answer) (none struct{}, _ error) { return none, nil }

// Create creates a node and returns its path.
func (r *Requests) Create(ctx context.Context, s *Session, path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	return Ask(ctx, r, s, frames.Create(path, data, flags, acl), func(a *frames.Answer) (string, error) { return a.Text(), nil })
}

// GetACL returns a node's ACL.
func (r *Requests) GetACL(ctx context.Context, s *Session, path string) ([]zk.ACL, error) {
	return Ask(ctx, r, s, frames.GetACL(path), func(a *frames.Answer) ([]zk.ACL, error) { return a.ACL(), nil })
}

// UpToDate runs read on a server that has just forwarded a reply from a quorum, so read sees
// everything that was committed before the call. A sync would not prove that: a leader that was
// replaced but does not know it answers a sync by itself. If the session has moved to another server
// since the reply, that server is as new: it refuses sessions that have seen more than it has.
func UpToDate[T any](ctx context.Context, r *Requests, s *Session, read func() (T, error)) (none T, _ error) {
	if err := r.askQuorum(ctx, s); err != nil {
		return none, err
	}
	return read()
}

// askQuorum waits until a quorum has replied under s. It changes nothing and fires no watch.
func (r *Requests) askQuorum(ctx context.Context, s *Session) error {
	_, err := r.Multi(ctx, s, &zk.CheckVersionRequest{Path: "/", Version: -1})
	if outcome.IsRefusal(err) {
		return nil // even a refusal was agreed on by a quorum
	}
	return err
}

// Sync brings the current server up to the state of its leader. That state may be older than the
// quorum's: a leader that was replaced but does not know it replies as well.
func (r *Requests) Sync(ctx context.Context, s *Session, path string) error {
	_, err := Ask(ctx, r, s, frames.Sync(path), readNothing)
	return err
}

// Set writes a node's data if the node has the given version.
func (r *Requests) Set(ctx context.Context, s *Session, path string, data []byte, version int32) (*zk.Stat, error) {
	return Ask(ctx, r, s, frames.SetData(path, data, version), readStat)
}

// Delete deletes a node if it has the given version; -1 means any version.
func (r *Requests) Delete(ctx context.Context, s *Session, path string, version int32) error {
	_, err := Ask(ctx, r, s, frames.Delete(path, version), readNothing)
	return err
}

// Multi executes ops in one transaction. If the error is nil, there is one result per operation;
// otherwise the results may be incomplete.
func (r *Requests) Multi(ctx context.Context, s *Session, ops ...any) ([]zk.MultiResponse, error) {
	return Ask(ctx, r, s, frames.Multi(ops), ReadResults(len(ops)))
}

// ReadResults returns a function that reads the results of a transaction of n operations and
// returns the first refusal among them as the error.
func ReadResults(n int) func(*frames.Answer) ([]zk.MultiResponse, error) {
	return func(a *frames.Answer) ([]zk.MultiResponse, error) {
		results, err := a.Results()
		if err == nil && len(results) != n {
			err = fmt.Errorf("reply has %d results for %d operations", len(results), n)
		}
		return results, err
	}
}

// Again calls fn until it does not fail with a transient error.
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

// Persist is like Again, but passes fn the session that the client has at that time, and also
// retries if that session ends.
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

// OwnAmong returns the name in names that begins with prefix, which contains our guid, if its node
// was created under owner. It checks the owner because anybody can imitate a name.
func (r *Requests) OwnAmong(ctx context.Context, s *Session, dir string, names []string, prefix string, owner *Session) (string, error) {
	for _, name := range names {
		if !strings.HasPrefix(name, prefix+"-") {
			continue
		}
		stat, err := r.Stat(ctx, s, dir+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return "", err
		case stat.EphemeralOwner == owner.ID:
			return name, nil
		}
	}
	return "", nil
}

// Explain adds the context's error to err, the error of a wait under ctx. If there is no session,
// or servers refuse this client, it also adds the last error that the connection or a wait met.
func (r *Requests) Explain(ctx context.Context, err error) error {
	err = outcome.CauseOf(ctx, err)
	if last := r.Link.LastError(); last != nil && ctx.Err() != nil {
		if s, _ := r.Link.State(); s == nil || r.Link.IsDenied() {
			return fmt.Errorf("%w (last error: %w)", err, last)
		}
	}
	return err
}

// Term returns the session's timeout, or zero before the first session.
func (r *Requests) Term() time.Duration {
	s := r.Link.Latest()
	if s == nil {
		return 0
	}
	return s.Lease.Term()
}
