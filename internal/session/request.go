// Package session asks servers: requests with a context whose answers count only for one session, watches that waiters share,
// and the heartbeats that prove that the session lives. It knows nothing of queues.
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

// Library is what this library uses of its client library, a *zk.Conn, which makes sessions, keeps them and presents
// credentials. All other requests are ours, on the connection that it has made: see conn.Link.
type Library interface {
	AddAuth(scheme string, auth []byte) error
	Exists(path string) (bool, *zk.Stat, error)
	SessionID() int64
	State() zk.State
	Close()
}

// Requests sends requests on one connection, and knows which of their answers count.
type Requests struct {
	Library   Library
	Link      *conn.Link
	Log       *slog.Logger
	Calls     *Tasks          // tasks of the client other than acquires and clean-ups
	listings  listings        // that are under way
	Life      context.Context // ends, with ErrClosed, when Close begins
	Afterlife context.Context // ends, with ErrClosed, when Close gives up cleaning
	knocks    atomic.Int64    // asked for since the one that is under way began, itself included; zero: none is
}

// A call is a request that was sent.
type call[T any] struct {
	read   func(*frames.Answer) (T, error)
	then   func(T, error) // nil for nothing
	answer frames.Answer  // for read
	done   Latch

	// Set before done.
	value T
	err   error
}

// Answered takes the answer.
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

// Inside returns the context of a call of a user's. Its Leave must be called when the call returns.
func (r *Requests) Inside(ctx context.Context) *Inside { return &Inside{Context: ctx, life: r.Life} }

// Ready waits until a request can be sent under s.
func (r *Requests) Ready(ctx context.Context, s *Session) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.Link.Ready(ctx, s, r.knock)
}

// knock has the client library send a request: see conn.Link.Ready. There is one at a time: one that the library has
// not sent goes out on the next connection, and on servers that refuse a credential it never sends any.
func (r *Requests) knock() {
	if r.knocks.Add(1) > 1 {
		return
	}
	// Owned by the client; ends with the request; Close waits for it.
	r.Calls.Run(func() {
		for asked := int64(0); !r.knocks.CompareAndSwap(asked, 0); {
			asked = r.knocks.Load()
			r.Library.Exists("/")
		}
	})
}

// begin sends a request under s, reads its answer by read, and then calls then, which must not wait; nil for nothing. After an error
// nothing was sent, and then is not called.
func begin[T any](r *Requests, s *Session, q frames.Request, read func(*frames.Answer) (T, error), then func(T, error)) (*call[T], error) {
	c := &call[T]{read: read, then: then}
	return c, r.Link.Send(s, q, c)
}

// Begin sends a request as soon as that is possible, and does not wait for its answer. If ctx ends before, it returns its
// cause. When the answer has come, it calls then, which must not wait; nil for nothing. After an error nothing was sent, and then is
// not called.
func Begin[T any](ctx context.Context, r *Requests, s *Session, q frames.Request, read func(*frames.Answer) (T, error), then func(T, error)) (*call[T], error) {
	for {
		if err := r.Ready(ctx, s); err != nil {
			return nil, err
		}
		c, err := begin(r, s, q, read, then)
		if !errors.Is(err, conn.ErrNotSent) {
			return c, err
		}
	}
}

// Ask sends a request under s, as soon as that is possible, and returns its answer. If ctx ends first, it returns its cause, and
// nobody waits for the answer any more. The answer counts only if s is still the client's session when it comes; otherwise
// Ask returns ErrSessionOver. Read may return an error beside the answer. What a server has not carried out because it has too many
// requests is sent again, a few times.
func Ask[T any](ctx context.Context, r *Requests, s *Session, q frames.Request, read func(*frames.Answer) (T, error)) (T, error) {
	var p Pace
	for tries := 1; ; tries++ {
		v, err := askOnce(ctx, r, s, q, read)
		if !errors.Is(err, frames.ErrThrottled) || tries == maxAsks {
			return v, err
		}
		if err := p.Next(ctx); err != nil {
			return v, err
		}
	}
}

// maxAsks bounds how often a request is sent that a server has too many of.
const maxAsks = 6

func askOnce[T any](ctx context.Context, r *Requests, s *Session, q frames.Request, read func(*frames.Answer) (T, error)) (none T, _ error) {
	c, err := Begin(ctx, r, s, q, read, nil)
	if err != nil {
		return none, err
	}
	return await(ctx, r, s, c)
}

// await returns the answer to a request that was sent.
func await[T any](ctx context.Context, r *Requests, s *Session, c *call[T]) (none T, _ error) {
	if err := r.await(ctx, s, &c.done); err != nil {
		return none, err
	}
	return c.value, c.err
}

// await waits for an answer that counts only if s is still the client's session when it comes.
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

// Authenticate presents a credential. The client library then presents it on each later connection, before
// anything else.
func (r *Requests) Authenticate(ctx context.Context, scheme string, data []byte) error {
	answered := make(chan error, 1)
	// Ends with the request, at the latest when Close ends the connection and then waits for it.
	if !r.Calls.Run(func() { answered <- r.Library.AddAuth(scheme, data) }) {
		return outcome.ErrClosed
	}
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// List lists a directory. The request for it is sent after the call, but others may share its answer.
func (r *Requests) List(ctx context.Context, s *Session, dir string) (none Listing, _ error) {
	if err := r.Ready(ctx, s); err != nil {
		return none, err
	}
	l := r.listings.share(r.Calls, listed{s, dir}, r.children)
	if err := r.await(ctx, s, &l.done); err != nil {
		return none, err
	}
	return l.Listing, l.err
}

func (r *Requests) children(of listed) (Listing, error) {
	l, err := Ask(r.Afterlife, r, of.sess, frames.Children(of.dir, false), readListing)
	if err != nil {
		l = NewListing(nil, nil, time.Now()) // a directory that is missing has no children
	}
	return l, err
}

func readListing(a *frames.Answer) (Listing, error) {
	return NewListing(a.Names(), a.Stat(), time.Now()), nil
}

// Node is what a server has answered about a node: its data and its state.
type Node struct {
	Data []byte
	Stat *zk.Stat
}

func (r *Requests) Get(ctx context.Context, s *Session, path string) (Node, error) {
	return Ask(ctx, r, s, frames.Get(path, false), func(a *frames.Answer) (Node, error) { return Node{a.Data(), a.Stat()}, nil })
}

// BeginStat looks at a node without waiting for the answer. The function that it returns does.
func (r *Requests) BeginStat(ctx context.Context, s *Session, path string) (answer func(context.Context) error, _ error) {
	c, err := Begin(ctx, r, s, frames.Exists(path), readStat, nil)
	return func(ctx context.Context) error {
		_, err := await(ctx, r, s, c)
		return err
	}, err
}

func (r *Requests) Stat(ctx context.Context, s *Session, path string) (*zk.Stat, error) {
	return Ask(ctx, r, s, frames.Exists(path), readStat)
}

func readStat(a *frames.Answer) (*zk.Stat, error) { return a.Stat(), nil }

// readNothing reads an answer that says nothing but that it was done.
func readNothing(*frames.Answer) (none struct{}, _ error) { return none, nil }

// Create creates a node and returns its path.
func (r *Requests) Create(ctx context.Context, s *Session, path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	return Ask(ctx, r, s, frames.Create(path, data, flags, acl), func(a *frames.Answer) (string, error) { return a.Text(), nil })
}

// GetACL returns a node's access list.
func (r *Requests) GetACL(ctx context.Context, s *Session, path string) ([]zk.ACL, error) {
	return Ask(ctx, r, s, frames.GetACL(path), func(a *frames.Answer) ([]zk.ACL, error) { return a.ACL(), nil })
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
	_, err := Ask(ctx, r, s, frames.Sync(path), readNothing)
	return err
}

// Set writes a node's data if it has that version.
func (r *Requests) Set(ctx context.Context, s *Session, path string, data []byte, version int32) (*zk.Stat, error) {
	return Ask(ctx, r, s, frames.SetData(path, data, version), readStat)
}

// Delete deletes a node if it has that version; -1 stands for any.
func (r *Requests) Delete(ctx context.Context, s *Session, path string, version int32) error {
	_, err := Ask(ctx, r, s, frames.Delete(path, version), readNothing)
	return err
}

// Multi executes ops in one transaction. Without an error there is a result for each; with one there may be.
func (r *Requests) Multi(ctx context.Context, s *Session, ops ...any) ([]zk.MultiResponse, error) {
	return Ask(ctx, r, s, frames.Multi(ops), ReadResults(len(ops)))
}

// ReadResults reads the results of a transaction of n operations, and the first refusal among them.
func ReadResults(n int) func(*frames.Answer) ([]zk.MultiResponse, error) {
	return func(a *frames.Answer) ([]zk.MultiResponse, error) {
		results, err := a.Results()
		if err == nil && len(results) != n {
			err = fmt.Errorf("%d results for %d operations", len(results), n)
		}
		return results, err
	}
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
// created under owner. It checks that because anybody can imitate a name.
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
