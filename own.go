package zklock

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"
)

// ownNode is a node of ours, from before it is asked for until nobody needs it. Its owner sets
// the first fields, before others watch the node. What changes later is guarded by mu, or happens
// once.
type ownNode struct {
	dir   string
	name  string   // once known
	sess  *session // the one it was asked for under
	fixed bool     // its data must never change: see recipe
	asked *revocation

	gone latch // the node was found missing, or is of no use
	why  error // set before gone: what is wrong, unless it was deleted

	mu     sync.Mutex
	data   []byte // guarded by mu: what its data should be
	onGone func() // guarded by mu: see whenGone
}

// init must be called before anything else.
func (n *ownNode) init(dir string, data []byte, fixed bool) {
	n.dir, n.data, n.fixed = dir, data, fixed
	n.asked = new(revocation)
}

// path is the node's, valid once its name is known.
func (n *ownNode) path() string { return n.dir + "/" + n.name }

// forsake tells everybody that our node is gone, or of no use for that reason.
func (n *ownNode) forsake(why error) {
	if tell := n.vanish(why); tell != nil {
		tell()
	}
}

// vanish is forsake without telling; it returns what tells, nil if there is nothing to tell.
func (n *ownNode) vanish(why error) (tell func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isGone() {
		return nil
	}
	n.why = why
	n.gone.set()
	return n.onGone
}

// whenGone has fn called, once, when our node is gone, at once if it is. fn must not wait.
func (n *ownNode) whenGone(fn func()) {
	n.mu.Lock()
	n.onGone = fn
	gone := n.isGone()
	n.mu.Unlock()
	if gone {
		fn()
	}
}

// because puts the reason why our node is of no use, if that is another than that it was
// deleted, in the place of errGone.
func (n *ownNode) because(err error) error {
	if errors.Is(err, errGone) && n.isGone() && n.why != nil {
		return n.why
	}
	return err
}

// errForged ends what was made a reader's, and not by us: others may have been let in.
var errForged = fmt.Errorf("%w: somebody else has made it a reader's", errGone)

// errUnreadable ends what needs a look at a node that we have made ourselves.
var errUnreadable = fmt.Errorf("our own node cannot be read, its ACL must let us: %w", zk.ErrNoAuth)

func (n *ownNode) isGone() bool { return n.gone.isSet() }

// loss is the error of a hold whose node is gone.
func (n *ownNode) loss() error {
	if n.why != nil {
		return fmt.Errorf("%w: node %s: %w", ErrLost, n.path(), n.why)
	}
	return fmt.Errorf("%w: node %s was deleted", ErrLost, n.path())
}

// exists is the operation that fails unless our node is there; it stays true whatever is written to it.
func (n *ownNode) exists() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: n.path(), Version: -1}
}

// checkSize is about how many bytes the check of our node adds to a request.
func (n *ownNode) checkSize() int { return len(n.dir) + 1 + len(n.name) + 32 }

// ownData returns what our node's data should be.
func (n *ownNode) ownData() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data
}

// setOwnData sets what our node's data should be from now on, and returns what it was.
func (n *ownNode) setOwnData(data []byte) (before []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.data = n.data, data
	return before
}

// hear looks for a request to let go in our own node's data.
func (n *ownNode) hear(d node) bool {
	if !isRevocation(d.data) {
		return false
	}
	n.asked.hear()
	return true
}

// shown returns data as it should stand in our node: with the request, if there was one.
func (n *ownNode) shown(data []byte) []byte {
	if !n.fixed && n.asked.heard.isSet() {
		return withRevocation(data)
	}
	return data
}

// revocation is a request to let go. All nodes of one acquire share it: its place in the
// queue, its permits, and the nodes that it creates when it has to queue again.
type revocation struct {
	heard latch // somebody has asked

	mu   sync.Mutex
	also []*revocation // guarded by mu: which are asked with this one
}

func (r *revocation) hear() {
	r.heard.set()
	r.mu.Lock()
	also := r.also
	r.also = nil
	r.mu.Unlock()
	for _, other := range also {
		other.hear()
	}
}

// passOn has another request be heard when this one is, at once if it was.
func (r *revocation) passOn(to *revocation) {
	r.mu.Lock()
	r.also = append(r.also, to)
	r.mu.Unlock()
	if r.heard.isSet() {
		r.hear()
	}
}
