package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/observe"
)

// permits are those of one semaphore.
type permits struct {
	c     *engine
	path  string // as the caller names it
	dir   string // in ZooKeeper
	total int    // how many there are, as far as the caller knows
	data  []byte // of the nodes
}

// Below the path there are two directories, as Curator has them. Each permit that is held
// is a node in one. Callers queue in the other, as for a mutex, and create their nodes in
// the first when it is their turn. So only one waiter watches the holders, however many
// there are of either.
//
// The queue keeps order and saves requests, but exclusion does not depend on it: a permit is
// granted only to a node with fewer nodes before it than the limit.
var (
	permitRecipe = &recipe{name: "semaphore", infix: leaseInfix, rule: afterAll, below: true, limited: true}
	gateRecipe   = &recipe{name: "semaphore", infix: lockInfix, rule: afterAll, below: true}
)

// check says what is wrong with asking for k permits.
func (s *permits) check(k int) error {
	switch {
	case s.total < 1 || s.total > maxPermits:
		return fmt.Errorf("%w: a semaphore of %d permits", ErrInvalid, s.total)
	case k < 1:
		return fmt.Errorf("%w: %d permits", ErrInvalid, k)
	case k > s.total:
		return fmt.Errorf("%w: %w: %d permits of %d", ErrInvalid, ErrLimit, k, s.total)
	}
	if err := checkPath(s.path); err != nil {
		return err
	}
	if size := s.c.batchSize(permitRecipe, s.dir+leasesDir, s.data, k); size > maxRequest {
		return fmt.Errorf("%w: %w: %d permits at once need a request of %d bytes, the limit is %d", ErrInvalid, ErrLimit, k, size, maxRequest)
	}
	return nil
}

// obtain waits until k permits are granted.
func (s *permits) obtain(ctx context.Context, k int) (*grant, error) {
	agreed := false // once is enough: the number may change while we wait
	return s.c.inTurn(ctx, s.path, func(sess *session, asked *revocation) (*place, error) {
		if !agreed {
			if _, err := again(ctx, func() (int, error) { return s.agree(ctx, sess) }); err != nil {
				return nil, err
			}
			agreed = true
		}
		return s.queue(ctx, sess, k, asked)
	})
}

// tryObtain takes k permits if they are free besides one for each caller that is waiting.
func (s *permits) tryObtain(ctx context.Context, k int) (*grant, error) {
	sess, err := s.c.session(ctx)
	if err != nil {
		return nil, err
	}
	t, err := s.try(ctx, sess, k)
	return t.granted(), err
}

// queue takes permits in its turn, once. The place that it returns with an error is to be
// discarded.
func (s *permits) queue(ctx context.Context, sess *session, k int, asked *revocation) (*place, error) {
	gate := s.c.newPlace(gateRecipe, s.dir+gateDir, s.data)
	gate.asked, gate.unread = asked, 0 // nobody else writes to it
	defer s.c.remove(gate.contender)
	if err := gate.enter(ctx, sess); err != nil {
		return nil, err
	}
	s.c.observe(observe.Event{Kind: observe.Queued, Recipe: gateRecipe.name, Path: s.path, Node: gate.name, Behind: len(gate.ahead)})
	made, err := s.takeInTurn(ctx, sess, k, gate)
	err = gate.unlessEvicted(ctx, err)
	if err != nil && made != nil {
		err = made.unlessEvicted(ctx, err)
		for t := range made.each {
			err = t.because(err)
		}
	}
	return made, err
}

// takeInTurn makes the nodes for permits when it is gate's turn. What others do is seen
// apart from what becomes of gate: it must be there whenever their going lets us on.
func (s *permits) takeInTurn(ctx context.Context, sess *session, k int, gate *place) (*place, error) {
	err := gate.wait(ctx)
	if err == nil {
		err = gate.isThere(ctx)
	}
	if err != nil {
		return nil, err
	}
	gate.held = true // its note tells the next contender so when it leaves
	return s.take(ctx, sess, k, gate)
}

// try takes permits that are free now.
func (s *permits) try(ctx context.Context, sess *session, k int) (*place, error) {
	free, err := s.looksFree(ctx, sess, k)
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, ErrLocked
	}
	made, err := s.take(ctx, sess, k, nil)
	if err != nil {
		s.c.discard(ctx, err, made)
		return nil, err
	}
	return made, nil
}

// looksFree reports whether k permits are free besides one for each contender that is just asking.
func (s *permits) looksFree(ctx context.Context, sess *session, k int) (bool, error) {
	if _, err := s.agree(ctx, sess); err != nil {
		return false, err
	}
	used := 0
	for _, sub := range []string{leasesDir, gateDir} {
		l, err := s.c.list(ctx, sess, s.dir+sub)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		used += len(parseEntries(l.names))
	}
	return used+k <= s.total, nil
}

// take makes k nodes for permits, in one transaction, and has them granted. If there are not
// enough free permits, it waits in the place of gate, or returns ErrLocked if gate is nil. The
// place that it returns with an error is to be discarded.
func (s *permits) take(ctx context.Context, sess *session, k int, gate *place) (*place, error) {
	made := s.c.newBatch(permitRecipe, s.dir+leasesDir, s.data, k)
	if gate != nil {
		made.group = groupOf(gate.name)
		for t := range made.each {
			t.asked = gate.asked // a request to let go that one of them is asked is for all
		}
	}
	if err := made.enter(ctx, sess); err != nil {
		return made, err
	}
	fit, err := s.fit(ctx, made)
	switch {
	case err != nil || fit:
	case gate == nil:
		err = ErrLocked
	default:
		err = s.await(ctx, made, gate)
	}
	if err == nil {
		err = made.grant(ctx, gate)
	}
	return made, err
}

// fit reports whether there are permits for all of made beside those ahead of them.
func (s *permits) fit(ctx context.Context, made *place) (bool, error) {
	k := len(made.with) + 1
	enough := func(limit int) error {
		if limit < k {
			return fmt.Errorf("%w: %d permits of %d", ErrLimit, k, limit)
		}
		return nil
	}
	limit, err := again(ctx, func() (int, error) { return s.limitThat(ctx, made.sess, enough) })
	return len(made.ahead)+k <= limit, err
}

// await waits until made fit. It alone watches what the holders do: all others that ask for
// permits wait behind its gate. The gate must stay there as well, because others see by it
// that we wait, ask it to let go and remove it.
func (s *permits) await(ctx context.Context, made, gate *place) error {
	gate.guard(0)
	for _, t := range made.whole() {
		s.c.keep(&t.ownNode)
		t.guard(0)
	}
	inside, stop := s.c.untilGone(ctx, &gate.ownNode)
	defer stop()
	err := s.awaitRoom(inside, made)
	if err != nil && gate.isGone() {
		return errGone // and not what the end of inside has made of a request under way
	}
	return err
}

// awaitRoom watches the holders until made fit.
func (s *permits) awaitRoom(ctx context.Context, made *place) error {
	for {
		// The limit is read after the watch is set: Resize stirs the directory afterwards.
		w, err := again(ctx, func() (*nodeWatch, error) { return s.c.watchChildren(ctx, made.sess, made.dir) })
		if err == nil {
			err = made.findPlace(ctx, listing{names: w.names, stat: w.stat}, nil)
		}
		if err != nil {
			return goneIfMissing(err)
		}
		if fit, err := s.fit(ctx, made); fit || err != nil {
			return err
		}
		if slices.ContainsFunc(made.whole(), func(t *contender) bool { return t.isGone() }) {
			return errGone
		}
		if _, err := w.await(ctx, made.sess, made.gone.done()); err != nil {
			return err
		}
	}
}

// agree stores the number of permits if none is stored, and fails if it is another.
func (s *permits) agree(ctx context.Context, sess *session) (int, error) {
	return s.limitThat(ctx, sess, func(limit int) error {
		if limit != s.total {
			return fmt.Errorf("%w: it has %d permits, not %d", ErrLimit, limit, s.total)
		}
		return nil
	})
}

// limitThat returns the number of permits if it suits the caller. One that does not may be
// that of a server that lags: it counts only if it is the quorum's.
func (s *permits) limitThat(ctx context.Context, sess *session, suits func(limit int) error) (int, error) {
	limit, err := s.limit(ctx, sess)
	if err != nil || suits(limit) == nil {
		return limit, err
	}
	if limit, err = upToDate(ctx, s.c.requests, sess, func() (int, error) { return s.limit(ctx, sess) }); err == nil {
		err = suits(limit)
	}
	return limit, err
}

// limit reads the number of permits, and stores ours where there is none: the directory
// may be new, made by Curator, or made again after ZooKeeper has cleaned it away.
func (s *permits) limit(ctx context.Context, sess *session) (int, error) {
	for {
		n, err := s.c.get(ctx, sess, s.dir+leasesDir)
		if err == nil && len(n.data) > 0 {
			return parseLimit(n.data)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			err = s.c.makeDir(ctx, sess, s.dir+leasesDir, permitRecipe.depth())
		case err == nil:
			if err = s.c.notAQueue(ctx, sess, s.dir); err == nil {
				_, err = s.c.set(ctx, sess, s.dir+leasesDir, limitData(s.total), n.stat.Version)
			}
		}
		if err != nil && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
			return 0, err
		}
	}
}

// resize makes their number ours.
func (s *permits) resize(ctx context.Context) error {
	dir := s.dir + leasesDir
	stir := dir + "/resized"
	for {
		_, err := persist(ctx, s.c.requests, func(sess *session) ([]zk.MultiResponse, error) {
			answers, err := s.c.multi(ctx, sess,
				&zk.SetDataRequest{Path: dir, Data: limitData(s.total), Version: -1},
				// Waiters watch the children, and not the number.
				&zk.CreateRequest{Path: stir, Acl: s.c.acl},
				&zk.DeleteRequest{Path: stir, Version: -1})
			if errors.Is(err, zk.ErrNoNode) {
				if err := s.c.makeDir(ctx, sess, dir, permitRecipe.depth()); err != nil {
					return nil, err
				}
			}
			return answers, err
		})
		if !errors.Is(err, zk.ErrNoNode) { // else the directory is there now
			return err
		}
	}
}
