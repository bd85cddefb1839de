package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock-go/zklock/observe"
)

// Semaphore is a number of permits, of which each holder takes one or several. They are
// granted in the order of asking: a caller that asks for few waits behind one that asked for
// many. Curator's InterProcessSemaphoreV2 on the same path shares the permits, but ignores
// the stored number.
//
// The number of permits is stored with the semaphore as long as it is used. A caller with
// another number gets ErrLimit. Resize changes the stored number.
type Semaphore struct {
	c       *Client
	path    string
	permits int
}

// Below the path there are two directories, as Curator has them. Each permit that is held
// is a node in one. Callers queue in the other, as for a mutex, and create their nodes in
// the first when it is their turn. So only one waiter watches the holders, however many
// there are of either.
//
// The queue keeps order and saves requests, but exclusion does not depend on it: a permit is
// granted only to a node with fewer nodes before it than the limit.
var (
	leaseRecipe = &recipe{name: "semaphore", infix: leaseInfix, rule: afterAll, below: true, limited: true}
	gateRecipe  = &recipe{name: "semaphore", infix: lockInfix, rule: afterAll, below: true}
)

// Semaphore returns the semaphore at path with a number of permits.
func (c *Client) Semaphore(path string, permits int) *Semaphore { return &Semaphore{c, path, permits} }

// Acquire waits until it holds k permits, and returns one hold of them. If ctx ends first, it
// gives up its place in the queue and returns an error that wraps ctx.Err(). If the session
// expires while it waits, it queues again at the end.
//
// Acquire returns ErrLimit if k is more than there are permits, if the semaphore's number is
// not the stored one, and, before any request, if k permits do not fit into one request to a
// server; some thousands do. If ctx is the context of a hold of this semaphore, it returns
// ErrDeadlock: take all permits at once.
func (s *Semaphore) Acquire(ctx context.Context, k int) (*Hold, error) {
	return s.obtain(ctx, "acquire", k, func(ctx context.Context, dir string, k int) (*place, error) {
		agreed := false // once is enough: the number may change while we wait
		return s.c.inTurn(ctx, s.path, func(sess *session, asked *revocation) (*place, error) {
			if !agreed {
				if _, err := again(ctx, func() (int, error) { return s.agree(ctx, sess, dir) }); err != nil {
					return nil, err
				}
				agreed = true
			}
			return s.queue(ctx, sess, dir, k, asked)
		})
	})
}

// TryAcquire returns a hold of k permits if they are free besides one for each caller that is
// waiting. Otherwise it returns ErrLocked without waiting, and leaves no node behind. Without
// a connection it returns ErrNotConnected.
func (s *Semaphore) TryAcquire(ctx context.Context, k int) (*Hold, error) {
	return s.obtain(ctx, "try", k, func(ctx context.Context, dir string, k int) (*place, error) {
		return atOnce(ctx, s.c, func(ctx context.Context, sess *session) (*place, error) { return s.try(ctx, sess, dir, k) })
	})
}

// Permits returns k permits in the form in which LockAll takes them.
func (s *Semaphore) Permits(k int) Locker { return permits{s, k} }

type permits struct {
	s *Semaphore
	k int
}

func (p permits) Lock(ctx context.Context) (*Hold, error) { return p.s.Acquire(ctx, p.k) }

func (p permits) Path() string { return p.s.path }

func (p permits) lockable() lockable {
	return lockable{c: p.s.c, path: p.s.path, err: p.s.check(p.k)}
}

// check says what is wrong with the semaphore or with asking it for k permits.
func (s *Semaphore) check(k int) error {
	switch {
	case s.permits < 1 || s.permits > maxPermits:
		return fmt.Errorf("%w: a semaphore of %d permits", ErrInvalid, s.permits)
	case k < 1:
		return fmt.Errorf("%w: %d permits", ErrInvalid, k)
	case k > s.permits:
		return fmt.Errorf("%w: %w: %d permits of %d", ErrInvalid, ErrLimit, k, s.permits)
	}
	if err := checkPath(s.path); err != nil {
		return err
	}
	if size := s.c.batchSize(leaseRecipe, s.c.root+s.path+leasesDir, s.c.identity, k); size > maxRequest {
		return fmt.Errorf("%w: %w: %d permits at once need a request of %d bytes, the limit is %d", ErrInvalid, ErrLimit, k, size, maxRequest)
	}
	return nil
}

// obtain makes a hold of the permits that get returns.
func (s *Semaphore) obtain(ctx context.Context, verb string, k int, get func(ctx context.Context, dir string, k int) (*place, error)) (*Hold, error) {
	verb = fmt.Sprint(verb, " ", k, " of")
	if err := s.check(k); err != nil {
		return nil, fmt.Errorf("zklock: %s %s: %w", verb, printable(s.path), err)
	}
	return s.c.obtain(ctx, wish{verb, leaseRecipe.name, s.path, func(ctx context.Context, dir string) (*place, error) {
		return get(ctx, dir, k)
	}})
}

// queue takes permits in its turn, once. The place that it returns with an error is to be
// discarded.
func (s *Semaphore) queue(ctx context.Context, sess *session, dir string, k int, asked *revocation) (*place, error) {
	gate := s.c.newPlace(gateRecipe, dir+gateDir, s.c.identity)
	gate.asked, gate.unread = asked, 0 // nobody else writes to it
	defer s.c.remove(gate.contender)
	if err := gate.enter(ctx, sess); err != nil {
		return nil, err
	}
	s.c.observe(observe.Event{Kind: observe.Queued, Recipe: gateRecipe.name, Path: s.path, Node: gate.name, Behind: len(gate.ahead)})
	leases, err := s.leaseInTurn(ctx, sess, dir, k, gate)
	err = gate.unlessEvicted(ctx, err)
	if err != nil && leases != nil {
		err = leases.unlessEvicted(ctx, err)
		for t := range leases.each {
			err = t.because(err)
		}
	}
	return leases, err
}

// leaseInTurn makes the nodes for permits when it is gate's turn. What others do is seen
// apart from what becomes of gate: it must be there whenever their going lets us on.
func (s *Semaphore) leaseInTurn(ctx context.Context, sess *session, dir string, k int, gate *place) (*place, error) {
	err := gate.wait(ctx)
	if err == nil {
		err = gate.isThere(ctx)
	}
	if err != nil {
		return nil, err
	}
	gate.held = true // its note tells the next contender so when it leaves
	return s.lease(ctx, sess, dir, k, gate)
}

// try takes permits that are free now.
func (s *Semaphore) try(ctx context.Context, sess *session, dir string, k int) (*place, error) {
	free, err := s.looksFree(ctx, sess, dir, k)
	if err != nil {
		return nil, err
	}
	if !free {
		return nil, ErrLocked
	}
	leases, err := s.lease(ctx, sess, dir, k, nil)
	if err != nil {
		s.c.discard(ctx, err, leases)
		return nil, err
	}
	return leases, nil
}

// looksFree reports whether k permits are free besides one for each contender that is just asking.
func (s *Semaphore) looksFree(ctx context.Context, sess *session, dir string, k int) (bool, error) {
	if _, err := s.agree(ctx, sess, dir); err != nil {
		return false, err
	}
	used := 0
	for _, sub := range []string{leasesDir, gateDir} {
		l, err := s.c.list(ctx, sess, dir+sub)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		used += len(parseEntries(l.names))
	}
	return used+k <= s.permits, nil
}

// lease makes k nodes for permits, in one transaction, and has them granted. If there are not
// enough free permits, it waits in the place of gate, or returns ErrLocked if gate is nil. The
// place that it returns with an error is to be discarded.
func (s *Semaphore) lease(ctx context.Context, sess *session, dir string, k int, gate *place) (*place, error) {
	leases := s.c.newBatch(leaseRecipe, dir+leasesDir, s.c.identity, k)
	if gate != nil {
		leases.group = groupOf(gate.name)
		for t := range leases.each {
			t.asked = gate.asked // a request to let go that one of them is asked is for all
		}
	}
	if err := leases.enter(ctx, sess); err != nil {
		return leases, err
	}
	fit, err := s.fit(ctx, leases, dir)
	switch {
	case err != nil || fit:
	case gate == nil:
		err = ErrLocked
	default:
		err = s.await(ctx, leases, gate, dir)
	}
	if err == nil {
		err = leases.grant(ctx, gate)
	}
	return leases, err
}

// fit reports whether there are permits for all of leases beside those ahead of them.
func (s *Semaphore) fit(ctx context.Context, leases *place, dir string) (bool, error) {
	k := len(leases.with) + 1
	enough := func(limit int) error {
		if limit < k {
			return fmt.Errorf("%w: %d permits of %d", ErrLimit, k, limit)
		}
		return nil
	}
	limit, err := again(ctx, func() (int, error) { return s.limitThat(ctx, leases.sess, dir, enough) })
	return len(leases.ahead)+k <= limit, err
}

// await waits until leases fit. It alone watches what the holders do: all others that ask for
// permits wait behind its gate. The gate must stay there as well, because others see by it
// that we wait, ask it to let go and remove it.
func (s *Semaphore) await(ctx context.Context, leases, gate *place, dir string) error {
	gate.guard(0)
	for _, t := range leases.whole() {
		s.c.keep(&t.ownNode)
		t.guard(0)
	}
	inside, stop := s.c.untilGone(ctx, &gate.ownNode)
	defer stop()
	err := s.awaitRoom(inside, leases, dir)
	if err != nil && gate.isGone() {
		return errGone // and not what the end of inside has made of a request under way
	}
	return err
}

// awaitRoom watches the holders until leases fit.
func (s *Semaphore) awaitRoom(ctx context.Context, leases *place, dir string) error {
	for {
		// The limit is read after the watch is set: Resize stirs the directory afterwards.
		w, err := again(ctx, func() (*nodeWatch, error) { return s.c.watchChildren(ctx, leases.sess, leases.dir) })
		if err == nil {
			err = leases.findPlace(ctx, listing{names: w.names, stat: w.stat}, nil)
		}
		if err != nil {
			return goneIfMissing(err)
		}
		if fit, err := s.fit(ctx, leases, dir); fit || err != nil {
			return err
		}
		if slices.ContainsFunc(leases.whole(), func(t *contender) bool { return t.isGone() }) {
			return errGone
		}
		if _, err := w.await(ctx, leases.sess, leases.gone.done()); err != nil {
			return err
		}
	}
}

// agree stores the number of permits if none is stored, and fails if it is another.
func (s *Semaphore) agree(ctx context.Context, sess *session, dir string) (int, error) {
	return s.limitThat(ctx, sess, dir, func(limit int) error {
		if limit != s.permits {
			return fmt.Errorf("%w: it has %d permits, not %d", ErrLimit, limit, s.permits)
		}
		return nil
	})
}

// limitThat returns the number of permits if it suits the caller. One that does not may be
// that of a server that lags: it counts only if it is the quorum's.
func (s *Semaphore) limitThat(ctx context.Context, sess *session, dir string, suits func(limit int) error) (int, error) {
	limit, err := s.limit(ctx, sess, dir)
	if err != nil || suits(limit) == nil {
		return limit, err
	}
	if limit, err = upToDate(ctx, s.c.requests, sess, func() (int, error) { return s.limit(ctx, sess, dir) }); err == nil {
		err = suits(limit)
	}
	return limit, err
}

// limit reads the number of permits, and stores ours where there is none: the directory
// may be new, made by Curator, or made again after ZooKeeper has cleaned it away.
func (s *Semaphore) limit(ctx context.Context, sess *session, dir string) (int, error) {
	for {
		n, err := s.c.get(ctx, sess, dir+leasesDir)
		if err == nil && len(n.data) > 0 {
			return parseLimit(n.data)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			err = s.c.makeDir(ctx, sess, dir+leasesDir, leaseRecipe.depth())
		case err == nil:
			if err = s.c.notAQueue(ctx, sess, dir); err == nil {
				_, err = s.c.set(ctx, sess, dir+leasesDir, limitData(s.permits), n.stat.Version)
			}
		}
		if err != nil && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
			return 0, err
		}
	}
}

// Resize changes the number of permits. Waiters see the change as soon as their server does.
// Current holders keep their permits, even if they now hold more than there are. Later calls
// with the old number return ErrLimit.
func (s *Semaphore) Resize(ctx context.Context, permits int) error {
	inside, stop := either(ctx, s.c.life)
	defer stop()
	if err := s.resize(inside, permits); err != nil {
		return fmt.Errorf("zklock: resize %s to %d: %w", printable(s.path), permits, s.c.explain(inside, err))
	}
	return nil
}

func (s *Semaphore) resize(ctx context.Context, permits int) error {
	if err := (&Semaphore{s.c, s.path, permits}).check(1); err != nil {
		return err
	}
	leases := s.c.root + s.path + leasesDir
	stir := leases + "/resized"
	for {
		_, err := persist(ctx, s.c.requests, func(sess *session) ([]zk.MultiResponse, error) {
			answers, err := s.c.multi(ctx, sess,
				&zk.SetDataRequest{Path: leases, Data: limitData(permits), Version: -1},
				// Waiters watch the children, and not the number.
				&zk.CreateRequest{Path: stir, Acl: s.c.acl},
				&zk.DeleteRequest{Path: stir, Version: -1})
			if errors.Is(err, zk.ErrNoNode) {
				if err := s.c.makeDir(ctx, sess, leases, leaseRecipe.depth()); err != nil {
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
