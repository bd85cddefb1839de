// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
)

// OwnNode is a node of ours, from before it is requested until nobody needs it. Its owner sets the
// first fields before the node is shared. What changes later is guarded by mu or happens only once.
type OwnNode struct {
	Dir        string
	Name       string   // set once it is known
	Sess       *Session // the session under which it was requested
	Fixed      bool     // its data must never change: see queue.Recipe
	Kept       bool     // heartbeats check it, or have checked it: see Keep
	Revocation *Revocation

	Gone Latch // the node was found missing or is useless, and its holder has been notified
	why  error // set before Gone: why the node is useless; nil if it was deleted

	mu     sync.Mutex
	data   []byte // guarded by mu: what its data should be
	ending bool   // guarded by mu: Gone is about to be set
	onGone func() // guarded by mu: see WhenGone
}

// Init must be called before anything else.
func (n *OwnNode) Init(dir string, data []byte, fixed bool) {
	n.Dir, n.data, n.Fixed = dir, data, fixed
	n.Revocation = new(Revocation)
}

// Path returns the node's path. It is valid once its name is known.
func (n *OwnNode) Path() string { return n.Dir + "/" + n.Name }

// MarkGone marks our node as gone, or as useless for the given reason. It calls the function that
// WhenGone registered before it sets Gone: when MarkGone returns, or IsGone reports true, no
// hold relies on the node.
func (n *OwnNode) MarkGone(why error) {
	notify, first := n.setEnding(why)
	if !first {
		<-n.Gone.Done() // soon: the function must not wait
		return
	}
	if notify != nil {
		notify()
	}
	n.Gone.Set()
}

// setEnding records that the node is gone. It returns the function to call, which may be nil, and
// whether this was the first call.
func (n *OwnNode) setEnding(why error) (notify func(), first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ending {
		return nil, false
	}
	n.why, n.ending = why, true
	return n.onGone, true
}

// WhenGone calls fn once our node is gone, immediately if it is gone already. fn must not wait.
func (n *OwnNode) WhenGone(fn func()) {
	n.mu.Lock()
	n.onGone = fn
	gone := n.ending
	n.mu.Unlock()
	if gone {
		fn()
	}
}

// Because returns the reason why our node is useless in place of ErrGone, unless the node was
// deleted.
func (n *OwnNode) Because(err error) error {
	if errors.Is(err, outcome.ErrGone) && n.IsGone() && n.why != nil {
		return n.why
	}
	return err
}

// ErrForged ends a hold whose node was turned into a reader's, but not by us: others may have
// acquired the lock.
var ErrForged = fmt.Errorf("%w: node data was changed to a reader's by another client", outcome.ErrGone)

// ErrUnreadable ends an operation that needs to read a node that we have created.
var ErrUnreadable = fmt.Errorf("cannot read our own node (check its ACL): %w", zk.ErrNoAuth)

func (n *OwnNode) IsGone() bool { return n.Gone.IsSet() }

// WasFoundGone reports whether MarkGone was called. Unlike IsGone, it also returns true while MarkGone
// notifies the holder.
func (n *OwnNode) WasFoundGone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ending
}

// WasDeleted reports whether our node is gone because it was deleted. It is for the function that WhenGone
// registered, and for later.
func (n *OwnNode) WasDeleted() bool { return n.why == nil }

// Loss returns the error of a hold whose node is gone.
func (n *OwnNode) Loss() error {
	if n.why != nil {
		return fmt.Errorf("%w: node %s: %w", outcome.ErrLost, n.Path(), n.why)
	}
	return fmt.Errorf("%w: node %s was deleted", outcome.ErrLost, n.Path())
}

// Exists returns an operation that fails unless our node exists. The node's data does not matter.
func (n *OwnNode) Exists() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: n.Path(), Version: -1}
}

// checkSize returns about how many bytes the check of our node adds to a request.
func (n *OwnNode) checkSize() int { return len(n.Dir) + 1 + len(n.Name) + 32 }

// OwnData returns what our node's data should be.
func (n *OwnNode) OwnData() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data
}

// SetOwnData sets what our node's data should be from now on, and returns the previous value.
func (n *OwnNode) SetOwnData(data []byte) (before []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.data = n.data, data
	return before
}

// Hear reports whether our node's data contains a revocation request, and if so records the
// request.
func (n *OwnNode) Hear(d Node) bool {
	if !node.IsRevocation(d.Data) {
		return false
	}
	n.Revocation.request()
	return true
}

// KeepRevocation returns data as our node should contain it: with the revocation request, if there was
// one.
func (n *OwnNode) KeepRevocation(data []byte) []byte {
	if !n.Fixed && n.Revocation.Requested.IsSet() {
		return node.WithRevocation(data)
	}
	return data
}

// Revocation is a request to release a lock. All nodes of one acquire share it: its node in the
// queue, its permits, and the nodes that it creates when it has to queue again.
type Revocation struct {
	Requested Latch // set when somebody has made the request

	mu   sync.Mutex
	also []*Revocation // guarded by mu: where this one is forwarded to
}

// request records that somebody has made the request, here and wherever it is forwarded to.
func (r *Revocation) request() {
	r.Requested.Set()
	r.mu.Lock()
	also := r.also
	r.also = nil
	r.mu.Unlock()
	for _, other := range also {
		other.request()
	}
}

// Forward forwards this request to another Revocation, immediately if it was already made, until
// stop is called.
func (r *Revocation) Forward(to *Revocation) (stop func()) {
	r.mu.Lock()
	r.also = append(r.also, to)
	r.mu.Unlock()
	if r.Requested.IsSet() {
		r.request()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.also = slices.DeleteFunc(r.also, func(other *Revocation) bool { return other == to })
	}
}
