package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// send begins to create the node, under a name that no other node can have. From here on the
// contender has to be settled, whatever happens.
func (t *contender) send(s *session) {
	created := make(chan struct{})
	t.created, t.createErr = created, nil
	guids := t.newGUIDs()
	for i, x := range t.whole() {
		x.sess, x.guid, x.name = s, guids[i], ""
	}
	data, note := t.shown(t.ownData()), t.noteOfOld()
	ok := t.c.calls.run(func() {
		defer close(created)
		names, err := t.create(data, note)
		if err == nil {
			for i, x := range t.whole() {
				x.name = names[i]
			}
		}
		t.createErr = err
	})
	if !ok {
		t.createErr = ErrClosed
		close(created)
	}
}

// settle waits until it is known whether the node was created; only then the contender has a
// name. If the answer to the create was lost, settle looks for the node.
func (t *contender) settle(ctx context.Context) error {
	select {
	case <-t.created:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.created = over.Done()
	if t.name != "" || wasNotSent(t.createErr) {
		return nil
	}
	var p pace
	for {
		found, err := t.find(ctx)
		switch {
		case err == nil:
			t.name = found
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isRefusal(err) || errors.Is(err, ErrClosed):
			return err
		}
		if err := p.next(ctx); err != nil {
			return err
		}
	}
}

// find looks for our node by its guid, in a listing as the quorum knows it. If there is none,
// the caller may go on, and the client looks again later: see ghost.
func (t *contender) find(ctx context.Context) (string, error) {
	s, err := t.c.link.Attached(ctx)
	if err != nil {
		return "", err
	}
	l, err := upToDate(ctx, t.c.requests, s, func() (listing, error) { return t.c.list(ctx, s, t.dir) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	genuine, err := t.genuine(ctx, s, l.names)
	if err != nil {
		return "", err
	}
	t.recognise(genuine)
	if t.name == "" {
		epoch, moved := s.Epoch(), s.Reattached()
		for x := range t.each {
			t.c.haunt(&ghost{dir: t.dir, prefix: x.prefix(), asked: t.sess, last: s, epoch: epoch, moved: moved})
		}
	}
	return t.name, nil
}

// genuine returns those of names that have a guid of ours and belong to a session of ours: a
// name alone can be imitated. If one node of a batch exists, all do, so for the others the
// session only decides between several nodes of one guid.
func (t *contender) genuine(ctx context.Context, s *session, names []string) (found []string, err error) {
	named := map[string][]string{} // by prefix
	for _, name := range names {
		prefix := name[:min(len(name), len(t.prefix()))]
		named[prefix] = append(named[prefix], name)
	}
	for x := range t.each {
		these := named[x.prefix()]
		if x == t || len(these) > 1 {
			name, err := t.c.ownAmong(ctx, s, t.dir, these, x.prefix(), t.sess, s)
			if err != nil {
				return nil, err
			}
			these = []string{name}
		}
		found = append(found, these...)
	}
	return found, nil
}
