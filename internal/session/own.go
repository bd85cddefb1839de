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

// OwnNode is a node of ours, from before it is asked for until nobody needs it. Its owner sets
// the first fields, before others watch the node. What changes later is guarded by mu, or happens
// once.
type OwnNode struct {
	Dir   string
	Name  string   // once known
	Sess  *Session // the one it was asked for under
	Fixed bool     // its data must never change: see recipe
	Kept  bool     // heartbeats look at it, or have: see Keep
	Asked *Revocation

	Gone Latch // the node was found missing, or is of no use, and its holder was told
	why  error // set before gone: what is wrong, unless it was deleted

	mu     sync.Mutex
	data   []byte // guarded by mu: what its data should be
	ending bool   // guarded by mu: Gone is about to be set
	onGone func() // guarded by mu: see whenGone
}

// Init must be called before anything else.
func (n *OwnNode) Init(dir string, data []byte, fixed bool) {
	n.Dir, n.data, n.Fixed = dir, data, fixed
	n.Asked = new(Revocation)
}

// Path is the node's, valid once its name is known.
func (n *OwnNode) Path() string { return n.Dir + "/" + n.Name }

// MarkGone tells everybody that our node is gone, or of no use for that reason. The one whom WhenGone tells knows it first:
// when MarkGone returns, or IsGone says so, nobody relies on the node any more.
func (n *OwnNode) MarkGone(why error) {
	tell, first := n.setEnding(why)
	if !first {
		<-n.Gone.Done() // soon: who is told must not wait
		return
	}
	if tell != nil {
		tell()
	}
	n.Gone.Set()
}

// setEnding notes that the node is gone. It returns whom to tell, nil for nobody, and whether this was the first call.
func (n *OwnNode) setEnding(why error) (tell func(), first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ending {
		return nil, false
	}
	n.why, n.ending = why, true
	return n.onGone, true
}

// WhenGone has fn called, once, when our node is gone, at once if it is. fn must not wait.
func (n *OwnNode) WhenGone(fn func()) {
	n.mu.Lock()
	n.onGone = fn
	gone := n.ending
	n.mu.Unlock()
	if gone {
		fn()
	}
}

// Because puts the reason why our node is of no use, if that is another than that it was
// deleted, in the place of errGone.
func (n *OwnNode) Because(err error) error {
	if errors.Is(err, outcome.ErrGone) && n.IsGone() && n.why != nil {
		return n.why
	}
	return err
}

// errForged ends what was made a reader's, and not by us: others may have been let in.
var ErrForged = fmt.Errorf("%w: somebody else has made it a reader's", outcome.ErrGone)

// errUnreadable ends what needs a look at a node that we have made ourselves.
var ErrUnreadable = fmt.Errorf("our own node cannot be read, its ACL must let us: %w", zk.ErrNoAuth)

func (n *OwnNode) IsGone() bool { return n.Gone.IsSet() }

// Loss is the error of a hold whose node is gone.
func (n *OwnNode) Loss() error {
	if n.why != nil {
		return fmt.Errorf("%w: node %s: %w", outcome.ErrLost, n.Path(), n.why)
	}
	return fmt.Errorf("%w: node %s was deleted", outcome.ErrLost, n.Path())
}

// Exists is the operation that fails unless our node is there; it stays true whatever is written to it.
func (n *OwnNode) Exists() *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: n.Path(), Version: -1}
}

// checkSize is about how many bytes the check of our node adds to a request.
func (n *OwnNode) checkSize() int { return len(n.Dir) + 1 + len(n.Name) + 32 }

// OwnData returns what our node's data should be.
func (n *OwnNode) OwnData() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data
}

// SetOwnData sets what our node's data should be from now on, and returns what it was.
func (n *OwnNode) SetOwnData(data []byte) (before []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.data = n.data, data
	return before
}

// Hear looks for a request to let go in our own node's data.
func (n *OwnNode) Hear(d Node) bool {
	if !node.IsRevocation(d.Data) {
		return false
	}
	n.Asked.hear()
	return true
}

// Shown returns data as it should stand in our node: with the request, if there was one.
func (n *OwnNode) Shown(data []byte) []byte {
	if !n.Fixed && n.Asked.Heard.IsSet() {
		return node.WithRevocation(data)
	}
	return data
}

// Revocation is a request to let go. All nodes of one acquire share it: its place in the
// queue, its permits, and the nodes that it creates when it has to queue again.
type Revocation struct {
	Heard Latch // somebody has asked

	mu   sync.Mutex
	also []*Revocation // guarded by mu: which are asked with this one
}

func (r *Revocation) hear() {
	r.Heard.Set()
	r.mu.Lock()
	also := r.also
	r.also = nil
	r.mu.Unlock()
	for _, other := range also {
		other.hear()
	}
}

// PassOn has another request be heard when this one is, at once if it was, until stop is called.
func (r *Revocation) PassOn(to *Revocation) (stop func()) {
	r.mu.Lock()
	r.also = append(r.also, to)
	r.mu.Unlock()
	if r.Heard.IsSet() {
		r.hear()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.also = slices.DeleteFunc(r.also, func(other *Revocation) bool { return other == to })
	}
}
