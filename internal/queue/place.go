package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// place is a contender with where it stands in its queue. Only the goroutine that acquires
// has it; all others get the contender or its node.
type place struct {
	*contender
	nearest                 // who is in our way
	waitPhase               // what it needs while somebody is
	met       met           // of those ahead at first, if the lock has a delay; nil before the first listing
	listed    int64         // when the directory's data was last written before the last listing, by its zxid
	looked    time.Time     // when our node was last seen to be there
	proving   time.Duration // how long it was first and waited until the lease was proven
}

func (c *Engine) newPlace(r *Recipe, dir string, data []byte) *place {
	return &place{contender: c.newContender(r, dir, data), nearest: nearest{window: nearestKept}}
}

// newBatch returns the place of n nodes that are created together.
func (c *Engine) newBatch(r *Recipe, dir string, data []byte, n int) *place {
	t := c.newPlace(r, dir, data)
	var others []*member
	for range n - 1 {
		others = append(others, c.newMember(r, dir, data))
	}
	if others != nil {
		t.lead(others)
	}
	return t
}

// enter puts the contender at the end of the queue, under session s, and finds its place. It
// sends the listing together with the create: the server keeps their order.
func (t *place) enter(ctx context.Context, s *session.Session) error {
	var p session.Pace
	for {
		t.send(ctx, s)
		a := t.creation
		l, listErr := session.Listing{}, error(zk.ErrNoNode)
		if a.counted == nil {
			l, listErr = t.c.List(ctx, s, t.Dir)
		}
		err := t.settle(ctx)
		if err != nil {
			return err
		}
		switch a.fate(t.Name != "", t.c.Link.Carries(s)) {
		case wasCreated:
			if listErr == nil {
				return t.stand(ctx, &l)
			}
			return t.stand(ctx, nil)
		case mayBeLate:
			return outcome.ErrSessionOver
		case metOthers:
			t.noticeOthers(a)
		case lacksReplaced:
			t.c.remove(a.takeReplaced())
		case lacksDir:
			err = t.c.MakeDir(ctx, s, t.Dir, t.recipe.depth())
		case wasRefused:
			return a.err
		case wasNotMade:
			err = p.Next(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// stand finds the place of a contender whose node was created, from a listing that was sent after the create, if there is one.
func (t *place) stand(ctx context.Context, l *session.Listing) error {
	a := t.enteredQueue()
	if t.isAlone(a.counted) {
		return nil
	}
	t.noticeOthers(a)
	return t.findPlace(ctx, l)
}

// isAlone reports whether the create has shown that ours is the only node. If so, it sets the
// place.
func (t *place) isAlone(counted *count) bool {
	if counted == nil || counted.dir == nil || counted.dir.NumChildren != 1 {
		return false
	}
	dir := counted.dir
	t.c.holders.endMissing(t.contender, func(string) bool { return false })
	t.relist()
	t.keep(t.recipe.Rule, nil)
	t.listed, t.looked = dir.Mzxid, counted.looked
	t.c.alone.put(t.Dir, solitude{dir.Version, counted.expected.data})
	return true
}

// findPlace sets the place from a listing. It lists again if there is none, or if that was made before the node was created.
func (t *place) findPlace(ctx context.Context, l *session.Listing) error {
	if l == nil || !t.complete(l.Line()) {
		again, err := t.c.ListAgain(ctx, t.Sess, t.Dir)
		switch {
		case errors.Is(err, zk.ErrNoNode) || err == nil && !t.complete(again.Line()):
			return outcome.ErrGone
		case err != nil:
			return err
		}
		l = &again
	}
	line := l.Line()
	if err := t.c.notASemaphore(ctx, t.Sess, t.Dir, line); err != nil {
		return err
	}
	if err := t.c.notDelayed(t.recipe, line); err != nil {
		return err
	}
	t.c.holders.endMissing(t.contender, line.Has)
	t.relist()
	t.listed, t.looked = l.Stat.Mzxid, l.At
	t.noticeSolitude(*l)
	own, _ := node.ParseEntry(t.Name)
	ahead, err := t.order(ctx, line, &own)
	if err != nil {
		return err
	}
	if t.met == nil && t.delay() > 0 {
		t.met = newMet(ahead)
	}
	t.keep(t.recipe.Rule, t.notOurs(ahead))
	return nil
}

// czxidsAtOnce bounds how many nodes are looked at side by side.
const czxidsAtOnce = 16

// order returns those of line that are ahead of own. Where numbers do not tell the order, it asks, and leaves out who
// has left meanwhile. Nobody may change what it returns.
func (t *place) order(ctx context.Context, line *node.Line, own *node.Entry) ([]node.Entry, error) {
	if ahead, known := line.Before(*own); known {
		return ahead, nil
	}
	entries, err := t.askCzxids(ctx, slices.Clone(line.Entries), own)
	return node.Ahead(entries, *own), err
}

// askCzxids adds the czxid to own, and to the entries whose numbers do not tell their order
// with own. It drops entries whose nodes have gone. It looks at our own node last: that our
// node existed before one of the others went would prove nothing.
func (t *place) askCzxids(ctx context.Context, entries []node.Entry, own *node.Entry) ([]node.Entry, error) {
	var tied []*node.Entry
	for i := range entries {
		if e := &entries[i]; e.Name != own.Name && node.NeedCzxid(*e, *own) {
			tied = append(tied, e)
		}
	}
	err := session.SideBySide(t.c.Calls, len(tied), czxidsAtOnce, func(i int) error { return outcome.IgnoreMissing(t.askCzxid(ctx, tied[i])) })
	if err != nil {
		return nil, err
	}
	if err = t.askCzxid(ctx, own); err != nil {
		return nil, goneIfMissing(err)
	}
	t.replaceFormer(tied)
	return slices.DeleteFunc(entries, func(e node.Entry) bool {
		missing := e.Name != own.Name && e.Czxid == 0 && node.NeedCzxid(e, *own)
		if missing {
			t.noticeFormer(e)
			t.c.holders.endMissing(t.contender, func(name string) bool { return name != e.Name })
		}
		return missing
	}), nil
}

// askCzxid adds to an entry which transaction has created its node, and for which session.
func (t *contender) askCzxid(ctx context.Context, e *node.Entry) error {
	stat, err := session.Again(ctx, func() (*zk.Stat, error) { return t.c.Stat(ctx, t.Sess, t.Dir+"/"+e.Name) })
	if err == nil {
		e.Czxid, e.Owner = stat.Czxid, stat.EphemeralOwner
	}
	return err
}

// obstacle returns the index of the contender among ahead that stands in the way of a newcomer.
// It is negative if there is none.
func (c *Engine) obstacle(ctx context.Context, s *session.Session, r *Recipe, dir string, ahead []node.Entry) (int, error) {
	for {
		i := r.Rule(ahead)
		if i < 0 || r.Passes == nil {
			return i, nil
		}
		n, err := c.Get(ctx, s, dir+"/"+ahead[i].Name)
		switch {
		case err == nil && !r.Passes(n.Data):
			return i, nil
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return i, err
		}
		ahead = ahead[:i]
	}
}

// grant returns nil if being first is a hold, and otherwise why it is not. Our node must exist,
// and those that it was created with, under the session that we are on, and that session must
// certainly be alive. Gate is our place in another queue that must exist as well, nil for none.
// All of that must be so at one moment: to make sure of one can take as long as a reconnect, and
// then the others are looked at again.
func (t *place) grant(ctx context.Context, gate *place) error {
	t.wasFirst()
	if !t.c.readable.Load() {
		t.watchSelf(0)
	}
	if t.czxid == 0 { // the answer to the create was lost; others of a batch have the same token
		own := node.Entry{Name: t.Name}
		if err := t.askCzxid(ctx, &own); err != nil {
			return t.Because(goneIfMissing(err))
		}
		t.czxid = own.Czxid
	}
	t.c.holders.add(t.contender)
	for {
		if t.isUnseen() {
			if err := t.lookAgain(ctx, t.nodes()); err != nil {
				return t.Because(err)
			}
			t.sawItself()
		}
		if gate != nil {
			if err := gate.isThere(ctx); err != nil {
				return err
			}
		}
		if err := t.makeCertain(ctx); err != nil {
			return err
		}
		if err := t.endThoseGone(ctx); err != nil {
			return err
		}
		if t.standsWhole() && (gate == nil || gate.stands()) {
			return nil
		}
	}
}

// endThoseGone ends those of this client that cannot hold beside us, if their nodes are gone. It asks the quorum
// where no watch tells. For permits it need not: the listing that grants them shows all that are held.
func (t *place) endThoseGone(ctx context.Context) error {
	for !t.recipe.limited {
		unwatched := t.c.holders.unwatched(t.contender)
		if len(unwatched) == 0 {
			return nil
		}
		if err := t.lookAgain(ctx, unwatched); !errors.Is(err, outcome.ErrGone) {
			return err
		}
	}
	return nil
}

// isUnseen reports whether any of our nodes is not watched, and was not seen lately either.
func (t *place) isUnseen() bool {
	for x := range t.each {
		if x.self.Load() == nil {
			return time.Since(t.looked) > aloneGrace
		}
	}
	return false
}

// standsWhole reports whether nothing has happened to any of our nodes, as far as is known now
// without a request.
func (t *place) standsWhole() bool {
	for x := range t.each {
		if !x.stands() {
			return false
		}
	}
	return !t.isUnseen() && t.Sess.Lease.Fresh() && t.c.Link.Carries(t.Sess)
}

// sawItself notes that our node is there, and those that it was created with.
func (t *place) sawItself() { t.looked = time.Now() }

// makeCertain makes certain that our node, and those that it was created with, may hold.
func (t *place) makeCertain(ctx context.Context) error {
	members := t.members()
	for _, x := range slices.Backward(members) {
		if err := x.isThere(ctx); err != nil {
			return x.Because(err)
		}
	}
	for _, x := range members {
		t.c.Keep(&x.OwnNode)
	}
	began := time.Now()
	err := t.freshen(ctx)
	t.proving += time.Since(began)
	if err != nil {
		return t.Because(err)
	}
	for _, x := range slices.Backward(members) {
		if x.IsGone() {
			return x.Because(outcome.ErrGone)
		}
	}
	if !t.c.Link.Carries(t.Sess) {
		return outcome.ErrSessionOver
	}
	return nil
}

// freshen waits until the lease makes certain that the session lives, and for as long as every hold
// begins with if one answer of the quorum makes it so. A server that lags can show us first in line
// after our session has ended. Heartbeats ask the quorum, because our nodes are kept.
//
// It waits once for all our nodes, and has all of them watched. One that is not would have to be looked at
// again after each wait. Where answers take long, the lease would have to be proven again after each look.
func (t *place) freshen(ctx context.Context) error {
	asked := t.c.Asked()
	for isEnough := t.Sess.Lease.IsAmple; !isEnough(); isEnough = t.Sess.Lease.Fresh {
		for x := range t.each {
			x.watchSelf(0) // it will be long since our nodes were seen
		}
		select {
		case <-asked:
			asked = t.c.Asked()
		case <-t.Gone.Done():
			return outcome.ErrGone
		case <-t.Sess.Over():
			return outcome.ErrSessionOver
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// lookAgain makes sure that nodes of this client still exist.
func (t *contender) lookAgain(ctx context.Context, nodes []*session.OwnNode) error {
	_, err := session.Again(ctx, func() (none struct{}, err error) { return none, t.c.ConfirmAll(ctx, t.Sess, nodes) })
	return err
}
