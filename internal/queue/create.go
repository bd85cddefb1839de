// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/conn"
	"github.com/zklock-go/zklock/internal/frames"
	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// begin adds the request that creates the node to b, under a name that no other node can have. After
// begin, the contender must be settled in every case.
func (t *contender) begin(b *session.Bundle, s *session.Session) {
	t.creation.begin(t.expectAlone())
	t.nameNew(s)
	if err := t.count(s); err != nil {
		t.creation.end(notSent{err})
		return
	}
	request, take := t.request(t.Shown(t.OwnData()), t.noteOfOld())
	b.Add(request, take, t.creation.end)
}

// count counts the contender's nodes, which are about to be requested under s. If they replace a
// node, it takes over the count of that node.
func (t *contender) count(s *session.Session) error {
	if t.counted > 0 {
		return nil // counted by an earlier attempt
	}
	size := 0
	for x := range t.each {
		size += t.pathSize(x)
	}
	old, more := t.creation.replaces, size
	takesOver := old != nil && old.Sess == s
	if takesOver {
		more -= old.counted
	}
	if err := addOwned(s, more); err != nil {
		return err
	}
	if takesOver {
		old.counted = 0
	}
	t.counted = size
	return nil
}

// pathExtra is what a path in a transaction has in addition to our part of it: the server's number,
// and four bytes for the length.
const pathExtra = 10 + 4

// pathSize returns how many bytes the path of x adds to the transaction that ends our session.
func (t *contender) pathSize(x *member) int { return len(t.nameless(x)) + pathExtra }

// countedFor returns x's share of what is counted for us.
func (t *contender) countedFor(x *member) int { return min(t.counted, t.pathSize(x)) }

// notSent is the error of a create that was not sent.
type notSent struct{ error }

func (e notSent) Unwrap() []error { return []error{conn.ErrNotSent, e.error} }

// nameNew gives each node a new guid.
func (t *contender) nameNew(s *session.Session) {
	t.czxid = 0
	random, i := node.NewGUID(node.GUIDMark)[len(node.GUIDMark):], 0
	for x := range t.each {
		guid := node.NewGUID(t.mark())
		if t.group != "" {
			guid = fmt.Sprintf("%s%s%s%04x", node.GUIDMark, t.group, random[:len(random)-len(t.group)-4], i)
		}
		x.Sess, x.Name, x.guid = s, "", guid
		i++
	}
}

// request returns the create request for the node and its batch, and the function that handles the
// reply and sets the names. For note, see createWith.
func (t *contender) request(data []byte, note *zk.SetDataRequest) (frames.Request, func(*frames.Answer) (struct{}, error)) {
	switch {
	case t.batch != nil || t.queueNode != nil:
		return t.createBatch(data)
	case t.creation.counted != nil || t.creation.replaces != nil:
		return t.createWith(data, note)
	}
	take := func(a *frames.Answer) (none struct{}, err error) { return none, t.takePath(a.Text(), a.Zxid) }
	return frames.Create(t.nameless(&t.member), data, zk.FlagEphemeralSequential, t.engine.Directories.ACL), take
}

// settle waits until it is known whether the node was created; the contender has no name before
// that. If the reply to the create was lost, settle searches for the node.
func (t *contender) settle(ctx context.Context) error {
	if err := t.creation.answered.Await(ctx); err != nil {
		return err
	}
	if t.Name != "" || outcome.WasNotSent(t.creation.err) {
		return nil
	}
	var p session.Pace
	for {
		found, err := t.find(ctx)
		switch {
		case err == nil:
			t.Name = found
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case outcome.IsRefusal(err) || errors.Is(err, outcome.ErrClosed):
			return err
		}
		if err := p.Next(ctx); err != nil {
			return err
		}
	}
}

// A fate is the outcome of an attempt to create a node.
type fate int

const (
	wasCreated    fate = iota // the node exists
	mayBeLate                 // the node may exist, but under a session that is no longer ours
	metOthers                 // a counting create was refused: try again without counting
	lacksReplaced             // a create that replaces a node was refused, and that node may be gone: try again without replacing
	lacksDir                  // create the directory and try again
	wasRefused                // another attempt would not help
	wasNotMade                // no server created it: try again after a pause
)

// fate returns the outcome of the attempt, which is settled. made means that the node was seen;
// carried means that the connection still carries the session under which it was requested.
func (a *creation) fate(made, carried bool) fate {
	isRefused := outcome.IsRefusal(a.err)
	switch {
	case !carried:
		return mayBeLate
	case made:
		return wasCreated
	case errors.Is(a.err, outcome.ErrGone), errors.Is(a.err, outcome.ErrLimit):
		return wasRefused
	case a.counted != nil && isRefused:
		return metOthers
	case a.replaces != nil && isRefused:
		return lacksReplaced
	case errors.Is(a.err, zk.ErrNoNode):
		return lacksDir
	case isRefused:
		return wasRefused
	}
	return wasNotMade
}

// find searches for our node by its guid, in a listing that is as new as the quorum's state. If the
// node is not there, the caller may continue with another one, and the client searches for this one
// again later: see session.PendingCreate.
func (t *contender) find(ctx context.Context) (string, error) {
	s, err := t.engine.Requests.Link.Attached(ctx)
	if err != nil {
		return "", err
	}
	l, err := session.UpToDate(ctx, t.engine.Requests, s, func() (session.Listing, error) { return t.engine.Requests.List(ctx, s, t.Dir) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	genuine, err := t.genuine(ctx, s, l.Names)
	if err != nil {
		return "", err
	}
	t.findNames(genuine)
	if t.Name == "" {
		epoch, moved := s.Epoch(), s.Reattached()
		for x := range t.each {
			t.engine.PendingCreates.Add(&session.PendingCreate{Dir: t.Dir, Prefix: x.prefix(), Sess: t.Sess, Owns: t.countedFor(x), Epoch: epoch, Moved: moved})
		}
		t.counted = 0 // from now on it is counted there
	}
	return t.Name, nil
}

// genuine returns the names that have a guid of ours and belong to our session: a name alone can be
// imitated. If one node of a batch exists, all of them do, so for the other nodes the session is
// checked only to choose between several nodes with one guid.
func (t *contender) genuine(ctx context.Context, s *session.Session, names []string) (found []string, err error) {
	named := map[string][]string{} // by prefix
	for _, name := range names {
		prefix := name[:min(len(name), len(t.prefix()))]
		named[prefix] = append(named[prefix], name)
	}
	for x := range t.each {
		these := named[x.prefix()]
		if x == &t.member || len(these) > 1 {
			name, err := t.engine.Requests.OwnAmong(ctx, s, t.Dir, these, x.prefix(), t.Sess)
			if err != nil {
				return nil, err
			}
			these = []string{name}
		}
		found = append(found, these...)
	}
	return found, nil
}
