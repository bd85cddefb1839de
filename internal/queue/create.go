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
func (co *contender) begin(b *session.Bundle, s *session.Session) {
	co.creation.begin(co.expectAlone())
	co.nameNew(s)
	if err := co.count(s); err != nil {
		co.creation.end(notSent{err})
		return
	}
	request, take := co.request(co.KeepRevocation(co.OwnData()), co.noteOfOld())
	b.Add(request, take, co.creation.end)
}

// count counts the contender's nodes, which are about to be requested under s. If they replace a
// node, it takes over the count of that node.
func (co *contender) count(s *session.Session) error {
	if co.counted > 0 {
		return nil // counted by an earlier attempt
	}
	size := 0
	for x := range co.each {
		size += co.pathSize(x)
	}
	old, more := co.creation.replaces, size
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
	co.counted = size
	return nil
}

// pathExtra is the number of bytes that servers add to our part of a path in a transaction: the number,
// and four bytes for the length.
const pathExtra = 10 + 4

// pathSize returns how many bytes the path of x adds to the transaction that ends our session.
func (co *contender) pathSize(x *member) int { return len(co.nameless(x)) + pathExtra }

// countedFor returns x's share of our counted bytes.
func (co *contender) countedFor(x *member) int { return min(co.counted, co.pathSize(x)) }

// notSent is the error of a create that was not sent.
type notSent struct{ error }

func (e notSent) Unwrap() []error { return []error{conn.ErrNotSent, e.error} }

// nameNew gives each node a new guid.
func (co *contender) nameNew(s *session.Session) {
	co.czxid = 0
	random, i := node.NewGUID(node.GUIDMark)[len(node.GUIDMark):], 0
	for x := range co.each {
		guid := node.NewGUID(co.mark())
		if co.group != "" {
			guid = fmt.Sprintf("%s%s%s%04x", node.GUIDMark, co.group, random[:len(random)-len(co.group)-4], i)
		}
		x.Sess, x.Name, x.guid = s, "", guid
		i++
	}
}

// request returns the create request for the node and its batch, and the function that handles the
// reply and sets the names. For note, see createWith.
func (co *contender) request(data []byte, note *zk.SetDataRequest) (frames.Request, func(*frames.Answer) (struct{}, error)) {
	switch {
	case co.batch != nil || co.queueNode != nil:
		return co.createBatch(data)
	case co.creation.expected != nil || co.creation.replaces != nil:
		return co.createWith(data, note)
	}
	take := func(a *frames.Answer) (none struct{}, err error) { return none, co.takePath(a.Text(), a.Zxid) }
	return frames.Create(co.nameless(&co.member), data, zk.FlagEphemeralSequential, co.engine.Directories.ACL), take
}

// settle waits until it is known whether the node was created; the contender has no name before
// that. If the reply to the create was lost, settle searches for the node.
func (co *contender) settle(ctx context.Context) error {
	if err := co.creation.answered.Await(ctx); err != nil {
		return err
	}
	if co.Name != "" || outcome.WasNotDone(co.creation.err) {
		return nil
	}
	var p session.Pace
	for {
		found, err := co.find(ctx)
		switch {
		case err == nil:
			co.Name = found
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
	fateCreated      fate = iota // the node exists
	fateLate                     // the node may exist, but under a session that is no longer ours
	fateNotAlone                 // a counting create was refused: try again without counting
	fateReplacedGone             // a create that replaces a node was refused, and that node may be gone: try again without replacing
	fateNoDirectory              // create the directory and try again
	fateRefused                  // another attempt would not help
	fateNotCreated               // no server created it: try again after a pause
)

// fate returns the outcome of the attempt, which is settled. made means that the node was seen;
// carried means that the connection still carries the session under which it was requested.
func (a *creation) fate(made, carried bool) fate {
	isRefused := outcome.IsRefusal(a.err)
	switch {
	case !carried:
		return fateLate
	case made:
		return fateCreated
	case errors.Is(a.err, outcome.ErrGone), errors.Is(a.err, outcome.ErrLimit):
		return fateRefused
	case a.expected != nil && isRefused:
		return fateNotAlone
	case a.replaces != nil && isRefused:
		return fateReplacedGone
	case errors.Is(a.err, zk.ErrNoNode):
		return fateNoDirectory
	case isRefused:
		return fateRefused
	}
	return fateNotCreated
}

// find searches for our node by its guid, in a listing that is as new as the quorum's state. If the
// node is not there, the caller may continue with another one, and the client searches for this one
// again later: see session.PendingCreate.
func (co *contender) find(ctx context.Context) (string, error) {
	s, err := co.engine.Requests.Link.Attached(ctx)
	if err != nil {
		return "", err
	}
	list := co.engine.Requests.List
	if co.isLeft {
		list = co.engine.Requests.ListAlone
	}
	l, err := session.UpToDate(ctx, co.engine.Requests, s, func() (session.Listing, error) { return list(ctx, s, co.Dir) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	genuine, err := co.genuine(ctx, s, l.Names)
	if err != nil {
		return "", err
	}
	co.findNames(genuine)
	if co.Name == "" {
		epoch, moved := s.Epoch(), s.Reattached()
		for x := range co.each {
			co.engine.Hub.PendingCreates.Add(&session.PendingCreate{By: co.engine.Requests, Dir: co.Dir, Prefix: x.prefix(), Sess: co.Sess, Owns: co.countedFor(x), Epoch: epoch, Moved: moved})
		}
		co.counted = 0 // from now on it is counted there
	}
	return co.Name, nil
}

// genuine returns the names that have a guid of ours and belong to our session: a name alone can be
// imitated. If one node of a batch exists, all of them do, so for the other nodes the session is
// checked only to choose between several nodes with one guid.
func (co *contender) genuine(ctx context.Context, s *session.Session, names []string) (found []string, err error) {
	named := map[string][]string{} // by prefix
	for _, name := range names {
		prefix := name[:min(len(name), len(co.prefix()))]
		named[prefix] = append(named[prefix], name)
	}
	for x := range co.each {
		these := named[x.prefix()]
		if x == &co.member || len(these) > 1 {
			name, err := co.engine.Requests.OwnAmong(ctx, s, co.Dir, these, x.prefix(), co.Sess)
			if err != nil {
				return nil, err
			}
			these = []string{name}
		}
		found = append(found, these...)
	}
	return found, nil
}
