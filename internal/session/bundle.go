// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/outcome"
)

// A Bundle is a list of requests under one session that are sent together, in their order and in one
// write. One goroutine uses it, and must send it: others may already wait for the replies.
type Bundle struct {
	requests *Requests
	sess     *Session
	all      []conn.Outgoing
	few      [4]conn.Outgoing // the memory of all, if it has few requests
}

// Bundle returns an empty bundle as soon as a connection carries s.
func (r *Requests) Bundle(ctx context.Context, s *Session) (*Bundle, error) {
	if err := r.Ready(ctx, s); err != nil {
		return nil, err
	}
	return r.BundleNow(s), nil
}

// BundleNow is like Bundle but does not wait for a connection.
func (r *Requests) BundleNow(s *Session) *Bundle {
	b := &Bundle{requests: r, sess: s}
	b.all = b.few[:0]
	return b
}

// Send sends the requests as soon as possible, and does not wait for the replies. If ctx is done
// first, it returns its cause. If it returns an error, nothing was sent, and each request was answered
// with conn.ErrNotSent or an error that wraps ErrSessionOver.
func (b *Bundle) Send(ctx context.Context) error {
	if len(b.all) == 0 {
		return nil
	}
	err := ctx.Err()
	if err != nil {
		err = context.Cause(ctx)
	} else {
		err = b.requests.Link.Send(ctx, b.sess, b.all...)
	}
	if err != nil {
		b.fail(err)
	}
	return err
}

// SendNow is like Send, but does not wait: without a connection that has room for the requests,
// nothing is sent.
func (b *Bundle) SendNow() {
	if len(b.all) == 0 {
		return
	}
	if err := b.requests.Link.SendNow(b.sess, b.all...); err != nil {
		b.fail(err)
	}
}

// fail answers the requests, which were not sent because of err. The error of Send's context is only for
// the caller of Send: other callers may wait for the replies.
func (b *Bundle) fail(err error) {
	if !errors.Is(err, outcome.ErrSessionOver) {
		err = conn.ErrNotSent
	}
	for _, q := range b.all {
		q.By.Answered(frames.Reply{}, err)
	}
}

// add adds a request. It calls read with the reply when that arrives, and then then with the result. If
// the request was not sent, it calls then with an error. then may be nil, and must not wait.
func add[T any](b *Bundle, q frames.Request, read func(*frames.Answer) (T, error), then func(T, error)) *call[T] {
	c := &call[T]{read: read, then: then}
	b.all = append(b.all, conn.Outgoing{Request: q, By: c})
	return c
}

// Add is like add for a request that has no result.
func (b *Bundle) Add(q frames.Request, read func(*frames.Answer) (struct{}, error), then func(error)) {
	add(b, q, read, func(_ struct{}, err error) { then(err) })
}

// Delete adds a request that deletes a node if it has the given version; -1 means any version.
// See add for then.
func (b *Bundle) Delete(path string, version int32, then func(error)) {
	b.Add(frames.Delete(path, version), readNothing, then)
}

// Multi adds a transaction. See add for then.
func (b *Bundle) Multi(ops []any, then func([]zk.MultiResponse, error)) {
	add(b, frames.Multi(ops), ReadResults(len(ops)), then)
}

// Stat adds a request for a node's stat. The returned function waits for the reply.
func (b *Bundle) Stat(path string) (answer func(context.Context) (*zk.Stat, error)) {
	return answerTo(b, frames.Exists(path), readStat)
}

// Get adds a request for a node. The returned function waits for the reply.
func (b *Bundle) Get(path string) (answer func(context.Context) (Node, error)) {
	return answerTo(b, frames.Get(path, false), readNode)
}

// answerTo adds a request. The returned function waits for the reply as Ask does. Call it after Send.
func answerTo[T any](b *Bundle, q frames.Request, read func(*frames.Answer) (T, error)) func(context.Context) (T, error) {
	c := add(b, q, read, nil)
	return func(ctx context.Context) (T, error) { return await(ctx, b.requests, b.sess, c) }
}

// List adds a request for a directory's children, unless one can be shared. The returned function
// waits for the reply. The listing shows everything that the bundle's earlier requests have changed.
func (b *Bundle) List(dir string) (answer func(context.Context) (Listing, error)) {
	r := b.requests
	request := func(then func(Listing, error)) { add(b, frames.Children(dir, false), readListing, then) }
	l := r.listings.share(r, listed{b.sess, dir}, request)
	return func(ctx context.Context) (none Listing, _ error) {
		if err := r.await(ctx, b.sess, &l.done); err != nil {
			return none, err
		}
		return l.Listing, l.err
	}
}

// List lists a directory. It sends the request after List is called, but other callers may share
// the reply.
func (r *Requests) List(ctx context.Context, s *Session, dir string) (none Listing, _ error) {
	b, err := r.Bundle(ctx, s)
	if err != nil {
		return none, err
	}
	answer := b.List(dir)
	if err := b.Send(ctx); err != nil {
		return none, err
	}
	return answer(ctx)
}

// ListAlone is like List, but does not share the reply with other callers, whose client may be closed meanwhile.
func (r *Requests) ListAlone(ctx context.Context, s *Session, dir string) (Listing, error) {
	return Ask(ctx, r, s, frames.Children(dir, false), readListing)
}

func (r *Requests) children(of listed) (Listing, error) {
	return Ask(r.CleanupCtx, r, of.sess, frames.Children(of.dir, false), readListing)
}

func readListing(a *frames.Answer) (Listing, error) {
	return NewListing(a.Names(), a.Stat(), time.Now()), nil
}

// ListAgain calls List until it does not fail with a transient error.
func (r *Requests) ListAgain(ctx context.Context, s *Session, dir string) (Listing, error) {
	return Again(ctx, func() (Listing, error) { return r.List(ctx, s, dir) })
}

// FreshList lists a directory as the quorum knows it, and not in an earlier state that a lagging
// server might return.
func (r *Requests) FreshList(ctx context.Context, s *Session, dir string) (Listing, error) {
	return UpToDate(ctx, r, s, func() (Listing, error) { return r.List(ctx, s, dir) })
}
