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

// send begins to create the node, under a name that no other node can have. From here on the
// contender has to be settled, whatever happens.
func (t *contender) send(ctx context.Context, s *session.Session) {
	t.creation.begin(t.expectNobody())
	t.nameNew(s)
	if err := t.own(s); err != nil {
		t.creation.end(notSent{err})
		return
	}
	request, take := t.request(t.Shown(t.OwnData()), t.noteOfOld())
	attempt := t.creation
	_, err := session.Begin(ctx, t.c.Requests, s, request, take, func(_ struct{}, err error) { attempt.end(err) })
	if err != nil {
		attempt.end(notSent{err})
	}
}

// own counts the contender's nodes, which are about to be asked for under s. It takes over what was counted for a node that ours
// replace.
func (t *contender) own(s *session.Session) error {
	if t.owns > 0 {
		return nil // by an earlier attempt
	}
	size := 0
	for x := range t.each {
		size += t.pathSize(x)
	}
	old, more := t.creation.replaces, size
	takesOver := old != nil && old.Sess == s
	if takesOver {
		more -= old.owns
	}
	if err := addOwned(s, more); err != nil {
		return err
	}
	if takesOver {
		old.owns = 0
	}
	t.owns = size
	return nil
}

// pathExtra is what a path has in a transaction besides our part of it: the server's number, and four bytes for its length.
const pathExtra = 10 + 4

// pathSize is how many bytes the path of x will have in the transaction that ends our session.
func (t *contender) pathSize(x *member) int { return len(t.nameless(x)) + pathExtra }

// ownedBy returns which part of what is counted for us is that of x.
func (t *contender) ownedBy(x *member) int { return min(t.owns, t.pathSize(x)) }

// notSent is the error of a create that was not sent.
type notSent struct{ error }

func (e notSent) Unwrap() []error { return []error{conn.ErrNotSent, e.error} }

// nameNew gives each node a guid that is new.
func (t *contender) nameNew(s *session.Session) {
	t.czxid = 0
	random, i := node.NewGUID(node.GUIDMark)[len(node.GUIDMark):], 0
	for x := range t.each {
		guid := node.NewGUID(t.mark())
		if t.group != "" {
			guid = fmt.Sprintf("%s%s%s%04x", node.GUIDMark, t.group, random[:len(random)-len(t.group)-4], i)
		}
		x.nameAnew(s, guid)
		i++
	}
}

// request returns the request that creates the node, and those of the batch, and what takes its answer, which sets their names. Note is
// what createWith leaves.
func (t *contender) request(data []byte, note *zk.SetDataRequest) (frames.Request, func(*frames.Answer) (struct{}, error)) {
	switch {
	case t.batch != nil || t.gate != nil:
		return t.createBatch(data)
	case t.creation.counted != nil || t.creation.replaces != nil:
		return t.createWith(data, note)
	}
	take := func(a *frames.Answer) (none struct{}, err error) { return none, t.takePath(a.Text(), a.Zxid) }
	return frames.Create(t.nameless(&t.member), data, zk.FlagEphemeralSequential, t.c.ACL), take
}

// settle waits until it is known whether the node was created; only then the contender has a
// name. If the answer to the create was lost, settle looks for the node.
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

// A fate is what has become of an attempt to create a node.
type fate int

const (
	wasCreated    fate = iota // it exists
	mayBeLate                 // it may, and belongs to a session that is not ours any more
	metOthers                 // the create counted the nodes and was refused: again, without counting
	lacksReplaced             // so was one that replaces a node, which may have been deleted: again, by itself
	lacksDir                  // again, when the directory was made
	wasRefused                // no other attempt helps
	wasNotMade                // no server has made it: again, after a while
)

// fate returns what has become of the attempt, which is settled. made means that the node was seen, and
// carried that the connection still carries the session that it was asked for under.
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

// find looks for our node by its guid, in a listing as the quorum knows it. If there is none,
// the caller may go on, and the client looks again later: see session.PendingCreate.
func (t *contender) find(ctx context.Context) (string, error) {
	s, err := t.c.Link.Attached(ctx)
	if err != nil {
		return "", err
	}
	l, err := session.UpToDate(ctx, t.c.Requests, s, func() (session.Listing, error) { return t.c.List(ctx, s, t.Dir) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	genuine, err := t.genuine(ctx, s, l.Names)
	if err != nil {
		return "", err
	}
	t.recognise(genuine)
	if t.Name == "" {
		epoch, moved := s.Epoch(), s.Reattached()
		for x := range t.each {
			t.c.Add(&session.PendingCreate{Dir: t.Dir, Prefix: x.prefix(), Sess: t.Sess, Owns: t.ownedBy(x), Epoch: epoch, Moved: moved})
		}
		t.owns = 0 // from now on it is counted there
	}
	return t.Name, nil
}

// genuine returns those of names that have a guid of ours and belong to our session: a
// name alone can be imitated. If one node of a batch exists, all do, so for the others the
// session only decides between several nodes of one guid.
func (t *contender) genuine(ctx context.Context, s *session.Session, names []string) (found []string, err error) {
	named := map[string][]string{} // by prefix
	for _, name := range names {
		prefix := name[:min(len(name), len(t.prefix()))]
		named[prefix] = append(named[prefix], name)
	}
	for x := range t.each {
		these := named[x.prefix()]
		if x == &t.member || len(these) > 1 {
			name, err := t.c.OwnAmong(ctx, s, t.Dir, these, x.prefix(), t.Sess)
			if err != nil {
				return nil, err
			}
			these = []string{name}
		}
		found = append(found, these...)
	}
	return found, nil
}
