package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/internal/node"
	"github.com/zklock-go/zklock/internal/outcome"
	"github.com/zklock-go/zklock/internal/session"
)

// Permits are those of one semaphore.
type Permits struct {
	Engine *Engine
	Path   string // as the caller names it
	Dir    string // in ZooKeeper
	Total  int    // how many there are, as far as the caller knows
	Data   []byte // of the nodes
}

// Below the path there are two directories, as Curator has them. Each permit that is held
// is a node in one. Callers queue in the other, as for a mutex, and create their nodes in
// the first when it is their turn. So only one waiter watches the holders, however many
// there are of either.
//
// The queue keeps order and saves requests, but exclusion does not depend on it: a permit is
// granted only to a node with fewer nodes before it than the limit.
var (
	PermitRecipe = &Recipe{Name: "semaphore", Infix: node.LeaseInfix, Rule: node.AfterAll, below: true, limited: true}
	gateRecipe   = &Recipe{Name: "semaphore", Infix: node.LockInfix, Rule: node.AfterAll, below: true}
)

// Check says what is wrong with asking for k permits.
func (s *Permits) Check(k int) error {
	switch {
	case s.Total < 1 || s.Total > node.MaxPermits:
		return fmt.Errorf("%w: a semaphore of %d permits", outcome.ErrInvalid, s.Total)
	case k < 1:
		return fmt.Errorf("%w: %d permits", outcome.ErrInvalid, k)
	case k > s.Total:
		return fmt.Errorf("%w: %w: %d permits of %d", outcome.ErrInvalid, outcome.ErrLimit, k, s.Total)
	}
	if err := node.CheckPath(s.Path); err != nil {
		return err
	}
	if size := s.Engine.batchSize(PermitRecipe, s.Dir+node.LeasesDir, s.Data, k); size > node.MaxRequest {
		return fmt.Errorf("%w: %w: %d permits at once need a request of %d bytes, the limit is %d", outcome.ErrInvalid, outcome.ErrLimit, k, size, node.MaxRequest)
	}
	return nil
}

// Obtain waits until k permits are granted.
func (s *Permits) Obtain(ctx context.Context, k int) (*Grant, error) {
	agreed := false // once is enough: the number may change while we wait
	return s.Engine.inTurn(ctx, s.Path, func(sess *session.Session, asked *session.Revocation) (*place, error) {
		if !agreed {
			if _, err := session.Again(ctx, func() (int, error) { return s.agree(ctx, sess) }); err != nil {
				return nil, err
			}
			agreed = true
		}
		return s.queue(ctx, sess, k, asked)
	})
}

// TryObtain takes k permits if they are free besides one for each caller that is waiting.
func (s *Permits) TryObtain(ctx context.Context, k int) (*Grant, error) {
	sess, err := s.Engine.session(ctx)
	if err != nil {
		return nil, err
	}
	t, err := s.try(ctx, sess, k)
	return t.granted(), err
}

// queue takes permits in its turn, once. The place that it returns with an error is to be
// discarded.
func (s *Permits) queue(ctx context.Context, sess *session.Session, k int, asked *session.Revocation) (*place, error) {
	gate := s.Engine.newPlace(gateRecipe, s.Dir+node.GateDir, s.Data)
	gate.Asked = asked
	gate.hearAll() // nobody else writes to it
	defer s.Engine.remove(gate.contender)
	if err := gate.enter(ctx, sess); err != nil {
		return nil, gate.unlessEvicted(ctx, err)
	}
	gate.observeQueued(s.Path)
	made, err := s.takeInTurn(ctx, sess, k, gate)
	err = gate.unlessEvicted(ctx, err)
	if err != nil && made != nil {
		err = made.unlessEvicted(ctx, err)
		for x := range made.each {
			err = x.Because(err)
		}
	}
	return made, err
}

// takeInTurn makes the nodes for permits when it is gate's turn. What others do is seen
// apart from what becomes of gate: it must be there whenever their going lets us on.
func (s *Permits) takeInTurn(ctx context.Context, sess *session.Session, k int, gate *place) (*place, error) {
	err := gate.wait(ctx)
	if err == nil {
		err = gate.isThere(ctx)
	}
	if err != nil {
		return nil, err
	}
	gate.wasFirst() // its note tells the next contender so when it leaves
	return s.take(ctx, sess, k, gate)
}

// try takes permits that are free now.
func (s *Permits) try(ctx context.Context, sess *session.Session, k int) (*place, error) {
	free, err := s.looksFree(ctx, sess, k)
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, outcome.ErrLocked
	}
	made, err := s.take(ctx, sess, k, nil)
	if err != nil {
		err = made.unlessEvicted(ctx, err)
		s.Engine.discard(ctx, err, made)
		return nil, err
	}
	return made, nil
}

// looksFree reports whether k permits are free besides one for each contender that is just asking.
func (s *Permits) looksFree(ctx context.Context, sess *session.Session, k int) (bool, error) {
	if _, err := s.agree(ctx, sess); err != nil {
		return false, err
	}
	used := 0
	for _, sub := range []string{node.LeasesDir, node.GateDir} {
		l, err := s.Engine.List(ctx, sess, s.Dir+sub)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		used += len(l.Line().Entries)
	}
	return used+k <= s.Total, nil
}

// take makes k nodes for permits, in one transaction, and has them granted. If there are not
// enough free permits, it waits in the place of gate, or returns ErrLocked if gate is nil. The
// place that it returns with an error is to be discarded.
func (s *Permits) take(ctx context.Context, sess *session.Session, k int, gate *place) (*place, error) {
	made := s.Engine.newBatch(PermitRecipe, s.Dir+node.LeasesDir, s.Data, k)
	if gate != nil {
		made.joinGroup(node.GroupOf(gate.Name))
		made.passThrough(&gate.member) // or one that was evicted meanwhile would go on to hold
		for x := range made.each {
			x.Asked = gate.Asked // a request to let go that one of them is asked is for all
		}
	}
	if err := made.enter(ctx, sess); err != nil {
		return made, err
	}
	fit, err := s.fit(ctx, made)
	switch {
	case err != nil || fit:
	case gate == nil:
		err = outcome.ErrLocked
	default:
		err = s.await(ctx, made, gate)
	}
	if err == nil {
		err = made.grant(ctx, gate)
	}
	return made, err
}

// fit reports whether there are permits for all of made beside those ahead of them.
func (s *Permits) fit(ctx context.Context, made *place) (bool, error) {
	k := len(made.members())
	enough := func(limit int) error {
		if limit < k {
			return fmt.Errorf("%w: %d permits of %d", outcome.ErrLimit, k, limit)
		}
		return nil
	}
	limit, err := session.Again(ctx, func() (int, error) { return s.limitThat(ctx, made.Sess, enough) })
	return made.seen+k <= limit, err
}

// await waits until made fit. It alone watches what the holders do: all others that ask for
// permits wait behind its gate. The gate must stay there as well, because others see by it
// that we wait, ask it to let go and remove it.
func (s *Permits) await(ctx context.Context, made, gate *place) error {
	gate.watchSelf(0)
	for x := range made.each {
		s.Engine.Keep(&x.OwnNode)
		x.watchSelf(0)
	}
	inside, stop := untilGone(ctx, &gate.OwnNode)
	defer stop()
	err := s.awaitRoom(inside, made)
	if err != nil && errors.Is(context.Cause(inside), outcome.ErrGone) {
		return outcome.ErrGone // and not what the end of inside has made of a request under way
	}
	return err
}

// awaitRoom watches the holders until made fit.
func (s *Permits) awaitRoom(ctx context.Context, made *place) error {
	for {
		// The limit is read after the watch is set: Resize makes and deletes a node there afterwards.
		w, err := session.Again(ctx, func() (*session.NodeWatch, error) { return s.Engine.WatchChildren(ctx, made.Sess, made.Dir) })
		if err == nil {
			l := session.NewListing(w.Names, w.Stat, time.Time{})
			err = made.findPlace(ctx, &l)
		}
		if err != nil {
			return goneIfMissing(err)
		}
		if fit, err := s.fit(ctx, made); fit || err != nil {
			return err
		}
		if slices.ContainsFunc(made.nodes(), (*session.OwnNode).IsGone) {
			return outcome.ErrGone
		}
		if _, err := w.Await(ctx, made.Gone.Done()); err != nil {
			return err
		}
	}
}

// agree stores the number of permits if none is stored, and fails if it is another.
func (s *Permits) agree(ctx context.Context, sess *session.Session) (int, error) {
	return s.limitThat(ctx, sess, func(limit int) error {
		if limit != s.Total {
			return fmt.Errorf("%w: it has %d permits, not %d", outcome.ErrMismatch, limit, s.Total)
		}
		return nil
	})
}

// limitThat returns the number of permits if it suits the caller. One that does not may be
// that of a server that lags: it counts only if it is the quorum's.
func (s *Permits) limitThat(ctx context.Context, sess *session.Session, suits func(limit int) error) (int, error) {
	limit, err := s.limit(ctx, sess)
	if err != nil || suits(limit) == nil {
		return limit, err
	}
	if limit, err = session.UpToDate(ctx, s.Engine.Requests, sess, func() (int, error) { return s.limit(ctx, sess) }); err == nil {
		err = suits(limit)
	}
	return limit, err
}

// limit reads the number of permits, and stores ours where there is none: the directory
// may be new, made by Curator, or made again after ZooKeeper has cleaned it away.
func (s *Permits) limit(ctx context.Context, sess *session.Session) (int, error) {
	for {
		n, err := s.limitNode(ctx, sess)
		if err == nil && len(n.Data) > 0 {
			return node.ParseLimit(n.Data)
		}
		if err == nil {
			err = s.store(ctx, sess, n)
		}
		if err != nil && !isRewritten(err) {
			return 0, err
		}
	}
}

// limitNode returns the node that has the number of permits, and makes it if there is none. If no number is stored
// there, no lock of another kind is at the path. A lock that comes later removes the node, or is refused.
func (s *Permits) limitNode(ctx context.Context, sess *session.Session) (session.Node, error) {
	for {
		n, err := s.Engine.Get(ctx, sess, s.Dir+node.LeasesDir)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			if err = s.Engine.MakeDir(ctx, sess, s.Dir+node.LeasesDir, PermitRecipe.depth()); err == nil {
				continue
			}
		case err == nil && len(n.Data) == 0:
			err = s.Engine.notAQueue(ctx, sess, s.Dir)
		}
		return n, err
	}
}

// store stores the number of permits in the directory n, where there is none.
//
// A lock that comes meanwhile may remove the directory, and another semaphore make it anew: the version of its data is the same
// then. So a node of ours stands there from before we look for a lock until the number is stored.
func (s *Permits) store(ctx context.Context, sess *session.Session, n session.Node) error {
	keeps := s.Engine.newPlace(PermitRecipe, s.Dir+node.LeasesDir, s.Data)
	defer s.Engine.remove(keeps.contender)
	if err := keeps.enter(ctx, sess); err != nil {
		return err
	}
	if err := s.Engine.notAQueue(ctx, sess, s.Dir); err != nil {
		return err
	}
	_, err := s.Engine.Multi(ctx, sess, s.setLimit(n), &zk.DeleteRequest{Path: keeps.Path(), Version: -1})
	return err
}

// setLimit returns the operation that makes the number of permits in the directory n ours.
func (s *Permits) setLimit(n session.Node) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: s.Dir + node.LeasesDir, Data: node.LimitData(s.Total), Version: n.Stat.Version}
}

// isRewritten reports whether a write was refused because the node was written or removed since we looked.
func isRewritten(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)
}

// Resize makes their number ours.
func (s *Permits) Resize(ctx context.Context) error {
	dir := s.Dir + node.LeasesDir
	resized := dir + "/resized"
	for {
		_, err := session.Persist(ctx, s.Engine.Requests, func(sess *session.Session) ([]zk.MultiResponse, error) {
			n, err := s.limitNode(ctx, sess)
			switch {
			case err != nil:
				return nil, err
			case len(n.Data) == 0: // nobody waits for another number
				return nil, s.store(ctx, sess, n)
			}
			return s.Engine.Multi(ctx, sess, s.setLimit(n),
				// Waiters watch the children, and not the number.
				&zk.CreateRequest{Path: resized, Acl: s.Engine.ACL},
				&zk.DeleteRequest{Path: resized, Version: -1})
		})
		if !isRewritten(err) {
			return err
		}
	}
}
